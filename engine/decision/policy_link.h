/* policy_link: the way to where Lua runs. A request goes in, an answer comes out, JSON texts;
 * the other side cannot call back, and has no binding to anything.
 *
 * Two tiers have the same protocol. The process tier starts `<libexec>/ckpt-policy` and speaks to
 * it through pipes, its descriptors 0 and 1; it is the default, as LuaJIT itself can die when
 * memory runs out. The in-process tier loads `<libexec>/ckpt-policy.so`. One link serves all runs
 * of an engine.
 *
 * In the process tier a frame is its length (4 bytes, least significant first, at most
 * POLICY_FRAME_MAX) and a JSON object, behind which a NUL and packed values may follow. Each request
 * has one answer.
 *
 * Requests:
 *
 *   {"op":"load", "id":I, "chain":[{"name":N,"text":T}, ...], "settings":{NAME:VALUE, ...},
 *                 "cover":true}
 *   {"op":"ask",  "id":I, "hook":H, "memory":{...}, "before":{...},
 *                 "then":[{"hook":H,"before":{...}}, ...]}, and the event behind its NUL
 *   {"op":"check","id":I, "what":W, ...}
 *   {"op":"drop", "id":I}
 *
 * `load` replaces a chain of the same id; `drop` of an unknown id is fine. "settings" may be
 * absent. An id is a text, unique among all that share the other side: in the in-process tier, the
 * process. The other side keeps a bounded number of chains, and drops the one that was not used for
 * longest.
 *
 * Answers:
 *
 *   {"ok":true, ...}
 *   {"ok":false, "kind":K, "text":T}
 *
 *   K          the fault                                               the chain
 *   "syntax"   the file of a policy, or its table                      is not loaded
 *   "setting"  the settings                                            is not loaded
 *   "error"    a policy raised an error, or the request is malformed   has to be loaded again
 *   "budget"   too many instructions, too much CPU time or output      has to be loaded again
 *   "memory"   too much memory was taken, or there is none             has to be loaded again
 *   "answer"   a policy returned what is not in the vocabulary         stands (after `ask`)
 *   "unknown"  no chain has this id                                    has to be loaded again
 *
 * Lua has one kind of table, so an empty list may come out as {}. Texts are valid UTF-8 without
 * NUL.
 *
 * `load` answers with what the policies declare as data, merged along the chain: for single values
 * the first policy that sets one wins, lists of excludes are united in order. Keys that no policy
 * sets are absent.
 *
 *   unit:     [GLOB | {"glob":GLOB,"proven":true}, ...]
 *   exclude:  [GLOB, ...]
 *   complete: TEST
 *   metrics:  [SOURCE, ...]
 *   markers:  {"null":NAME,"temp":NAME}
 *   with:     [GLOB, ...]
 *   few:      true, if the core lets older generations of names without a number go
 *   queue:    "newest" | "all" | "skip" | "block", if it is no function
 *   has:      {HOOK:[NAME of a policy, ...], ...} for each hook that has to be asked
 *   written:  {HOOK:true, ...} for each in which a function of a policy's own has a part
 *   options:  [{"policy":N,"name":N,"type":T,"default":V,"value":V,"help":T}, ...]
 *   notes:    [TEXT, ...]: told once at the start (commented keep rules, say)
 *   warnings: [TEXT, ...]
 *
 *   TEST is one of
 *     {"all":[TEST, ...]}   {"any":[TEST, ...]}   {"none":[TEST, ...]}
 *     {"done":"renamed"}    {"done":"closed"}     {"done":"superset"}   {"done":"sound"}
 *     {"done":"quiet","ns":N}
 *     {"done":"marker","name":NAME,"newer":BOOL}
 *     {"done":"known","markers":[{"name":N,"when":GLOB?,"newer":BOOL}, ...],
 *      "quiet_ns":N,"marked_ns":N,"sound_ns":N,"settled_ns":N}
 *
 *   SOURCE is one of
 *     {"from":"json","file":F,"path":P}   {"from":"jsonl","file":F,"path":P}
 *     {"from":"notify"}
 *     {"from":"name","key":K,"after":T}: the number that follows T in the unit's name
 *
 * `ask` answers
 *
 *   {"ok":true, "answer":A, "reason":T, "by":NAME, "memory":{...}, "warnings":[TEXT, ...], "again":S}
 *
 * If "cover" is true, the answers to this `load` and to each `ask` of its chain have, also where they are
 * failures, what was reached for the first time since the one before, each thing once:
 *
 *   "covered":{"files":[{"policy":N, "code":[LINE, ...], "reached":[LINE, ...]}, ...],
 *              "rules":{"made":[{"policy":N,"place":"mine.lua:7: keep.last"}, ...],
 *                       "yes":[I, ...], "no":[I, ...]}}
 *
 * "code" are the lines that have any. I is the place of a rule in "made", from 1 on, that has said so. What
 * there is none of is absent in "rules".
 *
 * "then" has the hooks that are asked next about the same event: the answer has a "then", too, with
 * what an `ask` of each would be answered that is handed the memory which the one before it left. It
 * may be shorter, or absent: it ends behind an answer that is neither null nor true nor "sync", and
 * behind a failure. What it does not have is asked by itself.
 *
 * "before" is there if the hook was asked about this content already, and is the memory that it was
 * handed then: functions see that one, and what they remember is not changed. "again" is in how many
 * seconds `ready` or `sync` may answer otherwise though nothing happens, if time has a part in it.
 * "answer" is null if no policy has one; "reason" and "by" are absent then. "memory" is there if it
 * was changed, "warnings" if there are any. A by hook:
 *
 *   ready                      true | false
 *   sync                       "sync" | "skip"
 *   queue                      "newest" | "all" | "skip" | "block"
 *   exclude                    [GLOB, ...], up to 64: what this checkpoint alone is saved without
 *   keep, keep_local, restore  {"keep":"01...","why":[I, ...],"reasons":[T, ...]}: of each item
 *                              whether it is kept, and the place of its reason, from 1 on; 0: none
 *   on_error                   {"action":"retry","seconds":S} | {"action":"skip"} |
 *                              {"action":"abort"}
 *   on_preempt                 "newest" | "all" | "none"
 *   on_committed, on_failed    [NAME of a hook program, ...]
 *
 * What an `ask` or a `check` is about stands behind its NUL, as base/packed.h writes it: the event, a
 * JSON value, and what becomes its "list". Of each item: a byte with 1 "newest", 2 "pinned", 4
 * "durable"; the numbers "age", "number", "step", "time", "files", "bytes", "left_out"; the texts "name",
 * "dir", "kind", "suspect", "metrics" (a JSON object; another text is left out). An "event" in the request
 * itself is fine, too: the list alone is behind the NUL then. So is a plain "list" in the event; the
 * answer to `ask` is then [{"keep":BOOL,"reason":T,"by":NAME}, ...]. The members of "made_up" in the request
 * stand in the event in place of those that it has.
 *
 * `check` looks for faults of the policies themselves (policy_check.c), by what is asked:
 *
 *   "ask"     as `ask`, with "hook", "event" (its "trial" is {"numbers":BOOL,"nan":BOOL}: has each metric that is
 *             looked at a number?) and "memory"; {"answer":A, "reason":T, "again":S, "memory":{...},
 *             "clock":LINE, "metrics":{NAME:LINE,...}, "results":{NAME:LINE,...}}: LINE is "mine.lua:7",
 *             which looked at it. A is absent where it is a list of items. A field that no fact ever has is
 *             the fault "answer", once
 *   "needs"   {"metrics":{NAME:LINE,...}, "results":{NAME:LINE,...}, "doubted":{KEY:WHY,...}}: of the
 *             rules
 *   "rules"   tries the rules with a made-up history, of which there are "rounds"; "round" says which
 *   "unused"  {"list":[{"line":LINE,"text":T}, ...]}: rules that made no difference in any of them
 *   "must"    looks for a smallest list on which `keep` breaks an entry of `must`, a piece at a time, of
 *             which the first is asked for with "first":true; {"done":BOOL, "lists":N,
 *             "list":[{"line":LINE,"word":T,"text":T}, ...]}: the list is there when it is done
 *   "diff"    looks for a shortest list of which the two policies of the chain keep different ones, as
 *             "must" does; "hook" says by which key, "most" in how many such requests. {"done":BOOL, "lists":N, "searched":[T, ...],
 *             "held":[T, ...]}, and when it is done "verdict":"differ"|"equal"|"none", "why":T (of
 *             "none"), "list":[{"name":T,"facts":T,"a":BOOL,"b":BOOL,"why_a":T,"why_b":T}, ...] */
#ifndef DECISION_POLICY_LINK_H
#define DECISION_POLICY_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"

enum { POLICY_FRAME_MAX = 64 << 20 };

typedef struct policy_link policy_link;

typedef struct policy_link_options {
  const io *io; /* for clocks; NULL: the system's */
  const log_sink *log;
  const char *libexec; /* directory of the helper; NULL: $CKPT_LIBEXEC, else `libexec`,
                          `build/libexec` or `../libexec/ckpt-lua` beside the program or library,
                          else where it was installed */
  bool in_process;
} policy_link_options;

/* Makes a link, and starts nothing yet. It is for one thread. */
int policy_link_open(const policy_link_options *options, policy_link **out, err *e);
void policy_link_close(policy_link *l); /* NULL is fine */

/* Makes one request, and appends its answer to `answer`. Starts the helper if it does not run.
 * Blocks: at most until the helper has used up the CPU time of one request (0.4 s), and 5 s in all;
 * then it is killed. ERR_POLICY: the helper died or had to be killed (the text says how); all
 * chains are gone. After six deaths within a minute it rests, at first a second, at most a minute:
 * calls fail with ERR_POLICY at once. Another error: it cannot be started at all, or the request is
 * over POLICY_FRAME_MAX (ERR_LIMIT). */
int policy_link_call(policy_link *l, const char *request, size_t len, buf *answer, err *e);

/* Changes when a new helper was started: all chains have to be loaded again. */
uint64_t policy_link_generation(const policy_link *l);

/* Returns the helper's number, while it runs; else 0. A search for processes that a job left
 * running must pass it over. */
pid_t policy_link_pid(const policy_link *l);

#endif
