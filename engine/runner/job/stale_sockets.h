/* stale_sockets: sockets of runs that were killed. Each start has a name of its own for its socket, so nobody
 * comes back to that of a state directory that is gone: in time there are thousands.
 *
 * A socket that is bound, and not yet listened to, looks like one of the dead, so only what is an hour old
 * goes. Between the look and the removal the run of that name may have been started again: so it is moved
 * aside first, and looked at there; a new one is put back. */
#ifndef RUNNER_JOB_STALE_SOCKETS_H
#define RUNNER_JOB_STALE_SOCKETS_H

/* Removes the sockets of this user beside `own`, our own one, that nobody has listened to for an hour, if they are
 * named as it is (16 hex digits: the directory is for sockets alone). Only on a file system of this machine. Blocks for no longer than a listing does. What
 * cannot be removed stays, in silence: the next start tries it again. */
void stale_sockets_remove(const char *own);

#endif
