"""Holds docs/frameworks.md to the groups: the options of its table are those that `make test-frameworks` runs with."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
from groups import GROUPS

page = open(os.path.join(HERE, "../../docs/frameworks.md"), encoding="utf-8").read()
table = page.split("## How each one goes on")[1].split("\n## ")[0]
rows = {m.group(1): m.group(2) for m in re.finditer(r"^\| `([\w-]+)` \| [^|]+ \| ([^|]+) \|", table, re.M)}
# Other ways of a group that has a row, by what trains.
variants = {"hf-best": "hf", "hf-callback": "hf", "lightning-metric": "lightning", "lightning-tmpdir": "lightning",
            "lightning-callback": "lightning", "dcp-async": "dcp", "orbax-trash": "orbax"}
wrong = []
for name, g in GROUPS.items():
    row = rows.get(variants.get(name, name))
    if row is None:
        wrong.append(f"{name} has no row")
    # What an argument is called is the program's: `--resume` in ours.
    elif ("--resume-arg" in g["run"]) != ("--resume-arg" in row) or ("nothing" in row) != ("--resume-arg" not in g["run"]):
        wrong.append(f"{name} runs with {g['run']}, the page says {row}")
wrong += [f"{name} is no group" for name in rows if name not in GROUPS]
print("1..1")
print(("not ok" if wrong else "ok") + " 1 - the page's lines to resume are those of the groups")
for w in wrong:
    print("# " + w)
