/* policy_load: loads a chain at its start: its files, its settings, and its data. */
#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prims/fs.h"
#include "decision/policy_impl.h"

enum {
  FILE_BYTES_MAX = POLICY_FILE_MAX,
  SETTING_MAX = 64 << 10,
  NOTES_MAX = 64,
  NOTE_BYTES_MAX = 1000,
};

/* ---- settings ---- */

static bool is_option_name(const char *name, size_t len) {
  bool good = len > 0 && len < POLICY_NAME_MAX && !isdigit((unsigned char)*name);
  for (size_t i = 0; good && i < len; i++) good = isalnum((unsigned char)name[i]) || name[i] == '_';
  return good;
}

static int add_setting(json_t *settings, const char *text, err *e) {
  const char *equals = strchr(text, '=');
  size_t len = equals ? (size_t)(equals - text) : 0;
  if (!equals || !is_option_name(text, len))
    return err_set(e, ERR_INVAL, "\"%.100s\" is no setting: NAME=VALUE, the name in letters", text);
  if (strlen(equals + 1) > SETTING_MAX)
    return err_set(e, ERR_INVAL, "the setting %.*s is too long", (int)len, text);
  json_t *value = json_string(equals + 1);
  if (!value) return err_set(e, ERR_INVAL, "the setting %.*s is not UTF-8", (int)len, text);
  char name[POLICY_NAME_MAX];
  snprintf(name, sizeof name, "%.*s", (int)len, text);
  if (json_object_set_new(settings, name, value) < 0)
    return err_set(e, ERR_NOMEM, "out of memory for settings");
  return 0;
}

/* The environment is for all commands of a job: only options that this chain has are looked for, so
 * that one which belongs to another policy is no error. Returns how many were found, or ERR_*. */
static int add_environment(json_t *settings, const json_t *options, err *e) {
  int found = 0;
  size_t count = json_array_size(options);
  for (size_t i = 0; i < count; i++) {
    const char *name = json_string_value(json_object_get(json_array_get(options, i), "name"));
    char variable[POLICY_NAME_MAX + 8];
    if (!name || !is_option_name(name, strlen(name)) || json_object_get(settings, name)) continue;
    snprintf(variable, sizeof variable, "CKPT_O_%s", name);
    for (char *at = variable; *at; at++) *at = (char)toupper((unsigned char)*at);
    const char *value = getenv(variable);
    if (!value) continue;
    if (json_object_set_new(settings, name, json_string(value)) < 0)
      return err_set(e, ERR_INVAL, "the environment's %s is not UTF-8", variable);
    found++;
  }
  return found;
}

/* ---- files ---- */

/* Makes the short name of a policy: "dir/mine.lua" is called "mine". */
static json_t *short_name(const char *name, err *e) {
  char text[POLICY_NAME_MAX];
  const char *base = fs_base(name);
  size_t len = strlen(base);
  if (len > 4 && strcmp(base + len - 4, ".lua") == 0) len -= 4;
  if (len >= sizeof text) {
    err_set(e, ERR_INVAL, "the name of the policy %s is longer than %zu bytes", name,
            sizeof text - 1);
    return NULL;
  }
  snprintf(text, sizeof text, "%.*s", (int)len, base);
  json_t *value = js_name_new(text);
  if (!value) err_set(e, ERR_NOMEM, "out of memory for a policy");
  return value;
}

static bool is_called(const json_t *chain, const json_t *name) {
  for (size_t i = 0; i < json_array_size(chain); i++)
    if (json_equal(json_object_get(json_array_get(chain, i), "name"), name)) return true;
  return false;
}

/* Gives a policy whose name is taken another one: "mine-2". */
static int set_apart(const json_t *chain, json_t **called, err *e) {
  char text[POLICY_NAME_MAX];
  if (!is_called(chain, *called)) return 0;
  const char *name = json_string_value(*called);
  snprintf(text, sizeof text, "%.*s-%zu", (int)sizeof text - 8, name, json_array_size(chain) + 1);
  json_t *other = js_name_new(text);
  if (!other) return err_set(e, ERR_NOMEM, "out of memory for a policy");
  json_decref(*called);
  *called = other;
  return 0;
}

static int add_file(const policy_options *o, const policy_file *file, json_t *chain, err *e) {
  json_t *content = NULL, *called = short_name(file->name, e);
  int rc = called ? 0 : ERR_INVAL;
  if (rc == 0 && o->apart) rc = set_apart(chain, &called, e);
  if (rc == 0) {
    content = json_stringn(file->text.data ? file->text.data : "", file->text.len);
    if (!content) rc = err_set(e, ERR_POLICY, "the policy %s is not UTF-8 text", file->name);
  }
  if (rc == 0 &&
      json_array_append_new(chain, json_pack("{s:O, s:O}", "name", called, "text", content)) < 0)
    rc = err_set(e, ERR_NOMEM, "out of memory for the policy %s", file->name);
  json_decref(called);
  json_decref(content);
  return rc;
}

static int add_files(const policy_options *o, json_t *chain, err *e) {
  policy_files own = {0};
  int rc = o->files ? 0 : policy_files_read(o->io, o->dir, o->names, &own, e);
  const policy_files *files = o->files ? o->files : &own;
  for (size_t i = 0; rc == 0 && i < files->count; i++) rc = add_file(o, &files->at[i], chain, e);
  policy_files_free(&own);
  return rc;
}

/* ---- the request ---- */

static int make_request(policy *p, json_t *chain, json_t *settings, err *e) {
  buf_clear(&p->request);
  json_t *all = json_pack("{s:s, s:s, s:O, s:O}", "op", "load", "id", p->id, "chain", chain,
                          "settings", settings);
  int rc =
      all ? js_print(all, &p->request, e) : err_set(e, ERR_NOMEM, "out of memory for a policy");
  json_decref(all);
  return rc;
}

int policy_load(policy *p, json_t **answer, err *e) {
  json_t *value = NULL;
  policy_standing state;
  p->generation = 0;
  int rc = policy_exchange(p, p->request.data, p->request.len, &value, &state, e);
  if (rc < 0) return rc;
  p->generation = policy_link_generation(p->link);
  if (answer)
    *answer = value;
  else
    json_decref(value);
  return 0;
}

/* ---- what it says about itself ---- */

static int take_notes(policy *p, err *e) {
  const json_t *said = json_object_get(p->data, "notes");
  ssize_t count = policy_list(said);
  json_t *notes = json_array();
  bool whole = notes != NULL;
  for (ssize_t i = 0; whole && i < count && i < NOTES_MAX; i++) {
    char plain[NOTE_BYTES_MAX];
    policy_plain(json_string_value(json_array_get(said, (size_t)i)), plain, sizeof plain);
    whole = !*plain || json_array_append_new(notes, json_string(plain)) == 0;
  }
  if (json_object_set_new(p->data, "notes", notes) < 0) whole = false;
  return whole ? 0 : err_set(e, ERR_NOMEM, "out of memory for a policy's notes");
}

static int take_hooks(policy *p, err *e) {
  const json_t *has = json_object_get(p->data, "has");
  for (int hook = 0; hook < POLICY_HOOKS; hook++) {
    const json_t *names = json_object_get(has, policy_hook_name(hook));
    ssize_t count = policy_list(names);
    if (count < 0) return err_set(e, ERR_POLICY, "has: this is no list");
    buf who;
    buf_init(&who, FILE_BYTES_MAX);
    for (ssize_t i = 0; i < count && i < POLICY_CHAIN_MAX; i++) {
      const char *name = json_string_value(json_array_get(names, (size_t)i));
      buf_fmt(&who, "%s%s", i ? ", " : "", name ? name : "?");
    }
    policy_plain(who.data, p->who[hook], sizeof p->who[hook]);
    p->has[hook] = count > 0;
    buf_free(&who);
  }
  return 0;
}

static int check_marker(const policy *p, const char *key, err *e) {
  const json_t *marker = json_object_get(json_object_get(p->data, "markers"), key);
  const char *name = json_string_value(marker);
  if (!marker || json_is_null(marker)) return 0;
  if (!name || !*name || strlen(name) > 255 || strchr(name, '/'))
    return err_set(e, ERR_POLICY, "markers: \"%s\" is no name of a file at the top of a checkpoint",
                   key);
  return 0;
}

static int take_names(policy *p, const json_t *chain, err *e) {
  buf names;
  buf_init(&names, (POLICY_CHAIN_MAX + 1) * 4 * POLICY_NAME_MAX);
  for (size_t i = 0; i < json_array_size(chain); i++)
    buf_fmt(&names, "%s%s", i ? ", " : "",
            json_string_value(json_object_get(json_array_get(chain, i), "name")));
  if (names.len == 0) buf_str(&names, "builtin");
  p->names = buf_take(&names);
  buf_free(&names);
  return p->names ? 0 : err_set(e, ERR_NOMEM, "out of memory for a policy");
}

static int take_data(policy *p, const policy_options *o, err *e) {
  int queue = POLICY_NEWEST;
  const json_t *word = json_object_get(p->data, "queue");
  int rc = answer_word(json_is_null(word) ? NULL : word, answer_queues, &queue, e);
  p->queue = (policy_queue)queue;
  if (rc == 0) rc = take_hooks(p, e);
  if (rc == 0) rc = take_notes(p, e);
  if (rc == 0) rc = check_marker(p, "null", e);
  if (rc == 0) rc = check_marker(p, "temp", e);
  if (rc == 0) rc = policy_metrics_check(json_object_get(p->data, "metrics"), e);
  if (rc == 0) rc = policy_make_rules(o, p->data, &p->rules, e);
  if (rc == 0) rc = policy_make_companions(p->data, &p->companions, e);
  if (rc == 0) rc = policy_make_newest(p->data, p->rules, &p->newest, e);
  if (rc == 0) policy_warn(p, json_object_get(p->data, "warnings"));
  return rc;
}

/* Loads the chain, and twice where the environment has settings: its options are known after the
 * first time. */
static int load_chain(policy *p, json_t *chain, json_t *settings, err *e) {
  int rc = make_request(p, chain, settings, e);
  if (rc == 0) rc = policy_load(p, &p->data, e);
  int more = rc < 0 ? rc : add_environment(settings, json_object_get(p->data, "options"), e);
  if (more <= 0) return more;
  json_decref(p->data);
  p->data = NULL;
  rc = make_request(p, chain, settings, e);
  return rc < 0 ? rc : policy_load(p, &p->data, e);
}

static int open_chain(policy *p, const policy_options *o, err *e) {
  json_t *chain = json_array(), *settings = json_object();
  bool any = o->files ? o->files->count > 0 : o->names && o->names[0];
  int rc = chain && settings ? 0 : err_set(e, ERR_NOMEM, "out of memory for a policy");
  for (size_t i = 0; rc == 0 && o->settings && o->settings[i]; i++)
    rc = any ? add_setting(settings, o->settings[i], e)
             : err_set(e, ERR_INVAL, "there is no policy for the setting %.100s", o->settings[i]);
  if (rc == 0 && any && !o->link) rc = err_set(e, ERR_INVAL, "there is no way to run policies");
  if (rc == 0 && any) rc = add_files(o, chain, e);
  if (rc == 0) rc = take_names(p, chain, e);
  if (rc == 0 && any) {
    rc = load_chain(p, chain, settings, e);
    if (rc == 0) rc = take_data(p, o, e);
    if (rc == 0 && !o->untried) policy_try(p);
    if (rc < 0 && e) {
      err_wrap(e, "policy %s", p->names);
      e->code = rc;
    }
  } else if (rc == 0) {
    rc = rules_custom(o->units, o->excludes, o->markers, o->quiet_ns, &p->rules, e);
    if (rc == 0) rc = policy_make_companions(NULL, &p->companions, e);
  }
  json_decref(chain);
  json_decref(settings);
  return rc;
}

int policy_open(const policy_options *o, policy **out, err *e) {
  static atomic_ulong last;
  *out = NULL;
  policy *p = calloc(1, sizeof *p);
  if (!p) return err_set(e, ERR_NOMEM, "out of memory for a policy");
  buf id;
  buf_init(&id, FILE_BYTES_MAX);
  buf_init(&p->request, POLICY_FRAME_MAX);
  /* In-process states are shared by all engines: the run's id is not enough. */
  js_name_escape(o->id ? o->id : "", &id);
  buf_fmt(&id, "#%lu", atomic_fetch_add(&last, 1));
  p->io = o->io;
  p->log = o->log;
  p->link = o->link;
  p->run = strdup(o->id ? o->id : "");
  p->id = buf_take(&id);
  p->told = json_object();
  int rc = p->run && p->id && p->told ? open_chain(p, o, e)
                                      : err_set(e, ERR_NOMEM, "out of memory for a policy");
  buf_free(&id);
  if (rc < 0) {
    policy_close(p);
    return rc;
  }
  *out = p;
  return 0;
}

void policy_unload(policy *p) {
  buf text, answer;
  const bool there = p->generation && p->generation == policy_link_generation(p->link);
  p->generation = 0;
  if (!there) return;
  json_t *request = json_pack("{s:s, s:s}", "op", "drop", "id", p->id);
  buf_init(&text, FILE_BYTES_MAX);
  buf_init(&answer, FILE_BYTES_MAX);
  if (request && js_print(request, &text, NULL) == 0)
    policy_link_call(p->link, text.data, text.len, &answer, NULL);
  json_decref(request);
  buf_free(&text);
  buf_free(&answer);
}

void policy_close(policy *p) {
  if (!p) return;
  policy_unload(p);
  rules_free(p->rules);
  free(p->companions);
  names_free(&p->newest.globs);
  json_decref(p->data);
  json_decref(p->told);
  buf_free(&p->request);
  free(p->run);
  free(p->id);
  free(p->names);
  free(p);
}

const rules *policy_rules(const policy *p) {
  return p->rules;
}

/* What loads it, behind the id that each has for itself; `*len` bytes stand before that. NULL: nothing does. */
static const char *request_of(const policy *p, size_t *len) {
  const char *at = p->request.len ? strstr(p->request.data, p->id) : NULL;
  *len = at ? (size_t)(at - p->request.data) : 0;
  return at ? at + strlen(p->id) : NULL;
}

bool policy_same(const policy *a, const policy *b) {
  size_t len, other;
  const char *one = request_of(a, &len), *two = request_of(b, &other);
  return one && two && len == other && memcmp(a->request.data, b->request.data, len) == 0 &&
         strcmp(one, two) == 0;
}

const char *policy_names(const policy *p) {
  return p->names;
}

const char *policy_note(const policy *p, size_t i) {
  return json_string_value(json_array_get(json_object_get(p->data, "notes"), i));
}

const char *policy_fault(const policy *p) {
  return p->fault;
}

uint64_t policy_fallbacks(const policy *p) {
  return p->fallbacks;
}

static const char *marker(const policy *p, const char *key) {
  return json_string_value(json_object_get(json_object_get(p->data, "markers"), key));
}

const char *policy_null_marker(const policy *p) {
  return marker(p, "null");
}

const char *policy_temp_marker(const policy *p) {
  return marker(p, "temp");
}

bool policy_has(const policy *p, policy_hook hook) {
  return p->has[hook];
}
