"""What a group must hold, of what its trainings told, what the runner printed, and what the store has."""
import json
import math
import os
import re
import statistics
import time

import told_log

TESTS = ["the kills and losses were played",
         "each start goes on from the newest complete step",
         "each commit loads in the framework, with the weights of its step",
         "it ends as if it had never been killed",
         "what is saved is committed in time",
         "a runner's death ends its job"]
COMMITTED = re.compile(r"ckpt-lua: committed (.+?) \((?:step \d+, )?\d+ files?, .* in ([\d.]+) (s|ms|min)\b")
SLACK = float(os.environ.get("FW_SLACK", "1"))  # for two clocks' readers on a machine that others load


class Start:
    def __init__(self, n, log, run):
        self.n, self.log, self.run = n, log, run
        self.kind, self.why, self.code, self.killed_at = "", None, None, None
        self.orphans, self.lost, self.failed, self.round = None, False, False, 0
        self.expected = None
        self.stored = set()  # names that the store had when it was over: a runner dies between a commit and its word

    def told(self, what):
        return [t for t in told_log.read(self.log) if t["what"] == what]

    def count(self, what):
        return len(self.told(what))

    def close(self):
        self.killed_at = self.killed_at or time.time()

    def commits(self):
        """(when, name, seconds of the transfer) as the runner said it."""
        found = []
        for t, line in list(self.run.lines):
            m = COMMITTED.search(line)
            if m:
                unit = {"s": 1, "ms": 0.001, "min": 60}[m.group(3)]
                found.append((t, m.group(1), float(m.group(2)) * unit))
        return found

    def said(self):
        begins = " ".join(str(t["step"]) for t in self.told("begin"))
        saved = " ".join(str(t["step"]) for t in self.told("saved"))
        end = f"killed {self.why}" if self.code is None else f"ended with {self.code}"
        return (f"start {self.n}, {self.kind}: expected {self.expected}, begins at {begins or 'nothing'}, "
                f"saves {saved or 'nothing'}, {len(self.commits())} committed; {end}")


def listed(text):
    return sorted((json.loads(line) for line in text.splitlines() if line), key=lambda r: r.get("number") or 0)


def is_checkpoint(g, name):
    return re.fullmatch(g.get("only", ".*"), name) is not None


def who(row, loaded):
    """Which trial a commit is of; None where there is only one."""
    h = loaded.get("hash") or ""
    return int(h.split()[1]) if h.startswith("trial ") else None


def restored(out):
    """Where a commit is now; of files with a common stem, what they begin with, as the framework calls it."""
    return json.loads(out.splitlines()[-1])["path"]


def _last_of(start, name):
    """By who trains: what it had when the start was over, and what it was just saving."""
    have, doing = {}, {}
    for t in told_log.read(start.log):
        w = t.get("who")
        if t["what"] in ("begin", "saved"):
            have[w] = max(have.get(w, 0), t["step"]) if t["what"] == "saved" else t["step"]
        if t["what"] == "saving":
            doing[w] = t["step"]
    return have, doing


def expected(g, before, newest):
    """By who trains, from which to which step the next start may go on; None: any."""
    if not before:
        return {None: (0, 0)} if g["trials"] == 1 else {w: (0, 0) for w in range(1, g["trials"] + 1)}
    last = before[-1]
    slack = g.get("slack", 0)
    have, doing = _last_of(last, None)
    if last.lost:  # what was sent whole and has no entry yet is committed by the next start
        found = newest()
        return {w: (max(0, (found.get(w) or 0) - slack), max(found.get(w) or 0, have.get(w, 0)))
                for w in (last.expected or found)}
    found = None
    result = {}
    for w, old in (last.expected or {None: (0, 0)}).items():
        if w not in have:
            result[w] = old
            continue
        have[w] = max(have[w], old[0])  # one that began too far back is not excused by what it made of that
        torn = doing.get(w, 0) > have[w]
        lower = have[w] - slack
        if torn and g["in_place"]:  # the one before was overwritten: what is whole is in the store
            found = newest() if found is None else found
            lower = found.get(w) or 0
        result[w] = (max(0, lower), max(have[w], doing.get(w, 0)))
    return result


def resumed(p, weights):
    """(right, asked, what was wrong)."""
    right, wrong, asked = 0, [], 0
    steps = {} if p.g["in_place"] else names(p.starts)
    for s in p.starts:
        begins = {t.get("who"): t for t in s.told("begin")[:p.g["trials"]]}
        asked += 1
        bad = []
        for w, (low, high) in (s.expected or {}).items():
            t = begins.get(w)
            name = "" if w is None else f" of trial {w}"
            over = s.code == 0 and low <= p.g.get("steps", math.inf) <= high  # a kill came when all was trained
            if t is None and over:
                continue
            env = os.path.basename((t or {}).get("env") or "")
            if t is None:
                bad.append(f"nothing began{name}, it ended with {s.code}: {last_words(s)}")
            elif not low <= t["step"] <= high:
                bad.append(f"it began at {t['step']}{name}, not at {low}" + (f" to {high}" if high > low else ""))
            elif steps.get(env, t["step"]) < t["step"]:
                bad.append(f"CKPT_RESUME is {env}, older than {t['step']}, which it takes itself")
            elif env and not is_checkpoint(p.g, env):
                continue  # it is not of the end of a step
            elif t["step"] and weights.get(t["step"]) and t["hash"] not in weights[t["step"]]:
                bad.append(f"the weights of step {t['step']}{name} are others")
        if any(not t["restored"] for t in s.told("tuner")) and any(high for _, high in (s.expected or {}).values()):
            bad.append("Tuner.can_restore is false, and there are trials")
        if bad:
            wrong.append(f"start {s.n}: " + "; ".join(bad))
        else:
            right += 1
    return right, asked, wrong


def last_words(start):
    lines = [line for _, line in start.run.lines if line.strip()]
    errors = [x for x in lines if re.search(r"\w*(Error|Exception)\b.*:", x)]
    ours = [x for x in lines if x.startswith("ckpt-lua:")]
    return " | ".join(errors[-1:] + ours[-2:])[:600]


def names(starts):
    """The step of each name that was told."""
    return {t["name"]: t["step"] for s in starts for t in s.told("saved") if t["name"]}


def found_late(p, s):
    """What stood there whole at this start, and was not committed though there was time."""
    begun = [t for t in s.told("begin") if t["step"]]
    if not begun or p.g["in_place"] or s.killed_at - begun[0]["t"] < p.g["limit"] + 3 * SLACK:
        return []
    before = [x for x in p.starts if x.round == s.round and x.n <= s.n]
    committed = {os.path.basename(c[1]) for x in before for c in x.commits()}
    mine = [name for name, step in names(before).items() if step == begun[0]["step"]]
    if not mine or any(name in committed | s.stored for name in mine):
        return []
    return [f"start {s.n}: {mine[0]} was there, and not committed in {s.killed_at - begun[0]['t']:.1f} s"]


def latencies(p):
    """Seconds from "saved" to the start of the transfer, and what was not committed though there was time."""
    seconds, late = [], []
    for s in p.starts:
        if s.kind == "to the end" or s.code is not None:
            continue
        late += found_late(p, s)
        saved, commits = s.told("saved"), [c for c in s.commits() if is_checkpoint(p.g, os.path.basename(c[1]))]
        for i, t in enumerate(saved):
            if t["name"] is None:
                continue
            again = [x["t"] for x in saved[i + 1:] if x["name"] == t["name"]] if p.g["in_place"] else []
            until = min(again + [s.killed_at])
            mine = [c for c in commits if os.path.basename(c[1]) == t["name"] and c[0] >= t["t"] - 0.5]
            mine = [c for c in mine if c[0] < until + 1]
            if mine:
                seconds.append(max(0.0, mine[0][0] - mine[0][2] - t["t"]))
            elif until - t["t"] > p.g["limit"] + 3 * SLACK and (p.g["in_place"] or t["name"] not in s.stored):
                late.append(f"start {s.n}: {t['name']} of step {t['step']} was not committed in "
                            f"{until - t['t']:.1f} s")
        if saved and saved[0]["name"] is None:  # of names that the framework makes of the time
            for c in commits:
                before = [t["t"] for t in saved if t["t"] <= c[0]]
                if before:
                    seconds.append(max(0.0, c[0] - c[2] - before[-1]))
            due = [t for t in saved if s.killed_at - t["t"] > p.g["limit"] + 3 * SLACK]
            if len(commits) < len(due):
                late.append(f"start {s.n}: {len(commits)} of {len(due)} were committed")
    return seconds, late


def known_weights(p, reference):
    """Which digests belong to a step: those of the training that was never killed, else what was told of it.

    A kill right at the end of a save leaves nobody to tell of it: then what the next start has loaded counts.
    """
    weights = {}
    for t in reference if reference else [t for s in p.starts for t in s.told("saved")]:
        if t["what"] in ("saved", "final"):
            weights.setdefault(t["step"], set()).add(t["hash"])
    for t in [] if reference else [t for s in p.starts for t in s.told("begin")]:
        weights.setdefault(t["step"], {t["hash"]})
    return weights


def verdicts(p, reference, final):
    """[(held, text)] for each of TESTS, and the row of the table."""
    weights = known_weights(p, reference)
    killed = [s for s in p.starts if s.code is None]
    played = len(killed) - p.lost
    result = [(played >= p.kills and p.lost >= p.losses, f"{played} kills, {p.lost} losses, {len(p.starts)} starts")]

    right, asked, wrong = resumed(p, weights)
    result.append((right == asked, "\n".join([f"{right} of {asked}"] + wrong)))

    rows = p.commits()
    loaded = p.load(rows)
    bad = [f"{r['group']}/{r['dir']}: step {step}, {h}" for r, (_, step, h) in zip(rows, loaded)
           if h is None or (step in weights and h not in weights[step]) or (weights and step not in weights)]
    bad += [f"{r['dir']} has the numbers of {os.path.basename(r['metrics']['checkpoint'])}" for r in rows
            if os.path.basename((r.get("metrics") or {}).get("checkpoint", r["name"])) != r["name"]]
    code, _, text = p.ckpt("verify", p.store)
    bad += [f"verify: {text.strip()}"] if code != 0 else []
    result.append((bool(rows) and not bad, "\n".join([f"{len(rows) - len(bad)} of {len(rows)} commits"] + bad)))

    result.append(ended(p, reference, final))

    seconds, late = latencies(p)
    middle = statistics.median(seconds) if seconds else None
    said = f"median {middle:.1f} s, longest {max(seconds):.1f} s, of {len(seconds)}" if seconds else "nothing was measured"
    result.append((middle is not None and middle <= p.g["limit"] + SLACK and not late,
                   "\n".join([f"{said}; the limit is {p.g['limit']} s"] + late)))

    alone = [s for s in p.starts if s.kind == "runner" and s.code is None]
    left = [f"start {s.n}: the job lived on" for s in alone if s.orphans is None]
    result.append((not left and (bool(alone) or p.kills < 4), "\n".join([f"{len(alone)} times"] + left)))
    row = {"kills": played, "losses": p.lost, "resumed": f"{right}/{asked}", "loaded": f"{len(rows) - len(bad)}/{len(rows)}",
           "latency": f"{middle:.1f}/{max(seconds):.1f}" if seconds else "-",
           "failed": [TESTS[i] for i, (held, _) in enumerate(result) if not held]}
    return result, row


def ended(p, reference, final):
    if final is None:
        return False, f"it never came to its end: {last_words(p.starts[-1])}"
    done = final.told("final")
    if final.code != 0 or not done:
        return False, f"the last start ended with {final.code}: {last_words(final)}"
    text = f"step {done[-1]['step']}, {done[-1]['hash']}"
    newest = p.newest()
    if any((step or 0) < p.g["steps"] for step in newest.values()) or not newest:
        return False, f"{text}; the newest commit is of {newest}"
    if reference:
        wanted = [t for t in reference if t["what"] == "final"][-1]["hash"]
        return done[-1]["hash"] == wanted, f"{text}; never killed: {wanted}"
    return done[-1]["step"] == p.g["steps"], text


def table_line(name, package, row, seconds):
    if row is None:
        return f"| {name} | {package} | 0 | 0 | - | - | - | not played |"
    failed = "; ".join(row["failed"]) or "all held"
    return (f"| {name} | {package} | {row['kills']} | {row['losses']} | {row['resumed']} | {row['loaded']} | "
            f"{row['latency']} | {failed} | {seconds:.0f} s |")
