#!/bin/bash
# Names as keys of a bucket: as they are, wherever a bucket can have them. What 1.0 spelt otherwise is read,
# gone on with and removed as it stands.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
export AWS_ENDPOINT_URL=$PROXY
cd "$S3_DIR" || exit 1
to=s3://ckpt-test/exp place=$S3_DATA/exp
log=$place/.ckpt/log
printf 'return { api = 1, with = { "scaler_*%%.json" } }\n' >policy.lua

make_odd() { # NAME: a checkpoint with what bucket and URLs are known to stumble over
  mkdir -p "$1/50%/a" && (
    cd "$1" || exit
    for name in '100%.txt' 'a%20b.bin' '%41.txt' 'low%2fcase' 'a+b c=d.bin' 'uni-é-日本' '50%/a/%25' '%~tilde' \
      $'line\nbreak' $'caf\xe9' 'line%0Abreak'; do printf '%s' "$name" >"$name"; done
    touch DONE
  )
}
sync() { ckpt sync out --to "$to" --marker DONE --settle 0 -p policy.lua; }
back() { # NAME: is it restored as it is?
  rm -rf back
  ckpt restore "$to" "$1" --dir back && diff -r "out/$1" "back/$1" >>log 2>&1
}
keys() { # DIR: of its files, one a line
  (cd "$place/$1" && find . -type f ! -name '.ckpt*' | sed 's|^\./||' | LC_ALL=C sort)
}
gone() { [[ -z $(find "$place/$1" -type f 2>/dev/null) ]]; } # NAME: its files, all of them
# Spells a directory as 1.0 did, and takes out of what was written by now what 1.0 did not know.
as_by_1_0() { # DIR
  python3 - "$place/$1" <<'PY'
import os, re, sys
def old(name):
    raw = os.fsencode(name)
    try:
        raw.decode()
        bad = b""
    except UnicodeDecodeError:
        bad = bytes(range(128, 256))
    return "".join("%%%02X" % b if b == 37 or b < 32 or b in bad else bytes([b]).decode("latin-1")
                   for b in raw).encode("latin-1")
def name_of(key):
    return re.sub(rb"%([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), key[2:]) if key[:2] == b"%~" else key
top = os.fsencode(sys.argv[1])
for at, dirs, files in os.walk(top, topdown=False):
    names = [one for one in dirs + files if one != b".ckpt-manifest.json"]
    for one in names: # one may get a name that another one has
        os.rename(at + b"/" + one, at + b"/was " + one)
    for one in names:
        os.rename(at + b"/was " + one, at + b"/" + old(name_of(one)))
PY
  local said
  "$SERVERS/../older/unsealed.sh" "$place"
  said=$(grep -lr '"keys":"plain"' "$place/$1" "$log") &&
    xargs -d '\n' sed -i 's/"keys":"plain",//; s/"reader":2/"reader":1/' <<<"$said" &&
    xargs -d '\n' touch -d '1 hour ago' <<<"$said" # it is no younger than its commit
}
collected() { ckpt gc "$to" --grace-delete 0 && gone "$1"; } # NAME: the store's clock has whole seconds

# --- our own --------------------------------------------------------------------------------

mkdir -p out/checkpoint-0 && touch out/checkpoint-0/DONE && sync
make_odd out/checkpoint-1
echo beside >'out/scaler_1%.json'
sync
tell $? "a checkpoint with odd names is saved"
keys checkpoint-1 >got
printf '%s\n' %41.txt %~caf%E9 '%~line%0Abreak' '%~%25~tilde' '100%.txt' '50%/a/%25' DONE a%20b.bin \
  'a+b c=d.bin' line%0Abreak low%2fcase uni-é-日本 | LC_ALL=C sort >want
diff want got >log 2>&1
tell $? "its names stand in the bucket as they are, but for those that no bucket can have"
back checkpoint-1
tell $? "it comes back"
ckpt verify "$to"
tell $? "and is verified"
grep -q '"keys":"plain"' "$place/checkpoint-1/.ckpt-manifest.json" &&
  grep -q '"reader":2' "$place/checkpoint-1/.ckpt-manifest.json"
tell $? "its manifest says how its keys are spelt, and asks for a reader that knows it"
grep -q '"reader":1' "$place/checkpoint-0/.ckpt-manifest.json" &&
  ! grep -q '"keys"' "$place/checkpoint-0/.ckpt-manifest.json"
tell $? "one without such names is as it was"
[[ -f $(find "$place/.ckpt/with" -name 'scaler_1%.json') ]]
tell $? "what is saved beside it has its name too"
ckpt restore "$to" checkpoint-1 --dir back2 && cmp -s 'out/scaler_1%.json' 'back2/scaler_1%.json'
tell $? "and comes back"
ckpt run --dir fresh --to "$to" --continue-run -p policy.lua -- true
tell $? "a run goes on from it"

# --- what 1.0 left --------------------------------------------------------------------------

make_odd out/checkpoint-3
sync
ckpt verify "$to" # or it would stay as the newest that is known to be whole
ckpt rm "$to" checkpoint-1
wait_for 20 "its removal" collected checkpoint-1
tell $? "the one before it is removed, all of it"
as_by_1_0 checkpoint-3
[[ -f "$place/checkpoint-3/100%25.txt" && -f "$place/checkpoint-3/line%0Abreak" ]]
tell $? "a checkpoint that 1.0 saved"
back checkpoint-3
tell $? "comes back"
ckpt verify "$to"
tell $? "is verified"
make_odd out/checkpoint-4
sync && back checkpoint-4
tell $? "is followed by one of ours"
ckpt verify "$to" && ckpt rm "$to" checkpoint-3
wait_for 20 "its removal" collected checkpoint-3
tell $? "and is removed, all of it"

# --- a save that was cut --------------------------------------------------------------------

cut() { # NAME: is killed when its large file is on its way
  make_odd "out/$1"
  head -c 20000000 /dev/urandom >"out/$1/big%.bin"
  rules '9 PUT partNumber=2& hang\n'
  setsid "$CKPT" sync out --to "$to" --marker DONE --settle 0 >log 2>&1 &
  local runner=$!
  disown
  wait_for 60 "its large file" grep -q 'big.*partNumber=2&' "$RULES.log"
  wait_for 60 "its small ones" test -f "$place/$1/low%2fcase"
  kill -9 -- "-$runner"
  wait_for 60 "its end" bash -c "! pgrep -s $runner"
  rules ''
}
cut checkpoint-5
sync && back checkpoint-5 && [[ -f "$place/checkpoint-5/100%.txt" ]]
tell $? "a save that was cut ends in its own spelling"
cut checkpoint-6
as_by_1_0 checkpoint-6
sync
back checkpoint-6 && ckpt verify "$to"
tell $? "one that 1.0 began is gone on with"
[[ -f "$place/checkpoint-6/100%25.txt" && -f "$place/checkpoint-6/big%25.bin" && ! -e "$place/checkpoint-6/100%.txt" ]]
tell $? "and ends as 1.0 would have spelt it"
! grep -q '"keys"' "$place/checkpoint-6/.ckpt-manifest.json"
tell $? "which its manifest says"
cut checkpoint-7
rm -r out/checkpoint-7
make_odd out/checkpoint-8
: >out/checkpoint-8/big%.bin
sync
wait_for 20 "its removal" collected checkpoint-7
tell $? "one that nobody goes on with is removed, all of it"
[[ -z $(find "$S3_DATA/.sgwtmp" -type f) ]]
tell $? "and no part of it is left"

# --- what others put beside it --------------------------------------------------------------

others() { # DIR KEY...: objects of another tool, as large as ours of the other spelling
  local dir=$1 key
  shift
  for key in "$@"; do
    printf '%s' "${key//%25/%}" >"$place/$dir/$key" && touch -d '1 hour ago' "$place/$dir/$key"
  done
}
stands() { # DIR KEY...: and nothing else
  local dir=$1
  shift
  [[ $(cd "$place/$dir" && find . -type f | sed 's|^\./||' | LC_ALL=C sort) == "$(printf '%s\n' "$@" | LC_ALL=C sort)" ]]
}
rid() { # NAME KEY...: once it is removed, these are left
  ckpt gc "$to" --grace-delete 0 && stands "$@"
}
rm -rf out out.ckpt
to=s3://ckpt-test/beside place=$S3_DATA/beside
log=$place/.ckpt/log
for name in checkpoint-9 checkpoint-10 checkpoint-11; do make_odd "out/$name" && sync && ckpt verify "$to"; done
as_by_1_0 checkpoint-10
others checkpoint-9 100%25.txt %2541.txt '%~100%25.txt'
others checkpoint-10 100%.txt %41.txt low%2fcase
back checkpoint-9 && back checkpoint-10
tell $? "checkpoints beside which another tool has put names of the other spelling come back as they were"
ckpt rm "$to" checkpoint-9 && ckpt rm "$to" checkpoint-10
wait_for 20 "its removal" rid checkpoint-9 100%25.txt %2541.txt '%~100%25.txt'
tell $? "one is removed, and the other tool's objects stay"
wait_for 20 "its removal" rid checkpoint-10 100%.txt %41.txt low%2fcase
tell $? "and so they do where 1.0 saved"
others checkpoint-10 100%25.txt
ckpt gc "$to"
grep -q '4 objects (checkpoint-10/%41.txt first)' "$S3_DIR/log"
tell $? "gc names them as they are"
ckpt gc "$to" --remove checkpoint-10/100%.txt && stands checkpoint-10 100%25.txt %41.txt low%2fcase
tell $? "and removes by hand the one that was meant"
echo "1..$tests"
