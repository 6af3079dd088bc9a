/* policy_module: the sandbox of policies inside our own process, for operators who want no helper:
 * `<libexec>/ckpt-policy.so`, loaded so that its Lua shows to nobody else.
 *
 * It lacks two protections: a bug of LuaJIT is our host's, and nothing ends a request from outside;
 * the module's own budgets have to. The module has one set of chains for the whole process, so
 * calls of several engines take turns. */
#ifndef DECISION_POLICY_MODULE_H
#define DECISION_POLICY_MODULE_H

#include "base/buf.h"
#include "base/err.h"

typedef struct policy_module policy_module;

int policy_module_open(const char *path, policy_module **out, err *e);
/* Drops all chains when the last one closes; NULL is fine. The code stays loaded. */
void policy_module_close(policy_module *m);

/* Makes one request, and appends its answer. */
int policy_module_call(policy_module *m, const char *request, size_t len, buf *answer, err *e);

#endif
