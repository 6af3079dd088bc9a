# shellcheck shell=bash disable=SC2154,SC2034 # `kind` is the caller's, TELL_LOG is read by tap.sh
# What 1.0 and this version make of each other's targets: to be sourced after spec/servers/s3.sh and spec/tap.sh.
#
#   NEW, OLD      the two programs
#   both_ways SCENE TARGET    plays a scene with each of them as the writer, in TARGET and the scratch directory
#                 `at`; then the other one looks at it, and goes on
#
# What the other one is given must come back byte for byte, or be refused by a text that says that a newer version is
# needed. Whatever 1.0 tries there, this version still has all of it afterwards.
#
# A scene makes checkpoints below `o` and saves them with `$C`; `more` is what it saves when the other one goes on.

put() { # UNIT BYTES [NAME...]: a checkpoint that is whole
  local name
  mkdir -p "o/$1"
  for name in model.bin "${@:3}"; do
    mkdir -p "$(dirname "o/$1/$name")"
    head -c "$2" /dev/urandom >"o/$1/$name"
  done
  touch "o/$1/DONE"
}
save() { "$C" sync o --to "$to" --run one --marker DONE "$@" >>log 2>&1; }

scene_plain() {
  put checkpoint-1 1000 "sub dir/a b" $'odd \xff name' $'line\nend'
  put checkpoint-2 1000 "sub dir/a b" $'odd \xff name' $'line\nend'
  head -c 12000000 /dev/urandom >o/checkpoint-2/model.bin
  mkdir o/checkpoint-2/nothing && ln -s model.bin o/checkpoint-2/link && ln -s nowhere o/checkpoint-2/dangling
  : >o/checkpoint-2/zero && chmod 700 o/checkpoint-2/model.bin
  save
}
scene_percent() {
  put checkpoint-1 1000
  save || return
  put checkpoint-2 1000 "100%.txt" "a%20b.bin" "%41.txt" "low%2fcase" "d%/e%"
  save
}
scene_many() {
  local n
  for n in {1..150}; do put "checkpoint-$n" 20; done
  save
}
scene_generations() {
  local n
  for n in 1 2 3; do
    rm -rf o/last
    put last 1000 state
    save --unit last/ || return
  done
}
scene_groups() {
  local trial
  for trial in a b; do
    put "exp/T $trial/checkpoint-1" 1000
    put "exp/T $trial/checkpoint-2" 1000
  done
  save
}
scene_dropped() {
  local n
  printf 'return { api = 1, keep = keep.last(2) }\n' >keep.lua
  for n in 1 2 3 4 5; do
    put "checkpoint-$n" 1000
    "$C" run --dir o --to "$to" --run one --take-over --marker DONE -p keep.lua --max-delete 100% \
      --grace-delete "$((n % 2))h" -- true >>log 2>&1 || return
    [[ $n -lt 3 ]] || rm -rf "o/checkpoint-$((n - 2))"
  done
  "$C" mark bad "$to" checkpoint-4 >>log 2>&1 && "$C" pin "$to" checkpoint-4 >>log 2>&1 && "$C" verify "$to" >>log 2>&1
}
scene_results() {
  # shellcheck disable=SC2016 # of the job
  "$C" run --dir o --to "$to" --run one --marker DONE -- bash -c '
    for n in 1 2; do
      mkdir -p o/checkpoint-$n/ && echo "$n" >o/checkpoint-$n/model.bin && touch o/checkpoint-$n/DONE
      "$0" notify "{\"loss\": $n.7, \"deep\": {\"list\": [1, null, true]}, \"checkpoint\": \"checkpoint-$n\"}" --wait -q
    done' "$C" >>log 2>&1
}
scene_nan() { # 1.0 refuses such a result
  # shellcheck disable=SC2016
  "$C" run --dir o --to "$to" --run one --marker DONE -- bash -c '
    mkdir -p o/checkpoint-1/ && echo 1 >o/checkpoint-1/model.bin && touch o/checkpoint-1/DONE
    "$0" notify "{\"loss\": NaN, \"checkpoint\": \"checkpoint-1\"}" --wait -q || "$0" notify checkpoint=checkpoint-1 --wait -q' "$C" >>log 2>&1
}
scene_beside() {
  printf 'return { api = 1, with = { "latest", "logs/**" } }\n' >with.lua
  put checkpoint-1 1000
  mkdir -p o/logs && echo checkpoint-1 >o/latest && echo text >"o/logs/a b"
  save -p with.lua
}
scene_ranks() {
  local n pids=() launch=L$RANDOM
  for n in 0 1; do
    mkdir -p "o/checkpoint-1" "k$n"
    timeout 200 "$C" run --rank "$n" --world 2 --launch-id "$launch" --dir "k$n" --to "$to" --run one --marker DONE -- bash -c "
      mkdir k$n/.x; head -c 100000 /dev/urandom >k$n/.x/shard-$n; echo same >k$n/.x/equal; touch k$n/.x/DONE; mv k$n/.x k$n/checkpoint-1
      for i in {1..300}; do [ -z \"\$('$C' ls '$to' --json 2>/dev/null)\" ] || exit 0; sleep 0.1; done; exit 1" >>"log.$n" 2>&1 &
    pids+=($!)
  done
  wait "${pids[0]}" && wait "${pids[1]}" && cp -r k0/checkpoint-1/. k1/checkpoint-1/. o/checkpoint-1/
}

# --- looking --------------------------------------------------------------------------------

units() { (cd o && find . -name DONE -printf '%h\n' | sed 's,^\./,,' | sort -V); }
some_units() { # of a hundred the ends and a few; verify reads each byte
  units | awk '{ line[NR] = $0 } END { for (i = 1; i <= NR; i++) if (NR < 13 || i < 4 || i > NR - 4 || i % 37 == 0) print line[i] }'
}
names_newer() { grep -q 'needs a newer ckpt-lua' "$1"; }
tree() { # what stands in the target, but what each reader may leave: pins, and which commit was verified
  case $to in
  s3://*) rm -rf t && "$HERE/spec/servers/mirror.py" "${S3_BUCKET}" "${to#"s3://$S3_BUCKET/"}" t && cd t ;;
  *) cd "$to" ;;
  esac && find . \( -path '*/.ckpt/pins*' -o -path '*/.ckpt/verified' \) -prune -o -type f -exec sha256sum {} + | sort -k 2
}

# Each unit comes back from there as it is here.
# returns 0: each is equal; 1: one differs or is lost; 2: no byte is wrong, and one was refused by name
restored_by() { # PROGRAM
  local unit rc worst=0
  while read -r unit; do
    rm -rf back
    "$1" restore "$to" "$unit" --dir back >>log 2>restore.log
    rc=$?
    cat restore.log >>log
    if ((rc == 0)); then
      diff -r --no-dereference "o/$unit" "back/$unit" >>log 2>&1 || diff -r --no-dereference "o/$unit" "back/$(basename "$unit")" >>log 2>&1 || return 1
    elif names_newer restore.log; then
      worst=2
    else
      echo "$unit did not come back: $rc" >>log
      return 1
    fi
  done < <(some_units)
  return $worst
}

# A reading command of 1.0 ends well, or says that it needs a newer version.
reads() { # COMMAND...
  local rc
  "$OLD" "$@" >out 2>err
  rc=$?
  echo "$*: $rc: $(tail -n 2 err)" >>log
  ((rc == 0)) || names_newer err
}

said=""
is() { # TEXT RC
  tell "$2" "$said: $1"
}

looks_of_old() { # what 1.0 makes of what this version wrote
  local word rc before
  before=$(cd . && tree 2>&1)
  restored_by "$OLD"
  rc=$?
  is "1.0 gives it back byte for byte$( ((rc == 2)) && echo ', or refuses by name')" $((rc == 1))
  rc=0
  for word in ls latest verify show plan; do reads "$word" "$to" || rc=1; done
  reads gc "$to" -n || rc=1
  is "each reading command of 1.0 ends well, or says that it needs a newer one" $rc
  [[ $before == "$(tree 2>&1)" ]]
  is "and changes nothing" $?
}

# Another checkpoint with the names of the newest; where that is no series, one of a name of its own.
like_newest() { # UNIT
  local last
  last=$(units | tail -n 1)
  cp -r "o/$last" "o/$1" && head -c 3000 /dev/urandom >"o/$1/model.bin"
}

old_tries() { # whatever 1.0 does there: nothing of ours is damaged
  local name
  like_newest checkpoint-900
  C=$OLD save
  echo "1.0 saves: $?" >>log
  for name in "mark bad $to checkpoint-900" "mark good $to checkpoint-900" "gc $to --grace-delete 0"; do
    # shellcheck disable=SC2086 # its words
    "$OLD" $name >>log 2>&1
    (($? < 128)) || echo "1.0 died of $name" >>log
  done
  # It may have refused; then it is not there.
  "$NEW" ls "$to" --json 2>>log | grep -q checkpoint-900 || rm -rf o/checkpoint-900
  restored_by "$NEW"
  is "after 1.0 tried to go on, this version has each byte" $?
  "$NEW" verify "$to" >>log 2>&1
  is "and finds it whole" $?
  ! grep -q '1.0 died' log
  is "and 1.0 did not crash" $?
}

goes_on() { # this version goes on with what 1.0 wrote
  like_newest checkpoint-901
  rm -rf o.ckpt
  C=$NEW save "${more[@]}"
  local rc=$?
  # 3: what is here and older than the newest is not saved, as a commit that 1.0 marked bad.
  ((rc == 0)) || { ((rc == 3)) && grep -q 'not saved: newer is committed' log; }
  is "this version goes on with it" $?
  "$NEW" gc "$to" >>log 2>&1
  restored_by "$NEW"
  is "and has each byte, the old and the new" $?
  "$NEW" verify "$to" >>log 2>&1
  is "all of it whole" $?
  rm -rf o/checkpoint-901
  restored_by "$OLD"
  is "what 1.0 wrote it still gives back, or refuses by name" $(($? == 1))
}

one_way() { # SCENE TARGET WRITER
  local to=$2 C=$3 rc more=()
  rm -rf work && mkdir -p work/o && cd work || exit 1
  : >log
  TELL_LOG=$PWD/log
  "scene_$1"
  rc=$?
  if [[ $3 == "$NEW" ]]; then
    said="$kind, $1, written by this version"
    is "is made" $rc
    looks_of_old
    old_tries
  else
    said="$kind, $1, written by 1.0"
    is "is made" $rc
    restored_by "$NEW"
    is "this version gives it back byte for byte" $?
    "$NEW" verify "$to" >>log 2>&1
    is "and finds it whole" $?
    goes_on
  fi
  cd ..
}

both_ways() { # SCENE TARGET
  one_way "$1" "$2/$1-new" "$NEW"
  one_way "$1" "$2/$1-old" "$OLD"
}
