#!/bin/bash
# `verify` reads each entry of the log, also those that no command looks at, and says what is unproven.
set -u
cd "$(dirname "$0")/../.." || exit 1
CKPT=${CKPT_LUA:-$PWD/ckpt-lua}
dir=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-proven.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
TELL_LOG=$dir/log
# shellcheck source=spec/tap.sh
. spec/tap.sh
for i in 1 2 3; do
  mkdir -p "$dir/o/checkpoint-$i"
  echo "$i" >"$dir/o/checkpoint-$i/w"
  touch "$dir/o/checkpoint-$i/DONE"
done
"$CKPT" sync "$dir/o" --to "$dir/st" --marker DONE >"$dir/log" 2>&1
tell $? "three checkpoints are saved"
entry=$dir/st/.ckpt/log/00000000000000000003.json
manifest=$dir/st/checkpoint-2/.ckpt-manifest.json
cp -r "$dir/st" "$dir/good"

again() { rm -rf "$dir/st" && cp -r "$dir/good" "$dir/st"; }
ends() { # CODE ARG...: does it end so?
  "$CKPT" "${@:2}" >"$dir/log" 2>&1
  [[ $? == "$1" ]]
}

ends 0 verify "$dir/st" && ! grep -q unproven "$dir/log"
tell $? "all of it is right, and proven"
sed -i 's/"step":1,/"step":7,/' "$entry"
ends 5 verify "$dir/st" && grep -q 'log is damaged: entry 3' "$dir/log"
tell $? "a changed digit of an entry ends verify with 5, and the entry is named"
ends 0 ls "$dir/st" && grep -q 'warning.*entry 3' "$dir/log" && grep -q checkpoint-3 "$dir/log"
tell $? "ls warns, and lists"
ends 0 restore "$dir/st" checkpoint-3 --dir "$dir/r" && cmp -s "$dir/r/checkpoint-3/w" "$dir/o/checkpoint-3/w"
tell $? "a restore warns, and restores"
cp -r "$dir/st" "$dir/before"
ends 5 rm "$dir/st" checkpoint-1
tell $? "rm is refused"
mkdir "$dir/o/checkpoint-4" && touch "$dir/o/checkpoint-4/DONE"
ends 5 sync "$dir/o" --to "$dir/st" --marker DONE
tell $? "a sync is refused"
diff -r "$dir/st" "$dir/before" >"$dir/log" 2>&1
tell $? "and nothing has changed"
rm -r "$dir/o/checkpoint-4"

again
rm "$dir/st/.ckpt/log/00000000000000000007.json"
ends 5 rm "$dir/st" checkpoint-1 && grep -q 'head names entry 7' "$dir/log"
tell $? "where the last commit is lost, nothing is appended"
again
sed -i 's/"created_ns":1/"created_ns":2/' "$manifest"
ends 5 verify "$dir/st" && grep -q 'its text is not the one that was' "$dir/log"
tell $? "another text of a manifest is found, whatever it changes"
ends 5 restore "$dir/st" checkpoint-2 --dir "$dir/r2" && [[ -z $(ls "$dir/r2") ]]
tell $? "and not restored"
rm -rf "$dir/st" && cp -r spec/data/format1/store "$dir/st"
ends 0 verify "$dir/st" && grep -q 'entries are unproven: 1.0 wrote them' "$dir/log"
tell $? "of a store of 1.0 it says that its log is unproven"
echo "1..$tests"
exit $((failures > 0))
