#include "server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 10 };

static void must(int ok, const char *what) {
  if (ok) return;
  perror(what);
  abort();
}

server server_start(const char *name, const char *const *arguments) {
  char path[256];
  const char *argv[2 + ARGUMENTS_MAX + 1] = {"python3", path};
  snprintf(path, sizeof path, "spec/servers/%s", name);
  for (int i = 0; arguments && arguments[i] && i < ARGUMENTS_MAX; i++) argv[2 + i] = arguments[i];
  int in[2], out[2];
  must(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "pipe for a server");
  server s = {.pid = fork(), .in = in[1]};
  must(s.pid >= 0, "fork for a server");
  if (s.pid == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    execvp(argv[0], (char *const *)argv);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  FILE *said = fdopen(out[0], "r");
  must(said && fscanf(said, "%d", &s.port) == 1, path);
  fclose(said);
  return s;
}

void server_stop(server *s) {
  close(s->in);
  kill(s->pid, SIGKILL);
  waitpid(s->pid, NULL, 0);
}
