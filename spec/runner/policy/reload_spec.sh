#!/bin/bash
# Other policies for a run that lives: asked for, told, taken for what is saved, and for what is kept when those before
# rule no more. A file that was edited is a line in the log, one that is broken changes nothing, and one that does not
# come holds up neither the run nor its end.
set -u
cd "$(dirname "$0")/../../.." || exit 1
# shellcheck source=spec/tap.sh
. spec/tap.sh
CKPT=$(realpath "${CKPT_LUA:-./ckpt-lua}") here=$PWD/spec
W=$(mktemp -d) || exit 1
cd "$W" || exit 1
mounted=
# shellcheck disable=SC2317 # the trap calls it
cleanup() {
  touch "$W/end"
  [[ -z $mounted ]] || { kill -CONT "$mounted"; umount -l "$W/m"; kill -KILL "$mounted"; } 2>/dev/null
  wait
  cd / && rm -rf "$W"
}
trap cleanup EXIT
TELL_LOG=("$W/log" "$W/said")
: >log
: >said

keep_all="return { api = 1, keep = keep.last(100) }"
keep_one="return { api = 1, keep = keep.last(1) }"

start() { # OPTION...: a run whose job lives until there is a file `end`
  rm -f end
  "$CKPT" run --run one --dir out --to store --marker DONE --settle 0.2 --max-delete 100% "$@" \
    -- sh -c "touch '$W/began'; while ! [ -e '$W/end' ]; do sleep 0.05; done" >log 2>&1 &
  run=$!
  wait_for 60 "the job" test -e began
  rm -f began
}
# shellcheck disable=SC2317 # wait_for calls it, and what is below
committed() { # N: it is told so
  grep -q "committed checkpoint-$1\b" log
}
save() { # N
  mkdir "out/checkpoint-$1" && echo "weights $1" >"out/checkpoint-$1/model.bin" && touch "out/checkpoint-$1/DONE"
  wait_for 60 "the commit of checkpoint-$1" committed "$1"
}
has() { # N
  "$CKPT" ls -q store | grep -q "checkpoint-$1\>"
}
# shellcheck disable=SC2317
has_no() {
  ! has "$1"
}
end() {
  touch end
  wait "$run"
}
reload() { # CODE WORD...
  "$CKPT" policy reload out "${@:2}" >said 2>&1
  [[ $? == "$1" ]]
}

mkdir out
echo "$keep_all" >p.lua
reload 4
tell $? "where no run is alive, it is 4"
start -p p.lua --grace-delete 20s
save 1 && save 2 && save 3
# shellcheck disable=SC2317
edited() { grep -q "p.lua was edited.*ckpt-lua policy reload $W/out takes it" log; }
sleep 1.1 # another second, for file systems that count in them
echo "$keep_one" >p.lua
wait_for 60 "the line of the edit" edited
has 1
tell $? "an edited file is said in the log, and is not taken"
reload 0 --dry-run && grep -q "would take p" said && grep -q "would go   checkpoint-1: " said &&
  ! "$CKPT" status out | grep -q "^beside"
tell $? "what would differ can be asked before"
echo "return { api = 1, keep = function(list) return list[1].nothing.at_all end }" >p.lua
reload 2 && grep -q "p.lua:1" said && grep -q "those before go on" said
tell $? "a broken one is 2, and those before go on"
echo "return { api = 1, keep = function(list) return list[1].name == 'checkpoint-1' and list[1].nothing.at_all or list end }" >p.lua
reload 2 && grep -q "fails for the commits that there are" said
tell $? "so is one that fails for the commits that there are"
echo "return { api = 1, unit = 'step-{step}/', keep = keep.last(1) }" >p.lua
reload 2 && grep -q "\"unit\" is not that" said && grep -q "Start the run again" said
tell $? "what a checkpoint is cannot change in the middle of a run, and what to do is said"
echo "$keep_one" >p.lua
reload 0 && grep -q "taken      p, in place of p" said && grep -q "would go   checkpoint-1: " said &&
  grep -q "it rules alone" said
tell $? "the difference of what is kept is told"
"$CKPT" status out >said && grep -q "^beside     p: " said && grep -q "^would go   checkpoint-2: " said && has 1
tell $? "what would go is told, and stays as long as those before rule"
"$CKPT" status out --json | python3 -c 'import json, sys
s = json.load(sys.stdin)
assert [c["name"] for c in s["would_go"]] == ["checkpoint-1", "checkpoint-2"] and s["would_go_all"] == 2, s
assert not any(c["after"] for c in s["would_go"]) and 0 < s["policies_before_left_s"] <= 20, s'
tell $? "a program can read it, too"
wait_for 120 "the end of the grace" has_no 1
has_no 2 && has 3 && ! "$CKPT" status out | grep -q "^beside"
tell $? "when the grace is over the new ones rule alone"
cp p.lua other.lua && mkdir elsewhere
(cd elsewhere && "$CKPT" policy reload ../out --json -p ../other.lua >../said 2>&1)
python3 -c 'import json, sys
r = json.load(open("said"))
assert r["taken"] and r["policies"] == "other" and r["replaced"] == "p" and r["differences"] == [], r'
tell $? "others can be named, from any directory"
end
tell $? "the run ends as ever"
reload 4
tell $? "and is no run that could be asked"

# A run that is busy for long answers one question, or not: here it hangs up on the second one.
cat >busy.py <<'END'
import socket
s = socket.socket(socket.AF_UNIX)
s.bind("busy")
s.listen(8)
for answer in b"job 7", b"", b"reading", b"over 0\ntaken, in the end":
    c, _ = s.accept()
    asked = c.recv(4096).decode()
    if answer:
        assert ('"job":7' in asked) == (answer[:3] != b"job"), asked
        c.sendall(b'{"ok":true,"lines":%d}\n%s\n' % (answer.count(b"\n") + 1, answer))
    c.close()
END
python3 busy.py &
busy=$!
wait_for 60 "its socket" test -S busy
CKPT_SOCKET=$W/busy "$CKPT" policy reload >said 2>&1 && grep -q "taken, in the end" said && wait "$busy"
tell $? "a question that is not answered does not end the wait for what was begun"

hung="a file system that does not answer holds up neither the run nor its end"
mkdir m m.source && echo "$keep_all" >m.source/p.lua
mount_fuse() {
  [[ $(id -u) == 0 && -c /dev/fuse ]] || return 1
  /usr/bin/python3 "$here/fs/plain_fuse.py" m.source m >/dev/null 2>fuse.log &
  mounted=$!
  for _ in {1..100}; do
    mountpoint -q m && return
    kill -0 "$mounted" 2>/dev/null || break
    sleep 0.05
  done
  mounted=
  return 1
}
at_rest() { # each of its threads waits for a request, or for another thread: read, futex
  local call
  for call in /proc/"$mounted"/task/*/syscall; do
    [[ $(cut -d ' ' -f 1 "$call") =~ ^(0|202)$ ]] || return 1
  done
}
if mount_fuse; then
  # At its end the leak check of a sanitizer would wait for the thread that the file system holds.
  [[ -z ${ASAN_OPTIONS-} ]] || export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
  start -p m/p.lua
  # What the daemon has read and not answered would hold up the end of the process, whatever it does.
  for _ in {1..40}; do
    sleep 0.5
    kill -STOP "$mounted"
    sleep 0.1
    at_rest && break
    kill -CONT "$mounted"
  done
  kill -STOP "$mounted"
  reload 6 && grep -q "does the file system below them answer" said
  tell $? "files that do not come are given up after a while"
  save 4
  tell $? "the run saves meanwhile"
  "$CKPT" policy reload out >said 2>&1 &
  asked=$!
  sleep 0.5
  touch end
  timeout 60 tail --pid="$run" -f /dev/null && wait "$run"
  tell $? "$hung"
  kill -CONT "$mounted"
  wait "$asked"
else
  for text in "files that do not come are given up after a while" "the run saves meanwhile" "$hung"; do
    tell 0 "$text # SKIP there is no FUSE here"
  done
fi
echo "1..$tests"
exit $((failures > 0))
