"""A history in which the log loses entries while somebody is at work, and `repair` makes a new one.

A host saves some checkpoints. Then a client (a save, a removal, one that has dropped and is about to remove) stands
still before it makes a name; entries of the log go, or are torn; a repair comes, which may be killed, or stand still
itself while the client goes on. Only on a directory: there a process can be held before a name of its own choice.

What has to hold then: what was acknowledged, before or after, is listed and restores to equal bytes, unless somebody
was asked to drop it; what was dropped by an entry that nobody lost stays dropped; the newest stays the newest; what is
listed as good restores; a program that knows nothing of repairs finds a word at the end of the old log that stops it;
the next run saves.
"""
import hashlib
import json
import os
import re
import shutil
import signal
import time

import ledger
import trainer

PLAIN = {"take_over": True, "keep": False, "how": "rename", "steps": 1}
HELD = {"writer": "/.ckpt/log", "guest": "/.ckpt/log", "removal": "/.ckpt/clearing"}
# A fault shows where its rule is needed: who is held before which name, what is lost, who goes on first.
NEEDED = {
    "epoch-not-read": {"who": "writer", "nth": 2, "lose": "tail", "first": "repair", "repair": ""},
    "epoch-not-read-guest": {"who": "guest", "nth": 1, "lose": "tail", "first": "repair", "repair": ""},
    "epoch-not-read-removal": {"who": "removal", "nth": 1, "lose": "tail", "first": "repair", "repair": ""},
    "log-read-first": {"who": "removal", "lose": "both", "count": 1, "first": "client", "repair": "place=/.ckpt/epoch hold=1"},
    "no-plug": {},
    "numbers-from-zero": {},
    "epoch-counts-early": {"who": "nobody", "lose": "tail", "repair": "place=/.ckpt/log hold=1"},
}


def draw(lot, fault):
    plan = {
        "who": lot.choice(("writer", "writer", "guest", "removal", "nobody")), "nth": lot.randint(1, 3),
        "lose": lot.choice(("tail", "tail", "middle", "torn", "both")), "count": lot.randint(1, 3), "saves": lot.randint(2, 4),
        "first": lot.choice(("repair", "repair", "client")), "which": lot.random(),
        "repair": lot.choice(("", f"place=/.ckpt hold={lot.randint(1, 8)}", f"place=/.ckpt fell={lot.randint(1, 8)}")),
    }
    plan.update(NEEDED.get(fault, {}))
    return plan


class Play:
    def __init__(self, h):
        self.h, self.plan, self.lost = h, h.plan["ruin"], set()
        self.standing, self.meanwhile = set(), None
        self.where = h.top + "/host1"
        os.makedirs(self.where + "/out")

    def sync(self, disk, steps):
        for _ in range(steps):
            self.h.save("host1", self.where, PLAIN, 0)
        options = self.h.options(self.where, PLAIN)
        return self.h.begin("host1", ["sync", options[1]] + options[2:], {"disk": disk} if disk else {})

    def client(self):
        """Begins what is at work when entries are lost."""
        who, disk = self.plan["who"], ""
        if who == "nobody":
            return None
        nth = self.plan["nth"] if who == "writer" else 1
        disk = f"seed=1 place={HELD[who]} hold={nth}"
        if who == "writer":
            return self.sync(disk, 1)
        live = sorted(self.h.known().live(), key=lambda c: c["n"])[:-1]
        c = live[int(self.plan["which"] * len(live))]
        grace = ["--grace-delete", "0" if who == "removal" else "24h"]
        event = self.h.begin("guest1", ["rm", self.h.uri, c["dir"]] + grace, {"disk": disk})
        event["name"] = c["dir"]
        return event

    def until_held(self, event):
        until = time.time() + 20
        while event["process"].poll() is None and self.h.state_of(event["pid"]) != "T" and time.time() < until:
            time.sleep(0.01)
        if self.h.state_of(event["pid"]) == "T":
            event["stopped"] = "before a name"

    def end(self, event):
        if event and "rc" not in event:
            self.h.signal(event, signal.SIGCONT)
            self.h.wait(event, 30)

    def live_in(self, keys):
        """What the first entries of the log name, and do not let go."""
        dirs, live = {}, {}
        for key in keys:
            entry = json.loads(self.h.seen[key])
            if entry["type"] == "attempt":
                dirs[entry["n"]] = entry["dir"]
            elif entry["type"] == "commit":
                live[entry["n"]] = dirs[entry["attempt"]]
            elif entry["type"] in ("drop", "delete"):
                live.pop(entry["commit"], None)
        return set(live.values())

    def chosen(self, keys):
        """Some at the end, of which nothing tells; some in the middle; one there and some at the end."""
        count = self.plan["count"] + (self.plan["who"] == "removal")
        tail, middle = len(keys) - count, int(self.plan["which"] * (len(keys) - count))
        if self.plan["lose"] == "both":
            return [keys[middle]] + keys[tail:]
        at = tail if self.plan["lose"] == "tail" else middle
        return keys[max(at, 0):][:count]

    def lose(self):
        """Entries go. The first stays: it has the run's name."""
        self.h.look()
        keys = sorted(self.h.seen, key=ledger.order)[1:]
        gone = self.chosen(keys)
        self.standing = self.live_in(keys[:keys.index(gone[0])])
        for key in gone:
            self.lost.add(key)
            if self.plan["lose"] == "torn":
                self.h.eyes.put(key, self.h.seen[key][: len(self.h.seen[key]) // 2])
            else:
                self.h.eyes.remove(key)
            self.h.note("nature", f"{self.plan['lose']}: took {key}")

    def repair(self, disk=""):
        op = {"disk": "seed=1 " + disk} if disk else {}
        return self.h.begin("guest2", ["repair", self.h.uri, "--take-over"], op)

    def play(self):
        h = self.h
        h.wait(self.sync("", self.plan["saves"]), 30)
        h.look()
        client = self.client()
        if client:
            self.until_held(client)
        self.lose()
        repair = self.repair(self.plan["repair"])
        self.until_held(repair)
        if "stopped" in repair:
            self.meanwhile = self.h.client("judge", ["ls", "--json", self.h.uri], {}, 150)
        for event in (client, repair) if self.plan["first"] == "client" else (repair, client):
            self.end(event)
        for _ in range(2):
            if repair["rc"] in (0, 3):
                break
            repair = self.repair()
            self.end(repair)
        h.look()


class Judgement:
    def __init__(self, h):
        self.h, self.plan, self.found = h, h.plan["ruin"], []
        self.play = h.ruin
        self.files = {r["wrote"]: r["files"] for r in h.recorded() if "wrote" in r}

    def say(self, promise, text, *events):
        self.found.append((promise, text, [e["number"] for e in events if "number" in e]))

    def ask(self, args):
        return self.h.client("judge", args, {}, 150)

    def listed(self):
        e = self.ask(["ls", "--json", self.h.uri])
        if e["rc"] != 0:
            self.say(5, f"after the repair `ls` ends with {e['rc']}", e)
            return {}
        lines = [json.loads(line) for line in e["out"].splitlines()]
        return {line["dir"]: line for line in lines if line.get("life", "live") == "live"}

    def restores(self, name, unit):
        to = f"{self.h.top}/back-{name}"
        e = self.ask(["restore", self.h.uri, name, "--dir", to])
        got = trainer.read_tree(f"{to}/{unit}") if os.path.isdir(f"{to}/{unit}") else None
        shutil.rmtree(to, ignore_errors=True)
        return e["rc"], got == self.files.get(unit)

    def acknowledged(self):
        """What clients were told to be committed, in that order."""
        out = []
        for e in sorted((e for e in self.h.ops if "args" in e), key=lambda e: e["t0"]):
            out += re.findall(r"^ckpt-lua: committed (\S+) \(", e["err"], re.M)
        return out

    def newest(self):
        return [r["wrote"] for r in self.h.recorded() if "wrote" in r][-1]

    def lost_of(self, name):
        """Whether so much of its save is lost that a `drop`, which has the number of a commit alone, names nobody.

        The commit's own entry has to be among the lost: where it stands, it names its save, and the manifest the directory.
        And an attempt has to be, of this save or of another one: else each save but one has its number, and the one that is
        left over is meant. Where two are left over a repair that guesses lets go what was promised (docs/repair.md).
        """
        commit = attempt = False
        for key in self.play.lost:
            entry = json.loads(self.h.seen[key])
            attempt = attempt or entry["type"] == "attempt"
            of = self.h.seen.get(f".ckpt/log/{entry.get('attempt', 0):020}.json", b"{}")
            commit = commit or entry["type"] == "commit" and json.loads(of).get("dir") == name
        return commit and attempt

    def dropped(self):
        """(asked for; those whose entry was told of and stands; those of which every entry of that was lost)"""
        asked, kept, forgotten = set(), set(), set()
        for e in self.h.ops:
            if e.get("args", [""])[0] != "rm":
                continue
            asked.add(e["name"])
            drops = [k for k, text in self.h.seen.items() if json.loads(text).get("type") == "drop"]
            if drops and not set(drops) - self.play.lost:
                forgotten.add(e["name"])
            elif e["rc"] == 0 and f"dropped {e['name']}" in e["out"] and not self.lost_of(e["name"]):
                kept.add(e["name"])
        return asked, kept, forgotten

    def found_whole(self):
        """Whether a repair saw nothing that was missing: what went last may leave no trace."""
        return not self.h.eyes.get(f".ckpt/log.1/{0:020}.json")

    def is_torn(self, name, unit):
        """Whether a file of it is not in the store as it was saved."""
        there = {f: self.h.eyes.get(f"{name}/{f}") for f in self.files[unit]}
        return any(d is None or hashlib.sha256(d).hexdigest() != self.files[unit][f] for f, d in there.items())

    def check(self, when):
        there, told = self.listed(), self.acknowledged()
        asked, gone, forgotten = self.dropped()
        good = {line["name"] for line in there.values() if not line.get("bad")}
        for name in told:
            if name not in asked and name not in good:
                bad = name in {line["name"] for line in there.values()}
                self.say(1, f"{when}: {name}, which was acknowledged, is " + ("called bad" if bad else "not listed"))
        for name, line in there.items():
            if name in gone:
                self.say(5, f"{when}: {name} is listed; its removal was told of, and no entry of that was lost")
            if line.get("bad"):
                continue
            rc, same = self.restores(name, line["name"])
            # Where the last entries were lost, and nothing shows that, its files went by a `drop` that nobody can know of: a
            # repair has nothing to begin at. Then the restore has to say that they are gone; what still stands as it was saved
            # has to come back, and other bytes are wrong all the same.
            if name in forgotten and self.found_whole() and rc == 5 and self.is_torn(name, line["name"]):
                continue
            if rc != 0 or not same:
                self.say(1, f"{when}: {name} is listed, and does not restore to what was saved")
        return there, told, asked

    def check_newest(self, there, told, asked):
        e = self.ask(["latest", "--uri", self.h.uri])
        name = e["out"].strip().rsplit("/", 1)[-1]
        could = [n for n in told if n not in asked]
        late = [n for n in there if n not in told]
        if e["rc"] != 0 or (name != could[-1] and name not in late):
            self.say(6, f"`latest` ends with {e['rc']} and says {name!r}; the last that was acknowledged is {could[-1]}", e)

    def check_meanwhile(self):
        """While a repair was at work: readers use the log before it, or say what is wrong with that."""
        e = self.play.meanwhile
        if not e or e["rc"] not in (0, 4):
            return
        listed = {json.loads(line)["dir"] for line in e["out"].splitlines()} if e["rc"] == 0 else set()
        if self.play.standing - listed:
            self.say(6, f"while a repair is at work `ls` ends with {e['rc']} and lacks {sorted(self.play.standing - listed)}", e)

    def check_old_log(self):
        """As a program that knows nothing of repairs reads it: up to the first number without an entry."""
        if not self.h.eyes.get(f".ckpt/log.1/{0:020}.json"):
            return
        n = 0
        while True:
            text = self.h.eyes.get(f".ckpt/log/{n:020}.json")
            if text is None:
                self.say(2, f"the old log ends at {n}: an older program would go on there, beside the new log")
                return
            try:
                if json.loads(text).get("reader", 1) >= 2:
                    return
            except ValueError:
                return  # it stops there, too
            n += 1

    def judge(self):
        for text in self.h.problems:
            self.say(0, text)
        last = [e for e in self.h.ops if e.get("args", [""])[0] == "repair"][-1]
        if last["rc"] not in (0, 3):
            self.say(5, f"with nobody else at work, a repair ends with {last['rc']}", last)
        self.check_meanwhile()
        self.check_old_log()
        self.check_newest(*self.check("after the repair"))
        self.h.save("host1", self.play.where, PLAIN, 1)
        options = self.h.options(self.play.where, PLAIN)
        e = self.ask(["sync", options[1]] + options[2:])
        # 3: the host still has one that somebody dropped. It is older than the newest commit, and is not saved again: that
        # breaks nothing, as long as it is said of those alone that were asked to go, and what is new was saved.
        unsaved = set(re.findall(r"^ckpt-lua: (\S+): not saved: newer is committed", e["err"], re.M))
        if e["rc"] != 0 and not (e["rc"] == 3 and unsaved and unsaved <= self.dropped()[0]):
            self.say(5, f"after the repair a save ends with {e['rc']}", e)
        elif self.newest() not in self.acknowledged():
            self.say(5, f"after the repair a save ends with {e['rc']}, and does not say that {self.newest()} is committed", e)
        e = self.ask(["gc", self.h.uri, "--grace-delete", "0"])
        if e["rc"] != 0:
            self.say(5, f"after the repair `gc` ends with {e['rc']}", e)
        self.files = {r["wrote"]: r["files"] for r in self.h.recorded() if "wrote" in r}
        known = {text.split(":", 1)[1] for _, text, _ in self.found if ":" in text}
        before, self.found = self.found, []
        self.check("in the end")
        self.found = before + [f for f in self.found if f[1].split(":", 1)[-1] not in known]
        return self.found


def play(h):
    h.ruin = Play(h)
    h.ruin.play()
