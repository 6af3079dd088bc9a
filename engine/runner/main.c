/* ckpt-lua: the program. */
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "runner/cli/report.h"
#include "runner/verbs/verbs.h"

/* With a standard descriptor closed, the next file that is opened would get its number, and our
 * messages would be written into it. */
static void fill_descriptors(void) {
  int fd;
  do fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= 2);
  if (fd > 2) close(fd);
}

/* Limits the number of heaps. glibc gives each thread a heap of its own, and keeps freed memory
 * there: the memory that one worker needed for a moment would be needed again by each of the
 * others. */
static void share_heap(void) {
#ifdef M_ARENA_MAX
  mallopt(M_ARENA_MAX, 1);
#endif
}

/* True if the words ask for JSON: of a command line that is wrong nothing else is known. */
static bool asks_for_json(const verb *v, char **words) {
  bool takes = false;
  for (const option_spec *const *s = v->options; s && *s; s++) takes = takes || *s == &option_json;
  for (; takes && *words && strcmp(*words, "--") != 0; words++)
    if (strcmp(*words, "--json") == 0) return true;
  return false;
}

static const char *place_of(const options *o) {
  return o->uri ? o->uri : o->run.to ? o->run.to : o->run.dir ? o->run.dir : o->dir;
}

/* Finds the verb that the words name; *skip: how many words that takes. NULL: *code ends it, and all
 * was said. */
static const verb *find_verb(int argc, char **argv, int *skip, int *code) {
  const char *name = argv[1];
  if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0) name = "help";
  if (strcmp(name, "-V") == 0 || strcmp(name, "--version") == 0) name = "version";
  const verb *v = verbs_find(name);
  *skip = 1;
  if (!v) *code = verbs_unknown(name);
  if (!v || !v->subs) return v;
  const char *word = argc > 2 ? argv[2] : NULL;
  if (word && (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0)) {
    *code = verbs_explain(v);
    return NULL;
  }
  const verb *own = word ? verb_sub(v, word) : NULL;
  *skip = 2;
  if (!own) *code = verbs_unknown_sub(v, word);
  return own;
}

int main(int argc, char **argv) {
  share_heap();
  fill_descriptors();
  if (argc < 2) {
    verbs_list(stderr);
    return EXIT_USAGE;
  }
  int skip, code = EXIT_USAGE;
  const verb *verb = find_verb(argc, argv, &skip, &code);
  if (!verb) return code;

  options o;
  char error[OPTIONS_ERROR_MAX];
  argc -= skip;
  argv += skip;
  argv[0] = (char *)verb->name; /* getopt takes the first word for the program's name */
  code = EXIT_USAGE;
  bool json = asks_for_json(verb, argv);
  if (json) report_errors_as_json();
  if (verb_parse(verb, &o, argc, argv, error) != 0) {
    report_error("%s", error);
  } else if (o.help) {
    code = verbs_explain(verb);
  } else {
    report_level(o.level);
    code = verb->run(&o);
  }
  if (json) report_json_error(code, place_of(&o));
  options_free(&o);
  return code;
}
