/* server: a program of spec/servers that a test talks to. It prints its port as its first line, and
 * ends when its standard input does, so that none outlives its test. Everything here aborts with a
 * message when it fails. */
#ifndef SPEC_SERVER_H
#define SPEC_SERVER_H

#include <sys/types.h>

typedef struct server {
  pid_t pid;
  int in;
  int port;
} server;

/* spec/servers/NAME, with up to 10 arguments, ended by NULL. */
server server_start(const char *name, const char *const *arguments);
void server_stop(server *s);

#endif
