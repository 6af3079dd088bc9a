/* libexec/ckpt-policy.so: the sandbox as a module, for the tier inside the host's own process. It
 * exports two functions; the caller (decision/policy_module.h) lets one thread in at a time. */

#include <dlfcn.h>
#include <lua.h>
#include <luajit.h>
#include <stdint.h>

#include "policy_serve.h"
#include "policy_state.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int ckpt_policy_call(const char *request, size_t len, char **answer, size_t *answer_len);
EXPORTED void ckpt_policy_reset(void);

static policy_serve *serve;

/* Refuses to run in a host that is a Lua of another kind: its lua_* functions would be found before
 * LuaJIT's, and the two would tear each other's states apart. */
static int is_one_lua(void) {
  void *ours = (void *)(intptr_t)lua_newstate, *jit = (void *)(intptr_t)luaJIT_setmode;
  Dl_info a, b;
  return dladdr(ours, &a) && dladdr(jit, &b) && a.dli_fbase == b.dli_fbase;
}

/* Answers one request: *answer is the caller's to free(). 0, or ERR_NOMEM. Ids are shared by all
 * callers in the process. */
int ckpt_policy_call(const char *request, size_t len, char **answer, size_t *answer_len) {
  buf out = {0};
  if (!serve) serve = policy_serve_new(NULL);
  if (!serve) return ERR_NOMEM;
  int rc;
  if (is_one_lua()) {
    rc = policy_serve_call(serve, request, len, &out);
  } else {
    buf_init(&out, POLICY_ANSWER_MAX);
    rc = policy_state_refuse(
        &out, "error", "this process has a Lua of another kind in it: use the helper process");
  }
  *answer_len = out.len;
  *answer = rc == 0 ? buf_take(&out) : NULL;
  buf_free(&out);
  return rc == 0 && !*answer ? ERR_NOMEM : rc;
}

/* Drops all states. */
void ckpt_policy_reset(void) {
  policy_serve_free(serve);
  serve = NULL;
}
