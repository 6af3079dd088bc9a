"""The log of a target as docs/format.md has it, read without a line of the engine: what was there after each entry,
and where somebody broke a rule. It is strict: who follows the rules never makes an entry that readers pass over."""
import json
import re

ENTRY = re.compile(r"^\.ckpt/log(?:\.(\d+))?/(\d{20})\.json$")
KNOWN = ("run", "term", "attempt", "adopt", "sweep", "commit", "drop", "delete", "bad", "end", "snapshot")


def order(key):
    """(epoch, number) of a log entry's key, or None."""
    m = ENTRY.match(key)
    return (int(m[1] or 0), int(m[2])) if m else None


class Ledger:
    def __init__(self):
        self.terms, self.attempts, self.commits = {}, {}, {}
        self.term, self.ended, self.next, self.epoch = None, False, 0, 0
        self.broken = []  # (number, text)
        self.states = []  # after each entry: (number, dirs that are live, newest commit's number or None, good, bad)
        self.times = []  # of each entry, by its writer's clock

    def wrong(self, n, text):
        self.broken.append((n, f"log entry {n}: {text}"))

    def live(self):
        return [c for c in self.commits.values() if c["life"] == "live"]

    def newest(self):
        good = [c["n"] for c in self.live() if not c["bad"]]
        return max(good) if good else None

    def take(self, where, text):
        epoch, n = where
        try:
            e = json.loads(text)
        except ValueError:
            self.wrong(n, f"it is no JSON: {text[:80]!r}")
            return
        if epoch != self.epoch and e.get("type") == "snapshot" and n == 0:
            # A repair's log begins: its number stands in it, and so does the repair's own term, whose all open attempts are.
            n, self.term, self.ended = e.get("n"), e.get("term"), False
            for a in self.attempts.values():
                if a["fate"] == "open":
                    a["owners"].append(self.term)
        elif epoch == self.epoch and n != self.next:
            self.wrong(n, f"the log goes on at {n}, after {self.next - 1}")
        self.epoch, self.next = epoch, n + 1
        if e.get("n") != n:
            self.wrong(n, f"it says that it is {e.get('n')}")
        kind = e.get("type")
        if kind in KNOWN:
            self.fence(n, kind, e)
            getattr(self, "on_" + kind)(n, e)
        elif e.get("reader", 1) < 2:
            self.wrong(n, f"a type that nobody knows: {kind}")
        good = frozenset(c["n"] for c in self.live() if not c["bad"])
        bad = frozenset(c["n"] for c in self.live() if c["bad"])
        self.states.append((n, {c["dir"] for c in self.live()}, self.newest(), good, bad))
        self.times.append(e.get("time_ns", 0) / 1e9)

    def meant(self, name, among):
        """The commit that a name means: the newest good one of that unit or directory, else a bad one."""
        of = [c for c in self.commits.values() if c["n"] in among and name in (c["unit"], c["dir"])]
        return max(of, key=lambda c: c["n"])["n"] if of else None

    def fence(self, n, kind, e):
        """One term writes."""
        if kind in ("run", "term"):
            return
        term = e.get("term")
        if term is None and kind in ("drop", "delete", "bad", "end", "sweep"):
            return
        if term != self.term:
            self.wrong(n, f"{kind} of term {term} stands after term {self.term} was opened")
        elif self.ended:
            self.wrong(n, f"{kind} of term {term} after the run's end")

    def on_run(self, n, e):
        if n != 0:
            self.wrong(n, "a second `run`")

    def on_term(self, n, e):
        if e.get("term") != n:
            self.wrong(n, f"a term that calls itself {e.get('term')}")
        self.term, self.ended = n, False
        self.terms[n] = e

    def on_attempt(self, n, e):
        for a in self.attempts.values():
            if a["dir"] == e["dir"]:
                self.wrong(n, f"the name {e['dir']} was given away by entry {a['n']} already")
        self.attempts[n] = {
            "n": n, "dir": e["dir"], "unit": e["unit"], "fate": "open",
            "nonce": e["nonce"], "owners": [e["term"]],
        }

    def open_attempt(self, n, kind, e):
        a = self.attempts.get(e.get("attempt"))
        if not a:
            self.wrong(n, f"{kind} of attempt {e.get('attempt')}, which is none")
        elif a["fate"] != "open":
            self.wrong(n, f"{kind} of attempt {a['n']}, which is {a['fate']}")
        return a

    def on_adopt(self, n, e):
        a = self.open_attempt(n, "adopt", e)
        if a:
            a["owners"].append(e["term"])

    def on_sweep(self, n, e):
        a = self.open_attempt(n, "sweep", e)
        if a:
            if "term" not in e and a["owners"][-1] == self.term:
                self.wrong(n, f"a guest gives up attempt {a['n']} of the newest term")
            a["fate"] = "swept"

    def on_commit(self, n, e):
        a = self.open_attempt(n, "commit", e)
        if not a:
            return
        if a["owners"][-1] != e["term"]:
            self.wrong(n, f"term {e['term']} commits attempt {a['n']} of term {a['owners'][-1]}")
        a["fate"] = "committed"
        self.commits[n] = {
            "n": n, "dir": a["dir"], "unit": a["unit"], "attempt": a["n"], "term": e["term"], "owners": a["owners"],
            "life": "live", "bad": False, "step": e.get("step"), "time": e["time_ns"] / 1e9, "nonce": a["nonce"],
            "dropped": None, "deleted": None, "dropped_by": "",
        }

    def commit_in(self, n, kind, e, life):
        c = self.commits.get(e.get("commit"))
        if not c:
            self.wrong(n, f"{kind} of commit {e.get('commit')}, which is none")
        elif c["life"] != life:
            self.wrong(n, f"{kind} of {c['dir']}, which is {c['life']}")
        return c

    def on_drop(self, n, e):
        c = self.commit_in(n, "drop", e, "live")
        if not c:
            return
        better = [o for o in self.live() if not o["bad"] and o is not c and (c["bad"] or o["n"] > c["n"])]
        if not better:
            self.wrong(n, f"{c['dir']} is dropped, and is the newest")
        c["life"], c["dropped"], c["dropped_by"] = "dropped", e["time_ns"] / 1e9, e.get("policy", "")

    def on_delete(self, n, e):
        c = self.commit_in(n, "delete", e, "dropped")
        if c:
            c["life"], c["deleted"] = "deleted", e["time_ns"] / 1e9

    def on_bad(self, n, e):
        c = self.commit_in(n, "bad", e, "live")
        if c:
            c["bad"] = not e.get("good", False)

    def on_end(self, n, e):
        self.ended = True

    def on_snapshot(self, n, e):
        pass


def read(entries):
    """The ledger of {key: bytes}."""
    out = Ledger()
    for where, key in sorted((order(k), k) for k in entries if order(k)):
        out.take(where, entries[key])
    return out
