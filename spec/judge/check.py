"""The promises, and nothing else: what clients were told, against what the store has.

  1  what was acknowledged restores to equal bytes until it is dropped and its grace is over
  2  one term writes; no entry of the log changes or goes
  3  nothing foreign changes
  4  nothing pinned goes
  5  a client's exit code and last words agree with the store
  6  what is the newest never goes back, unless somebody drops it or marks it; none is committed after one that was
     complete later
"""
import json
import os
import re
import shutil
import time

import ledger
import trainer

LAST = 150  # seconds; on a machine that others load, too
CLOSE = 0.1  # seconds; who is complete at the same time may come in any order
SLACK = 0.02  # seconds; one machine has one clock, but two processes look at it
LEAVE = 2  # seconds between a lease that is given back and its process's end, on a machine that others load


def digest_map(files):
    return {k: v for k, v in files.items() if not k.startswith(".ckpt-")}


class Judgement:
    def __init__(self, history):
        self.h, self.found = history, []
        self.records = history.recorded()
        self.wrote = [r for r in self.records if "wrote" in r]
        self.log = history.known()
        self.ranks = sorted(history.seen, key=ledger.order)

    def say(self, promise, text, *events):
        self.found.append((promise, text, [e["number"] for e in events if "number" in e]))

    # -- what could be seen when --

    def window(self, event):
        """The first and the last state of the log that an operation may have seen."""
        low = -1
        for i, key in enumerate(self.ranks):
            if self.h.times[key] < event["t0"]:
                low = i
            else:
                break
        high = low
        for i in range(low + 1, len(self.ranks)):
            if self.log.times[i] <= event["t1"] + SLACK:
                high = i
        return low, high

    def newest_between(self, event):
        low, high = self.window(event)
        return {None if i < 0 else self.log.states[i][2] for i in range(low, high + 1)}

    def live_between(self, event):
        low, high = self.window(event)
        return [set() if i < 0 else self.log.states[i][1] for i in range(low, high + 1)]

    def meant_between(self, event, name):
        """The commits that a name may have meant while an operation went on."""
        low, high = self.window(event)
        out = set()
        for i in range(max(low, 0), high + 1):
            _, _, _, good, bad = self.log.states[i]
            one = self.log.meant(name, good)
            out.add(one if one is not None else self.log.meant(name, bad))
        return out - {None}

    def plain(self, c):
        """Whether its directory's name means this one, and no later generation."""
        good = [o["n"] for o in self.log.live() if not o["bad"]]
        return self.log.meant(c["dir"], good if not c["bad"] else [c["n"]] + good) == c["n"]

    def actors_of(self, commit):
        """The hosts whose save it may be, by the state directories that its owners' terms name: who goes on with an
        attempt that another host left may commit what that one sent, or send its own."""
        states = [self.log.terms.get(n, {}).get("state", "") for n in commit["owners"]]
        return {m[1] for m in (re.search(r"/(host\d+|last)/state$", s) for s in states) if m}

    def pid_of(self, term):
        return self.log.terms.get(term, {}).get("pid")

    def saved_as(self, commit):
        """All that its hosts ever made under that name."""
        actors = self.actors_of(commit)
        return [r["files"] for r in self.wrote if r["wrote"] == commit["unit"] and (not actors or r["actor"] in actors)]

    def bytes_of(self, commit):
        """What stands in the store, without what the driver itself put there."""
        there = {}
        for key in self.h.eyes.list(commit["dir"] + "/"):
            if key in self.h.foreign:
                continue
            data = self.h.eyes.get(key)
            if data is not None:
                import hashlib

                there[key[len(commit["dir"]) + 1 :]] = hashlib.sha256(data).hexdigest()
        return digest_map(there)

    # -- the rules --

    def check_log(self):
        for n, text in self.log.broken:
            self.say(6 if "newest" in text else 2, text)
        for key, data in self.h.seen.items():
            now = self.h.eyes.get(key)
            if now != data:
                self.say(2, f"{key} was {data[:200]!r}, and is {None if now is None else now[:200]!r}")

    def check_commits(self):
        for c in self.log.commits.values():
            if c["life"] == "deleted" or c["n"] in self.h.over:
                continue
            there = self.bytes_of(c)
            if there not in self.saved_as(c):
                lost = sorted(set(self.saved_as(c)[0]) - set(there)) if self.saved_as(c) else []
                hosts = " or ".join(sorted(self.actors_of(c)))
                self.say(1, f"commit {c['n']}, {c['dir']} ({c['life']}), has not the bytes that {hosts} saved"
                         + (f": {', '.join(lost)} is missing" if lost else f": {sorted(there)}"))
            elif self.h.eyes.get(f"{c['dir']}/.ckpt-manifest.json") is None:
                self.say(1, f"commit {c['n']}, {c['dir']} ({c['life']}), has no manifest")

    def check_acknowledged(self):
        """Each commit that a client told of is in the log, by its own process."""
        for e in self.h.ops:
            said = re.findall(r"^ckpt-lua: committed (\S+) \(", e.get("err", ""), re.M)
            for unit in set(said):
                there = [c for c in self.log.commits.values() if c["unit"] == unit and self.pid_of(c["term"]) == e["pid"]]
                if len(there) < said.count(unit):
                    self.say(1, f"{unit} was reported as committed, and the log has no commit of it by pid {e['pid']}", e)
        for r in self.records:
            if r.get("waited") and r["rc"] == 0:
                self.check_waited(r)
            if "resumed" in r and r["files"] not in [w["files"] for w in self.wrote if w["wrote"] == r["resumed"]]:
                self.say(1, f"{r['actor']} was given {r['resumed']} to resume from, with bytes that nobody saved")

    def check_waited(self, r):
        of = [c for c in self.log.commits.values() if c["unit"] == r["waited"] and r["actor"] in self.actors_of(c)]
        if not of:
            self.say(1, f"{r['actor']} was told that {r['waited']} is durable, and no commit names it")

    def completed(self, c):
        """When its trainer may have had it whole: of those with that name, the one with its bytes, while these stand."""
        actors = self.actors_of(c)
        of = [r for r in self.records if r.get("complete") == c["unit"] and r["actor"] in actors and r["t"] < c["time"] + SLACK]
        if len(of) > 1 and c["life"] != "deleted" and c["n"] not in self.h.over:
            there = self.bytes_of(c)
            of = [r for r in of if r["files"] == there]
        return [r["t"] for r in of]

    def check_order(self):
        """No older one follows a newer that a restore would take: what is committed later was complete later."""
        times = {n: self.completed(c) for n, c in self.log.commits.items()}
        good = frozenset()
        for n, _, _, after, _ in self.log.states:
            before, good = good, after
            newer = [o for o in before if times.get(n) and times.get(o) and max(times[n]) < min(times[o]) - CLOSE]
            for o in newer[-1:]:
                late, there = self.log.commits[n], self.log.commits[o]
                self.say(6, f"commit {n}, {late['dir']}, was complete {min(times[o]) - max(times[n]):.2f} s before "
                         f"{there['dir']}, commit {o}, and follows it")

    def check_grace(self):
        if self.h.plan["patient"]:
            for c in self.log.commits.values():
                if c["deleted"]:
                    self.say(1, f"{c['dir']} was deleted {c['deleted'] - c['dropped']:.1f} s after it was dropped; all "
                             "who may delete have a grace of 24 h")
        hands = [e["name"] for e in self.h.ops if e.get("args", [""])[0] == "rm"]
        keeps = any(op.get("keep") for ops in self.h.plan["writers"] for op in ops)
        for c in self.log.commits.values():
            if c["dropped"] and not keeps and not {c["dir"], c["unit"]} & set(hands):
                self.say(1, f"{c['dir']} was dropped, and nobody asked for that")

    def check_foreign(self, when):
        there = None
        for key, data in self.h.foreign.items():
            now = self.h.eyes.get(key)
            if now == data:
                continue
            if now is None:
                there = there if there is not None else self.h.eyes.list(".ckpt/staging/gone.")
                there = there or self.h.eyes.list(".ckpt/staging")
                if any(k.endswith("/" + key.split("/", 1)[-1]) and self.h.eyes.get(k) == data for k in there):
                    continue  # a removal was cut short; gc names it there
            self.say(3, f"{when}: {key}, which is another tool's, " + ("is gone" if now is None else "has other bytes"))
        for name, data in self.h.beside.items():
            if self.h.world.get_beside(self.h, name) != data:
                self.say(3, f"{when}: {name}, which lies beside the target, has changed")

    def check_pins(self):
        for name, pin in self.h.pins.items():
            c = self.log.commits.get(pin["commit"])
            if not c or c["n"] not in self.meant_between(pin["event"], pin["event"]["name"]):
                self.say(4, f"pin {name} stands for commit {pin['commit']}, which was not asked for", pin["event"])
                continue
            until = pin["to"] or time.time()
            if c["deleted"] and pin["from"] - SLACK < c["deleted"] < until - SLACK or (
                c["deleted"] and c["deleted"] <= pin["from"]
            ):
                self.say(4, f"{c['dir']} was deleted while pin {name} of it stood, which its client was told of")

    # -- what each client was told --

    def check_clients(self):
        for e in self.h.ops:
            if "rc" not in e or "killed" in e:
                continue
            if e["rc"] < 0 or 128 <= e["rc"] not in (130, 137, 143):
                self.say(5, f"it ended with {e['rc']}", e)
            check = getattr(self, "client_" + e["args"][0], None)
            if check:
                check(e)

    def clean(self, e):
        """Whether nothing stood between the client and its store."""
        return self.h.plan["sky"] in ("", "calm") and not e["op"].get("disk")

    def client_restore(self, e):
        asked = e.get("asked_for")
        if e["rc"] == 0:
            self.check_restored(e)
        elif e["rc"] == 5:
            if self.clean(e) or "fail=" not in e["op"].get("disk", ""):
                gone = [c for c in self.log.commits.values() if c["dropped"] and c["dropped"] < e["t1"] + SLACK]
                if not [c for c in gone if asked in (None, c["dir"], c["unit"])]:
                    self.say(5, "a restore says that data is damaged or gone; nobody damaged or dropped it", e)
                elif "no longer kept" not in e["err"] and self.clean(e):
                    self.say(5, "a restore says that the data is damaged; it was dropped and removed meanwhile", e)
        elif e["rc"] == 4:
            ok = [s for s in self.live_between(e) if (asked not in s if asked else not s)] or not self.ranks
            if not ok and not (asked is None and None in self.newest_between(e)):
                self.say(5, f"a restore finds nothing; {asked or 'the newest'} was there all the time", e)

    def check_restored(self, e):
        if "another tool wrote it" in e["err"]:
            # What others put there before the first entry of the log.
            if self.window(e)[0] >= 0:
                self.say(6, "a target with a log was restored as what another tool wrote", e)
            return
        for name, files in e["restored"].items():
            if files not in [w["files"] for w in self.wrote if w["wrote"] == name]:
                self.say(1, f"{name} was restored with bytes that nobody saved", e)
            elif e["asked_for"]:
                could = [self.log.commits[n] for n in self.meant_between(e, e["asked_for"])]
                if not any(files in self.saved_as(c) for c in could):
                    self.say(1, f"{e['asked_for']} was restored with the bytes of another one", e)
        if not e["restored"]:
            self.say(5, "a restore ends with 0, and nothing was restored", e)
        elif e["asked_for"] is None:
            self.check_newest(e, [c["n"] for c in self.log.commits.values() if c["unit"] in e["restored"]
                                  and self.may_be(c, e["restored"][c["unit"]])])

    def may_be(self, c, files):
        return files in self.saved_as(c)

    def check_newest(self, e, numbers):
        could = self.newest_between(e)
        if not set(numbers) & could:
            self.say(6, f"it took commit {numbers} for the newest; between its begin and its end that was {sorted(could, key=str)}", e)

    def client_latest(self, e):
        if e["rc"] == 0:
            name = e["out"].strip().rsplit("/", 1)[-1]
            self.check_newest(e, [c["n"] for c in self.log.commits.values() if c["dir"] == name])
        elif e["rc"] == 4 and None not in self.newest_between(e):
            self.say(5, "`latest` finds nothing, and there was a newest one all the time", e)

    def client_ls(self, e):
        if e["rc"] == 0:
            listed = {json.loads(line)["dir"] for line in e["out"].splitlines()}
            if listed not in self.live_between(e):
                self.say(6, f"it lists {sorted(listed)}; at no time between its begin and its end was that so", e)

    def client_verify(self, e):
        if e["rc"] == 5 and self.clean(e) and not any(c["dropped"] and c["dropped"] < e["t1"] + SLACK for c in self.log.commits.values()):
            self.say(5, "`verify` finds damage; nobody damaged anything", e)

    def client_rm(self, e):
        for name in re.findall(r"^dropped (\S+)", e["out"], re.M):
            if not [c for c in self.log.commits.values() if c["dir"] == name and c["dropped"] and c["dropped"] <= e["t1"] + SLACK]:
                self.say(5, f"the removal of {name} was reported as done, and the log has none", e)

    def client_mark(self, e):
        if e["rc"] == 0 and e["args"][1] == "bad":
            marks = [json.loads(d) for d in self.h.seen.values() if b'"type":"bad"' in d]
            named = [c["n"] for c in self.log.commits.values() if e["name"] in (c["unit"], c["dir"])]
            if not [m for m in marks if m.get("commit") in named and not m.get("good")]:
                self.say(5, "the mark was reported as set, and the log has none", e)

    def client_run(self, e):
        self.saver(e, [r for r in self.records if "complete" in r and r["actor"] == e["actor"] and e["t0"] <= r["t"] <= e["t1"]])

    client_watch = client_run

    def client_sync(self, e):
        self.saver(e, [r for r in self.records if "complete" in r and r["actor"] == e["actor"] and r["t"] <= e["t1"]][-1:])

    def saver(self, e, complete):
        terms = [t for t in self.log.terms.values() if t.get("pid") == e["pid"]]
        last = (e["err"].strip().splitlines() or [""])[-1]
        if e["rc"] == 14 and not self.was_fenced(e, terms):
            self.say(5, "it ends with 14, and no newer term was opened", e)
        if e["rc"] == 0 and "NOT durable" in last:
            self.say(5, "it ends with 0, and its last line says: not durable", e)
        if not complete or "; durable in" not in last:
            return
        newest = complete[-1]
        mine = [c for c in self.log.commits.values() if c["unit"] == newest["complete"] and e["actor"] in self.actors_of(c)]
        same = [c for c in mine if c["life"] == "deleted" or c["n"] in self.h.over or self.bytes_of(c) == newest["files"]]
        step = int(newest["complete"].rsplit("-", 1)[1])
        before = [c for c in self.log.commits.values() if c["time"] <= e["t1"] + SLACK]
        newer = [c for c in before if (c["step"] or 0) >= step or max(self.completed(c), default=0) >= newest["t"] - CLOSE]
        if not same and not newer:
            self.say(5, f"it ends with {e['rc']} and says: durable; but {newest['complete']}, which it had, is in no commit", e)

    def was_fenced(self, e, terms):
        if any(n > max([t["n"] for t in terms], default=-1) for n in self.log.terms):
            return True
        # Who repairs with --take-over begins a log anew beside a save that is whole and not committed: its writer stops.
        if "a repair of this log (epoch " in e["err"] and self.h.eyes.list(".ckpt/epoch/"):
            return any(o["args"][0] == "repair" and "--take-over" in o["args"] and o["t0"] < e["t1"]
                       for o in self.h.ops if "args" in o)
        return "removed" in e["err"]

    def check_leases(self):
        """Nobody writes beside a writer who is alive, without a word."""
        for n, term in self.log.terms.items():
            e = next((o for o in self.h.ops if o.get("pid") == term.get("pid") and "args" in o), None)
            before = [t for k, t in self.log.terms.items() if k < n]
            if not e or not before or "--take-over" in e["args"] or self.h.plan["sky"] not in ("", "calm"):
                continue
            last = before[-1]
            other = next((o for o in self.h.ops if o.get("pid") == last.get("pid") and "args" in o), None)
            if not other or other["actor"] == e["actor"] or "fail=" in other["op"].get("disk", "") + e["op"].get("disk", ""):
                continue
            # Who has announced a save has a lease, and gives it back when it ends by itself.
            had = [a for a in self.log.attempts.values() if a["owners"][0] == last["n"] and self.log.times[a["n"]] < e["t0"]]
            if had and other["t0"] < e["t0"] and self.was_at_work(other, term["time_ns"] / 1e9):
                self.say(2, f"term {n} was opened without --take-over while the lease of {other['actor']} stood", e, other)

    def was_at_work(self, e, at):
        """Whether a process had its lease at that time: the next moment shows it, for when it gave it back nobody saw."""
        wrote = [r["t"] for r in self.records if r["actor"] == e["actor"] and "wrote" in r]
        busy = e["rc"] == 14 or any(at + SLACK < t < e["t1"] for t in wrote) or e["t1"] > at + LEAVE
        return "killed" in e or busy and e["t1"] > at + SLACK

    # -- the end of it --

    def last_words(self):
        """What a healthy world sees now; a new writer; a collection."""
        live = [c for c in self.log.live() if c["n"] not in self.h.over]
        if self.log.next == 0:
            return
        e = self.h.client("judge", ["ls", "--json", self.h.uri], patience=LAST)
        listed = {json.loads(line)["dir"] for line in e["out"].splitlines()} if e["rc"] == 0 else None
        if "asked" not in e and listed != {c["dir"] for c in self.log.live()} and not (e["rc"] == 4 and not live):
            self.say(5, f"in the end `ls` ends with {e['rc']} and lists {listed}; the log has {sorted(c['dir'] for c in live)}", e)
        lot = __import__("random").Random(self.h.plan["seed"])
        live = [c for c in live if self.plain(c)]
        for c in {c["n"]: c for c in lot.sample(live, min(2, len(live))) + live[-1:]}.values():
            self.restore_one(c)
        self.h.guest_back("judge", {}, all_of_them=True)
        self.last_save()

    def restore_one(self, c, damaged=False):
        to = f"{self.h.top}/end-{c['n']}{damaged}"
        e = self.h.client("judge", ["restore", self.h.uri, c["dir"], "--dir", to], patience=LAST)
        path = f"{to}/{c['unit']}"
        got = trainer.read_tree(path) if os.path.isdir(path) else None
        shutil.rmtree(to, ignore_errors=True)
        if "asked" in e:
            return  # it had no time
        if damaged:
            if e["rc"] == 0 or got is not None:
                self.say(1, f"{c['dir']} has a wrong byte, and its restore ends with {e['rc']}" + (" and other bytes" if got else ""), e)
        elif e["rc"] != 0 or got not in self.saved_as(c):
            self.say(1, f"in the end {c['dir']} is restored with {e['rc']}, and " + ("other bytes" if got else "nothing"), e)

    def mend(self):
        """Where the last repair was killed, or its disk failed, nobody writes until another one has ended."""
        done = [e for e in self.h.ops if e.get("args", [""])[0] == "repair"]
        if done and done[-1]["rc"] not in (0, 3, 4) and self.h.eyes.list(".ckpt/epoch/"):
            e = self.h.client("judge", ["repair", self.h.uri, "--take-over"], patience=LAST)
            if e["rc"] not in (0, 3) and "asked" not in e:
                self.say(5, f"in the end a repair that was cut short is not mended: it ends with {e['rc']}", e)

    def last_save(self):
        """A host that comes last takes over, saves, and collects: it must succeed, and change nothing else."""
        where = self.h.top + "/last"
        os.makedirs(where + "/out")
        op = {"take_over": True, "keep": False, "how": "rename"}
        self.h.save("last", where, op, 0)
        options = self.h.options(where, op)
        self.mend()
        e = self.h.client("last", ["sync", options[1]] + options[2:], patience=LAST)
        if e["rc"] != 0 and "asked" not in e:
            self.say(5, f"in the end a new writer cannot save: it ends with {e['rc']}", e)
        e = self.h.client("judge", ["gc", self.h.uri, "--grace-delete", "0"], patience=LAST)
        if e["rc"] not in (0, 4) and "asked" not in e:
            self.say(5, f"in the end gc ends with {e['rc']}", e)
        self.h.look()
        self.log, before = self.h.known(), self.log
        for c in self.log.commits.values():
            held = [p for p in self.h.pins.values() if p["commit"] == c["n"] and p["to"] is None]
            if c["life"] == "deleted" and c["n"] in before.commits and before.commits[c["n"]]["life"] != "deleted" and held:
                self.say(4, f"the last collection removes {c['dir']}, which is pinned")
        self.wrote = [r for r in self.h.recorded() if "wrote" in r]

    def damage(self):
        """One byte of what stands there: it must be noticed."""
        live = [c for c in self.log.live() if c["n"] not in self.h.over and self.plain(c)]
        if live:
            lot = __import__("random").Random(self.h.plan["seed"])
            c = lot.choice(live)
            size = len(self.h.eyes.get(f"{c['dir']}/model.bin") or b"")
            if size:
                self.h.eyes.flip(f"{c['dir']}/model.bin", lot.randrange(size))
                self.restore_one(c, damaged=True)

    def judge(self):
        for text in self.h.problems:
            self.say(0, text)
        self.check_log()
        self.check_commits()
        self.check_acknowledged()
        self.check_order()
        self.check_grace()
        self.check_foreign("after the history")
        self.check_pins()
        self.check_clients()
        self.check_leases()
        self.last_words()
        log = list(self.found)
        self.found = []
        self.check_log()
        self.check_commits()
        self.check_foreign("after the last collection")
        known = {t for _, t, _ in log}
        self.found = log + [f for f in self.found if f[1] not in known]
        if not self.found:
            self.damage()
        return self.found


def story(history, found, command):
    """Who did what when, and what is wrong with it."""
    plan = history.plan
    what = "A promise is broken" if found else "Nothing is wrong"
    out = [f"{what} in history {plan['seed']} on {plan['store']}"
           + (f" ({plan['sky']})" if plan["sky"] else "") + (f", with the fault {history.world.fault}" if history.world.fault else "")]
    for promise, text, numbers in found:
        out.append(f"  promise {promise}: {text}" + (f" (see {', '.join('#%d' % n for n in numbers)})" if numbers else ""))
    out.append(f"  again: {command}")
    began = min([e["t0"] for e in history.ops], default=0)
    lines = []
    for e in history.ops:
        at = e["t0"] - began
        if "did" in e:
            lines.append((at, f"{at:7.3f}          {e['actor']:7} {e['did']}"))
            continue
        words = " ".join(w.replace(history.top, "@") for w in e["args"])
        how = "".join(f", {k} {e[k]}" for k in ("killed", "stopped", "asked") if k in e)
        disk = f"  [{e['op']['disk']}]" if e["op"].get("disk") else ""
        lines.append((at, f"{at:7.3f} {e['t1'] - began:7.3f}  {e['actor']:7} #{e['number']} pid {e['pid']} {words} -> {e['rc']}{how}{disk}"))
        for line in (e["err"] + e["out"]).strip().splitlines()[-6:]:
            lines.append((at, f"                          | {line.replace(history.top, '@')[:300]}"))
    for r in history.recorded():
        at = r["t"] - began
        what = next(k for k in ("wrote", "complete", "resumed", "waited") if k in r)
        lines.append((at, f"{at:7.3f}          {r['actor']:7} {what} {r[what]}" + (f" -> {r['rc']}" if "rc" in r else "")))
    for key in sorted(history.seen, key=ledger.order):
        e = json.loads(history.seen[key]) if history.seen[key][:1] == b"{" else {}
        at = e.get("time_ns", 0) / 1e9 - began
        more = " ".join(f"{k} {e[k]}" for k in ("term", "attempt", "commit", "unit", "dir", "pid", "reason") if k in e)
        lines.append((at, f"{at:7.3f}          log     {e.get('n')}: {e.get('type')} {more}"))
    out += ["  " + text for _, text in sorted(lines, key=lambda x: x[0])]
    return "\n".join(out)
