#include "store_proxy.h"

#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tmpdir.h"

static const char *direct, *through, *rules_file;
static char log_file[4096];

bool store_proxy_begin(void) {
  direct = getenv("CKPT_TEST_S3");
  through = getenv("CKPT_TEST_S3_PROXY");
  rules_file = getenv("CKPT_TEST_S3_RULES");
  if (!direct || !through || !rules_file) return false;
  snprintf(log_file, sizeof log_file, "%s.log", rules_file);
  setenv("AWS_ENDPOINT_URL", direct, 1);
  return true;
}

void store_proxy_rules(const char *text) {
  char tmp[4096];
  snprintf(tmp, sizeof tmp, "%s.new", rules_file);
  write_file(tmp, text);
  rename(tmp, rules_file);
  unlink(log_file);
}

int store_proxy_asked(const char *method, const char *text) {
  size_t len;
  int found = 0;
  char *log = read_file(log_file, &len);
  for (char *line = log ? strtok(log, "\n") : NULL; line; line = strtok(NULL, "\n"))
    found += strncmp(line, method, strlen(method)) == 0 && strstr(line, text);
  free(log);
  return found;
}

store *store_proxy_open(void **state, const char *endpoint, const io *io, const log_sink *log) {
  const store_place *p = *state;
  store *s;
  err e = {0};
  setenv("AWS_ENDPOINT_URL", endpoint, 1);
  if (store_open(&p->where, io, log, &s, &e) < 0) fail_msg("%s", e.text);
  setenv("AWS_ENDPOINT_URL", direct, 1);
  return s;
}

store *store_proxied(void **state) {
  return store_proxy_open(state, through, io_system(), NULL);
}
