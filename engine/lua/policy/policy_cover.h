/* policy_cover: which lines of its policies a state has run, for tests of policies. */
#ifndef LUA_POLICY_POLICY_COVER_H
#define LUA_POLICY_POLICY_COVER_H

#include <lua.h>

#include "base/buf.h"
#include "base/json.h"

typedef struct policy_cover policy_cover;

/* Makes one for the chain of a request. It takes as many bytes as the texts have lines. NULL: out of
 * memory. */
policy_cover *cover_new(const json_t *chain);
void cover_free(policy_cover *c); /* NULL is fine */

/* Takes the list on top of the stack off: the lines of that policy that have code. */
void cover_code(policy_cover *c, lua_State *L, const char *policy);

/* Notes the line of a line hook, if it is one of a policy. It takes no memory of the state. */
void cover_line(policy_cover *c, lua_State *L, lua_Debug *at);

/* Appends {"policy":NAME,"code":[LINE, ...],"reached":[LINE, ...]} for each policy, with a comma
 * between two: what was noted since the last time. */
void cover_print(policy_cover *c, buf *out);

/* Returns how many bytes may be needed to tell all that there could be of the chain, its rules too. */
size_t cover_room(const policy_cover *c);

#endif
