#!/bin/bash
# What the policies remember, where the store does not give it: no run decides by an empty memory what may go, nor
# writes over one that it has not read.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
export AWS_ENDPOINT_URL=$PROXY
# It keeps the newest, and the first that it was ever asked about.
cat >"$S3_DIR/p.lua" <<'LUA'
return { api = 1,
  sync = function(e, memory)
    memory.first = memory.first or e.checkpoint.name
    memory.n = (memory.n or 0) + 1
    return "sync", "number " .. memory.n
  end,
  keep = function(list, memory)
    local kept = { list[#list] }
    for _, c in ipairs(list) do
      if c.name == memory.first then kept[#kept + 1] = c end
    end
    return kept
  end }
LUA
cat >"$S3_DIR/lib" <<'LIB'
save() { # DIR N: and waits until it is committed
  mkdir "$1/checkpoint-$2" && echo "weights $2" >"$1/checkpoint-$2/model.bin" && touch "$1/checkpoint-$2/DONE"
}
seen() { # TEXT: in the run's log, for 40 s at most
  for _ in {1..800}; do grep -q "$1" "$LOG" && return; sleep 0.05; done
}
LIB
export LOG=$S3_DIR/log

run() { # NAME WORDS... -- JOB
  local name=$1 words=()
  shift
  while [[ $1 != -- ]]; do words+=("$1") && shift; done
  mkdir -p "$S3_DIR/$name"
  rm -f "$S3_DIR/began"
  "$CKPT" run --run one --dir "$S3_DIR/$name" --to "s3://ckpt-test/$name" -p "$S3_DIR/p.lua" --marker DONE --settle 0.2 \
    --start-wait 1s --grace 2s "${words[@]}" \
    -- bash -c ". '$S3_DIR/lib'; touch '$S3_DIR/began'; cd '$S3_DIR/$name'; $2" >"$LOG" 2>&1
}
saved() { # NAME: a place with two commits, of which the older stays for what is remembered of it
  rules ""
  run "$1" -- "save . 1; seen 'committed checkpoint-1'; save . 2" || { echo "Bail out! no commits"; exit 1; }
}
has() { # NAME N: that checkpoint is still there
  "$CKPT" ls -q "s3://ckpt-test/$1" | grep -q "checkpoint-$2\>"
}
no_memory="999999 GET .ckpt/memory status 503/SlowDown\n"

saved plain
has plain 1
tell $? "a policy keeps a checkpoint for what it remembers of it"
rules "$no_memory"
run plain -- "save . 3"
[[ $? == 6 && ! -e $S3_DIR/began ]] && grep -q "read what the policies remember" "$LOG"
tell $? "a store that does not give what they remember is one that does not answer: the job does not begin"
rules ""
run plain -- "save . 3" && has plain 1
tell $? "and when it does, the checkpoint is still there, and is kept"
"$CKPT" why --to s3://ckpt-test/plain checkpoint-3 2>&1 | grep -q "number 3"
tell $? "and the count goes on"

saved anyway
rules "999999 * * status 503/SlowDown\n"
printf '%b' "$no_memory" >"$S3_DIR/halfway"
: >"$S3_DIR/none"
run anyway --start-anyway -- "save . 3; sleep 1; mv '$S3_DIR/halfway' '$RULES'; \
  for _ in {1..600}; do grep -q 'GET.*memory' '$RULES.log' && break; sleep 0.05; done; \
  mv '$S3_DIR/none' '$RULES'; seen 'committed checkpoint-3'"
[[ $? == 0 && -e $S3_DIR/began ]] && has anyway 1
tell $? "a run that began without the store asks again for what they remember, and keeps by it"
"$CKPT" why --to s3://ckpt-test/anyway checkpoint-3 2>&1 | grep -q "number 3"
tell $? "and asks the policies about what is complete only then"

# The store answers when the job has ended, and the save is what asks it first.
late() { # NAME WORDS... -- JOB
  rules "999999 * * status 503/SlowDown\n"
  (sleep 4 && rules "") &
  run "$1" --restore never --start-anyway "${@:2}"
}
late new --grace 60s -- "save . 1" && rules ""
wait
run new -- "save . 2; seen 'committed checkpoint-2'; save . 3" && run new -- "save . 4" && has new 1
tell $? "where the store has nothing, what policies without it remember is kept"
"$CKPT" why --to s3://ckpt-test/new checkpoint-4 2>&1 | grep -q "number 4"
tell $? "and is counted on"

/usr/bin/python3 -IS -c 'import struct, sys
head = b"{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}"
sys.stdout.buffer.write(struct.pack("<Q", len(head)) + head + b"x")' >"$S3_DIR/model"
mkdir "$S3_DIR/sound" && touch -d "1 hour ago" "$S3_DIR/model" && cp -p "$S3_DIR/model" "$S3_DIR/sound/model-step=1.safetensors"
late sound --unit 'model-step={step}.safetensors' -- "seen 'committed model-step'"
tell $? "an older file that is saved if it is sound waits for the store, too, and no longer"
wait
echo "1..$tests"
exit $((failures > 0))
