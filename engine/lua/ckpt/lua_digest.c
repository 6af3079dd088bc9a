/* For trusted Lua: digests (`require "ckpt.core".digest`). */
#include <fcntl.h>
#include <lauxlib.h>
#include <stdlib.h>

#include "lua_ckpt.h"
#include "prims/fs.h"
#include "prims/hash.h"

static const char digest_type[] = "ckpt.digest";

typedef struct digest_box {
  hash *h; /* NULL: ended */
} digest_box;

/* A kind that is unknown is misuse. */
static hash_kind l_kind(lua_State *L, int index) {
  hash_kind kind = HASH_XXH3_128;
  const char *name = luaL_optstring(L, index, NULL);
  err e = {0};
  if (name && hash_kind_of(name, &kind, &e) < 0) luaL_argerror(L, index, e.text);
  return kind;
}

static int push_digest(lua_State *L, int rc, const digest *d, const err *e) {
  char hex[HASH_HEX_MAX];
  if (rc < 0) return l_ckpt_err(L, e);
  digest_hex(d, hex);
  lua_pushstring(L, hex);
  return 1;
}

/* of(data[, kind]) -> hex */
static int l_of(lua_State *L) {
  size_t len;
  luaL_checktype(L, 1, LUA_TSTRING);
  const char *data = lua_tolstring(L, 1, &len);
  hash_kind kind = l_kind(L, 2);
  digest d;
  err e = {0};
  return push_digest(L, hash_bytes(kind, data, len, &d, &e), &d, &e);
}

/* ---- in pieces ---- */

static int l_begin(lua_State *L) {
  hash_kind kind = l_kind(L, 1);
  err e = {0};
  digest_box *box = lua_newuserdata(L, sizeof *box);
  *box = (digest_box){0};
  luaL_getmetatable(L, digest_type);
  lua_setmetatable(L, -2);
  return hash_begin(kind, &box->h, &e) < 0 ? l_ckpt_err(L, &e) : 1;
}

static digest_box *l_box(lua_State *L) {
  digest_box *box = luaL_checkudata(L, 1, digest_type);
  if (!box->h) luaL_argerror(L, 1, "this digest has ended");
  return box;
}

static int l_add(lua_State *L) {
  size_t len;
  digest_box *box = l_box(L);
  luaL_checktype(L, 2, LUA_TSTRING);
  const char *data = lua_tolstring(L, 2, &len);
  err e = {0};
  if (hash_add(box->h, data, len, &e) < 0) return l_ckpt_err(L, &e);
  lua_pushboolean(L, 1);
  return 1;
}

static int l_end(lua_State *L) {
  digest_box *box = l_box(L);
  hash *h = box->h;
  digest d;
  err e = {0};
  box->h = NULL;
  return push_digest(L, hash_end(h, &d, &e), &d, &e);
}

static int l_free(lua_State *L) {
  digest_box *box = luaL_checkudata(L, 1, digest_type);
  hash_end(box->h, NULL, NULL);
  box->h = NULL;
  return 0;
}

/* ---- of a file, as a manifest has it ---- */

/* Puts the digest of one block into the list. 1 at the end of the file. */
static int digest_block(const io *io, int fd, const char *path, hash_kind kind, char *bytes,
                        buf *blocks, err *e) {
  digest d;
  ssize_t n = fs_fill(io, fd, bytes, HASH_BLOCK);
  if (n < 0) return err_sys(e, (int)n, "cannot read %s", path);
  if (n == 0) return 1;
  int rc = hash_bytes(kind, bytes, (size_t)n, &d, e);
  if (rc < 0) return rc;
  buf_add(blocks, &d, sizeof d);
  if (buf_failed(blocks)) return err_set(e, buf_failed(blocks), "%s has too many blocks", path);
  return n < HASH_BLOCK;
}

static int digest_file(const char *path, hash_kind kind, buf *blocks, digest *out, err *e) {
  const io *io = io_system();
  struct stat st;
  char *bytes = NULL;
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
  if (fd < 0) return err_sys(e, fd, "cannot open %s", path);
  int rc = io->fstat(io, fd, &st);
  if (rc < 0) rc = err_sys(e, rc, "cannot look at %s", path);
  if (rc == 0 && !S_ISREG(st.st_mode)) rc = err_set(e, ERR_INVAL, "%s is not a regular file", path);
  if (rc == 0 && !(bytes = malloc(HASH_BLOCK)))
    rc = err_set(e, ERR_NOMEM, "no memory to read %s", path);
  while (rc == 0) rc = digest_block(io, fd, path, kind, bytes, blocks, e);
  free(bytes);
  io->close(io, fd); /* nothing was written: nothing can be lost */
  if (rc < 0) return rc;
  return hash_of_blocks(kind, (const void *)blocks->data, blocks->len / sizeof(digest), out, e);
}

/* 2^18 blocks: files of 2 TiB. */
enum { BLOCKS_MAX = 1 << 18 };

static int l_file(lua_State *L) {
  const char *path = l_ckpt_path(L, 1);
  hash_kind kind = l_kind(L, 2);
  digest d;
  err e = {0};
  buf *blocks = l_ckpt_buf(L, BLOCKS_MAX * sizeof d);
  int rc = digest_file(path, kind, blocks, &d, &e);
  buf_free(blocks);
  return push_digest(L, rc, &d, &e);
}

void l_ckpt_register_digest(lua_State *L) {
  static const luaL_Reg functions[] = {{"of", l_of},      {"begin", l_begin}, {"add", l_add},
                                       {"finish", l_end}, {"file", l_file},   {NULL, NULL}};
  luaL_newmetatable(L, digest_type);
  lua_pushcfunction(L, l_free);
  lua_setfield(L, -2, "__gc");
  lua_pop(L, 1);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_setfield(L, -2, "digest");
}
