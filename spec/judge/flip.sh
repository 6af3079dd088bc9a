#!/bin/bash
# Each byte of a small store, flipped once (flip.lua): none may lead to a wrong restore, and each is noticed where the
# table below says so. Speaks TAP. Environment: STRIDE (1; 40: each fortieth byte), JOBS (4), CKPT_LUA.
set -u
cd "$(dirname "$0")/../.." || exit 1
CKPT=${CKPT_LUA:-$PWD/ckpt-lua}
JOBS=${JOBS:-4} STRIDE=${STRIDE:-1}
export CKPT_LUADIR=${CKPT_LUADIR:-$PWD/lua} CKPT_POLICIES=${CKPT_POLICIES:-$PWD/policies}

# What each kind of file must come to. `noticed`: each byte. `quiet`: noticed, or nothing changes by it, the reason
# beside it. Nothing is ever restored, named or chosen otherwise without a word, whatever was flipped.
declare -A expected=(
  [data]=noticed [with]=noticed [manifest]=noticed
  [log:run]=noticed [log:term]=noticed [log:attempt]=noticed [log:commit]=noticed [log:drop]=noticed [log:bad]=noticed
  [with:manifest]=quiet # its root is in the log: names, sizes, bytes; a file's time beside them is not
  [dropped]=quiet       # what the log no longer names is restored by nobody
  [lease]=quiet         # a hint: one that cannot be read is one that stands
  [pins]=quiet          # nothing is restored by one; one whose sum does not hold lets nothing be removed (test_pins.c)
  [head]=quiet          # a hint where the log is read from: the log itself says what is there
  [verified]=quiet      # what is verified again without it
  [memory]=quiet        # of policies, who begin anew without it
  [cleared]=quiet [staging]=quiet [tmp]=quiet # nothing of a checkpoint is in them
)

top=$(mktemp -d -p /dev/shm ckpt-flip.XXXXXX 2>/dev/null) || top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
trap 'exit 130' INT TERM
echo "1..3"
failures=0
# shellcheck source=spec/tap.sh
. spec/tap.sh
TELL_LOG=$top/log

save() { # NUMBER
  mkdir -p "$top/out/checkpoint-$1/sub"
  printf 'weights %s %s' "$1" "$(printf '%0*d' $((150 + $1 * 20)) 7)" >"$top/out/checkpoint-$1/model.bin"
  echo "optimizer $1" >"$top/out/checkpoint-$1/sub/opt.bin"
  : >"$top/out/checkpoint-$1/DONE"
  echo "checkpoint-$1" >"$top/out/latest"
  "$CKPT" sync "$top/out" --to "$top/store" --marker DONE --settle 0.05 -p "$top/with.lua" >>"$TELL_LOG" 2>&1
}

echo 'return { api = 1, with = { "latest" } }' >"$top/with.lua"
save 1 && save 2 && save 3 && save 4 &&
  "$CKPT" rm "$top/store" checkpoint-2 >>"$TELL_LOG" 2>&1 &&
  "$CKPT" mark bad "$top/store" checkpoint-4 >>"$TELL_LOG" 2>&1 &&
  "$CKPT" pin "$top/store" checkpoint-1 >>"$TELL_LOG" 2>&1
tell $? "a store is made: four checkpoints, one dropped, one bad, one pinned, each with a file beside it"

for ((i = 0; i < JOBS; i++)); do
  cp -a "$top/store" "$top/store$i"
  "$CKPT" exec spec/judge/flip.lua "$top/store$i" "$top/scratch$i" $((STRIDE * JOBS)) $((i * STRIDE)) \
    >"$top/part$i" 2>"$top/err$i" &
done
bad=0
for ((i = 0; i < JOBS; i++)); do wait -n || bad=1; done
cat "$top"/err* >>"$TELL_LOG"
awk '$1 != "at" { for (i = 2; i <= 6; i++) n[$1, i] += $i; kinds[$1] }
  END { for (k in kinds) print k, n[k, 2], n[k, 3], n[k, 4], n[k, 5], n[k, 6] }' "$top"/part? | sort >"$top/sums"
echo "# kind: bytes flipped, noticed, harmless, changed, wrong"
sed 's/^/#   /' "$top/sums"
((bad == 0)) && awk '{ bytes += $2; wrong += $5 + $6 } END { exit !(bytes > 50 && wrong == 0) }' "$top/sums"
tell $? "$(awk '{ n += $2 } END { print n + 0 }' "$top/sums") bytes flipped: nothing is restored, named or chosen otherwise"

bad=0
while read -r kind bytes noticed _; do
  case ${expected[$kind]-none} in
  noticed) ((bytes == noticed)) || { bad=1 && echo "# $kind: $((bytes - noticed)) of $bytes are not noticed" && grep -h "^at $kind " "$top"/part?; } ;;
  quiet) ;;
  none) bad=1 && echo "# $kind is a kind of file of which spec/judge/flip.sh expects nothing yet" ;;
  esac
done <"$top/sums"
tell $bad "each flip in the log, a manifest or data that is kept is noticed"
[[ -z ${SHOW-} ]] || cat "$top"/part?
exit $((failures > 0))
