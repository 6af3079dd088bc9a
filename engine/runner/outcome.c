#include "outcome.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report.h"
#include "state_dir.h"
#include "text.h"

static void copy_pending(void *ctx, const ckpt_pending *p) {
  outcome *o = ctx;
  ckpt_pending *all = realloc(o->pending, (o->pending_count + 1) * sizeof *all);
  if (!all) return;
  o->pending = all;
  all += o->pending_count++;
  *all = *p;
  all->unit = p->unit ? strdup(p->unit) : NULL;
  all->reason = p->reason ? strdup(p->reason) : NULL;
}

void outcome_take(outcome *o, ckpt_run *run) {
  o->target = ckpt_run_target(run);
  o->status = (ckpt_run_status){.size = sizeof o->status};
  if (ckpt_run_get_status(run, &o->status) < 0)
    o->status.newest_status = CKPT_EINTERNAL; /* unknown is not durable */
  ckpt_run_pending(run, copy_pending, o);
}

void outcome_free(outcome *o) {
  for (size_t i = 0; i < o->pending_count; i++) {
    free((char *)o->pending[i].unit);
    free((char *)o->pending[i].reason);
  }
  free(o->pending);
  o->pending = NULL;
  o->pending_count = 0;
}

bool outcome_durable(const outcome *o) {
  return !o->unopened && o->status.newest_status == CKPT_OK && o->status.settling == 0 &&
         !o->status.fenced;
}

static void set(outcome *o, int code, const char *reason) {
  o->exit_code = code;
  o->reason = reason;
}

void outcome_decide(outcome *o, bool deadline, bool stopped_as_fenced, bool require_commit) {
  int child = o->has_child ? exit_code_of_wait(o->child_status) : 0;
  /* A child that we stopped ourselves would say 143, and hide why. */
  if (stopped_as_fenced)
    set(o, EXIT_FENCED, "fenced");
  else if (child != 0)
    set(o, child, o->signal ? "signal" : "child");
  else if (o->status.fenced)
    set(o, EXIT_FENCED, "fenced");
  else if (deadline && !outcome_durable(o))
    set(o, EXIT_DEADLINE, "deadline");
  else if (o->status.newest_status != CKPT_OK)
    set(o,
        ckpt_class(o->status.newest_status) == CKPT_CLASS_PERMANENT &&
                o->status.newest_status != CKPT_ECORRUPT
            ? EXIT_STORE
            : exit_code_of(o->status.newest_status),
        "store");
  else if (require_commit && o->status.committed == 0)
    set(o, EXIT_NOTHING, "nothing");
  else
    set(o, EXIT_DONE, o->signal ? "signal" : "done");
}

void outcome_decide_sync(outcome *o, bool deadline, uint32_t found) {
  const ckpt_run_status *s = &o->status;
  bool partial = o->pending_count > 0 || s->failed > 0 || s->unproven > 0;
  outcome_decide(o, deadline, false, false);
  /* Fenced, out of time, or refused by the store from the beginning: that says more. */
  if (s->fenced || s->newest_status == CKPT_ECORRUPT || (deadline && !outcome_durable(o)) ||
      (partial && s->committed == 0 && s->failed))
    return;
  if (partial)
    set(o, EXIT_PARTIAL, "partial");
  else if (s->committed + s->skipped + found == 0)
    set(o, EXIT_NOTHING, "nothing");
}

/* ---- the last line ---- */

static void add_newest(FILE *f, const ckpt_run_status *s) {
  if (!s->newest_unit) return;
  fprintf(f, ", newest %s", s->newest_unit);
  if (s->newest_step >= 0) fprintf(f, " (step %lld)", (long long)s->newest_step);
  if (s->newest_age_s >= 0) {
    fputs(", ", f);
    text_age(f, s->newest_age_s, 0);
    fputs(" ago", f);
  }
}

static void add_count(FILE *f, uint32_t n, const char *what) {
  if (n > 0) fprintf(f, ", %u %s", n, what);
}

static void add_pending(FILE *f, const outcome *o) {
  enum { NAMED = 10 }; /* a line is read by people */
  for (size_t i = 0; i < o->pending_count && i < NAMED; i++) {
    const ckpt_pending *p = &o->pending[i];
    fprintf(f, "%s%s (", i == 0 ? "; NOT durable: " : ", ", p->unit ? p->unit : "?");
    text_size(f, p->bytes_left);
    fputs(" left)", f);
  }
  if (o->pending_count > NAMED) fprintf(f, " and %zu more", o->pending_count - NAMED);
}

void outcome_sentence(FILE *f, const outcome *o) {
  const ckpt_run_status *s = &o->status;
  if (o->unopened) {
    fprintf(f, "the run did not begin: %s", o->text ? o->text : "");
    return;
  }
  fprintf(f, "%u committed", s->committed);
  add_newest(f, s);
  if (s->committed > 0) {
    fputs(", ", f);
    text_size(f, s->bytes_committed);
  }
  fprintf(f, "; %u dropped", s->dropped);
  add_count(f, s->skipped, "skipped by the policy");
  add_count(f, s->retired, "changed while read");
  add_count(f, s->failed, "failed");
  add_count(f, s->unproven, "not proven whole");
  if (s->policy_fallbacks > 0)
    fprintf(f, "; a policy failed %llu time%s, and the safe answer held",
            (unsigned long long)s->policy_fallbacks, s->policy_fallbacks == 1 ? "" : "s");
  if (s->fenced) fputs("; fenced by a newer run", f);
  add_pending(f, o);
  if (o->pending_count == 0 && !outcome_durable(o))
    fprintf(f, "; the newest is NOT durable (%s)", ckpt_status_name(s->newest_status));
}

void outcome_print(const outcome *o) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return;
  outcome_sentence(f, o);
  if (fclose(f) == 0) report_error("%s", text);
  free(text);
}

/* ---- exit.json ---- */

static void json_member(FILE *f, const char *key, const char *text) {
  fprintf(f, ",\"%s\":", key);
  if (text)
    text_json(f, text);
  else
    fputs("null", f);
}

static void json_time(FILE *f, const char *key, int64_t ns) {
  fprintf(f, ",\"%s\":\"", key);
  text_time(f, ns);
  fputc('"', f);
}

static void json_child(FILE *f, const outcome *o) {
  if (!o->has_child)
    fputs(",\"child\":null", f);
  else if (WIFSIGNALED(o->child_status))
    fprintf(f, ",\"child\":{\"signal\":%d}", WTERMSIG(o->child_status));
  else
    fprintf(f, ",\"child\":{\"code\":%d}", WEXITSTATUS(o->child_status));
}

static void json_newest(FILE *f, const ckpt_run_status *s) {
  if (!s->newest_unit) {
    fputs(",\"newest\":null", f);
    return;
  }
  fputs(",\"newest\":{\"unit\":", f);
  text_json_name(f, s->newest_unit);
  if (s->newest_step >= 0)
    fprintf(f, ",\"step\":%lld", (long long)s->newest_step);
  else
    fputs(",\"step\":null", f);
  fprintf(f, ",\"age_s\":%.3f}", s->newest_age_s >= 0 ? s->newest_age_s : 0.0);
}

static void json_pending(FILE *f, const outcome *o) {
  fputs(",\"not_durable\":[", f);
  for (size_t i = 0; i < o->pending_count; i++) {
    const ckpt_pending *p = &o->pending[i];
    fprintf(f, "%s{\"unit\":", i ? "," : "");
    text_json_name(f, p->unit ? p->unit : "");
    json_member(f, "reason", p->reason);
    fprintf(f, ",\"bytes\":%llu,\"bytes_left\":%llu}", (unsigned long long)p->bytes,
            (unsigned long long)p->bytes_left);
  }
  fputc(']', f);
}

void outcome_json_state(FILE *f, const outcome *o) {
  const ckpt_run_status *s = &o->status;
  fprintf(f, "\"durable\":%s,\"fenced\":%s", outcome_durable(o) ? "true" : "false",
          s->fenced ? "true" : "false");
  fprintf(f, ",\"committed\":%u,\"dropped\":%u,\"retired\":%u,\"failed\":%u,\"unproven\":%u",
          s->committed, s->dropped, s->retired, s->failed, s->unproven);
  fprintf(f, ",\"skipped\":%u", s->skipped);
  json_member(f, "policies", s->policies);
  fprintf(f, ",\"policy_fallbacks\":%llu", (unsigned long long)s->policy_fallbacks);
  fprintf(f, ",\"bytes_committed\":%llu,\"bytes_left\":%llu,\"unmatched\":%llu",
          (unsigned long long)s->bytes_committed, (unsigned long long)s->bytes_left,
          (unsigned long long)s->unmatched);
  json_newest(f, s);
  json_pending(f, o);
}

/* First what a person wants to know, and of which target it is true: `status` reads these two
 * without knowing the rest. */
static void json_summary(FILE *f, const outcome *o) {
  char *text = NULL;
  size_t size = 0;
  FILE *sentence = open_memstream(&text, &size);
  if (!sentence) return;
  outcome_sentence(sentence, o);
  fputs("\"summary\":", f);
  text_json(f, fclose(sentence) == 0 ? text : "");
  free(text);
}

static void json_outcome(FILE *f, const outcome *o) {
  fputc('{', f);
  json_summary(f, o);
  json_member(f, "target", o->target);
  json_member(f, "version", ckpt_version());
  json_member(f, "verb", o->verb);
  fprintf(f, ",\"exit_code\":%d", o->exit_code);
  json_member(f, "reason", o->reason);
  json_member(f, "error", o->text && *o->text ? o->text : NULL);
  json_child(f, o);
  if (o->signal)
    fprintf(f, ",\"signal\":%d,", o->signal);
  else
    fputs(",\"signal\":null,", f);
  outcome_json_state(f, o);
  json_time(f, "started", o->begin_ns);
  json_time(f, "ended", o->end_ns);
  fprintf(f, ",\"seconds\":%.3f}\n", (double)(o->end_ns - o->begin_ns) / 1e9);
}

/* A reader must see the old file or the whole new one, also after a power cut. */
static int replace(int dir, const char *from, const char *to) {
  return renameat(dir, from, dir, to) != 0 || fsync(dir) != 0 ? -errno : 0;
}

static int write_json(const outcome *o, int dir, const char *name) {
  /* Never through a link that somebody put there, nor into what a killed run of ours left. */
  if (unlinkat(dir, name, 0) < 0 && errno != ENOENT) return -errno;
  int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
  if (!f) {
    int error = errno;
    if (fd >= 0) close(fd);
    return -error;
  }
  json_outcome(f, o);
  int rc = 0;
  if (fflush(f) != 0 || fsync(fd) != 0) rc = -errno;
  if (fclose(f) != 0 && rc == 0) rc = -errno;
  return rc;
}

void outcome_write(const outcome *o, const char *state) {
  static const char to[] = "exit.json", tmp[] = "exit.json.tmp";
  int dir = state_dir_open(state), rc = dir;
  if (dir >= 0) rc = write_json(o, dir, tmp);
  if (rc == 0) rc = replace(dir, tmp, to);
  if (rc < 0) report_warning("cannot write %s/%s: %s", state, to, strerror(-rc));
  if (rc < 0 && dir >= 0) unlinkat(dir, tmp, 0);
  if (dir >= 0) close(dir);
}

void outcome_forget(const char *state) {
  int dir = state_dir_open(state);
  if (dir < 0 || (unlinkat(dir, "exit.json", 0) != 0 && errno != ENOENT))
    report_warning("cannot remove %s/exit.json: %s", state, strerror(dir < 0 ? -dir : errno));
  if (dir >= 0) close(dir);
}
