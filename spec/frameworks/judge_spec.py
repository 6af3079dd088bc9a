"""The judge of the frameworks: what is wrong is noticed, and what is right is not. Prints TAP; needs no framework."""
import json
import os
import sys
import tempfile
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import judge
from groups import GROUPS

place = tempfile.TemporaryDirectory(prefix="fw-judge.")
tests = []


def told(what, **members):
    return {"what": what, **members}


def start(n, lines, runner=(), kind="random", expected=None, killed_at=100.0, lost=False):
    path = f"{place.name}/{len(os.listdir(place.name))}"
    with open(path, "w", encoding="utf-8") as f:
        # As a kill leaves it: the last line is cut off.
        f.write("".join(json.dumps(x) + "\n" for x in lines) + '{"what": "sav')
    s = judge.Start(n, path, types.SimpleNamespace(lines=list(runner)))
    s.kind, s.expected, s.killed_at, s.lost = kind, expected, killed_at, lost
    return s


def play(group, *starts):
    return types.SimpleNamespace(g=GROUPS[group], starts=list(starts))


def begin(step, h="w", env="", t=1.0, **more):
    return told("begin", step=step, hash=h if step else "", env=env, t=t, **more)


def saved(step, name, t, h="w"):
    return [told("saving", step=step, t=t - 0.1), told("saved", step=step, name=name, hash=h, t=t)]


def committed(name, t):
    return t, f"ckpt-lua: committed {name} (step 3, 8 files, 11.4 MiB in 0.2 s)"


def expected_after(group, lines, newest, **more):
    return judge.expected(GROUPS[group], [start(1, lines, expected={None: (0, 0)}, **more)], lambda: newest)[None]


def test(title, got, wanted):
    tests.append((title, got == wanted, f"{got}, and not {wanted}"))


hf = [begin(2)] + saved(3, "checkpoint-15", 5.0)
half = hf + [told("saving", step=4, t=9.0)]
test("the newest that was saved is expected", expected_after("hf", hf, {}), (3, 3))
test("one that was being written may be whole", expected_after("hf", half, {}), (3, 4))
test("after a loss it is what the store has, or what was sent whole", expected_after("hf", half, {None: 2}, lost=True), (2, 3))
test("after a loss it is no step that was never saved", expected_after("hf", half, {None: 3}, lost=True), (3, 3))
test("what was overwritten is expected from the store", expected_after("loop-last", half, {None: 2}), (2, 4))
back = start(2, [begin(1)], expected={None: (3, 3)})
test("one that began too far back is no excuse for the next",
     judge.expected(GROUPS["hf"], [back], lambda: {})[None], (3, 3))


def wrongs(group, s, weights=None, before=()):
    return len(judge.resumed(play(group, *before, s), weights or {})[2])


test("a right start is right", wrongs("hf", start(1, [begin(3)], expected={None: (3, 3)})), 0)
test("a step back is wrong", wrongs("hf", back), 1)
test("other weights are wrong", wrongs("hf", start(1, [begin(3, "x")], expected={None: (3, 3)}), {3: {"w"}}), 1)
test("a start that fails is wrong", wrongs("hf", start(1, [], expected={None: (3, 3)})), 1)
first = start(1, [begin(0)] + saved(3, "3", 5.0) + saved(4, "4", 8.0), expected={None: (0, 0)})
test("a CKPT_RESUME that is older than what the framework takes is wrong",
     wrongs("orbax", start(2, [begin(4, env="/out/3")], expected={None: (4, 4)}), before=[first]), 1)
trials = [told("tuner", restored=False, t=0.5), begin(1, who=1), begin(1, who=2)]
test("a tuner that cannot be restored is wrong",
     wrongs("ray-tune", start(1, trials, expected={1: (0, 2), 2: (0, 2)})), 1)


def times(group, *starts):
    seconds, late = judge.latencies(play(group, *starts))
    return [round(s, 1) for s in seconds], len(late)


test("the time is from the save to the start of the transfer",
     times("hf", start(1, hf, [committed("checkpoint-15", 6.7)], killed_at=50.0)), ([1.5], 0))
test("what is never committed is late", times("hf", start(1, hf, killed_at=50.0)), ([], 1))
test("what had no time is not", times("hf", start(1, hf, killed_at=6.0)), ([], 0))
found = start(2, [begin(3, t=1.0)], killed_at=30.0)
test("what a start finds and never commits is late", times("hf", start(1, hf, killed_at=6.0), found), ([], 1))
found.stored = {"checkpoint-15"}
test("what the store has is not late, though the runner died before it said so",
     times("hf", start(1, hf, killed_at=6.0), found), ([], 0))
done = start(2, [], expected={None: (8, 8)})
done.code = 0
test("a start that finds all trained has nothing to begin", len(judge.resumed(
    types.SimpleNamespace(g={**GROUPS["hf"], "steps": 8}, starts=[done]), {})[2]), 0)
test("one that has still to train has", len(judge.resumed(
    types.SimpleNamespace(g={**GROUPS["hf"], "steps": 9}, starts=[done]), {})[2]), 1)
middle = start(1, [begin(3, "x", "/out/epoch=3-step=13.ckpt")], expected={None: (3, 3)})
test("the weights within a step are those of none", wrongs("lightning-callback", middle, {3: {"w"}}), 0)
asked = start(1, [begin(19, "x", "/out/checkpoint-96")], expected={None: (19, 19)})
test("so are those of what a Trainer was asked to save", wrongs("hf-callback", asked, {19: {"w"}}), 0)

cut_off = [start(1, [begin(0)] + saved(1, "a.zip", 5.0, "h1")), start(2, [begin(2, "h2")]), start(3, [begin(2, "h3")])]
test("what nobody could tell of any more has the weights that the next start has loaded",
     judge.known_weights(play("sb3", *cut_off), None), {0: {""}, 1: {"h1"}, 2: {"h2"}})

in_place = [begin(0)] + saved(1, "last.pt", 10.0) + saved(2, "last.pt", 20.0)
test("each save of one name is judged by itself",
     times("loop-last", start(1, in_place, [committed("last.pt", 12.2)], killed_at=60.0)), ([2.0], 1))

print(f"1..{len(tests)}")
for i, (title, held, text) in enumerate(tests, 1):
    print(("ok" if held else "not ok") + f" {i} - {title}" + ("" if held else f"\n# {text}"))
