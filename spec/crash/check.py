#!/usr/bin/python3 -IS
"""Reads a store by itself, after a crash, and says what is wrong with it.

  check.py store [--source UNIT=PATH]... [--trained] [--with DIR] [--acked FILE] [--final] STORE
      The log has no gap and no torn entry; each commit that was not deleted is whole and equal,
      byte for byte, to a PATH of its UNIT (several PATHs: they were saved in this order, and must
      not go back), but for files that a `thin` entry means: those may be there or not. --trained: to what `check.py train` makes under its name. --with: the files
      beside each are those of DIR.
      --acked: a file with lines "committed UNIT", none of which may be missing from the log, and
      "removed UNIT", of which nothing may be kept.
      --final: the newest commit of each UNIT is its last PATH, and nothing unfinished is left.
  check.py tree PATH SOURCE     PATH is absent, or equal to SOURCE
  check.py commits STORE        prints what is kept, oldest first: number, unit, directory
  check.py make DIR             makes the sources of the walk in DIR
  check.py train DIR [STEP]     makes the checkpoint of that step in DIR; or one after the other until
                                it is killed, and keeps the newest five

Nothing of the engine is used: this is a second reading of the format. Each finding is a line
"torn ...", "lost ...", "gap ..." or "litter ..."; the exit status is 1 if there was one.
"""
import fnmatch
import hashlib
import json
import os
import pickle
import re
import shutil
import stat
import sys
import tempfile
import time

MANIFEST = b".ckpt-manifest.json"
NOTE = b".ckpt-thin.json"
CHUNK = 1 << 20
findings = []


def found(kind, text):
    findings.append(kind)
    print(kind, text)


def name_of(text):
    """A name in the format: UTF-8, where %XX stands for a byte that is not, or is no character."""
    return re.sub(rb"%([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), text.encode())


def shown(name):
    return os.fsdecode(name)


# --- the log --------------------------------------------------------------------------------


def read_log(store):
    """The entries of a log, in order; findings for what breaks its form."""
    where = os.path.join(store, b".ckpt", b"log")
    entries, nonces = [], set()
    names = sorted(os.listdir(where)) if os.path.isdir(where) else []
    for i, name in enumerate(names):
        if not re.fullmatch(rb"\d{20}\.json", name):
            found("torn", f"log: {shown(name)} is no entry's name")
            continue
        if int(name[:20]) != i:
            found("gap", f"log: {shown(name)} stands where entry {i} is due")
            return entries
        try:
            with open(os.path.join(where, name), "rb") as f:
                entry = json.load(f)
        except ValueError as e:
            found("torn", f"log: entry {i}: {e}")
            return entries
        if entry.get("n") != i or (entry.get("type") == "run") != (i == 0):
            found("torn", f"log: entry {i} is not what belongs there")
        if entry.get("nonce") in nonces:
            found("torn", f"log: entry {i} has the nonce of another one")
        nonces.add(entry.get("nonce"))
        entries.append(entry)
    return entries


GUESTS = ("sweep", "drop", "delete", "bad", "end")  # entries that need no term


def removal(entry, commits):
    """What a `drop`, `delete` or `bad` is about, and what is wrong with it, or None."""
    about = [c for c in commits if c["n"] == entry["commit"]]
    if not about:
        return "it is about no commit"
    commit, life = about[0], about[0]["life"]
    if entry["type"] == "bad":
        commit["bad"] = not entry.get("good")
        return None
    if entry["type"] == "drop":
        commit["life"] = "dropped"
        return None if life == "live" else f"it drops what is {life}"
    commit["life"] = "deleted"
    return None if life == "dropped" else f"it deletes what is {life}"


def thin(entry, commits):
    """Notes what a `thin` takes of its commit; what is wrong with it, or None."""
    about = [c for c in commits if c["n"] == entry["commit"]]
    if not about:
        return "it is about no commit"
    commit = about[0]
    if commit["life"] != "live" or commit.get("bad") or "thin" in commit:
        return "it takes files of what is not live, is bad, or has lost some already"
    if not 0 < entry["files"] < commit["files"] or entry["bytes"] > commit["bytes"]:
        return "it takes nothing, or all"
    commit["thin"] = [name_of(glob) for glob in entry["globs"]]
    commit["rest"] = (entry["files"], entry["bytes"])
    return None


def is_taken(name, globs):
    """Is this file of a checkpoint meant by a glob: its own name, or with a slash a directory above it?"""
    parts = name.split(b"/")
    if name == b".metadata.json":
        return False
    for glob in globs:
        meant = parts[:-1] if glob.endswith(b"/") else parts
        if any(fnmatch.fnmatchcase(part, glob.rstrip(b"/")) for part in meant):
            return True
    return False


def read_commits(store):
    """Folds the log: the commits, oldest first, and the attempts that are still open."""
    attempts, commits, term = {}, [], None
    for entry in read_log(store):
        n, kind = entry["n"], entry["type"]
        if kind in ("run", "snapshot"):
            continue
        if kind == "term":
            term = n
            continue
        if entry.get("term") != term and not (kind in GUESTS and "term" not in entry):
            found("torn", f"log: entry {n} is of term {entry.get('term')}, the newest is {term}")
        if kind == "attempt":
            unit, where = name_of(entry["unit"]), name_of(entry["dir"])
            if where not in (unit, unit + b".~%d" % n):
                found("torn", f"log: entry {n}: a wrong directory: {shown(where)}")
            if where in [a["dir"] for a in attempts.values()]:
                found("torn", f"log: entry {n}: {shown(where)} belongs to another attempt")
            attempts[n] = {"unit": unit, "dir": where, "owner": term, "open": True}
            continue
        if kind == "end":
            for attempt in attempts.values():
                attempt["open"] = False
            for commit in commits:
                commit["life"] = "deleted"
            continue
        if kind in ("drop", "delete", "bad"):
            why = removal(entry, commits)
            if why:
                found("torn", f"log: entry {n}: {why}")
            continue
        if kind == "thin":
            why = thin(entry, commits)
            if why:
                found("torn", f"log: entry {n}: {why}")
            continue
        attempt = attempts.get(entry["attempt"])
        if kind not in ("adopt", "sweep", "commit"):
            found("torn", f"log: entry {n} is of an unknown type: {kind}")
        elif not attempt or not attempt["open"]:
            found("torn", f"log: entry {n}: {kind} of an attempt that is not open")
        elif kind == "adopt":
            attempt["owner"] = term
        elif kind == "sweep":
            attempt["open"] = False
        elif attempt["owner"] != term:
            found("torn", f"log: entry {n} commits what belongs to another term")
        else:
            attempt["open"] = False
            commits.append(dict(entry, unit=attempt["unit"], dir=attempt["dir"], life="live"))
    return commits, [a for a in attempts.values() if a["open"]]


# --- trees ----------------------------------------------------------------------------------


def tree_of(path):
    """What is below a directory, or a single file under its own name: {name: lstat}."""
    if not os.path.isdir(path) or os.path.islink(path):
        return {os.path.basename(path): os.lstat(path)}
    out = {}
    for root, dirs, files in os.walk(path):
        for name in dirs + files:
            full = os.path.join(root, name)
            out[os.path.relpath(full, path)] = os.lstat(full)
    return out


def same_bytes(a, b):
    with open(a, "rb", buffering=0) as x, open(b, "rb", buffering=0) as y:
        while True:
            one, two = x.read(CHUNK), y.read(CHUNK)
            if one != two:
                return False
            if not one:
                return True


def differs(path, source):
    """Why a restored tree is not its source, or None."""
    if not os.path.lexists(path):
        return "it is missing"
    mine, theirs = tree_of(path), tree_of(source)
    if set(mine) != set(theirs):
        names = [shown(n) for n in sorted(set(mine) ^ set(theirs))]
        return f"not the same names: {', '.join(names)}"
    for name, there in theirs.items():
        here, a, b = mine[name], inside(path, name), inside(source, name)
        if here.st_mode != there.st_mode:
            return f"{shown(name)}: another type or mode"
        if stat.S_ISLNK(here.st_mode) and os.readlink(a) != os.readlink(b):
            return f"{shown(name)}: another target"
        if stat.S_ISREG(here.st_mode) and not same_bytes(a, b):
            return f"{shown(name)}: other bytes, {here.st_size} of {there.st_size}"
    return None


def inside(path, name):
    """Where a name of tree_of(path) is."""
    return os.path.join(path, name) if os.path.isdir(path) else path


def stored_differs(path, source, globs=()):
    """Why the files that stand in a store are not those of the source, or None. What the globs mean may be
    gone, if the note that is put before says so."""
    theirs = {n: st for n, st in tree_of(source).items() if stat.S_ISREG(st.st_mode)}
    if not os.path.isdir(path):
        return "it is missing"
    mine = {n for n, st in tree_of(path).items() if not stat.S_ISDIR(st.st_mode)}
    gone = {n for n in set(theirs) - mine if is_taken(n, globs)}
    due = set(theirs) - gone | {MANIFEST}
    if mine - ({NOTE} if globs else set()) != due:
        names = [shown(n) for n in sorted((mine - {NOTE}) ^ due)]
        return f"not the same names: {', '.join(names)}"
    if gone and NOTE not in mine:
        return "files are gone, and no note beside it says so"
    for name in set(theirs) - gone:
        if not same_bytes(os.path.join(path, name), inside(source, name)):
            return f"{shown(name)}: other bytes"
    return None


def manifest_differs(path, commit, source):
    """Why the manifest does not say what the log and the source say, or None."""
    try:
        with open(os.path.join(path, MANIFEST), "rb") as f:
            manifest = json.load(f)
    except (OSError, ValueError) as e:
        return f"its manifest: {e}"
    if manifest["root"] != commit["root"] or name_of(manifest["unit"]) != commit["unit"]:
        return "its manifest is not the one that was committed"
    there = tree_of(source)
    parents = {os.path.dirname(n) for n in there}  # only empty directories are listed
    entries = {name_of(entry["name"]): entry for entry in manifest["files"]}
    if set(there) - parents != set(entries) - parents:
        return "the manifest has not the names of the source"
    for name, entry in entries.items():
        st = there[name]
        kind = {"file": stat.S_IFREG, "dir": stat.S_IFDIR, "link": stat.S_IFLNK}[entry["type"]]
        if stat.S_IFMT(st.st_mode) != kind or int(entry["mode"], 8) != stat.S_IMODE(st.st_mode):
            return f"the manifest: {entry['name']}: another type or mode"
        if kind == stat.S_IFREG and (entry["size"], entry["mtime_ns"]) != (st.st_size, st.st_mtime_ns):
            return f"the manifest: {entry['name']}: another size or time"
        if kind == stat.S_IFLNK and name_of(entry["target"]) != os.readlink(inside(source, name)):
            return f"the manifest: {entry['name']}: another target"
    files = [e["size"] for e in entries.values() if e["type"] == "file"]
    if (len(files), sum(files)) != (commit["files"], commit["bytes"]):
        return "the log counts other files or bytes"
    rest = [
        e["size"]
        for name, e in entries.items()
        if e["type"] == "file" and not is_taken(name, commit.get("thin", ()))
    ]
    if "rest" in commit and (len(rest), sum(rest)) != commit["rest"]:
        return "the log counts other files or bytes of what stays"
    return None


# --- a store --------------------------------------------------------------------------------


def whole_as(store, commit, sources):
    """The number of the source that a commit is equal to; findings if it is none."""
    why = "it was never saved"
    for i, source in enumerate(sources):
        path = os.path.join(store, commit["dir"])
        globs = commit.get("thin", ())
        why = stored_differs(path, source, globs) or manifest_differs(path, commit, source)
        if not why:
            return i
    found("torn", f"commit {commit['n']}, {shown(commit['dir'])}: {why}")
    return None


def check_companions(store, commit, source):
    """What was saved beside a checkpoint: whole, and what the log says of it."""
    name = f"commit {commit['n']}, beside {shown(commit['dir'])}"
    beside = commit.get("with")
    if not beside:
        found("torn", f"{name}: there is nothing")
        return
    where = os.path.join(store, b".ckpt/with/%d/%d" % (commit["attempt"], beside["term"]))
    why = stored_differs(where, source)
    if why:
        found("torn", f"{name}: {why}")
    sizes = [st.st_size for st in tree_of(source).values() if stat.S_ISREG(st.st_mode)]
    if (beside["files"], beside["bytes"]) != (len(sizes), sum(sizes)):
        found("torn", f"{name}: the log counts other files or bytes")


def check_litter(store, commits, still_open):
    for attempt in still_open:
        found("litter", f"an attempt of {shown(attempt['unit'])} was neither swept nor committed")
    kept = {c["dir"] for c in commits if c["life"] != "deleted"}
    places = set(os.listdir(store)) - kept - {b".ckpt"}
    staging = os.path.join(store, b".ckpt", b"staging")
    if os.path.isdir(staging):
        places |= {os.path.join(b".ckpt", b"staging", name) for name in os.listdir(staging)}
    beside = os.path.join(store, b".ckpt", b"with")
    wanted = {b"%d" % c["attempt"] for c in commits if c["life"] != "deleted"}
    if os.path.isdir(beside):
        places |= {os.path.join(b".ckpt", b"with", n) for n in set(os.listdir(beside)) - wanted}
    for name in places:
        # Empty directories are no objects.
        if any(files for _, _, files in os.walk(os.path.join(store, name))):
            found("litter", f"{shown(name)} is in the store and was never committed")


def check_acked(commits, acked):
    listed = [c["unit"] for c in commits]
    done = [line[10:] for line in acked if line.startswith(b"committed ")]
    for unit in set(done):
        here, there = done.count(unit), listed.count(unit)
        if there < here:
            found("lost", f"{shown(unit)}: {here} commits were reported, {there} are listed")
    for line in acked:
        if line.startswith(b"removed ") and any(
            c["unit"] == line[8:] and c["life"] != "deleted" for c in commits
        ):
            found("lost", f"{shown(line[8:])}: its removal was reported, and it is kept")


def check_store(store, sources, beside, acked, final):
    commits, still_open = read_commits(store)
    newest = {}
    for commit in commits:
        unit = commit["unit"]
        if commit["life"] == "deleted":
            continue
        which = whole_as(store, commit, sources.get(unit, []))
        if which is not None and which < newest.get(unit, 0):
            found("lost", f"{shown(unit)} went back to an older state at commit {commit['n']}")
        newest[unit] = which if which is not None else newest.get(unit, 0)
        if beside:
            check_companions(store, commit, beside)
    check_acked(commits, acked)
    if final:
        check_litter(store, commits, still_open)
        for unit, paths in sources.items():
            if newest.get(unit) != len(paths) - 1:
                found("lost", f"the last state of {shown(unit)} is not in the store")


def read_acked(path):
    with open(path, "rb") as f:
        return [line[:-1] for line in f if line.endswith(b"\n")]


# --- sources --------------------------------------------------------------------------------


def content(label, size):
    return hashlib.shake_128(label.encode()).digest(size)


def make_dir(path, label):
    os.makedirs(path + "/parts/none")
    files = {"model.bin": 70000, "empty": 0, "parts/a name, 100 %": 3000, "parts/last": 1}
    for name, size in files.items():
        with open(f"{path}/{name}", "wb") as f:
            f.write(content(label + name, size))
    os.symlink("model.bin", path + "/link")
    os.chmod(path + "/parts/last", 0o640)
    open(path + "/DONE", "wb").close()


def make_trained(path, n):
    """What a trainer writes at step n, the same on each machine: its times, too."""
    os.makedirs(path + "/parts")
    files = {"model.bin": 20000, "parts/a": 3000, "parts/b": 1, "DONE": 0}
    for name, size in files.items():
        with open(f"{path}/{name}", "wb") as f:
            f.write(content(f"{n} {name}", size))
        os.utime(f"{path}/{name}", (1600000000 + n, 1600000000 + n))


class Trained(dict):
    """Sources that are made when they are asked for."""

    def __init__(self):
        super().__init__()
        self.dir = tempfile.TemporaryDirectory()

    def get(self, unit, default=None):
        if unit not in self and unit.startswith(b"checkpoint-"):
            path = f"{self.dir.name}/{shown(unit)}"
            make_trained(path, int(unit[11:]))
            self[unit] = [os.fsencode(path)]
        return super().get(unit, default)


def train_step(where, n):
    make_trained(f"{where}/.tmp-{n}", n)
    os.rename(f"{where}/.tmp-{n}", f"{where}/checkpoint-{n}")


def train(where):
    steps = sorted(int(name[11:]) for name in os.listdir(where) if name.startswith("checkpoint-"))
    n = steps[-1] if steps else 0
    while True:
        n += 1
        train_step(where, n)
        steps.append(n)
        if len(steps) > 5:
            shutil.rmtree(f"{where}/checkpoint-{steps.pop(0)}")
        time.sleep(0.03)


def make(where):
    """Two directories, two states of one file (a pickle, so that its end can be known), and files
    that are saved beside a checkpoint."""
    for i in (1, 2):
        make_dir(f"{where}/{i}/checkpoint-{i}", str(i))
        with open(f"{where}/{i}/last.ckpt", "wb") as f:
            pickle.dump(content(f"last {i}", 20000), f, protocol=4)
    os.makedirs(f"{where}/with")
    # A pointer is saved with a checkpoint that it names.
    for name, data in {"latest": b"checkpoint-1\n", "notes.json": content("notes.json", 3000)}.items():
        with open(f"{where}/with/{name}", "wb") as f:
            f.write(data)


# --- the command line -----------------------------------------------------------------------


def main(args):
    verb, args = (args[0], args[1:]) if args else ("", [])
    if verb == "store" and args:
        sources, beside, acked, final, rest = {}, None, [], False, iter(args[:-1])
        for word in rest:
            if word == "--source":
                unit, path = next(rest).split("=", 1)
                sources.setdefault(os.fsencode(unit), []).append(os.fsencode(path))
            elif word == "--with":
                beside = os.fsencode(next(rest))
            elif word == "--trained":
                sources = Trained()
            elif word == "--acked":
                acked = read_acked(next(rest))
            elif word == "--final":
                final = True
            else:
                sys.exit(f"check.py: unknown option {word}")
        check_store(os.fsencode(args[-1]), sources, beside, acked, final)
    elif verb == "tree" and len(args) == 2:
        path, source = map(os.fsencode, args)
        why = os.path.lexists(path) and differs(path, source)
        if why:
            found("torn", f"{args[0]}: {why}")
    elif verb == "commits" and len(args) == 1:
        for c in read_commits(os.fsencode(args[0]))[0]:
            if c["life"] == "live":
                print(c["n"], shown(c["unit"]), shown(c["dir"]))
    elif verb == "make" and len(args) == 1:
        make(args[0])
    elif verb == "train" and len(args) == 1:
        train(args[0])
    elif verb == "train" and len(args) == 2:
        train_step(args[0], int(args[1]))
    else:
        sys.exit(__doc__)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Exception as e:  # what calls this counts the findings: a reader that broke down is one
        found("torn", f"it cannot be read: {e!r}")
        raise
