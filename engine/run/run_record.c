/* run_record: what happens in a run, told to a record that `policy simulate` reads: what the policies
 * are asked about, and how long saves take. Files above the checkpoints are no part of it, and neither is
 * what was at the target before. Of several ranks the first one records, since it is the one that asks. */
#include "lab/recorder.h"
#include "prims/fs.h"
#include "run/run_state.h"

static void add_of_all(const run *r, lab_event event) {
  event.trial = (char *)LAB_EACH;
  lab_recorder_add(r->record, &event);
}

static void group_starts(const run *r, const run_group *g) {
  lab_recorder_add(
      r->record, &(lab_event){.what = LAB_START, .trial = (char *)g->group.prefix, .limit_s = -1});
}

void run_record_open(run *r, const char *path) {
  if (path && r->ranks.rank == 0) r->record = lab_recorder_open(r->env->io, r->env->log, path);
}

void run_record_start(run *r) {
  if (!r->record) return;
  add_of_all(r, (lab_event){.what = LAB_START, .limit_s = run_policy_left(r)});
  for (size_t i = 0; i < r->group_count; i++)
    if (!r->groups[i]->foreign) group_starts(r, r->groups[i]);
}

void run_record_group(run *r, const run_group *g) {
  if (r->record && r->started) group_starts(r, g);
}

void run_record_result(run *r, const char *json) {
  add_of_all(r, (lab_event){.what = LAB_RESULT, .result = (char *)json});
}

void run_record_preempt(run *r) {
  const double most_s = 1e9;
  add_of_all(
      r, (lab_event){.what = LAB_PREEMPT, .grace_s = r->grace_s < most_s ? r->grace_s : most_s});
}

void run_record_end(run *r) {
  if (r->started) add_of_all(r, (lab_event){.what = LAB_END});
}

void run_record_complete(run *r, run_unit *u, const detect_unit *unit) {
  if (!r->record || run_follows(r)) return;
  unit_sort sort = run_unit_sort(r, u->path, u->kind);
  if (sort == SORT_TEMP && u->asked_for) sort = SORT_PERM;
  lab_recorder_add(r->record, &(lab_event){.what = LAB_CHECKPOINT,
                                           .trial = (char *)u->group->group.prefix,
                                           .name = (char *)fs_base(u->path),
                                           .kind = run_sort_name(sort),
                                           .metrics = (char *)run_unit_numbers(r, u, unit),
                                           .step = u->step,
                                           .bytes = unit->bytes,
                                           .sized = true});
}

void run_record_transfer(run *r, const run_save *s, int64_t took_ns) {
  const int status = s->job.status;
  const run_unit *u = s->unit;
  lab_recorder_add(r->record, &(lab_event){.what = LAB_TRANSFER,
                                           .trial = (char *)s->group->group.prefix,
                                           .name = (char *)fs_base(u->path),
                                           .step = MATCH_NO_STEP,
                                           .bytes = status == 0 ? s->job.bytes : u->bytes,
                                           .sized = true,
                                           .transfer_s = (double)took_ns / 1e9,
                                           .outcome = status == 0 ? LAB_OK : LAB_FAIL,
                                           .fault = status});
}
