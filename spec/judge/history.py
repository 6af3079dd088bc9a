"""One history: real processes of the real program, what is done to them by lot of a seed, and what they said.

A plan is drawn from the seed alone; when each process gets the processor, the machine decides. Writers are hosts,
each with a name, a state directory and a watched directory of its own; guests are who restores, removes, pins, marks and
collects from elsewhere; the driver itself is the other tool, whose files are nobody else's.
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import ledger
import ruin
import trainer
import weather

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 7  # seconds until an operation is asked to end, as a scheduler asks; then a few more
POLL = 0.1
PASSED_ON = ("PATH", "HOME", "TMPDIR", "CKPT_LIBEXEC", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")


def sessions_processes(session):
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as f:
                    rest = f.read().rsplit(")", 1)[1].split()
            except (OSError, IndexError):
                continue
            if int(rest[3]) == session and rest[0] not in "ZX":
                yield int(name)


def kill_session(session):
    for _ in range(5):
        pids = list(sessions_processes(session))
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not pids:
            return


# ---- the plan ----


def chaos(lot, kind, wild, calls=800):
    """What is done to a process: killed or stopped after a time or at a call, a disk that fails."""
    out = {}
    at = lot.random()
    if at < (0.16 if kind == "dir" else 0.4) * wild:
        out["kill"] = round(lot.uniform(0.02, 1.2), 3)
        out["alone"] = lot.random() < 0.3
    elif at < (0.36 if kind == "dir" else 0.55) * wild:
        out["stop"] = (round(lot.uniform(0.05, 0.8), 3), round(lot.uniform(0.3, 1.6), 3))
    if kind == "dir" and lot.random() < 0.75 * wild:
        spoiled = lot.random() < 0.4
        words = {"seed": lot.randrange(1, 1 << 30), "slow": lot.choice((0, 30, 100))}
        if spoiled:
            words.update(fail=lot.choice((2, 8, 25)), lost=lot.choice((0, 10, 60)), short=lot.choice((0, 50)))
        at = lot.random()
        # Half of them where it matters most: before a name is made or goes.
        names = lot.random() < 0.5
        if at < 0.3:
            words["die" if names else "kill"] = lot.randrange(1, calls // 16) if names else lot.randrange(5, calls)
            words["power"] = int(lot.random() < 0.7)
        elif at < 0.7:
            words["halt" if names else "stop"] = lot.randrange(1, calls // 16) if names else lot.randrange(5, calls)
            out["rest"] = round(lot.uniform(0.2, 1.6), 3)
        out["disk"] = " ".join(f"{k}={v}" for k, v in words.items())
    return out


def writer_op(lot, kind, wild):
    op = {"do": lot.choices(("run", "sync", "watch", "lose"), (55, 22, 15, 8))[0]}
    if op["do"] == "lose":
        return op
    op["take_over"] = lot.random() < 0.8
    op["keep"] = lot.random() < 0.3
    op["steps"] = lot.randint(1, 3)
    op["pause"] = lot.choice((0.0, 0.05, 0.2))
    op["how"] = lot.choice(("rename", "place", "wait"))
    op["restore"] = "never" if lot.random() < 0.06 else "auto"
    op.update(chaos(lot, kind, wild))
    return op


GUESTS = {
    "restore": 5, "rm": 4, "gc": 3, "pin": 3, "unpin": 1, "bad": 1, "good": 1, "ls": 2, "latest": 2, "verify": 1,
    "repair": 1, "beside": 1, "notes": 3, "backup": 2, "back": 2, "over": 1, "pause": 2, "meet": 2,
}


# Where what is removed meets who reads and pins it.
CROWD = {"restore": 4, "rm": 6, "gc": 2, "pin": 6, "unpin": 2, "meet": 4}


def guest_op(lot, kind, wild, crowd):
    of = CROWD if crowd else GUESTS
    op = {"do": lot.choices(list(of), list(of.values()))[0], "which": lot.random() * (0.3 if crowd else 1), "after": lot.uniform(0, 0.3)}
    if op["do"] == "meet":
        op.update(verb=lot.choice(("pin", "restore")), halt=lot.randint(1, 4), newest=False)
    if op["do"] == "restore":
        op["newest"] = lot.random() < 0.6
    if op["do"] in ("restore", "rm", "gc", "pin", "bad", "verify", "repair"):
        # A command of theirs makes some 130 calls, few of which make a name.
        op.update(chaos(lot, kind, wild if crowd else wild * 0.6, 130))
    return op


# Some faults show only where their rule is needed, which by lot is seldom: there more is drawn of that.
FOCUS = {
    "pin-not-reread": "meet", "pins-not-asked": "pinned", "cleared-not-asked": "removal", "names-not-asked": "removal",
    "file-not-flushed": "power", "marks-not-asked": "killed", "durable-not-proven": "deaf", "lease-not-asked": "beside",
    "older-after-newer": "late", "commit-before-manifest": "sealed",
    "grace-not-waited": "grace",
}


def focus(plan, lot, on):
    """The plan with more of what a rule is needed for."""
    plain = {"do": "run", "take_over": True, "keep": False, "steps": 3, "pause": 0.0, "how": "rename", "restore": "auto"}
    plan.update(wild=0.0, patient=on == "grace", crowd=on in ("meet", "removal"), focus=on, sky=plan["sky"] and "calm")
    plan["writers"] = [[dict(plain), dict(plain)]]
    plan["guests"] = []
    if on == "meet":
        one = {"do": "meet", "after": 0.0, "verb": "pin", "newest": False}
        plan["guests"] = [[dict(one, which=lot.random() * 0.8, halt=lot.randint(1, 2)) for _ in range(4)]]
    elif on == "pinned":
        # `rm` asks about pins before it begins; what a policy lets go is held against them later.
        plan["writers"] = [[dict(plain, pause=0.2), {"do": "pin", "which": 0.0}, dict(plain, keep=True, pause=0.2)]]
    elif on == "removal":
        words = ("notes", "notes", "rm", "rm", "notes", "rm", "gc")
        plan["guests"] = [[{"do": w, "after": 0.0, "which": lot.randrange(50) / 100 + 0.001} for w in words]]
    elif on == "power":
        disk = f"seed={lot.randrange(1, 1 << 30)} power=1 kill={lot.randrange(300, 900)}"
        plan["writers"] = [[dict(plain, disk=disk)]]
    elif on == "killed":
        cut = dict(plain, do="cut", pause=round(lot.uniform(0.0, 0.3), 2))
        plan["writers"] = [[dict(plain, do="sync", steps=1), cut, dict(plain, do="sync", steps=1), {"do": "gc"}]]
    elif on == "deaf":
        # The disk answers nothing any more, to the end.
        disk = f"seed={lot.randrange(1, 1 << 30)} deaf={lot.randrange(60, 500)}"
        plan["writers"] = [[dict(plain, pause=0.2, do="watch", disk=disk)]]
    elif on == "sealed":
        # Killed when all of it is sent, and just before it has its name.
        killed = dict(plain, do="sync", steps=1, disk="seed=1 place=/store/checkpoint- fell=1")
        plan["writers"] = [[dict(plain, do="sync", steps=1), killed]]
    elif on == "grace":
        plan["writers"] = [[dict(plain, do="sync", steps=2), {"do": "rm", "which": 0.0}, {"do": "gc"}]]
    elif on == "late":
        plan["writers"] = [[dict(plain, do="late", pause=round(lot.uniform(0.2, 0.5), 2))]]
    else:
        plan["writers"] = [[dict(plain, steps=8, pause=0.5)], [dict(plain, do="beside", take_over=False)]]


def draw(seed, kind, fault=""):
    lot = random.Random(f"{seed} {kind}")
    wild = lot.choice((0.0, 0.7, 1.0))
    plan = {
        "seed": seed, "store": kind, "sky": lot.choice(("calm", "windy", "storm")) if kind != "dir" else "",
        "patient": lot.random() < 0.3, "wild": wild,
    }
    plan["writers"] = [[writer_op(lot, kind, wild) for _ in range(lot.randint(2, 3))] for _ in range(lot.randint(1, 3))]
    plan["guests"] = [[guest_op(lot, kind, wild, False) for _ in range(lot.randint(3, 7))] for _ in range(lot.randint(1, 4))]
    plan["crowd"], plan["focus"] = lot.random() < 0.25, ""
    if plan["crowd"]:
        plan["guests"] = [[guest_op(lot, kind, 1.0, True) for _ in range(lot.randint(5, 8))] for _ in range(5)]
    if fault in FOCUS:
        focus(plan, lot, FOCUS[fault])
    elif fault in ruin.NEEDED or (not fault and kind == "dir" and lot.random() < 0.15):
        plan.update(focus="ruin", ruin=ruin.draw(lot, fault), writers=[], guests=[])
    return plan


# ---- the play ----


class History:
    def __init__(self, plan, world):
        """`world`: ckpt, disk, top, verbs, fault, and place(name) -> (URI, endpoint or None, the judge's own eyes)."""
        self.plan, self.world = plan, world
        self.top = os.path.join(world.top, f"{plan['store']}-{plan['seed']}")
        os.makedirs(self.top)
        self.records = self.top + "/records"
        open(self.records, "w").close()
        self.uri, self.endpoint, self.eyes = world.place(self.top, plan)
        self.guard = threading.Lock()
        self.ops, self.seen, self.times, self.changed = [], {}, {}, []
        self.foreign, self.beside, self.over, self.backups, self.pins = {}, {}, set(), {}, {}
        self.number, self.proxy, self.done, self.problems = 0, None, False, []

    # -- what is known meanwhile --

    def look(self):
        """Reads what is new in the log. What was seen is told from then on by its first bytes."""
        for key in self.eyes.list_logs():
            if ledger.order(key) and key not in self.seen:
                data = self.eyes.get(key)
                if data is not None:
                    with self.guard:
                        self.seen.setdefault(key, data)
                        self.times.setdefault(key, time.time())

    def watch(self):
        while not self.done:
            try:
                self.look()
            except Exception as e:  # the judge's own eyes must not close
                self.problems.append(f"the judge cannot look: {e!r}")
            time.sleep(POLL)

    def known(self):
        with self.guard:
            return ledger.read(dict(self.seen))

    def recorded(self):
        out = []
        with open(self.records) as f:
            for line in f:
                if line.endswith("\n"):
                    out.append(json.loads(line))
        return out

    # -- a process --

    def environment(self, op):
        keep = {k: os.environ[k] for k in PASSED_ON if k in os.environ}
        out = dict(keep, LC_ALL="C", CKPT_LUA=self.world.ckpt, CKPT_POLICIES=self.world.policies)
        if self.endpoint:
            way = f"http://127.0.0.1:{self.proxy.port}" if self.proxy else self.endpoint
            out.update(AWS_ENDPOINT_URL=way, AWS_ACCESS_KEY_ID="testkey", AWS_SECRET_ACCESS_KEY="testsecret")
            out.update(AWS_REGION="us-east-1", AWS_EC2_METADATA_DISABLED="true")
            out.update(AWS_SHARED_CREDENTIALS_FILE="/nonexistent", AWS_CONFIG_FILE="/nonexistent")
        if self.world.fault:
            out["CKPT_FAULT"] = self.world.fault
        if op.get("disk"):
            out.update(LD_PRELOAD=self.world.disk, JUDGE_DISK=op["disk"], JUDGE_ROOT=self.eyes.root)
            # A sanitizer wants to be the first library.
            out["ASAN_OPTIONS"] = out.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        return out

    def begin(self, actor, args, op):
        with self.guard:
            self.number += 1
            number = self.number
        words = [self.world.ckpt] + args
        if actor.startswith("host") and self.world.hosts:
            words = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', actor] + words
        out, err = f"{self.top}/{number}.out", f"{self.top}/{number}.err"
        event = {"number": number, "actor": actor, "args": args, "op": op, "out_at": out, "err_at": err}
        with open(out, "wb") as o, open(err, "wb") as e:
            event["t0"] = time.time()
            event["process"] = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=o, stderr=e, env=self.environment(op), cwd=self.top,
                start_new_session=True,
            )
        event["pid"] = event["process"].pid
        return event

    def state_of(self, pid):
        try:
            with open(f"/proc/{pid}/stat") as f:
                return f.read().rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            return "X"

    def signal(self, event, number):
        try:
            os.kill(event["pid"], number)
        except ProcessLookupError:
            pass

    def wait(self, event, patience=PATIENCE):
        """Until its end, with all that is done to it meanwhile."""
        patience *= 5 if self.plan["focus"] else 1
        op, process, stopped, asked = event["op"], event["process"], None, False
        stop = op.get("stop")
        while process.poll() is None:
            age = time.time() - event["t0"]
            if "kill" in op and age >= op["kill"] and "killed" not in event:
                event["killed"] = "alone" if op["alone"] else "with its job"
                self.signal(event, signal.SIGKILL) if op["alone"] else kill_session(event["pid"])
            if stop and age >= stop[0] and stopped is None:
                self.signal(event, signal.SIGSTOP)
                stopped, event["stopped"] = age + stop[1], stop
            if stopped is None and op.get("rest") and self.state_of(event["pid"]) == "T":
                stopped, event["stopped"] = age + op["rest"], ("at a call", op["rest"])
            if stopped and age >= stopped:
                self.signal(event, signal.SIGCONT)
            if age > patience and not asked:
                asked = event["asked"] = True
                self.signal(event, signal.SIGCONT)
                self.signal(event, signal.SIGTERM)
            if age > patience + 5:
                event["killed"] = "it took too long"
                kill_session(event["pid"])
            time.sleep(0.01)
        return self.end(event)

    def end(self, event):
        event["t1"], event["rc"] = time.time(), event.pop("process").returncode
        if event["actor"].startswith("host"):
            kill_session(event["pid"])
        for name in ("out", "err"):
            with open(event.pop(name + "_at"), errors="replace") as f:
                event[name] = f.read()
        if event["rc"] < 0:
            event.setdefault("killed", f"signal {-event['rc']}")
        if event["rc"] == 128 + signal.SIGKILL:
            event.setdefault("killed", "with its job")
        with self.guard:
            self.ops.append(event)
        return event

    def client(self, actor, args, op=None, patience=PATIENCE):
        return self.wait(self.begin(actor, args, op or {}), patience)

    def note(self, actor, what, **more):
        with self.guard:
            self.ops.append(dict(more, actor=actor, did=what, t0=time.time(), t1=time.time()))

    # -- writers --

    def options(self, where, op):
        out = ["--dir", where + "/out", "--state", where + "/state", "--to", self.uri, "--settle", "0.05"]
        out += ["--run", "one", "--marker", "DONE", "--grace", "2", "--start-wait", "4"]
        out += ["--take-over"] if op["take_over"] else []
        if op["keep"]:
            return out + ["-p", self.world.keep, "--policy-in-process"]
        return out + ["-p", "builtin"]

    def grace(self):
        return ["--grace-delete", "24h" if self.plan["patient"] else "0"]

    def next_step(self):
        return max([r["step"] for r in self.recorded() if "wrote" in r], default=0) + 1

    def save(self, actor, where, op, at):
        step = self.next_step()
        salt = f"{self.plan['seed']} {actor} {at} {step} {time.time_ns()}"
        how = "place" if op["how"] == "place" else "rename"
        trainer.save(self.records, actor, where + "/out", step, salt, how)

    def do_run(self, actor, where, op, at):
        salt = f"{self.plan['seed']} {actor} {at} {time.time_ns()}"
        args = ["run"] + self.options(where, op) + self.grace()
        args += ["--max-delete", "100%", "--restore", op["restore"], "--", sys.executable, "-IS", HERE + "/trainer.py"]
        self.client(actor, args + [self.records, actor, salt, str(op["steps"]), str(op["pause"]), op["how"]], op)

    def do_sync(self, actor, where, op, at):
        os.makedirs(where + "/out", exist_ok=True)
        for _ in range(op["steps"]):
            self.save(actor, where, op, at)
        options = self.options(where, op)
        self.client(actor, ["sync", options[1]] + options[2:], op)

    def do_watch(self, actor, where, op, at):
        os.makedirs(where + "/out", exist_ok=True)
        event = self.begin(actor, ["watch"] + self.options(where, op) + self.grace() + ["--max-delete", "100%"], op)
        waiter = threading.Thread(target=self.wait, args=(event,))
        waiter.start()
        for _ in range(op["steps"]):
            time.sleep(op["pause"])
            self.save(actor, where, op, at)
        until = time.time() + 1.2
        while time.time() < until and waiter.is_alive():
            time.sleep(0.05)
        event["asked"] = True
        self.signal(event, signal.SIGTERM)
        waiter.join()

    def do_cut(self, actor, where, op, at):
        """A save that is killed while its attempt stands and not all of it is there. Its directory is lost, so that
        nobody goes on with it; what another tool puts among its objects stays when those go."""
        os.makedirs(where + "/out", exist_ok=True)
        self.save(actor, where, op, at)
        self.proxy.trapped.clear()
        self.proxy.trap = b"model.bin"
        options = self.options(where, op)
        event = self.begin(actor, ["sync", options[1]] + options[2:], op)
        until = time.time() + 20
        while event["process"].poll() is None and time.time() < until:
            if self.proxy.trapped.wait(0.02):
                time.sleep(op["pause"])
                break
        kill_session(event["pid"])
        event["killed"] = "with its job"
        self.wait(event)
        self.proxy.trap = None
        self.look()
        self.guest_notes(actor, {"which": 0.0})
        shutil.rmtree(where + "/out")

    def do_beside(self, actor, where, op, at):
        """A run that begins while another host's has a lease: that has announced a save, and makes more."""
        until = time.time() + 20
        while not self.known().attempts and time.time() < until:
            time.sleep(0.02)
        self.do_run(actor, where, op, at)

    def do_late(self, actor, where, op, at):
        """One that is complete on a host, which saves it when another has committed a newer one."""
        self.do_sync(actor, where, dict(op, steps=1), at)
        self.save(actor, where, op, at)
        time.sleep(op["pause"])
        self.do_sync("host9", f"{self.top}/host9", dict(op, steps=1), at)
        self.do_sync(actor, where, dict(op, steps=0), at)

    def do_gc(self, actor, where, op, at):
        self.guest_gc(actor, op)

    def do_rm(self, actor, where, op, at):
        self.look()
        self.guest_rm(actor, op)

    def do_pin(self, actor, where, op, at):
        self.look()
        self.guest_pin(actor, op)

    def writer(self, number):
        actor = f"host{number}"
        where = f"{self.top}/{actor}"
        os.makedirs(where)
        for at, op in enumerate(self.plan["writers"][number]):
            if op["do"] == "lose":
                shutil.rmtree(where + "/out", ignore_errors=True)
                self.note(actor, "lost its directory")
            else:
                getattr(self, "do_" + op["do"])(actor, where, op, at)

    # -- guests, and the other tool --

    def choose(self, op, life=("live",)):
        """A checkpoint that is there as far as the judge has seen."""
        commits = [c for c in self.known().commits.values() if c["life"] in life]
        return commits[int(op["which"] * len(commits))] if commits else None

    def guest(self, number):
        actor = f"guest{number}"
        until = time.time() + (15 if self.plan["focus"] else 2)
        while self.plan["crowd"] and len(self.known().live()) < 3 and time.time() < until:
            time.sleep(0.1)
        for op in self.plan["guests"][number]:
            time.sleep(op["after"])
            getattr(self, "guest_" + op["do"])(actor, op)

    def guest_pause(self, actor, op):
        time.sleep(op["which"] * 0.5)

    def guest_restore(self, actor, op):
        with self.guard:
            self.number += 1
            to = f"{self.top}/restored-{self.number}"
        c = None if op["newest"] else self.choose(op)
        if not c and not op["newest"]:
            return
        args = ["restore", self.uri] + ([c["dir"]] if c else []) + ["--dir", to]
        event = self.client(actor, args, op)
        event["restored"] = {}
        if os.path.isdir(to):
            event["restored"] = {n: trainer.read_tree(f"{to}/{n}") for n in os.listdir(to) if not n.startswith(".")}
            shutil.rmtree(to, ignore_errors=True)
        event["asked_for"] = c["dir"] if c else None

    def about_one(self, actor, op, verb, *more, life=("live",)):
        c = self.choose(op, life)
        if not c:
            return None, None
        event = self.client(actor, verb + [self.uri, c["dir"]] + list(more), op)
        event["name"] = c["dir"]
        return event, c

    def guest_rm(self, actor, op):
        if op["which"] * 100 % 1 < 0.5:
            self.guest_backup(actor, op)
        self.about_one(actor, op, ["rm"], *self.grace())

    def guest_gc(self, actor, op):
        self.client(actor, ["gc", self.uri] + self.grace(), op)

    def guest_pin(self, actor, op):
        # Of those that go just now, too: that is refused, or it holds.
        event, c = self.about_one(actor, op, ["pin"], "--json", life=("live", "dropped"))
        if event and event["rc"] == 0 and "killed" not in event:
            with self.guard:
                name = json.loads(event["out"])["id"]
                pin = json.loads(self.eyes.get(f".ckpt/pins/{name}") or b"{}")
                self.pins[name] = {"commit": pin.get("commit"), "from": event["t1"], "to": None, "event": event}

    def guest_unpin(self, actor, op):
        with self.guard:
            held = sorted(k for k, v in self.pins.items() if v["to"] is None)
            if not held:
                return
            name = held[int(op["which"] * len(held))]
            self.pins[name]["to"] = time.time()
        self.client(actor, ["unpin", self.uri, name], {})

    def guest_meet(self, actor, op):
        """One who pins or restores stands still before it makes a name; who removes comes in between."""
        spoiled = {"disk": f"seed=1 halt={op['halt']}", "rest": 1.5} if self.plan["store"] == "dir" else {"stop": (0.1, 0.8)}
        slow = dict(op, do=op["verb"], **spoiled)
        waiter = threading.Thread(target=self.guarded, args=(getattr(self, "guest_" + op["verb"]), actor, slow))
        waiter.start()
        time.sleep(0.4)
        self.guest_rm(actor, dict(op, which=op["which"]))
        self.guest_gc(actor, {})
        waiter.join()

    def guest_bad(self, actor, op):
        self.about_one(actor, op, ["mark", "bad"])

    def guest_good(self, actor, op):
        self.about_one(actor, op, ["mark", "good"])

    def guest_ls(self, actor, op):
        self.client(actor, ["ls", "--json", self.uri])

    def guest_latest(self, actor, op):
        self.client(actor, ["latest", "--uri", self.uri])

    def guest_verify(self, actor, op):
        self.client(actor, ["verify", self.uri], op)

    def guest_repair(self, actor, op):
        """Of a log in which nothing is broken."""
        if "repair" in self.world.verbs:
            self.client(actor, ["repair", self.uri] + (["--take-over"] if op["which"] < 0.5 else []), op)

    def put_foreign(self, actor, key, data, make=True):
        if self.eyes.put(key, data, make):
            with self.guard:
                self.foreign[key] = data
            self.note(actor, f"put {key}, {len(data)} bytes, which is nobody else's")

    def guest_beside(self, actor, op):
        key = ("readme.txt", "checkpoint-old/model.bin", ".hidden/x", "data/checkpoint-1/weights")[int(op["which"] * 4)]
        if key not in self.foreign:
            self.put_foreign(actor, key, f"mine, {key}\n".encode())

    def guest_notes(self, actor, op):
        """A file of its own among those of a save, whatever became of that."""
        known = list(self.known().attempts.values())
        attempts = [a for a in known if a["fate"] != "committed"] or known
        if not attempts:
            return
        a = attempts[int(op["which"] * len(attempts))]
        with self.guard:
            self.number += 1
            key = f"{a['dir']}/notes-{self.number}.txt"
        # Where saves are renamed, a directory that is not there yet is nobody's to make.
        self.put_foreign(actor, key, f"notes of {a['dir']}\n".encode(), make=self.plan["store"] != "dir")

    def guest_backup(self, actor, op):
        c = self.choose(op)
        if c:
            copy = {}
            for key in self.eyes.list(c["dir"] + "/"):
                data = self.eyes.get(key)
                if data is not None:
                    copy[key] = data
            if f"{c['dir']}/.ckpt-manifest.json" in copy and f"{c['dir']}/DONE" in copy:
                with self.guard:
                    self.backups[c["n"]] = copy

    def guest_back(self, actor, op, all_of_them=False):
        """Copies a backup back under a name whose data is deleted, when nobody removes there any more."""
        known = self.known()
        for n, copy in sorted(self.backups.items()):
            c = known.commits[n]
            if c["life"] != "deleted" or self.eyes.get(f".ckpt/cleared/{c['nonce']}") is None:
                continue
            if self.eyes.list(c["dir"] + "/"):
                continue
            for key, data in copy.items():
                self.put_foreign(actor, key, data)
            if not all_of_them:
                return

    def guest_over(self, actor, op):
        """Writes over a file of a checkpoint that is no longer kept."""
        c = self.choose(op, ("dropped",))
        if c and self.plan["patient"] and f"{c['dir']}/model.bin" not in self.foreign:
            self.over.add(c["n"])
            self.put_foreign(actor, f"{c['dir']}/model.bin", b"another tool's, and longer " * 2000, make=False)

    # -- all of it --

    def play(self):
        if self.plan["focus"] == "ruin":
            ruin.play(self)
            return
        if self.plan["sky"]:
            self.proxy = weather.Proxy(int(self.endpoint.rsplit(":", 1)[1]), self.plan["sky"], self.plan["seed"])
        for name in ("beside.txt", "elsewhere/checkpoint-1/model.bin"):
            self.beside[name] = f"beside the target: {name}\n".encode()
            self.world.put_beside(self, name, self.beside[name])
        watcher = threading.Thread(target=self.watch, daemon=True)
        watcher.start()
        threads = [threading.Thread(target=self.guarded, args=(self.writer, i)) for i in range(len(self.plan["writers"]))]
        threads += [threading.Thread(target=self.guarded, args=(self.guest, i)) for i in range(len(self.plan["guests"]))]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        if self.proxy:
            self.proxy.stop()
            self.sky_log, self.proxy = self.proxy.log, None
        self.done = True
        watcher.join()
        self.look()

    def guarded(self, what, *args):
        try:
            what(*args)
        except Exception as e:
            import traceback

            self.problems.append(f"the driver broke down: {e!r}\n{traceback.format_exc()}")

    def end_all(self):
        for event in list(self.ops):
            if "pid" in event:
                kill_session(event["pid"])
