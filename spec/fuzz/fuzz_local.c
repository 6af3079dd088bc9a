/* What stands on this machine: the journal, the trail, files of frameworks, what tasks say. */
#include "targets.h"

#include <string.h>
#include <sys/stat.h>

#include "run/journal/journal.h"
#include "event/structure.h"
#include "tensor_bundle.h"
#include "launch/rule/launch_record.h"
#include "run/start/slurm.h"
#include "why/trail.h"

/* Whatever is in it, it opens unless a newer version wrote it, and what was read is read again. */
void fuzz_journal(const uint8_t *data, size_t size) {
  journal *j = NULL;
  const char *path = fuzz_file("journal.jsonl", data, size);
  int rc = journal_open(fuzz_io(), path, "boot-1", false, &j, NULL);
  if (rc < 0) {
    must(rc == ERR_VERSION || rc == ERR_LIMIT);
    return;
  }
  size_t count = journal_count(j);
  for (size_t i = 0; i < count; i++) {
    journal_unit u = journal_at(j, i), found = journal_find(j, u.path);
    must(u.path && found.state == u.state && found.commit.n == u.commit.n);
    must(found.parts == u.parts && u.parts != 1);
  }
  journal_close(j);
  must(journal_open(fuzz_io(), path, "boot-1", false, &j, NULL) == 0 && journal_count(j) == count);
  journal_close(j);
}

static int take_record(void *ctx, const trail_record *record) {
  size_t *count = ctx;
  must(record->what <= TRAIL_DELETED);
  ++*count;
  return 0;
}

void fuzz_trail(const uint8_t *data, size_t size) {
  size_t count = 0, one = 0;
  trail *t = NULL;
  fuzz_file("why.jsonl", data, size);
  must(trail_read(fuzz_io(), fuzz_dir(), NULL, take_record, &count, NULL) == 0);
  must(trail_read(fuzz_io(), fuzz_dir(), "checkpoint-3", take_record, &one, NULL) == 0);
  must(one <= count);
  must(trail_open(fuzz_io(), NULL, fuzz_dir(), &t, NULL) == 0);
  trail_note(t, &(trail_record){.what = TRAIL_OPEN, .unit = "checkpoint-3", .reason = "x"});
  trail_close(t);
  one = 0;
  must(trail_read(fuzz_io(), fuzz_dir(), "checkpoint-3", take_record, &one, NULL) == 0 && one > 0);
}

/* By chance no sum of an index would agree. */
static const char *index_around(const uint8_t *data, size_t size) {
  static uint8_t file[BUNDLE_ROOM];
  return fuzz_file("g.index", file, bundle_around(file, data, size, 1));
}

/* The name decides with the bytes which format is looked for. */
void fuzz_structure(const uint8_t *data, size_t size) {
  static const char *const names[] = {"file",    "f.json", "f.safetensors", "f.pkl",
                                      "f.keras", "f.h5",   "f.ubj",         "f.index"};
  for (size_t i = 0; i <= sizeof names / sizeof *names; i++) {
    structure verdict = STRUCTURE_UNKNOWN;
    structure_proof proof = STRUCTURE_PROVES_NOTHING;
    char why[200];
    const bool last = i == sizeof names / sizeof *names;
    const char *path = last ? index_around(data, size) : fuzz_file(names[i], data, size);
    must(structure_of_file(fuzz_io(), path, &verdict, why, sizeof why, NULL) == 0);
    must(verdict == STRUCTURE_SOUND || verdict == STRUCTURE_TORN || verdict == STRUCTURE_UNKNOWN);
    must(strlen(why) < sizeof why);
    must(structure_proves(fuzz_io(), path, &proof, NULL) == 0);
    must(proof == STRUCTURE_PROVES_NOTHING || verdict == STRUCTURE_SOUND);
  }
}

static buf bytes_of(const uint8_t *data, size_t size) {
  buf b;
  buf_init(&b, size + 1);
  buf_add(&b, data, size);
  return b;
}

static void same_units(const launch_units *a, const launch_units *b) {
  must(a->count == b->count && a->count <= LAUNCH_UNITS_MAX);
  for (size_t i = 0; i < a->count; i++) {
    const launch_unit *x = &a->at[i], *y = launch_find(b, x->path);
    must(y && x->stamp == y->stamp && x->kind == y->kind && x->open == y->open);
  }
}

/* What was accepted is printed within the bound, and read again as the same. */
void fuzz_launch(const uint8_t *data, size_t size) {
  launch_question q, q2;
  launch_answer a, a2;
  buf given = bytes_of(data, size), text;
  buf_init(&text, 8 * LAUNCH_BYTES_MAX);
  if (size <= LAUNCH_BYTES_MAX && launch_parse_question(&given, &q, NULL) == 0) {
    must(launch_print_question(&q, &text, NULL) == 0);
    must(launch_parse_question(&text, &q2, NULL) == 0);
    must(q.number == q2.number && q.over == q2.over && q.excludes.count == q2.excludes.count);
    same_units(&q.units, &q2.units);
    launch_free_question(&q);
    launch_free_question(&q2);
  }
  text.len = 0;
  if (size <= LAUNCH_BYTES_MAX && launch_parse_answer(&given, &a, NULL) == 0) {
    must(launch_print_answer(&a, &text, NULL) == 0);
    must(launch_parse_answer(&text, &a2, NULL) == 0);
    must(a.number == a2.number && a.task == a2.task && strcmp(a.host, a2.host) == 0);
    must(a.ended == a2.ended && a.clean == a2.clean);
    same_units(&a.units, &a2.units);
    launch_free_answer(&a);
    launch_free_answer(&a2);
  }
  buf_free(&text);
  buf_free(&given);
}

/* What scontrol shows of a job: names and comments in it are anybody's. */
void fuzz_comment(const uint8_t *data, size_t size) {
  char *shown = fuzz_text(data, size);
  for (int admin = 0; admin < 2; admin++) {
    const size_t room = 1 + size / 2;
    char *part = malloc(room), *all = malloc(size + 1);
    must(part && all);
    bool there = slurm_comment_of(shown, admin, all, size + 1);
    must(!strchr(all, '\n') && strstr(shown, all) && (there || !*all));
    must(slurm_comment_of(shown, admin, part, room) == there);
    must(strncmp(part, all, room - 1) == 0); /* as much of it as has room */
    free(part);
    free(all);
  }
  free(shown);
}
