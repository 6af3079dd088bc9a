#!/bin/bash
# The life of a target from its first save to its removal: each verb, a run that is killed three times and goes
# on, another run's refusal, generations, two ranks. What comes back is compared byte for byte. It is played with a
# directory and with each server: 35 checks by name, and some more, each time; a server for which not all 35 were
# played has failed.
#
# Environment: CKPT_LUA (./ckpt-lua); SERVERS_WANTED, some of those below; SETUP (no: nothing is installed);
# AWS_ENDPOINT_URL and AWS_* with BUCKET: that server instead of ours.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
# shellcheck source=spec/tap.sh
. spec/tap.sh
CKPT=${CKPT_LUA:-$PWD/ckpt-lua}
SERVERS_WANTED=${SERVERS_WANTED:-directory versitygw minio minio-versioned minio-locked minio-kms moto s3proxy fakegcs}
NAMED=(sync ls verify latest restore equal restore-1 equal-1 show plan pin rm-pinned unpin rm rm-newest gc gc-took ls-after
  mark-bad mark-good run run-again resumed compare other-run generation-1 generation-2 generation-3 generations rank-0
  rank-1 ranks-listed ranks-restore ranks-files remove-run)

make_one() { # DIR STEP BYTES
  mkdir -p "$1/checkpoint-$2/sub"
  head -c "$3" /dev/urandom >"$1/checkpoint-$2/model.bin"
  head -c 3000 /dev/urandom >"$1/checkpoint-$2/sub/small 100%.bin"
  printf '{"global_step":%d}' "$2" >"$1/checkpoint-$2/trainer_state.json"
}
is() { # NAME TEXT WANTED GOT
  [[ $3 == "$4" ]] || echo "wanted $3, got $4" >>log
  echo "$1" >>played
  tell "$([[ $3 == "$4" ]]; echo $?)" "$kind $1: $2"
}
does() { # NAME TEXT COMMAND...: ends well
  "$CKPT" "${@:3}" >out 2>log
  is "$1" "$2" 0 $?
}
refuses() { # NAME CODE TEXT COMMAND...
  "$CKPT" "${@:4}" >out 2>log
  is "$1" "$3" "$2" $?
}
same() { # NAME TEXT DIR DIR
  diff -r "$3" "$4" >log 2>&1
  is "$1" "$2" 0 $?
}
count() { "$CKPT" ls "$1" --json 2>log | wc -l; }

# It goes on from what it is given, holds that against a sum that it left, and makes checkpoints, slowly.
# shellcheck disable=SC2016 # the dollars are the job's
train='
at=0
if [ -n "$CKPT_RESUME" ]; then
  at=$(cat "$CKPT_RESUME/step") || exit 3
  (cd "$CKPT_RESUME" && sha256sum -c --quiet "$SUMS/$at") || exit 3
  echo "resumed $at"
fi
for n in $(seq $((at + 1)) $((at + $1))); do
  mkdir -p "r/.x" && head -c 5000000 /dev/urandom >r/.x/model.bin && echo "$n" >r/.x/step && echo "{}" >r/.x/trainer_state.json
  (cd r/.x && sha256sum model.bin step trainer_state.json >"$SUMS/$n")
  rm -rf "r/checkpoint-$n" && mv r/.x "r/checkpoint-$n"
  "$CKPT" notify "checkpoint=checkpoint-$n" --wait -q
done'

killed_in_its_save() { # TARGET: a run with its job, killed when it has begun another checkpoint
  local before
  before=$(find sums -type f | wc -l)
  setsid "$CKPT" run --dir r --to "$1" --run x --take-over -- bash -c "$train" train 9 >run.log 2>&1 &
  local runner=$!
  disown
  wait_for 120 "its second checkpoint" bash -c "(( \$(find sums -type f | wc -l) > $before + 1 ))"
  kill -9 -- "-$runner"
  wait_for 60 "its end" bash -c "! pgrep -s $runner"
}

# A file as it stands in the target, brought by somebody else where that can be.
read_there() { # TARGET PATH
  case $1 in
  s3://*) "$SERVERS/ask.py" GET "/${1#s3://}/$2" ;;
  /*) cat "$1/$2" ;;
  *)
    # One that is there already is not restored again.
    { [[ -d there/${2%%/*} ]] || "$CKPT" restore "$1" "${2%%/*}" --dir there -q >>log 2>&1; } && cat "there/$2"
    ;;
  esac
}

# Each checkpoint that is listed has the bytes of which its trainer left the sums.
compare_listed() { # TARGET
  local dir step sum file listed=0
  rm -rf there && : >differs
  while read -r dir; do
    listed=$((listed + 1))
    step=$(read_there "$1" "$dir/step")
    while read -r sum file; do
      [[ $(read_there "$1" "$dir/$file" | sha256sum) == "$sum  -" ]] || echo "$dir/$file differs" >>differs
    done <"sums/$step"
  done < <("$CKPT" ls "$1" --json 2>/dev/null | python3 -c 'import json, sys
for line in sys.stdin: row = json.loads(line); print(row.get("dir") or row["name"])')
  ((listed > 0)) || echo "nothing is listed" >>differs
  cp differs log
  is compare "each that is listed has its own bytes" 0 "$(wc -l <differs)"
}

verbs() { # TARGET
  local to=$1
  make_one o 1 100000 && make_one o 2 20000000
  does sync "two checkpoints are saved" sync o --to "$to"
  is ls "both are listed" 2 "$(count "$to")"
  does verify "and whole" verify "$to"
  is latest "the newest is known" checkpoint-2 "$("$CKPT" latest "$to" 2>log)"
  does restore "it comes back" restore "$to" --dir b
  same equal "as it was" o/checkpoint-2 b/checkpoint-2
  does restore-1 "so does one by its name" restore "$to" checkpoint-1 --dir b
  same equal-1 "as it was, too" o/checkpoint-1 b/checkpoint-1
  does show "one is shown" show "$to" checkpoint-1
  does plan "what would stay is told" plan "$to"
  does pin "one is pinned" pin "$to" checkpoint-1
  refuses rm-pinned 11 "and not removed then" rm "$to" checkpoint-1
  does unpin "it is let go" unpin "$to" checkpoint-1
  does rm "and removed" rm "$to" checkpoint-1
  refuses rm-newest 11 "the newest is not" rm "$to" checkpoint-2
  sleep 1.1 # servers tell whole seconds
  does gc "what was removed is collected" gc "$to" --grace-delete 0
  is gc-took "which says so" 1 "$(grep -c 'removed checkpoint checkpoint-1' out)"
  is ls-after "one is left" 1 "$(count "$to")"
  does verify-after "which is whole" verify "$to"
  does mark-bad "it is marked as bad" mark bad "$to" checkpoint-2
  does mark-good "and as good again" mark good "$to" checkpoint-2
}

killed_runs() { # TARGET
  local to=$1 n
  for n in 1 2 3; do killed_in_its_save "$to"; done
  does run "a run that was killed three times goes on" run --dir r --to "$to" --run x --take-over -p keep.lua \
    --grace-delete 0 --max-delete 100% -- bash -c "$train" train 3
  is run-resumed "from a checkpoint as it was" 1 "$(grep -c '^resumed' out)"
  # The one that it resumed from is guarded, if its commit came before the kill.
  n=$(sed -n 's/^resumed //p' out)
  is run-keeps "and keeps two beside that one" 2 "$("$CKPT" ls "$to" --json 2>log | grep -vc "\"name\":\"checkpoint-$n\"")"
  rm -rf r r.ckpt
  does run-again "another place goes on from the store" run --dir r --to "$to" --run x --take-over -- bash -c "$train" train 1
  is resumed "from what it has" 1 "$(grep -c '^resumed' out)"
  compare_listed "$to"
  does run-verify "all of it is whole" verify "$to"
  refuses other-run 11 "another run is refused" run --dir q --to "$to" --run y -- true
}

generations() { # TARGET
  local n
  for n in 1 2 3; do
    mkdir -p l/.t && echo "$n" >l/.t/model.bin && touch l/.t/DONE && rm -rf l/last && mv l/.t l/last
    does "generation-$n" "state $n of one name is saved" sync l --to "$1" --unit last/ --marker DONE
  done
  is generations "each is a generation" 3 "$(count "$1")"
  does generation-restore "the newest comes back" restore "$1" --dir lb
  same generation-equal "as it was" l/last lb/last
}

two_ranks() { # TARGET
  local n
  mkdir k0 k1
  for n in 0 1; do
    "$CKPT" run --rank "$n" --world 2 --launch-id "L$$" --dir "k$n" --to "$1" -- bash -c "mkdir k$n/.x
      head -c 3000000 /dev/urandom >'k$n/.x/shard-$n 50%.bin'; echo same >k$n/.x/trainer_state.json
      mv k$n/.x k$n/checkpoint-5
      for i in {1..600}; do [ -z \"\$('$CKPT' ls '$1' --json 2>/dev/null)\" ] || exit 0; sleep 0.1; done; exit 1" \
      >"k$n.log" 2>&1 &
    eval "rank$n=$!"
  done
  # shellcheck disable=SC2154 # eval sets it
  wait "$rank0"
  n=$?
  cp k0.log log
  is rank-0 "rank 0 ends well" 0 $n
  # shellcheck disable=SC2154
  wait "$rank1"
  n=$?
  cp k1.log log
  is rank-1 "so does rank 1" 0 $n
  is ranks-listed "they made one checkpoint" 1 "$(count "$1")"
  does ranks-restore "which comes back" restore "$1" --dir kb
  cp -r k1/checkpoint-5/. k0/checkpoint-5/
  same ranks-files "with the files of both, one of them equal" k0/checkpoint-5 kb/checkpoint-5
}

cycle() { # TARGET
  local to=$1 missing=""
  export SUMS=$PWD/sums CKPT
  mkdir sums
  printf 'return { api = 1, keep = keep.last(2) }\n' >keep.lua
  verbs "$to/s"
  killed_runs "$to/r"
  generations "$to/l"
  two_ranks "$to/k"
  does remove-run "all of it is removed" gc "$to" --remove-run --yes
  is removed "and nothing is listed any more" 0 "$(count "$to/s")"
  for n in "${NAMED[@]}"; do grep -qx "$n" played || missing+=" $n"; done
  is whole "each of the ${#NAMED[@]} checks was made" "" "$missing"
}

play() { # TARGET
  mkdir "$S3_DIR/work" && cd "$S3_DIR/work" || exit 1
  TELL_LOG=$PWD/log
  local before=$failures
  cycle "$1"
  cd "$HERE" || exit 1
  echo "# $kind: ${#NAMED[@]} checks and $(($(wc -l <"$S3_DIR/work/played") - ${#NAMED[@]})) more, $((failures - before)) failed"
}

skip() { # WHY
  tests=$((tests + 1))
  echo "ok $tests - $kind # SKIP $1"
}

server() { # NAME
  local scheme=s3
  if [[ $1 == fakegcs ]]; then
    scheme=gs
    "$CKPT" ls gs://ckpt-test/x 2>&1 | grep -q 'file://' && skip "this version has no gs://" && return
  fi
  [[ ${SETUP-} == no ]] || "spec/servers/${1%%-*}.sh" install
  if SERVER=$1 s3_serve; then
    # The Google stand-in looks at no key; this is how Google's own clients are sent there.
    [[ $scheme == s3 ]] || export STORAGE_EMULATOR_HOST=$AWS_ENDPOINT_URL
    play "$scheme://$S3_BUCKET/cycle"
  else
    skip "$S3_WHY"
  fi
  s3_end
  unset STORAGE_EMULATOR_HOST
}

HERE=$PWD
((${#NAMED[@]} == 35)) || exit 1
if [[ -n ${BUCKET-} ]]; then
  kind=$AWS_ENDPOINT_URL S3_DIR=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-cycle.XXXXXX") || exit 1
  trap 'rm -rf "$S3_DIR"' EXIT
  play "s3://$BUCKET/cycle-$$"
else
  for kind in $SERVERS_WANTED; do
    if [[ $kind == directory ]]; then
      S3_DIR=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-cycle.XXXXXX") || exit 1
      play "$S3_DIR/store"
      rm -rf "$S3_DIR"
    else
      server "$kind"
    fi
  done
fi
echo "1..$tests"
exit $((failures > 0))
