#!/bin/bash
# The judge against programs that leave a rule out: spec/judge/faults.sh, or make judge-faults.
#
# CKPT_LUA is a program of a build with FAULTS=yes, CKPT_SOUND one without. Each fault has to be caught
# within so many histories; how many it took is printed. The names in this list are those in the
# engine, each once: one that is nowhere catches nothing, and one that is not in the list is not tried.
# Speaks TAP. Environment: ONLY (a part of the name), SEED (1), JOBS (4).
set -u
cd "$(dirname "$0")/../.." || exit 1
failures=0
CKPT=${CKPT_LUA:-$PWD/build/faults/ckpt-lua}
SOUND=${CKPT_SOUND:-$PWD/ckpt-lua}

# name, within how many histories, stores
faults=(
  "commit-before-manifest 150 dir"
  "fence-not-checked 60 dir"
  "log-put-replaces 60 dir"
  "nonce-not-compared 100 dir"
  "newest-may-go 60 dir"
  "pins-not-asked 40 dir"
  "pin-not-reread 30 dir"
  "grace-not-waited 150 dir"
  "lease-not-asked 60 dir"
  "marks-not-asked 10 versitygw"
  "names-not-asked 40 dir"
  "cleared-not-asked 40 dir"
  "bytes-not-compared 20 dir"
  "file-not-flushed 40 dir"
  "durable-not-proven 20 dir"
  "epoch-not-read 20 dir"
  "epoch-not-read-guest 20 dir"
  "epoch-not-read-removal 20 dir"
  "log-read-first 40 dir"
  "no-plug 20 dir"
  "numbers-from-zero 20 dir"
  "epoch-counts-early 20 dir"
  "older-after-newer 20 dir"
)

echo "1..$((${#faults[@]} + 2))"
# shellcheck source=spec/tap.sh
. spec/tap.sh

here=$(grep -rhoE 'FAULT\("[a-z-]+"\)' engine | cut -d'"' -f2 | sort -u)
listed=$(for each in "${faults[@]}"; do echo "${each%% *}"; done | sort -u)
diff <(echo "$listed") <(echo "$here") | sed 's/^/# /'
[[ $listed == "$here" ]]
tell $? "each fault of the engine is in the list, and no other"

# What is installed must not have them.
bad=0
for name in $listed; do
  grep -qF -- "$name" "$CKPT" || { bad=1 && echo "# $name is not in $CKPT"; }
  ! grep -qF -- "$name" "$SOUND" || { bad=1 && echo "# $name is in $SOUND"; }
done
tell $bad "a build with FAULTS=yes has them, and one without has none"

for each in "${faults[@]}"; do
  read -r name most stores <<<"$each"
  [[ $name == *${ONLY-}* ]] || { tests=$((tests + 1)) && echo "ok $tests - $name # SKIP not asked for" && continue; }
  out=$(CKPT_LUA=$CKPT spec/judge/judge.py --fault "$name" --stop --seed "${SEED:-1}" --count "$most" \
    --stores "$stores" --jobs "${JOBS:-4}" 2>&1)
  played=$(grep -oE '[0-9]+ histories, [0-9]+ break' <<<"$out" | head -n 1)
  grep -E '^#   promise [1-6]:' <<<"$out" | head -n 2 | cut -c1-250
  rm -rf "$(sed -n 's/^# seed .*files in //p' <<<"$out")"
  grep -qE '^#   promise [1-6]:' <<<"$out"
  tell $? "$name is caught, after ${played%% *} histories on $stores"
done
exit $((failures > 0))
