/* lua_fs: declarations that lua_fs.c and lua_fs_change.c share. */
#ifndef LUA_CKPT_LUA_FS_H
#define LUA_CKPT_LUA_FS_H

#include <lua.h>

/* Adds the functions that change files to the table on top. */
void l_fs_add_changes(lua_State *L);

#endif
