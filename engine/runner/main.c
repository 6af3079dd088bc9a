/* ckpt-lua: the program. A table of verbs, their help, and the way from argv to one of them. */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "report.h"
#include "verbs.h"

static int verb_help(const options *o);

static const struct verb {
  unsigned bit;
  const char *name;
  int (*run)(const options *o);
  const char *synopsis; /* after "ckpt-lua " */
  const char *summary;
  const char *text; /* what the help says below the options; may be NULL */
} verbs[] = {
    {VERB_RUN, "run", verb_run, "run --dir DIR --to URI [options] [--] COMMAND...",
     "run a training command, keep its checkpoints safe, and resume from them",
     "COMMAND gets in its environment\n"
     "  CKPT_DIR            DIR, absolute\n"
     "  CKPT_RESUME         the checkpoint to resume from; not set on a fresh start\n"
     "  CKPT_RESTORED_FROM  where that was restored from; not set if it was there\n"
     "  CKPT_SOCKET         a socket for results: JSON objects, one on each line\n"
     "  CKPT_STATE_ID       finds what a killed run left alive: leave it in the environment\n"
     "\n"
     "TERM, INT and HUP are passed on once. The job then has the grace to save and end; shortly\n"
     "before it is over the job is killed, and what is not durable is named. A second ^C kills\n"
     "the job at once. The state directory has exit.json afterwards.\n"
     "\n"
     "Exit code: that of COMMAND (128+n for signal n); if it is 0, all is durable, else\n"
     "  4 nothing was saved (--require-commit)   6 the store failed, gave up\n"
     "  7 the store refuses (access, space)     13 the grace was over before all was durable\n"
     " 14 a newer run writes to this target    125 we could not start, 126 and 127 as in shells\n"},
    {VERB_WATCH, "watch", verb_run, "watch --dir DIR --to URI [options]",
     "the same beside a job that already runs; ends on TERM or INT",
     "Exit code: 0 when all that is complete is durable; else as those of run.\n"},
    {VERB_SYNC, "sync", verb_sync, "sync DIR --to URI [options]",
     "commit the complete checkpoints of a directory once, and end",
     "For a directory in which nobody writes any more. Nothing is deleted, neither here nor at "
     "the\n"
     "target. What nothing proves to be whole is named and not saved.\n"
     "Exit code: 0 all is durable, 3 some could not be saved, 4 there is no checkpoint in DIR;\n"
     "else as those of run.\n"},
    {VERB_RESTORE, "restore", verb_restore, "restore URI [NAME] --dir DIR [options]",
     "copy a checkpoint back, every byte compared",
     "URI is what --to was, or a checkpoint in it. Without NAME the newest of each group.\n"
     "Prints the path of each one. Exit code: 4 there is none, 5 it is damaged.\n"},
    {VERB_LS, "ls", verb_ls, "ls URI [options]", "list the checkpoints that were committed",
     "Oldest first, group by group. Exit code: 4 no run has written there, 10 no such store.\n"},
    {VERB_SHOW, "show", verb_show, "show URI [NAME] [options]",
     "tell all about one checkpoint: who wanted it saved, why, its metrics",
     "Without NAME the newest. With --json each of its files too. Exit code: 4 there is none.\n"},
    {VERB_LATEST, "latest", verb_latest, "latest URI [options]",
     "print the name of the newest checkpoint",
     "--uri prints its address, for other tools. Exit code: 4 there is none.\n"},
    {VERB_VERIFY, "verify", verb_verify, "verify URI [NAME] [options]",
     "read every byte of one checkpoint, or of all, and compare",
     "URI may also be a checkpoint that was copied elsewhere. Exit code: 5 if any is bad.\n"},
    {VERB_WHY, "why", verb_why, "why NAME|PATH [--dir DIR] [--to URI] [options]",
     "say what became of a checkpoint or a file, and why it was not saved",
     "Asks the run while it is alive, else reads what it wrote down.\n"},
    {VERB_PLAN, "plan", verb_plan, "plan URI [-p POLICY] [options]",
     "say what retention would do at a target now, and why; changes nothing", NULL},
    {VERB_RM, "rm", verb_rm, "rm URI NAME | rm URI --all [options]",
     "stop keeping a checkpoint, and delete it when the grace is over",
     "It is hidden at once; its data goes in a later pass, when --grace-delete has passed (with\n"
     "--grace-delete 0: now). The newest one and pinned ones are refused: exit code 11.\n"},
    {VERB_GC, "gc", verb_gc, "gc URI|PREFIX [options] | gc URI --remove-run --yes",
     "remove what nobody needs any more: from any machine, beside a live run too",
     "Saves that nobody goes on with, what was dropped longer than --grace-delete ago, expired "
     "pins,\n"
     "leftovers of killed processes, uploads of no save; of every run at or below the place. What "
     "a\n"
     "live run may need stays. --remove-run removes the runs whole: only their logs stay.\n"
     "Exit code: 0 all is clean, 1 something stays that should go, 4 no run has written there,\n"
     "11 (--remove-run) the run is alive, or a checkpoint is pinned.\n"},
    {VERB_PIN, "pin", verb_pin, "pin URI NAME [--for TIME] [options]",
     "keep a checkpoint from being deleted",
     "Prints the pin's id, for unpin. Exit code: 4 there is no such checkpoint.\n"},
    {VERB_UNPIN, "unpin", verb_unpin, "unpin URI NAME|ID [options]",
     "take back one pin, or all of a checkpoint", "Exit code: 4 there is none.\n"},
    {VERB_MARK, "mark", verb_mark, "mark bad|good URI [NAME] [--reason TEXT]",
     "say that a checkpoint does not load, or take that back",
     "Without NAME the newest (good: the newest that is bad). One that is bad is restored only by\n"
     "name; the one before it counts as the newest. Exit code: 4 there is none.\n"},
    {VERB_BISECT, "bisect", verb_bisect, "bisect URI [--linear] [--mark] [options] [-- COMMAND...]",
     "find the newest checkpoint that a command of yours accepts",
     "Each candidate is restored into a temporary directory, one at a time, and COMMAND is run "
     "with\n"
     "its path in place of {} and in CKPT_RESUME. It ends with 0 if the checkpoint is good, with "
     "125\n"
     "if it cannot tell, else it is bad. Without COMMAND one is good whose data is what was "
     "saved.\n"
     "Halves what is left each time, as if all from some point on were bad; --linear does not.\n"
     "Prints the name. Exit code: 4 none is good, 3 some could not be told.\n"},
    {VERB_NOTIFY, "notify", verb_notify, "notify KEY=VALUE... | notify '{\"json\":...}' [options]",
     "tell the run a result, from inside the job",
     "Numbers, true and false are sent as such, all else as text. checkpoint=NAME says which\n"
     "checkpoint is meant. The run is that of $CKPT_SOCKET, or of --dir.\n"
     "Exit code: 0 taken (whatever a policy then does with it), 1 refused, or with --wait not\n"
     "saved; 4 no run is alive.\n"},
    {VERB_STATUS, "status", verb_status, "status [DIR] [options]",
     "say how a run stands, or how the last one ended",
     "The run that watches DIR; inside of a job its own. Exit code: 4 there was none.\n"},
    {VERB_PACK, "pack", verb_pack, "pack DIR FILE [options]", "make a tar archive of a directory",
     "FILE ends in .tar, .tar.gz, .tgz, .tar.zst or .tzst, and must not exist. Equal directories "
     "give\n"
     "equal archives: names are sorted, modes and times kept, owners and extended attributes left\n"
     "out. Devices, and links that lead out of DIR, are refused.\n"},
    {VERB_UNPACK, "unpack", verb_unpack, "unpack FILE --dir DIR [options]",
     "make a directory of a tar archive, all of it or nothing",
     "The archive may be anybody's: nothing is ever written outside of DIR, and whatever is no "
     "file,\n"
     "no directory and no link that stays inside is refused, as is what grows too large. FILE -\n"
     "is standard input.\n"},
    {VERB_EXEC, "exec", verb_exec, "exec FILE [ARGS...]", "run a Lua script with require \"ckpt\"",
     "Exit code: that of the script; 127 if our program for scripts is not there.\n"},
    {VERB_VERSION, "version", verb_version, "version [--json]", "say which version this is", NULL},
    {VERB_HELP, "help", verb_help, "help [VERB]", "explain a verb", NULL},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static const struct verb *find_verb(const char *name) {
  for (int i = 0; i < VERBS; i++)
    if (strcmp(verbs[i].name, name) == 0) return &verbs[i];
  return NULL;
}

static int unknown_verb(const char *name) {
  const char *names[VERBS];
  for (int i = 0; i < VERBS; i++) names[i] = verbs[i].name;
  const char *near = words_nearest(name, names, VERBS);
  if (near)
    report_error("there is no verb '%s'; did you mean %s?", name, near);
  else
    report_error("there is no verb '%s'; see: ckpt-lua help", name);
  return EXIT_USAGE;
}

static void print_usage(FILE *out) {
  fputs("usage: ckpt-lua VERB ...\n\n", out);
  for (int i = 0; i < VERBS; i++) fprintf(out, "  %-8s %s\n", verbs[i].name, verbs[i].summary);
  fputs("\nThe beginning: ckpt-lua run --dir out --to /backup/job1 -- python train.py\n"
        "More: ckpt-lua help VERB\n",
        out);
}

static int print_help(const struct verb *verb) {
  if (verb) {
    printf("usage: ckpt-lua %s\n\n%s\n\n", verb->synopsis, verb->summary);
    options_help(stdout, verb->bit);
    if (verb->text) printf("\n%s", verb->text);
  } else {
    print_usage(stdout);
  }
  if (fflush(stdout) == 0 && !ferror(stdout)) return EXIT_DONE;
  report_error("cannot write the output");
  return EXIT_FAILED;
}

static int verb_help(const options *o) {
  const struct verb *verb = o->name ? find_verb(o->name) : NULL;
  if (o->name && !verb) return unknown_verb(o->name);
  return print_help(verb);
}

/* With a standard descriptor closed, the next file that is opened would get its number, and our
 * messages would be written into it. */
static void fill_descriptors(void) {
  int fd;
  do fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= 2);
  if (fd > 2) close(fd);
}

/* glibc gives each thread a heap of its own, and keeps what was freed there: what one worker needed
 * for a moment would be needed again by each of the others. */
static void share_heap(void) {
#ifdef M_ARENA_MAX
  mallopt(M_ARENA_MAX, 1);
#endif
}

int main(int argc, char **argv) {
  share_heap();
  fill_descriptors();
  if (argc < 2) {
    print_usage(stderr);
    return EXIT_USAGE;
  }
  const char *name = argv[1];
  if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0) name = "help";
  if (strcmp(name, "--version") == 0) name = "version";
  const struct verb *verb = find_verb(name);
  if (!verb) return unknown_verb(name);

  options o;
  char error[OPTIONS_ERROR_MAX];
  argv[1] = (char *)verb->name; /* getopt takes the first word for the program's name */
  int code = EXIT_USAGE;
  if (options_parse(&o, verb->bit, argc - 1, argv + 1, error) != 0) {
    report_error("%s", error);
  } else if (o.help) {
    code = print_help(verb);
  } else {
    report_level(o.level);
    code = verb->run(&o);
  }
  options_free(&o);
  return code;
}
