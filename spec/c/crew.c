#include "crew.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "world.h"

enum { STACK = 512 << 10, SECONDS = 1 << 16, PAGE = 1000 };

typedef struct hand {
  ucontext_t at;
  char *stack;
  void (*run)(void *);
  void *arg;
  int64_t due;
  crew_asked asked;
} hand;

struct crew {
  io io;
  const io *inner;
  int64_t now, begun_wall, answer_ns, send_ns, last_part;
  uint64_t lots;
  ucontext_t main;
  hand *hands, *at; /* `at`: who has the turn; NULL: the test */
  uint32_t count;
  hand **heap; /* whose time comes first is on top */
  uint32_t waiting;
  const store_ops *plain;
  store_ops ops;
  uint32_t reads[SECONDS], writes[SECONDS]; /* in each second */
};

/* The io and the store of a call do not say of which crew they are. */
static crew *crew_of;

/* ---- turns ---- */

static void swap(crew *c, uint32_t a, uint32_t b) {
  hand *one = c->heap[a];
  c->heap[a] = c->heap[b];
  c->heap[b] = one;
}

static bool comes_first(const crew *c, uint32_t a, uint32_t b) {
  const hand *x = c->heap[a], *y = c->heap[b];
  return x->due < y->due || (x->due == y->due && x < y);
}

static void wait_turn(crew *c, hand *h, int64_t due) {
  uint32_t i = c->waiting++;
  h->due = due;
  c->heap[i] = h;
  for (; i > 0 && comes_first(c, i, (i - 1) / 2); i = (i - 1) / 2) swap(c, i, (i - 1) / 2);
}

static hand *next_turn(crew *c) {
  hand *first = c->heap[0];
  c->heap[0] = c->heap[--c->waiting];
  for (uint32_t i = 0;;) {
    uint32_t left = 2 * i + 1, best = i;
    if (left < c->waiting && comes_first(c, left, best)) best = left;
    if (left + 1 < c->waiting && comes_first(c, left + 1, best)) best = left + 1;
    if (best == i) return first;
    swap(c, i, best);
    i = best;
  }
}

static void pass(crew *c, int64_t ns) {
  hand *own = c->at;
  if (!own) {
    c->now += ns;
    return;
  }
  wait_turn(c, own, c->now + ns);
  swapcontext(&own->at, &c->main);
}

static void begin_hand(void) {
  hand *own = crew_of->at;
  own->run(own->arg);
}

void crew_start(crew *c, uint32_t i, int64_t at_ns, void (*run)(void *arg), void *arg) {
  hand *h = &c->hands[i];
  h->run = run;
  h->arg = arg;
  if (!h->stack)
    h->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (h->stack == MAP_FAILED || getcontext(&h->at) != 0) abort();
  h->at.uc_stack.ss_sp = h->stack;
  h->at.uc_stack.ss_size = STACK;
  h->at.uc_link = &c->main;
  makecontext(&h->at, begin_hand, 0);
  wait_turn(c, h, at_ns);
}

void crew_run(crew *c) {
  while (c->waiting > 0) {
    c->at = next_turn(c);
    if (c->at->due > c->now) c->now = c->at->due;
    swapcontext(&c->main, &c->at->at);
    c->at = NULL;
  }
}

/* ---- the clock ---- */

static int64_t now_of(const io *io, io_clock clock) {
  const crew *c = crew_of;
  (void)io;
  return clock == IO_WALL ? c->begun_wall + c->now : c->now;
}

static void sleep_of(const io *io, int64_t ns) {
  (void)io;
  pass(crew_of, ns);
}

const io *crew_io(crew *c) {
  return &c->io;
}

int64_t crew_now(const crew *c) {
  return c->now;
}

/* ---- the count ---- */

static crew_kind kind_of(const char *key) {
  if (strncmp(key, ".ckpt/log/", 10) == 0) return CREW_LOG;
  if (strcmp(key, ".ckpt/head") == 0) return CREW_HEAD;
  if (strncmp(key, ".ckpt/parts", 11) == 0) return CREW_READ;
  if (strncmp(key, ".ckpt", 5) == 0 || strstr(key, MANIFEST_NAME)) return CREW_REST;
  return CREW_FILE;
}

static void note(crew *c, crew_kind kind, bool writes) {
  int64_t second = c->now / 1000000000;
  if (c->at) c->at->asked.of[kind]++;
  if (kind == CREW_PART) c->last_part = c->now;
  if (second < SECONDS) (writes ? c->writes : c->reads)[second]++;
}

/* From so long to half as long again. */
static int64_t about(crew *c, int64_t ns) {
  c->lots = c->lots * 6364136223846793005u + 1442695040888963407u;
  return ns + (int64_t)((c->lots >> 33) % (uint64_t)(ns / 2 + 1));
}

static crew *ask(const char *key, bool writes) {
  crew *c = crew_of;
  crew_kind kind = kind_of(key);
  note(c, kind == CREW_READ && writes ? CREW_PART : kind, writes);
  pass(c, about(c, c->answer_ns));
  return c;
}

static int get(store *s, const char *key, buf *out, err *e) {
  return ask(key, false)->plain->get(s, key, out, e);
}

static int get_tagged(store *s, const char *key, buf *out, char tag[STORE_TAG_MAX], err *e) {
  return ask(key, false)->plain->get_tagged(s, key, out, tag, e);
}

static void get_many(store *s, store_ask *asks, size_t count) {
  crew *c = crew_of;
  for (size_t i = 1; i < count; i++) note(c, kind_of(asks[i].key), false);
  ask(asks[0].key, false)->plain->get_many(s, asks, count);
}

static int head(store *s, const char *key, store_object *out, err *e) {
  return ask(key, false)->plain->head(s, key, out, e);
}

static int put(store *s, const char *key, const void *data, size_t len, store_how how, err *e) {
  return ask(key, true)->plain->put(s, key, data, len, how, e);
}

static int put_marked(store *s, const char *key, const void *data, size_t len, store_how how,
                      const char *mark, err *e) {
  return ask(key, true)->plain->put_marked(s, key, data, len, how, mark, e);
}

static int replace_if(store *s, const char *key, const void *data, size_t len, const char *tag,
                      err *e) {
  return ask(key, true)->plain->replace_if(s, key, data, len, tag, e);
}

static int remove_one(store *s, const char *key, err *e) {
  return ask(key, true)->plain->remove(s, key, e);
}

typedef struct listing {
  store_list_fn *fn;
  void *ctx;
  uint32_t keys;
} listing;

static int tell(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  listing *l = ctx;
  l->keys++;
  if (!object) return l->fn(l->ctx, key, is_prefix, NULL);
  store_object told = *object;
  told.mtime_ns -= told.mtime_ns % 1000000000;
  return l->fn(l->ctx, key, is_prefix, &told);
}

/* Its pages come one after the other; what they tell is of one moment here. */
static int list(store *s, const char *prefix, bool delimited, store_list_fn *fn, void *ctx,
                err *e) {
  crew *c = crew_of;
  listing l = {fn, ctx, 0};
  note(c, CREW_LIST, false);
  pass(c, about(c, c->answer_ns));
  int rc = c->plain->list(s, prefix, delimited, tell, &l, e);
  for (uint32_t keys = PAGE; keys < l.keys; keys += PAGE) {
    note(c, CREW_LIST, false);
    pass(c, about(c, c->answer_ns));
  }
  return rc;
}

static int write_open(store *s, const char *key, uint64_t size, unsigned how, atomic_int *cancel,
                      store_writer **out, err *e) {
  crew *c = ask(key, true);
  pass(c, about(c, c->send_ns / 2));
  return c->plain->write_open(s, key, size, how, cancel, out, e);
}

void crew_count(crew *c, store *s) {
  c->plain = s->ops;
  c->ops = *s->ops;
  c->ops.get = get;
  c->ops.get_tagged = get_tagged;
  c->ops.get_many = get_many;
  c->ops.head = head;
  c->ops.put = put;
  c->ops.put_marked = put_marked;
  c->ops.replace_if = replace_if;
  c->ops.remove = remove_one;
  c->ops.list = list;
  c->ops.write_open = write_open;
  s->ops = &c->ops;
  s->io = &c->io;
}

crew_asked crew_asked_by(const crew *c, uint32_t i) {
  return c->hands[i].asked;
}

uint32_t crew_asked_beside(const crew *c, uint32_t i) {
  uint32_t sum = 0;
  for (int k = 0; k < CREW_KINDS; k++) sum += k == CREW_FILE ? 0 : c->hands[i].asked.of[k];
  return sum;
}

uint32_t crew_busiest(const crew *c, bool writes) {
  uint32_t most = 0;
  for (int i = 0; i < SECONDS; i++) {
    uint32_t n = writes ? c->writes[i] : c->reads[i];
    if (n > most) most = n;
  }
  return most;
}

int64_t crew_last_part(const crew *c) {
  return c->last_part;
}

void crew_forget(crew *c) {
  for (uint32_t i = 0; i < c->count; i++) c->hands[i].asked = (crew_asked){0};
  memset(c->reads, 0, sizeof c->reads);
  memset(c->writes, 0, sizeof c->writes);
}

/* ---- a crew ---- */

crew *crew_new(uint32_t hands, int64_t answer_ns, int64_t send_ns) {
  crew *c = calloc(1, sizeof *c);
  if (!c) abort();
  c->hands = calloc(hands, sizeof *c->hands);
  c->heap = calloc(hands, sizeof(hand *));
  if (!c->hands || !c->heap) abort();
  c->count = hands;
  c->answer_ns = answer_ns;
  c->send_ns = send_ns;
  c->inner = world_io();
  c->io = *c->inner;
  c->io.now = now_of;
  c->io.sleep = sleep_of;
  c->begun_wall =
      c->inner->now(c->inner, IO_WALL) / 1000000000 * 1000000000; /* for each time alike */
  crew_of = c;
  return c;
}

void crew_free(crew *c) {
  for (uint32_t i = 0; i < c->count; i++)
    if (c->hands[i].stack) munmap(c->hands[i].stack, STACK);
  free(c->hands);
  free(c->heap);
  free(c);
  crew_of = NULL;
}
