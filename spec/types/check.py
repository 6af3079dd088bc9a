#!/usr/bin/env python3
"""Holds Lua to its annotations: check.py SERVER [FILE...]

SERVER is EmmyLua's language server (emmylua.sh path). What is checked is lua/ckpt, the policies that
come with us and those of docs/policies.md; with FILEs, these policies instead. Prints a line for each
finding, as compilers do; the exit code is 1 if there is one. TYPES_PATIENCE=SECONDS (300) is how long it
waits for each answer of the server.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What is a fault for certain. That something may be nil is no fault of a program that asks for it where
# the checker cannot see it.
FAULTS = {
    "annotation-usage-error", "assign-type-mismatch", "inject-field", "missing-parameter", "param-type-mismatch",
    "redundant-parameter", "syntax-error", "type-not-found", "undefined-field", "undefined-global",
}
# The library builds some of its tables and classes when it runs; of it, what its annotations name has to be
# there.
OF_LIBRARY = {"annotation-usage-error", "syntax-error", "type-not-found"}
RETURNS = re.compile(r"^([ \t]*)(return\b.*)", re.M)
NAME = re.compile(r"return (\w+)\s*(?:--.*)?")
TYPE = "---@type ckpt.Policy\n"
UNSEEN = ("What is returned is no table that begins there, and no local that was made as one (`local policy = {`): "
          "its types are not looked at.")
PATIENCE_S = int(os.environ.get("TYPES_PATIENCE", 300))


def give_up(text):
    sys.exit("check-types: " + text)


class Server:
    """The language server, one request at a time. Who asks waits for PATIENCE_S at most."""

    def __init__(self, program, log):
        self.log = log
        self.asked = 0
        try:
            self.child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        except OSError as why:
            give_up(f"the language server does not start: {why}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()

    def send(self, **message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.child.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.child.stdin.flush()

    def receive(self):
        length = 0
        for line in iter(self.child.stdout.readline, b""):
            if not line.strip():
                return json.loads(self.child.stdout.read(length))
            name, value = line.split(b":", 1)
            length = int(value) if name.lower() == b"content-length" else length
        raise EOFError

    def last_words(self):
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").split("\n")
        said = [line for line in lines if line.strip()]
        return f"; it said last: {said[-1]}" if said else ""

    def answer(self, method, params):
        self.asked += 1
        self.send(id=self.asked, method=method, params=params)
        while True:
            message = self.receive()
            if "method" in message and "id" in message:  # it asks us: there is nothing to say
                self.send(id=message["id"], result=None)
            elif message.get("id") == self.asked:
                return message

    def ask(self, method, **params):
        def late(*_):
            give_up(f"the language server has not answered {method} for {PATIENCE_S} s{self.last_words()}")

        signal.signal(signal.SIGALRM, late)
        signal.alarm(PATIENCE_S)
        try:
            message = self.answer(method, params)
        except (EOFError, OSError):
            give_up(f"the language server has ended before it answered {method}{self.last_words()}")
        except ValueError as why:
            give_up(f"the language server says to {method} what cannot be read: {why}")
        finally:
            signal.alarm(0)
        if "result" not in message:
            why = message.get("error", {}).get("message", "it gives no reason")
            give_up(f"the language server refuses {method}: {why}")
        return message["result"]


def typed(text):
    """Gives the table that a policy returns its type: the text with a line more, and how many lines are before
    that one. It is looked for at the beginning of a line, as far to the left as any return, as the chunk's own
    words stand: the table itself, or a local that is one. None: what is returned is neither."""
    returns = list(RETURNS.finditer(text))
    if not returns:
        return None
    left = min(len(found[1]) for found in returns)
    returned = [found for found in returns if len(found[1]) == left][-1]
    at, rest = returned.start(), text[returned.end():]
    if returned[2].startswith("return {"):
        table = text[returned.start(2) + len("return {"):]
        return text[:at] + TYPE + "local _ = {" + table, text[:at].count("\n")
    name = NAME.fullmatch(returned[2])
    made = name and re.search(rf"^[ \t]*local {name[1]} = \{{", text[:at], re.M)
    if rest.strip() or not made:
        return None
    at = made.start()
    return text[:at] + TYPE + text[at:], text[:at].count("\n")


def policies(where, files):
    """Copies the policies, with the type of what they return. Returns for each copy where it is from, its first
    line there, and how many lines are before the one that is more; and where those are from, by their last
    line, of which it is not seen what they return, and why not."""
    origin, unseen = {}, []

    def add(text, path, line):
        found = typed(text)
        if not found:
            why = UNSEEN if RETURNS.search(text) else "It returns nothing, and a policy is a table that is returned."
            unseen.append((path, line + text.rstrip("\n").count("\n"), why))
            return
        copy = where / f"{len(origin)}.lua"
        copy.write_text(found[0])
        origin[copy] = (path, line, found[1])

    for path in files or sorted((ROOT / "policies").glob("*.lua")):
        add(pathlib.Path(path).read_text(encoding="utf-8-sig"), path, 1)
    if not files:
        page = ROOT / "docs/policies.md"
        text = page.read_text()
        for block in re.finditer(r"^```lua\n(.*?)^```", text, re.M | re.S):
            line = text[: block.start(1)].count("\n") + 1
            whole = re.search(r"^return\b", block[1], re.M)
            add(*(block[1], page, line) if whole else (f"return {{\napi = 1,\n{block[1]}\n}}\n", page, line - 2))
    return origin, unseen


def findings(server, where):
    server.ask("initialize", processId=None, rootUri=where.as_uri(),
               capabilities={"textDocument": {"diagnostic": {}}, "workspace": {"diagnostics": {}}},
               workspaceFolders=[{"uri": where.as_uri(), "name": "checked"}])
    server.send(method="initialized", params={})
    told_of = server.ask("workspace/diagnostic", previousResultIds=[])
    if not isinstance(told_of, dict) or "items" not in told_of:
        give_up("the language server answers workspace/diagnostic, but tells of no file")
    for item in told_of["items"]:
        path = pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(item["uri"]).path))
        for told in item.get("items", []):
            yield path, told["range"]["start"]["line"] + 1, told.get("code"), told["message"]


def shown(path):
    path = pathlib.Path(path).resolve()
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def main(program, files):
    found = set()
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryFile() as log:
        where = pathlib.Path(made).resolve()
        library = where / "lua"
        library.mkdir()
        for path in (ROOT / "lua/ckpt").rglob("*.lua"):
            copy = library / path.relative_to(ROOT / "lua")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(path.read_text())
        (where / "policies").mkdir()
        (where / ".emmyrc.json").write_text(json.dumps({"runtime": {"version": "LuaJIT"}}))
        origin, unseen = policies(where / "policies", files)
        for path, line, why in unseen:
            found.add((shown(path), line, "not-looked-at", why))
        with Server(program, log) as server:
            for path, line, code, text in findings(server, where):
                if path in origin:
                    name, first, before = origin[path]
                    line = first + line - 1 - (line > before + 1)
                elif not files:
                    name = ROOT / "lua" / path.relative_to(library)
                if code in (FAULTS if path in origin else () if files else OF_LIBRARY):
                    found.add((shown(name), line, code, " ".join(text.split())))
    for path, line, code, text in sorted(found):
        print(f"{path}:{line}: {text} [{code}]")
    if not found:
        count = len(origin)
        print(f"types: {count} polic{'y' if count == 1 else 'ies'} and the library's annotations fit together")
    return 1 if found else 0


sys.exit(main(sys.argv[1], sys.argv[2:]))
