#include "policy_module.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

typedef int call_fn(const char *request, size_t len, char **answer, size_t *answer_len);
typedef void reset_fn(void);

struct policy_module {
  call_fn *call;
  reset_fn *reset;
};

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;

/* ISO C knows no way from an object's address to a function's; POSIX says it is the same. */
static int find(void *handle, const char *path, const char *name, void *to, err *e) {
  void *found = dlsym(handle, name);
  if (!found) return err_set(e, ERR_VERSION, "%s has no %s(): it is none of ours", path, name);
  *(void **)to = found;
  return 0;
}

int policy_module_open(const char *path, policy_module **out, err *e) {
  *out = NULL;
  policy_module *m = calloc(1, sizeof *m);
  if (!m) return err_set(e, ERR_NOMEM, "cannot load %s: out of memory", path);
  /* The module is never closed again: Lua's libraries do not expect to be unmapped. */
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  int rc = handle ? 0 : err_set(e, ERR_NOENT, "cannot load the policy module: %s", dlerror());
  if (rc == 0) rc = find(handle, path, "ckpt_policy_call", &m->call, e);
  if (rc == 0) rc = find(handle, path, "ckpt_policy_reset", &m->reset, e);
  if (rc < 0) {
    free(m);
    return rc;
  }
  pthread_mutex_lock(&turn);
  users++;
  pthread_mutex_unlock(&turn);
  *out = m;
  return 0;
}

void policy_module_close(policy_module *m) {
  if (!m) return;
  pthread_mutex_lock(&turn);
  if (--users == 0) m->reset();
  pthread_mutex_unlock(&turn);
  free(m);
}

int policy_module_call(policy_module *m, const char *request, size_t len, buf *answer, err *e) {
  char *text = NULL;
  size_t text_len = 0;
  pthread_mutex_lock(&turn);
  int rc = m->call(request, len, &text, &text_len);
  pthread_mutex_unlock(&turn);
  if (rc != 0 || !text)
    rc = err_set(e, ERR_POLICY, "the policy module does not answer (%d)", rc);
  else
    buf_add(answer, text, text_len);
  free(text);
  if (rc == 0 && buf_failed(answer))
    rc = err_set(e, ERR_POLICY, "the answer of the policies: %s", err_text(buf_failed(answer)));
  return rc;
}
