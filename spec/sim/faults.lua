-- The faults that the simulator has to find: each is a rule of the protocol taken out of the engine
-- (or out of the simulated store) by a few edits of its text.
--
--   luajit spec/sim/faults.lua                 names them
--   luajit spec/sim/faults.lua --scaled DIR    writes the log's files with small constants into DIR
--   luajit spec/sim/faults.lua NAME DIR        writes the edited files of that one into DIR, and
--                                              prints how the simulator is to be called
--
-- An edit whose text is not there exactly once ends it with an error: a fault that is not put back
-- proves nothing.

-- Logs of some twenty entries must have snapshots, and readers that begin at them.
local scaled = {
  { "engine/commit/log/runlog_impl.h", "RUNLOG_SNAPSHOT_EACH = 128", "RUNLOG_SNAPSHOT_EACH = 6" },
  { "engine/commit/log/runlog_impl.h", "RUNLOG_SHORT = %d+", "RUNLOG_SHORT = 3", pattern = true },
}

local entries = "engine/commit/log/runlog_entries.c"
local state = "engine/commit/log/runlog_state.c"
local fold = "engine/commit/log/runlog_fold.c"
local log, prune, link = "engine/commit/log/runlog.c", "engine/job/keep/prune.c", "spec/sim/link.c"
local settle, ranks = "engine/commit/settle.c", "engine/job/save/job_ranks.c"
local removal = "engine/commit/removal.c"
local read_c, head_c = "engine/commit/log/runlog_read.c", "engine/commit/log/runlog_head.c"
local staging, begin = "engine/commit/staging.c", "engine/commit/staging_begin.c"
local attempt = "engine/job/save/job_attempt.c"
local behind, epoch = "engine/commit/log/runlog_behind.c", "engine/commit/log/runlog_epoch.c"
local ruin, repair = "engine/commit/log/runlog_ruin.c", "engine/job/repair/repair.c"
local rebuild, proof = "engine/commit/log/runlog_rebuild.c", "engine/commit/log/runlog_proof.c"
local evidence = "engine/job/repair/repair_evidence.c"
local said, parts = "engine/commit/ranks_said.c", "engine/commit/parts.c"
local part = "engine/commit/manifest/manifest_part.c"
local agree, hub = "engine/launch/rule/agree.c", "engine/launch/hub.c"
local seen = 'uint64_t n = r->seen == RUNLOG_NONE || FAULT("numbers-from-zero") ? 0 : r->seen + 1;'

-- Directories that are chosen by the name alone, and whose content alone says whose they are.
local always_plain = {
  { entries, "int rc = runlog_plain_free(&log->st, unit) ? runlog_key_dir(log, unit, key, e) : 1;",
    "int rc = PLAIN ? runlog_key_dir(log, unit, key, e) : 1;" },
  { entries, "if (rc == 0) rc = occupied(log->s, key, e);", "(void)occupied;" },
  { fold, "return runlog_plain_free(s, unit) ? NULL :", "return 1 ? NULL :" },
  { "engine/job/save/job.c", "(w->resumed || shared ? STORE_RESUME : 0)", "STORE_RESUME" },
  { "engine/job/save/job_seal.c",
    "if (rc == ERR_EXISTS && !w->ahead && (w->resumed || w->env->ranks))",
    "if (rc == ERR_EXISTS)" },
}

local function plain_if(condition)
  local edits = {}
  for i, edit in ipairs(always_plain) do
    edits[i] = { edit[1], edit[2], (edit[3]:gsub("PLAIN", condition)) }
  end
  return edits
end

local faults = {
  -- Why attempts have directories of their own (RELIABILITY: four schedules).
  debris_adopted_by_content = { results = true, edits = plain_if("1") },
  dropped_name_saved_again = { results = true, edits = plain_if(
    "(!runlog_newest_ever(&log->st, unit) || !runlog_newest(&log->st, unit))") },
  no_third_name = { results = true, edits = {
    { entries, "rc = runlog_later_dir(unit, log->st.next, out, e);",
      "rc = runlog_later_dir(unit, log->term, out, e);" },
    { fold, "&& strcmp(dir, later) == 0) return NULL;",
      "&& strncmp(dir, later, strlen(unit) + 2) == 0) return NULL;" },
  } },
  ranks_choose_for_themselves = { results = true, edits = {
    { attempt, "rc = runlog_key_dir(log, a->dir, w->dir, e);\n  if (rc == 0) rc = runlog_attempt",
      "rc = runlog_key_dir(log, job_follows(w) ? a->unit : a->dir, w->dir, e);\n" ..
      "  if (rc == 0) rc = runlog_attempt" },
  } },

  -- What an exhaustive check of a model found.
  adopt_planned_before_a_sweep = { edits = {
    { log, "if (rc == 0) rc = plan(log, r, &entry, e);", [[
    if (rc == 0 && kept) entry = json_incref(kept);
    else if (rc == 0) rc = plan(log, r, &entry, e);
    const char *type = json_string_value(json_object_get(entry, "type"));
    if (!kept && type && strcmp(type, "adopt") == 0) kept = json_incref(entry);]] },
    { log, "for (int i = 0; i < COLLISIONS_MAX; i++) {\n    json_t *entry = NULL;", [[
  json_t *kept = NULL;
  for (int i = 0; i < COLLISIONS_MAX; i++) {
    json_t *entry = NULL;]] },
    { log, "if (!done) continue;", "if (done) json_decref(kept);\n    if (!done) continue;" },
  } },
  old_parts_count = { results = true, edits = {
    { "engine/job/save/job_ranks.c", ".term = runlog_view(w->job->log)->term.n,", ".term = 0," },
  } },
  exists_is_done = { edits = {
    { link, "there->len == len &&\n        memcmp(there->data, data, len) == 0) {", "true) {" },
  } },
  unconditional_data_put = { edits = {
    { link, "rc = write_call(a, PUT_ABSENT, w->key,", "rc = write_call(a, PUT_REPLACE, w->key," },
  } },
  odd_name_gets_its_plain_name = { results = true, edits = {
    { state, "if (looks_like_generation(unit)) return false;", "(void)looks_like_generation;" },
  } },
  bad_and_drop_of_the_one_before = { edits = {
    { entries, "if (!r->may || r->may(r->ctx, &log->st, c)) return 0;", "return 0;" },
  } },
  bad_counts_as_kept = { edits = {
    { "engine/plan/retention.c", "return c->life == RUNLOG_LIVE && !c->bad;",
      "return c->life == RUNLOG_LIVE;" },
  } },
  save_waits_for_the_grace = { edits = {
    { prune, "if (rc == 0) rc = delete_planned(&a, now, most, rest, e);", [[
  if (rc == 0) rc = delete_planned(&a, now, most, rest, e);
  if (rc == 0 && rest->wait_ns < INT64_MAX) p->store->io->sleep(p->store->io, rest->wait_ns);]] },
  } },
  -- Entries prove each other, and the head proves the end.
  prev_is_not_made_anew = { edits = {
    { log, "for (int i = 0; i < COLLISIONS_MAX; i++) {\n    json_t *entry = NULL;", [[
  json_t *before = NULL;
  for (int i = 0; i < COLLISIONS_MAX; i++) {
    json_t *entry = NULL;]] },
    { log, "if (rc == 0 && entry) rc = append(log, entry, r->state, e);", [[
    if (rc == 0 && entry && before) json_object_set(entry, "prev", before);
    if (rc == 0 && entry) rc = append(log, entry, r->state, e);
    if (!before) before = json_incref(json_object_get(entry, "prev"));]] },
    { log, "if (log->last.len) js_set(entry,",
      'if (log->last.len && !json_object_get(entry, "prev")) js_set(entry,' },
  } },
  absent_in_front_is_not_asked_again = { edits = {
    { read_c, "  ask_again(log, ask);\n"
      .. "  for (int i = 1; ask->rc == ERR_NOENT && i < RUNLOG_LOOKS; i++) {",
      "  for (int i = 0; i < 0; i++) {" },
  } },
  head_is_put_before_its_commit = { edits = {
    { log, "if (rc == 0) rc = check_ground(log, e);", [[
  if (rc == 0) rc = check_ground(log, e);
  const char *kind = json_string_value(json_object_get(entry, "type"));
  const digest known = log->last;
  const runlog_hint newest = log->newest;
  if (rc == 0 && kind && strcmp(kind, "commit") == 0) {
    runlog_take_last(log, &text);
    runlog_note_commit(log, log->st.next, entry);
    runlog_put_head(log, NULL);
    log->last = known;
    log->newest = newest;
  }]] },
  } },
  head_is_put_to_a_lower_number = { edits = {
    { head_c, "there->commit > h.commit))", "false))" },
  } },

  loser_goes_on_in_the_others_log = { edits = {
    { entries, "int bad = 0, rc = runlog_check_run(log, r->title, e);",
      "int bad = 0, rc = 0;" },
  } },
  hint_is_believed = { edits = {
    { "engine/commit/log/runlog_read.c",
      "int rc = batch_ask(log, n, 1 + behind, false, &b, e);", [[
  int rc = batch_ask(log, n, 1 + behind, false, &b, e);
  if (rc == 0 && b.asks[0].rc == ERR_NOENT) log->st.next = n + 1;]] },
  } },
  expired_pin_renewed_blindly = { edits = {
    { "engine/job/restore/pinned.c",
      "int rc = lost ? runlog_refresh_whole(p->log, why) : runlog_refresh(p->log, why);",
      "int rc = 0;" },
  } },
  removed_run_comes_back = { results = true, edits = {
    { fold, "s->ended = true;", "s->ended = true; s->plain_room = s->plain_count = 0;" },
    { entries, "if (rc == 0) rc = occupied(log->s, key, e);", "(void)occupied;" },
  } },

  -- Why log entries stay, and why each delete is an entry.
  log_entries_are_pruned = { edits = {
    { settle, "void settle_litter(store *s, runlog *log, const log_sink *sink) {", [[
void settle_litter(store *s, runlog *log, const log_sink *sink) {
  char old[STORE_KEY_MAX];
  uint64_t next = runlog_view(log)->next;
  if (next > 4 && runlog_key_entry(runlog_prefix(log), next - 3, old, NULL) == 0)
    s->ops->remove(s, old, NULL);]] },
  } },
  unfenced_deletes = { edits = {
    { prune, "int rc = runlog_delete(p->log, n, may, a, &why);", [[
  const runlog_state *known = runlog_view(p->log);
  int rc = may(a, known, runlog_find_commit(known, n)) ? 0 : ERR_CONFLICT;]] },
    { settle, "if (!a || c->life != RUNLOG_DELETED)", "if (!a)" },
    { removal, "r->c ? r->c->life != RUNLOG_DELETED :", "r->c ? false :" },
  } },

  -- The last commit is the newest.
  older_save_is_finished = { edits = {
    { settle, "int rc = settle_is_overtaken(runlog_view(log), n) ? ERR_NOENT : read_whole(",
      "int rc = read_whole(" },
  } },

  -- What this simulator found in the engine.
  companions_make_room = { edits = {
    { "engine/job/save/job_companions.c", "  if (rc == 0) rc = save(w, term, prefix, e);", [[
  if (rc == 0 && w->resumed) rc = s->ops->remove_prefix(s, prefix, e);
  if (rc == 0) rc = save(w, term, prefix, e);]] },
  } },
  rank_is_told_of_anothers_files = { edits = {
    { ranks, "if (w->attempt > runlog_view(w->job->log)->term.n) return true;", "return true;" },
    { ranks, "a->owner != state->term.n || a->world != w->env->ranks->world ||",
      "a->owner != state->term.n ||" },
  } },
  expired_pin_keeps_its_name = { edits = {
    { "engine/job/restore/pinned.c",
      "if (!renew || mono(p) >= until) return put_once(p, false, e);",
      "if (until) return put_once(p, renew, e);" },
  } },

  -- More rules of the section, each alone.
  pins_are_not_asked = { edits = {
    { prune, "a->pinned = pins_held(&a->pins, now, &a->guard.pinned_count);", [[
  a->pinned = pins_held(&a->pins, now, &a->guard.pinned_count);
  a->guard.pinned_count = 0;]] },
  } },
  no_grace = { edits = {
    { prune, "*rest = end == SECONDS_FOREVER ? end : end > now ? end - now : 0;", "*rest = 0;" },
    { "engine/plan/retention.c", "if (grace == 0) return 0;", "return 0;" },
  } },
  fence_is_not_seen = { edits = {
    { log, "if (log->term == RUNLOG_NONE) return 0;", "return 0;" },
  } },
  -- Why a save stands whole before it is named, and why what is staged is renamed first by whoever
  -- takes it over or removes it.
  named_before_it_stands = { edits = {
    { attempt, "w->term = runlog_view(j->log)->term.n;", [[
  w->term = runlog_view(j->log)->term.n;
  uint64_t early;
  if (rc == 0)
    rc = runlog_attempt_staged(j->log, job_unit(j), w->place.nonce, &early, e);]] },
  } },
  entry_has_another_nonce = { edits = {
    { entries, 'if (r->nonce) js_set(entry, "nonce", json_string(r->nonce), &bad);', "" },
  } },
  staging_is_removed_in_place = { edits = {
    { staging, "int rc = s->ops->publish(s, key, gone, &why);",
      "int rc = 0;\n  memcpy(gone, key, strlen(key) + 1);" },
  } },
  staging_is_taken_in_place = { edits = {
    { begin, "if (left) rc = take_over(s, log, left, out, sink, e);", [[
  (void)take_over;
  if (left) rc = staging_name(runlog_prefix(log), left->term, left->nonce, out, e);
  if (left && rc == 0) rc = 1;]] },
  } },
  staging_of_the_newest_term_is_removed = { edits = {
    { staging, "one->term >= state->term.n || grace == INT64_MAX",
      "one->term > state->term.n || grace == INT64_MAX" },
  } },
  staging_of_an_open_attempt_is_removed = { edits = {
    { staging, "if (a && a->fate == RUNLOG_OPEN) return NULL;", "" },
  } },
  staged_with_its_old_manifest = { edits = {
    { begin, "if (!wanted && strcmp(name, label) == 0) return 0;", "if (!wanted) return 0;" },
    { "engine/job/save/job_seal.c", "if (rc == ERR_EXISTS && !w->ahead &&",
      "if (rc == ERR_EXISTS && w->ahead) rc = 0;\n  if (rc == ERR_EXISTS &&" },
  } },

  commit_before_the_manifest = { edits = {
    { "engine/job/save/job_seal.c", "if (rc == 0)\n    rc = store_put_marked(", [[
  if (rc == 0) rc = job_commit(w, e);
  if (rc == 0)
    rc = store_put_marked(]] },
  } },
  -- Only what is provably an attempt's own is removed, and once.
  marks_are_not_asked = { edits = {
    { removal, "t->ours = rc == 0 && strcmp(object.mark, r->id) == 0;", "t->ours = rc == 0;" },
  } },
  names_are_not_asked = { edits = {
    { removal, "if (!entry || entry->type != MANIFEST_FILE) continue;", [[
    if (!entry) t->ours = true;
    if (!entry || entry->type != MANIFEST_FILE) continue;]] },
  } },
  ages_are_not_asked = { edits = {
    { removal, "choose_named(r, m, len, r->dir, latest);",
      "choose_named(r, m, len, r->dir, INT64_MAX);" },
  } },
  cleared_is_not_asked = { edits = {
    { removal, "r.found->cleared = rc == 1;", "r.found->cleared = false;" },
  } },
  no_text_is_kept = { edits = {
    { removal,
      "rc = r->s->ops->put(r->s, r->clearing, text->data, text->len, STORE_REPLACE, &why);",
      "rc = 0;" },
  } },
  finder_of_a_removal_renames = { edits = {
    { removal, "return rc < 0 ? rc : empty_gone(r, false, e);\n  }",
      "if (rc == 0) rc = empty_gone(r, false, e);\n    if (rc < 0) return rc;\n  } else" },
  } },
  -- What was read before the rename counts for what the rename has caught.
  manifest_is_not_read_again = { edits = {
    { removal, "rc = check_dir(r, r->gone, e);\n  if (rc != 0) return rc;\n",
      "if (rc == 0) return 1;\n" },
    { removal, "int rc = read_dir(r, r->gone, key, &text, &m, e);\n", [[
  int rc = manifest_key(r->gone, key, e);
  if (rc == 0) rc = manifest_read(r->s, r->gone, &m, NULL) == 0;
]] },
  } },
  nothing_is_put_back = { edits = {
    { removal, "rc = store_remove_below(r->s, r->gone, (const char *const[]){last}, 1, e);",
      "rc = r->s->ops->remove_prefix(r->s, r->gone, e);" },
  } },
  removed_without_a_sweep = { edits = {
    { settle, "int rc = runlog_sweep(log, attempt, e);", "int rc = 0;" },
    { removal, "r->c->life != RUNLOG_DELETED : r->a->fate != RUNLOG_SWEPT))",
      "r->c->life != RUNLOG_DELETED : false))" },
  } },

  -- The rules of a repair. (a) It waits for a writer that lives, and for its lease.
  repair_does_not_ask_the_lease = { repairs = true, edits = {
    { repair, "int rc = check_lease(r, &lease, e);", "int rc = 0;\n  (void)check_lease;" },
  } },
  -- (b) It takes an epoch, which nobody else has.
  epoch_is_not_put = { repairs = true, edits = {
    { ruin, "return rc == 0 ? put_once(r, key, text, e) : rc;", "return rc;" },
  } },
  epoch_of_another_is_taken = { repairs = true, edits = {
    { ruin, "int rc = put_epoch(r, *epoch, nonce, &text, e);",
      "int rc = put_epoch(r, *epoch, nonce, &text, e);\n  if (rc == ERR_EXISTS) rc = 0;" },
    { ruin, "*epoch = (r->newest > r->at.epoch ? r->newest : r->at.epoch) + 1;",
      "*epoch = r->at.epoch + 1;" },
  } },
  -- (c) Only then it reads.
  log_is_read_before_the_epoch = { repairs = true, edits = {
    { repair, 'i == 0 && FAULT("log-read-first") ? 0', "i == 0 ? 0" },
  } },
  -- (d) It leaves no place free, and reads again what came meanwhile.
  no_place_is_closed = { repairs = true, edits = {
    { ruin, 'if (FAULT("no-plug")) return 0;', "if (r) return 0;" },
  } },
  end_is_not_closed = { repairs = true, edits = {
    { ruin, "if (rc == 0) rc = close_place(r, in, next, epoch, e);", "" },
  } },
  closed_place_is_not_read_again = { repairs = true, edits = {
    { repair, "if (rc <= 0) return rc;", "if (rc <= 1) return rc < 0 ? rc : 0;" },
  } },
  closed_place_needs_no_new_reader = { repairs = true, edits = {
    { ruin, "js_set(object, \"reader\", json_integer(RUNLOG_READER), bad);",
      "js_set(object, \"reader\", json_integer(RUNLOG_READER_1), bad);" },
  } },
  -- (e) The new log goes on from all that was seen, and says what it is of.
  numbers_begin_behind_the_entries = { repairs = true, edits = {
    { ruin, seen, "uint64_t n = r->end;" },
  } },
  numbers_begin_within_the_entries = { repairs = true, edits = {
    { ruin, seen, "uint64_t n = r->end > 2 ? r->end - 2 : 0;" },
  } },
  first_entry_is_not_of_its_epoch = { repairs = true, edits = {
    { ruin, 'js_set(entry, "prev", json_string(hex), &bad);',
      '(void)hex;\n  js_set(entry, "prev", json_string(sum), &bad);' },
  } },
  epoch_counts_before_its_first_entry = { repairs = true, edits = {
    { epoch, "if (rc >= 0 && newest > log->at.epoch) log->at.begun = newest;",
      "if (rc >= 0 && newest > log->at.epoch) log->at.epoch = newest;" },
  } },
  unbegun_epoch_is_taken_again = { repairs = true, edits = {
    { ruin, "*epoch = (r->newest > r->at.epoch ? r->newest : r->at.epoch) + 1;",
      "*epoch = r->newest > r->at.epoch ? r->newest : r->at.epoch + 1;" },
    { ruin, "int rc = put_epoch(r, *epoch, nonce, &text, e);",
      "int rc = put_epoch(r, *epoch, nonce, &text, e);\n  if (rc == ERR_EXISTS) rc = 0;" },
  } },
  what_is_whole_is_left = { repairs = true, edits = {
    { rebuild, "if (rc == 0) rc = place_saves(&b, e);", "(void)place_saves;" },
  } },
  -- What this simulator found in repairs: what is concluded from what is left. Three more of these
  -- show in none of 10,000 schedules: spec/job/repair/test_repair_fillers.c holds them.
  filler_is_believed = { repairs = true, edits = {
    { ruin, "if (rc == 0) pass_over_fillers(out);", "(void)pass_over_fillers;" },
  } },
  filler_between_losses_is_believed = { repairs = true, edits = {
    { rebuild, "runlog_pass_over_fillers(r, v);", "(void)runlog_pass_over_fillers;" },
  } },
  pin_beside_a_hole_is_believed = { repairs = true, edits = {
    { log, "return rc < 0 ? rc : runlog_prove_end(log, e);", "return rc;" },
  } },
  closed_place_tells_the_time = { repairs = true, edits = {
    { log, "int rc = find_standing(log, &n, e);", "int rc = 0;\n  (void)find_standing;" },
  } },
  older_save_is_gone_on_with = { repairs = true, edits = {
    { attempt, "if (settle_is_overtaken(state, a->n)) break;", "" },
  } },
  -- (f) Who has put an entry asks whether it counts, and so does who removes.
  entry_behind_is_not_asked = { repairs = true, edits = {
    { behind, "int rc = is_answer(b->asks[NEXT].rc) && b->asks[NEXT].rc != ERR_NOENT ? 1 : 0;",
      "int rc = 0;" },
  } },
  epoch_is_not_asked_before_a_removal = { repairs = true, edits = {
    { removal, 'FAULT("epoch-not-read-removal") ? 0', "true ? 0" },
  } },
  removal_does_not_say_that_it_begins = { repairs = true, edits = {
    { removal, "int rc = r->s->ops->put(r->s, r->clearing, \"{}\", 2, STORE_IF_ABSENT, &why);",
      "int rc = 0;" },
  } },
  -- What a repair does with removals that were begun.
  removals_are_not_looked_for = { repairs = true, edits = {
    { evidence, "if (rc == 0) rc = find_removals(r, removed, e);", "(void)find_removals;" },
  } },
  -- What ranks say of themselves, and what they wait for.
  ended_rank_is_waited_for = { ranks = true, edits = {
    { ranks, "if (rc <= 0) return rc;\n  rc = came_late",
      "if (rc <= 1) return rc < 0 ? rc : 0;\n  rc = came_late" },
  } },
  part_just_before_the_end_is_missed = { ranks = true, edits = {
    { ranks, "rc = came_late(w, p, rank, e);", "rc = 0;\n  (void)came_late;" },
  } },
  rank_that_came_back_is_called_ended = { ranks = true, edits = {
    { said, "if (rc == ERR_NOENT) return 0;\n  if (rc < 0) return err_set",
      "if (rc == ERR_NOENT) return 1;\n  if (rc < 0) return err_set" },
  } },
  refusal_of_the_first_is_not_read = { ranks = true, edits = {
    { ranks, "bool refused = told && was_refused(", "bool refused = false && was_refused(" },
  } },
  each_end_of_the_first_is_a_refusal = { ranks = true, edits = {
    { ranks, "bool refused = told && was_refused(&said, w->job->plan.unit);",
      "bool refused = told;\n  (void)was_refused;" },
  } },
  last_word_of_the_first_is_not_waited_for = { ranks = true, edits = {
    { ranks, "if (!told && vigil_now(w) - since < SAID_LATE) return 0;", "(void)since;" },
  } },
  end_of_the_first_is_not_seen = { ranks = true, edits = {
    { ranks, "if (!lease.released && !taken) {", "if (true) {" },
  } },
  end_before_a_newer_launch_is_not_heard = { ranks = true, edits = {
    { ranks, "rc = rank_0_said_its_last(&v, &lease, &why);",
      "rc = 0;\n    (void)rank_0_said_its_last;" },
  } },
  nobody_leads_for_a_silent_first = { ranks = true, edits = {
    { ranks, "us->rank <= TURNS ? us->rank * SILENCE : INT64_MAX;", "INT64_MAX;" },
  } },
  each_gets_what_others_had = { ranks = true, edits = {
    { part, "return !at->alone || at->rank == rank;", "return true || at->rank == rank;" },
  } },
  another_number_of_ranks_gets_parts = { ranks = true, edits = {
    { part, "return world > 1 && m->world == world;", "return world > 1 && m->world > 1;" },
  } },
  what_several_had_is_one_rank_s = { ranks = true, edits = {
    { parts, "out->entries[kept - 1].alone = false;", "" },
  } },
  commit_lacks_the_part_of_one_rank = { ranks = true, edits = {
    { ranks, "bool all = rc == 0 && seen.count == p->ranks->world;\n    if (rc == 0) show_missing",
      "bool all = rc == 0 && seen.count + 1 >= p->ranks->world;\n    if (rc == 0) show_missing" },
    { parts, "for (uint32_t i = 0; rc == 0 && i < world; i += AT_ONCE)",
      "for (uint32_t i = 0; (rc == 0 || rc == ERR_NOENT) && i < world; i += AT_ONCE)" },
    { parts, "if (rc == 0) rc = unite(&h, out, e);",
      "if (rc == ERR_NOENT) rc = 0;\n  if (rc == 0) rc = unite(&h, out, e);" },
  } },
  -- What tasks that write into one directory agree about.
  one_task_is_not_asked = { shared = true, edits = {
    { agree, "agree_word word = i == f->self ? AGREE_YES",
      "agree_word word = i <= 1 ? AGREE_YES" },
  } },
  answer_of_before_counts = { shared = true, edits = {
    { agree, "if (a->number < unit->number) return AGREE_ASKED;", "" },
    { agree, "if (!seen) return AGREE_ASKED;", "if (!seen) return AGREE_YES;" },
  } },
  other_files_are_no_difference = { shared = true, edits = {
    { agree, "return seen->stamp == unit->stamp ? AGREE_YES : AGREE_DIFFERS;",
      "return AGREE_YES;" },
  } },
  one_without_a_word_agrees = { shared = true, edits = {
    { agree, "if (!a) return AGREE_UNKNOWN;", "if (!a) return AGREE_YES;" },
  } },
  silent_one_has_ended = { shared = true, edits = {
    { hub, "return now >= end_at || given_up ? HUB_UNKNOWN : HUB_LIVES;",
      "return now >= end_at || given_up ? HUB_OVER : HUB_LIVES;" },
  } },
  silent_one_is_waited_for = { shared = true, edits = {
    { hub, "if (h->others[i].known && !is_silent(h, i, now)) return INT64_MAX;",
      "if (h->others[i].known) return INT64_MAX;" },
  } },
  -- The end that the head proves, and each entry the one before it.
  prev_is_not_compared = { repairs = true, edits = {
    { proof, 'return "the entry before it is not the one that its writer had read";',
      "return NULL;" },
  } },
  end_before_the_head_is_believed = { repairs = true, edits = {
    { head_c, "if (log->hint.commit == RUNLOG_NONE) return 0;", "return 0;" },
  } },
}

-- ---- writing the edited files ----

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function edit_once(text, edit, what)
  local from, to = text:find(edit[2], 1, not edit.pattern)
  if not from or text:find(edit[2], to + 1, not edit.pattern) then
    io.stderr:write(what, ": this text is not in ", edit[1], " exactly once:\n", edit[2], "\n")
    os.exit(1)
  end
  return text:sub(1, from - 1) .. edit[3] .. text:sub(to + 1)
end

local function base_name(path)
  return path:match("[^/]*$")
end

local function apply(what, edits, texts)
  for _, edit in ipairs(edits) do
    texts[edit[1]] = edit_once(texts[edit[1]] or read(edit[1]), edit, what)
  end
  return texts
end

local function sources(pattern)
  local list = {}
  local pipe = assert(io.popen("ls " .. pattern))
  for path in pipe:lines() do list[#list + 1] = path end
  pipe:close()
  return list
end

local function write_all(texts, dir)
  for path, text in pairs(texts) do write(dir .. "/" .. base_name(path), text) end
end

local name, dir = arg[1], arg[2]
if not name then
  local names = {}
  for each in pairs(faults) do names[#names + 1] = each end
  table.sort(names)
  print(table.concat(names, "\n"))
elseif name == "--scaled" then
  local texts = {}
  for _, path in ipairs(sources("engine/commit/log/runlog*.[ch]")) do texts[path] = read(path) end
  write_all(apply(name, scaled, texts), dir)
else
  local fault = assert(faults[name], "there is no such fault")
  local texts = {}
  for _, path in ipairs(sources("engine/commit/log/runlog*.h")) do texts[path] = read(path) end
  apply(name, scaled, texts)
  apply(name, fault.edits, texts)
  write_all(texts, dir)
  print((fault.results and "--results " or "") .. (fault.repairs and "--repairs" or "") ..
    (fault.ranks and "--ranks" or "") .. (fault.shared and "--shared" or ""))
end
