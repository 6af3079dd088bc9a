#!/usr/bin/env python3
"""Holds Lua to its annotations: check.py SERVER [FILE...]

SERVER is EmmyLua's language server (emmylua.sh path). What is checked is lua/ckpt, the policies that
come with us and those of docs/policies.md; with FILEs, these policies instead. Prints a line for each
finding, as compilers do; the exit code is 1 if there is one.
"""

import json
import pathlib
import re
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
RETURNS = re.compile(r"^return\b", re.M)
BEGINS = re.compile(r"^return \{", re.M)


class Server:
    """The language server, one request at a time."""

    def __init__(self, program, log):
        self.child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self.asked = 0

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
        sys.exit("check-types: the language server has ended")

    def ask(self, method, **params):
        self.asked += 1
        self.send(id=self.asked, method=method, params=params)
        while True:
            message = self.receive()
            if "method" in message and "id" in message:  # it asks us: there is nothing to say
                self.send(id=message["id"], result=None)
            elif message.get("id") == self.asked:
                return message["result"]


def policies(where, files):
    """Copies the policies, and gives the table that each returns its type, in a line before it. Returns for
    each copy where it is from, its first line there, and how many lines are before that one."""
    origin = {}

    def add(text, path, line):
        if not RETURNS.search(text):  # some keys of one
            text, line = "return {\napi = 1,\n" + text + "\n}\n", line - 2
        begins = BEGINS.search(text)
        before = text[: begins.start()].count("\n") if begins else sys.maxsize
        copy = where / f"{len(origin)}.lua"
        copy.write_text(BEGINS.sub("---@type ckpt.Policy\nlocal _ = {", text, count=1))
        origin[copy] = (path, line, before)

    for path in files or sorted((ROOT / "policies").glob("*.lua")):
        add(pathlib.Path(path).read_text(), path, 1)
    if not files:
        page = ROOT / "docs/policies.md"
        text = page.read_text()
        for block in re.finditer(r"^```lua\n(.*?)^```", text, re.M | re.S):
            add(block[1], page, text[: block.start(1)].count("\n") + 1)
    return origin


def findings(server, where):
    server.ask("initialize", processId=None, rootUri=where.as_uri(),
               capabilities={"textDocument": {"diagnostic": {}}, "workspace": {"diagnostics": {}}},
               workspaceFolders=[{"uri": where.as_uri(), "name": "checked"}])
    server.send(method="initialized", params={})
    for item in server.ask("workspace/diagnostic", previousResultIds=[])["items"]:
        path = pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(item["uri"]).path))
        for told in item.get("items", []):
            yield path, told["range"]["start"]["line"] + 1, told.get("code"), told["message"]


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
        origin = policies(where / "policies", files)
        server = Server(program, log)
        for path, line, code, text in findings(server, where):
            if path in origin:
                name, first, before = origin[path]
                line = first + line - 1 - (line > before + 1)
            elif not files:
                name = ROOT / "lua" / path.relative_to(library)
            if code in (FAULTS if path in origin else () if files else OF_LIBRARY):
                name = pathlib.Path(name).resolve()
                short = name.relative_to(ROOT) if name.is_relative_to(ROOT) else name
                found.add((str(short), line, code, " ".join(text.split())))
        server.ask("shutdown")
        server.send(method="exit")
        server.child.wait(10)
    for path, line, code, text in sorted(found):
        print(f"{path}:{line}: {text} [{code}]")
    if not found:
        print(f"types: {len(origin)} policies and the library's annotations fit together")
    return 1 if found else 0


sys.exit(main(sys.argv[1], sys.argv[2:]))
