/* store_proxy: the way to a server of S3 through spec/servers/proxy.py, which does what its rules say.
 * The spec that starts both sets
 *   CKPT_TEST_S3        the server's endpoint; its keys are in the AWS_* variables
 *   CKPT_TEST_S3_PROXY  the same through the proxy
 *   CKPT_TEST_S3_RULES  the file of the proxy's rules; it keeps a log beside it */
#ifndef SPEC_STORE_PROXY_H
#define SPEC_STORE_PROXY_H

#include "store_place.h"

/* Lets the next stores go to the server itself. False: no spec has set the variables. */
bool store_proxy_begin(void);
/* What the proxy does from now on, with an empty log. */
void store_proxy_rules(const char *text);
/* How many requests had all of these words in their line of the proxy's log. */
int store_proxy_asked(const char *method, const char *text);

/* *state is a store_place on the direct way; this is the same place through the proxy, or at another
 * endpoint. */
store *store_proxied(void **state);
store *store_proxy_open(void **state, const char *endpoint, const io *io, const log_sink *log);

#endif
