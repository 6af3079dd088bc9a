#!/bin/bash
# The life of a target from its first save to its removal, with a directory and with a bucket: each verb, a run
# that is killed three times and goes on, another run's refusal, generations, two ranks. What comes back is
# compared byte for byte.
#
# Environment: CKPT_LUA (./ckpt-lua); AWS_ENDPOINT_URL and AWS_* with BUCKET: that server instead of one of ours.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
CKPT=${CKPT_LUA:-$PWD/ckpt-lua}
if [[ -n ${BUCKET-} ]]; then
  S3_DIR=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-cycle.XXXXXX") || exit 1
  trap 'rm -rf "$S3_DIR"' EXIT
else
  s3_begin || exit 0
fi
# shellcheck source=spec/tap.sh
. spec/tap.sh
TELL_LOG=$S3_DIR/log
cd "$S3_DIR" || exit 1

make_one() { # DIR STEP BYTES
  mkdir -p "$1/checkpoint-$2/sub"
  head -c "$3" /dev/urandom >"$1/checkpoint-$2/model.bin"
  head -c 3000 /dev/urandom >"$1/checkpoint-$2/sub/small 100%.bin"
  printf '{"global_step":%d}' "$2" >"$1/checkpoint-$2/trainer_state.json"
}
is() { # TEXT WANTED GOT
  [[ $2 == "$3" ]] || echo "wanted $2, got $3" >>log
  tell "$([[ $2 == "$3" ]]; echo $?)" "$kind: $1"
}
does() { # TEXT COMMAND...: ends well
  "$CKPT" "${@:2}" >out 2>log
  is "$1" 0 $?
}
refuses() { # CODE TEXT COMMAND...
  "$CKPT" "${@:3}" >out 2>log
  is "$2" "$1" $?
}
same() { # TEXT DIR DIR
  diff -r "$2" "$3" >log 2>&1
  is "$1" 0 $?
}
count() { "$CKPT" ls "$1" --json 2>log | wc -l; }

# It goes on from what it is given, holds that against a sum that it left, and makes checkpoints, slowly.
cat >train.sh <<'JOB'
at=0
if [ -n "$CKPT_RESUME" ]; then
  at=$(cat "$CKPT_RESUME/step") || exit 3
  (cd "$CKPT_RESUME" && sha256sum -c --quiet "$SUMS/$at") || exit 3
  echo "resumed $at"
fi
for n in $(seq $((at + 1)) $((at + $1))); do
  mkdir -p "r/.x" && head -c 5000000 /dev/urandom >r/.x/model.bin && echo "$n" >r/.x/step && echo '{}' >r/.x/trainer_state.json
  (cd r/.x && sha256sum model.bin step trainer_state.json >"$SUMS/$n")
  rm -rf "r/checkpoint-$n" && mv r/.x "r/checkpoint-$n"
  "$CKPT" notify "checkpoint=checkpoint-$n" --wait -q
done
JOB
printf 'return { api = 1, keep = keep.last(2) }\n' >keep.lua

killed_in_its_save() { # TARGET: a run with its job, killed when it has begun another checkpoint
  local before
  before=$(find sums -type f | wc -l)
  setsid "$CKPT" run --dir r --to "$1" --run x --take-over -- bash train.sh 9 >run.log 2>&1 &
  local runner=$!
  disown
  wait_for 60 "its second checkpoint" bash -c "(( \$(find sums -type f | wc -l) > $before + 1 ))"
  kill -9 -- "-$runner"
  wait_for 60 "its end" bash -c "! pgrep -s $runner"
}

cycle() { # TARGET
  local to=$1 n
  export SUMS=$PWD/sums CKPT
  mkdir sums
  make_one o 1 100000 && make_one o 2 20000000
  does "two checkpoints are saved" sync o --to "$to/s"
  is "both are listed" 2 "$(count "$to/s")"
  does "and whole" verify "$to/s"
  is "the newest is known" checkpoint-2 "$("$CKPT" latest "$to/s" 2>log)"
  does "it comes back" restore "$to/s" --dir b
  same "as it was" o/checkpoint-2 b/checkpoint-2
  does "so does one by its name" restore "$to/s" checkpoint-1 --dir b
  same "as it was, too" o/checkpoint-1 b/checkpoint-1
  does "one is shown" show "$to/s" checkpoint-1
  does "what would stay is told" plan "$to/s"
  does "one is pinned" pin "$to/s" checkpoint-1
  refuses 11 "and not removed then" rm "$to/s" checkpoint-1
  does "it is let go" unpin "$to/s" checkpoint-1
  does "and removed" rm "$to/s" checkpoint-1
  refuses 11 "the newest is not" rm "$to/s" checkpoint-2
  does "it is marked as bad" mark bad "$to/s" checkpoint-2
  does "and as good again" mark good "$to/s" checkpoint-2
  does "what was removed is collected" gc "$to/s" --grace-delete 0
  is "one is left" 1 "$(count "$to/s")"
  does "which is whole" verify "$to/s"

  for n in 1 2 3; do killed_in_its_save "$to/r"; done
  does "a run that was killed three times goes on" run --dir r --to "$to/r" --run x --take-over -p keep.lua \
    --grace-delete 0 --max-delete 100% -- bash train.sh 3
  is "from a checkpoint as it was" 1 "$(grep -c '^resumed' out)"
  # The one that it resumed from is guarded, if its commit came before the kill.
  n=$(sed -n 's/^resumed //p' out)
  is "and keeps two beside that one" 2 "$("$CKPT" ls "$to/r" --json 2>log | grep -vc "\"name\":\"checkpoint-$n\"")"
  rm -rf r r.ckpt
  does "another place goes on from the store" run --dir r --to "$to/r" --run x --take-over -- bash train.sh 1
  is "from what it has" 1 "$(grep -c '^resumed' out)"
  does "all of it is whole" verify "$to/r"
  refuses 11 "another run is refused" run --dir q --to "$to/r" --run y -- true

  for n in 1 2 3; do
    mkdir -p l/.t && echo "$n" >l/.t/model.bin && touch l/.t/DONE && rm -rf l/last && mv l/.t l/last
    does "state $n of one name is saved" sync l --to "$to/l" --unit last/ --marker DONE
  done
  is "each is a generation" 3 "$(count "$to/l")"
  does "the newest comes back" restore "$to/l" --dir lb
  same "as it was" l/last lb/last

  mkdir k0 k1
  for n in 0 1; do
    "$CKPT" run --rank "$n" --world 2 --launch-id "L$$" --dir "k$n" --to "$to/k" -- bash -c "mkdir k$n/.x
      head -c 3000000 /dev/urandom >'k$n/.x/shard-$n 50%.bin'; echo same >k$n/.x/trainer_state.json
      mv k$n/.x k$n/checkpoint-5; until [ -n \"\$('$CKPT' ls '$to/k' --json 2>/dev/null)\" ]; do sleep 0.1; done" \
      >"k$n.log" 2>&1 &
    eval "rank$n=$!"
  done
  # shellcheck disable=SC2154 # eval sets it
  wait "$rank0"
  is "rank 0 ends well" 0 $?
  # shellcheck disable=SC2154
  wait "$rank1"
  is "so does rank 1" 0 $?
  is "they made one checkpoint" 1 "$(count "$to/k")"
  does "which comes back" restore "$to/k" --dir kb
  cp -r k1/checkpoint-5/. k0/checkpoint-5/
  same "with the files of both" k0/checkpoint-5 kb/checkpoint-5

  does "all of it is removed" gc "$to" --remove-run --yes
  is "and nothing is listed any more" 0 "$(count "$to/s")"
}

for kind in directory bucket; do
  mkdir "$S3_DIR/$kind" && cd "$S3_DIR/$kind" || exit 1
  cp ../train.sh ../keep.lua . 2>/dev/null
  TELL_LOG=$PWD/log
  case $kind in
  directory) cycle "$PWD/store" ;;
  bucket) cycle "s3://${BUCKET:-ckpt-test}/cycle-$$" ;;
  esac
done
echo "1..$tests"
