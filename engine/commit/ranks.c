/* ranks: reads the same few facts from each launcher's own variables. Only the environment is read:
 * a launcher's own channels belong to the job, and hang when a rank is dead. */
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prims/hash.h"

typedef struct reading {
  ranks_getenv *get;
  void *ctx;
  ranks_found *out;
} reading;

/* Returns NULL if the variable is not set, or empty: schedulers export empty variables for what
 * does not apply. */
static const char *text_of(const reading *r, const char *name) {
  const char *text = r->get(r->ctx, name);
  return text && *text ? text : NULL;
}

/* Returns 1 and the number, or 0 if the variable is not set. */
static int number_of(const reading *r, const char *name, uint32_t *out, err *e) {
  const char *text = text_of(r, name);
  uint64_t value = 0;
  if (!text) return 0;
  size_t len = strspn(text, "0123456789");
  for (size_t i = 0; i < len && value <= UINT32_MAX; i++)
    value = value * 10 + (uint64_t)(text[i] - '0');
  if (text[len] || value > UINT32_MAX)
    return err_set(e, ERR_INVAL, "%s=%.60s: not a number of ranks or nodes; unset it", name, text);
  *out = (uint32_t)value;
  return 1;
}

/* Does the same for a variable that the launcher never leaves out. */
static int need_number(const reading *r, const char *source, const char *name, uint32_t *out,
                       err *e) {
  int rc = number_of(r, name, out, e);
  if (rc != 0) return rc < 0 ? rc : 0;
  return err_set(e, ERR_INVAL, "the environment looks like %s, but %s is not set; set it", source,
                 name);
}

/* The names of a launcher's variables; NULL: it has none for that. */
typedef struct variables {
  const char *source, *rank, *world, *local_rank, *local_world, *node, *nodes;
} variables;

static int optional(const reading *r, const char *name, uint32_t *out, err *e) {
  int rc = name ? number_of(r, name, out, e) : 0;
  return rc < 0 ? rc : 0;
}

static int below(const variables *n, const char *what, uint32_t index, const char *count_name,
                 uint32_t count, err *e) {
  if (count == 0 || index < count) return 0;
  return err_set(e, ERR_INVAL, "%s: %s=%u is not below %s=%u", n->source, what, index, count_name,
                 count);
}

static int read_names(const reading *r, const variables *n, err *e) {
  ranks_found *f = r->out;
  snprintf(f->source, sizeof f->source, "%s", n->source);
  int rc = need_number(r, n->source, n->rank, &f->rank, e);
  if (rc == 0) rc = need_number(r, n->source, n->world, &f->world, e);
  if (rc == 0) rc = optional(r, n->local_rank, &f->local_rank, e);
  if (rc == 0) rc = optional(r, n->local_world, &f->local_world, e);
  if (rc == 0) rc = optional(r, n->node, &f->node, e);
  if (rc == 0) rc = optional(r, n->nodes, &f->nodes, e);
  if (rc < 0) return rc;
  if (f->world == 0 || f->world > RANKS_MAX)
    return err_set(e, ERR_INVAL, "%s: %s=%u: there are 1 to %d ranks", n->source, n->world,
                   f->world, RANKS_MAX);
  rc = below(n, n->rank, f->rank, n->world, f->world, e);
  if (rc == 0) rc = below(n, n->local_rank, f->local_rank, n->local_world, f->local_world, e);
  if (rc == 0) rc = below(n, n->node, f->node, n->nodes, f->nodes, e);
  if (rc == 0 && (f->local_world > f->world || f->nodes > f->world))
    rc = err_set(e, ERR_INVAL, "%s: %u ranks in all, but %u on this node of %u", n->source,
                 f->world, f->local_world, f->nodes);
  return rc;
}

/* A long name is replaced by its digest, which is as good: it is only compared. */
static int set_launch(ranks_found *f, const char *text, err *e) {
  digest d;
  char hex[HASH_HEX_MAX];
  if (strlen(text) < sizeof f->launch) {
    snprintf(f->launch, sizeof f->launch, "%s", text);
    return 0;
  }
  int rc = hash_bytes(HASH_XXH3_128, text, strlen(text), &d, e);
  if (rc < 0) return rc;
  digest_hex(&d, hex);
  snprintf(f->launch, sizeof f->launch, "%s:%s", f->source, hex);
  return 0;
}

enum { TEXT_MAX = 4096 };

/* ---- torchrun ---- */

/* Without a rendezvous id torchrun calls every launch "none". It counts its own restarts; an id
 * that the user gives twice is told apart by the address at which the ranks meet, as far as that
 * changes. The address stays the same where a job is requeued on the same first node with a fixed
 * port, and the job's number for an id: Slurm counts those requeues. */
static int torchrun(const reading *r, err *e) {
  static const variables n = {"torchrun",         "RANK",       "WORLD_SIZE",      "LOCAL_RANK",
                              "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"};
  char text[TEXT_MAX];
  uint32_t restarts = 0, requeued = 0;
  int rc = read_names(r, &n, e);
  if (rc == 0) rc = optional(r, "TORCHELASTIC_RESTART_COUNT", &restarts, e);
  if (rc == 0) rc = optional(r, "SLURM_RESTART_COUNT", &requeued, e);
  const char *id = text_of(r, "TORCHELASTIC_RUN_ID");
  if (rc < 0 || !id || strcmp(id, "none") == 0) return rc;
  const char *host = text_of(r, "MASTER_ADDR"), *port = text_of(r, "MASTER_PORT");
  int len = snprintf(text, sizeof text, "torchrun:%s.%u@%s:%s", id, restarts, host ? host : "",
                     port ? port : "");
  if (requeued && len > 0 && (size_t)len < sizeof text)
    snprintf(text + len, sizeof text - (size_t)len, "+%u", requeued);
  return set_launch(r->out, text, e);
}

/* ---- Open MPI ---- */

static int openmpi(const reading *r, err *e) {
  static const variables n = {"openmpi",
                              "OMPI_COMM_WORLD_RANK",
                              "OMPI_COMM_WORLD_SIZE",
                              "OMPI_COMM_WORLD_LOCAL_RANK",
                              "OMPI_COMM_WORLD_LOCAL_SIZE",
                              NULL,
                              NULL};
  char text[TEXT_MAX];
  int rc = read_names(r, &n, e);
  const char *space = text_of(r, "PMIX_NAMESPACE");
  if (rc < 0 || !space) return rc;
  snprintf(text, sizeof text, "openmpi:%s", space);
  return set_launch(r->out, text, e);
}

/* ---- Slurm ---- */

/* Reads "2(x3),1", the tasks of each node of the step. */
static int tasks_of_node(const char *list, uint32_t node, uint32_t *out, err *e) {
  const char *at = list;
  uint64_t first = 0;
  for (;;) {
    char *end;
    unsigned long tasks = strtoul(at, &end, 10), times = 1;
    if (end == at) break;
    if (strncmp(end, "(x", 2) == 0) {
      at = end + 2;
      times = strtoul(at, &end, 10);
      if (end == at || *end != ')') break;
      end++;
    }
    if (tasks > UINT32_MAX || times > UINT32_MAX) break;
    if (node < first + times) {
      *out = (uint32_t)tasks;
      return 0;
    }
    first += times;
    if (*end != ',') break;
    at = end + 1;
  }
  return err_set(e, ERR_INVAL, "slurm: SLURM_STEP_TASKS_PER_NODE=%.60s says nothing of node %u",
                 list, node);
}

/* Job id and restart count do not name a launch: after a controller died, one job may be started
 * twice under both. Each srun listens at an address of its own while its step lives. */
static int slurm_launch(const reading *r, const char *step, err *e) {
  const char *job = text_of(r, "SLURM_JOB_ID"), *host = text_of(r, "SLURM_SRUN_COMM_HOST"),
             *port = text_of(r, "SLURM_SRUN_COMM_PORT");
  char text[TEXT_MAX];
  if (!job || !host || !port) return 0;
  snprintf(text, sizeof text, "slurm:%s.%s@%s:%s", job, step, host, port);
  return set_launch(r->out, text, e);
}

static const char *slurm_step(const reading *r) {
  const char *step = text_of(r, "SLURM_STEP_ID");
  return step ? step : text_of(r, "SLURM_STEPID");
}

/* The job's own numbers (SLURM_NTASKS) are those of its allocation: a step may be smaller. */
static int slurm(const reading *r, err *e) {
  bool of_step = text_of(r, "SLURM_STEP_NUM_TASKS") != NULL;
  const variables n = {"slurm",
                       "SLURM_PROCID",
                       of_step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
                       "SLURM_LOCALID",
                       NULL,
                       "SLURM_NODEID",
                       text_of(r, "SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES"
                                                          : "SLURM_NNODES"};
  int rc = read_names(r, &n, e);
  const char *list = text_of(r, "SLURM_STEP_TASKS_PER_NODE");
  if (rc == 0 && list) rc = tasks_of_node(list, r->out->node, &r->out->local_world, e);
  if (rc == 0 && list)
    rc = below(&n, "SLURM_LOCALID", r->out->local_rank, "its tasks", r->out->local_world, e);
  return rc < 0 ? rc : slurm_launch(r, slurm_step(r), e);
}

/* ---- the others ---- */

static int pmi(const reading *r, err *e) {
  static const variables n = {"pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
                              NULL,  NULL};
  return read_names(r, &n, e);
}

/* AdaptDL counts the restarts of a job itself, and names the job. */
static int adaptdl(const reading *r, err *e) {
  static const variables n = {
      "adaptdl", "ADAPTDL_REPLICA_RANK", "ADAPTDL_NUM_REPLICAS", NULL, NULL, NULL, NULL};
  char text[TEXT_MAX];
  uint32_t restarts = 0;
  int rc = read_names(r, &n, e);
  if (rc == 0) rc = optional(r, "ADAPTDL_NUM_RESTARTS", &restarts, e);
  const char *job = text_of(r, "ADAPTDL_JOB_ID");
  if (rc < 0 || !job) return rc;
  snprintf(text, sizeof text, "adaptdl:%s.%u", job, restarts);
  return set_launch(r->out, text, e);
}

/* Reads RANK and its kind, set by hand or by an operator for containers. */
static int plain(const reading *r, err *e) {
  static const variables n = {"environment",      "RANK", "WORLD_SIZE", "LOCAL_RANK",
                              "LOCAL_WORLD_SIZE", NULL,   NULL};
  return read_names(r, &n, e);
}

/* Scripts export these from Slurm's own: they must say the same, or one of both is meant for
 * another program, and nobody knows which. */
static int same_as_plain(const reading *r, err *e) {
  ranks_found other = {0};
  reading second = {r->get, r->ctx, &other};
  if (!text_of(r, "RANK") || !text_of(r, "WORLD_SIZE")) return 0;
  int rc = plain(&second, e);
  if (rc < 0 || (other.rank == r->out->rank && other.world == r->out->world)) return rc;
  return err_set(
      e, ERR_INVAL,
      "%s says rank %u of %u, but RANK=%u and WORLD_SIZE=%u: say which with `rank` and `world`",
      r->out->source, r->out->rank, r->out->world, other.rank, other.world);
}

/* The innermost launcher is tried first: torchrun or mpirun may have been started by srun. A batch
 * script has Slurm's variables too, and is no rank of a step. */
int ranks_detect(ranks_getenv *get, void *ctx, ranks_found *out, err *e) {
  const reading r = {get, ctx, out};
  int rc = 0;
  *out = (ranks_found){0};
  if (text_of(&r, "ADAPTDL_REPLICA_RANK") && text_of(&r, "ADAPTDL_NUM_REPLICAS")) {
    rc = adaptdl(&r, e);
  } else if (text_of(&r, "TORCHELASTIC_RUN_ID")) {
    rc = torchrun(&r, e);
  } else if (text_of(&r, "OMPI_COMM_WORLD_RANK")) {
    rc = openmpi(&r, e);
  } else if (text_of(&r, "SLURM_PROCID") && slurm_step(&r)) {
    rc = slurm(&r, e);
    if (rc == 0) rc = same_as_plain(&r, e);
  } else if (text_of(&r, "PMI_RANK")) {
    rc = pmi(&r, e);
  } else if (text_of(&r, "RANK") && text_of(&r, "WORLD_SIZE")) {
    rc = plain(&r, e);
  }
  if (rc < 0) *out = (ranks_found){0};
  return rc;
}

/* ---- how often they look ---- */

int64_t ranks_pause_least(uint32_t world) {
  const int64_t ms = 1000000, least = 200 * ms;
  return world * ms > least ? world * ms : least;
}

int64_t ranks_pause_first(uint32_t rank) {
  return (int64_t)rank * 1000000;
}

/* ---- who is missing ---- */

void ranks_list(const uint32_t *numbers, size_t count, size_t all, char *out, size_t room) {
  enum { SHOWN = 8 };
  size_t len = 0, shown = 0;
  if (room) *out = 0;
  for (size_t i = 0; i < count && shown < SHOWN && len < room; shown++) {
    size_t run = 1;
    while (i + run < count && numbers[i + run] == numbers[i] + run) run++;
    if (run < 3) run = 1;
    const char *comma = len ? ", " : "";
    int more = run > 1 ? snprintf(out + len, room - len, "%s%u-%u", comma, numbers[i],
                                  numbers[i] + (uint32_t)run - 1)
                       : snprintf(out + len, room - len, "%s%u", comma, numbers[i]);
    len += more > 0 ? (size_t)more : 0;
    i += run;
    if (i < count && shown + 1 == SHOWN && len < room) snprintf(out + len, room - len, ", ...");
  }
  if (all > count && len < room) snprintf(out + len, room - len, ", ...");
}

void ranks_missing_text(const _Atomic uint64_t missing[RANKS_WORDS], uint32_t world, char *out,
                        size_t room) {
  uint32_t numbers[64 * RANKS_WORDS];
  uint32_t count = 0;
  char list[160];
  for (uint32_t i = 0; i < 64 * RANKS_WORDS && i < world; i++)
    if (atomic_load(&missing[i / 64]) >> (i % 64) & 1) numbers[count++] = i;
  if (room) *out = 0;
  if (count == 0) return;
  ranks_list(numbers, count, count, list, sizeof list);
  snprintf(out, room, "%s %s (%u of %u are there)", count == 1 ? "rank" : "ranks", list,
           world - count, world);
}
