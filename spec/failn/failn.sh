#!/bin/bash
# Every call of every operation fails, one after the other: spec/failn/failn.sh, or make test-failn.
#
# spec/c/failn.h says what fails and what is looked at afterwards. Here its scenarios are played with
# every point, JOBS (2) side by side, and summed up. FAILN_STRIDE (1): every so manieth point. Speaks TAP.
# A scenario that has no point at that stride was not played: it is skipped, and with every point a failure.
set -u
cd "$(dirname "$0")/../.." || exit 1
test=${CKPT_BUILD:-build}/spec/failn/test_failn
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
trap 'exit 130' INT TERM

# The test tells its scenarios when it is asked for one that there is not.
FAILN_ONLY="?" "$test" 2>/dev/null | sed -n 's/^# scenario: //p' >"$out/names"
[[ -s $out/names ]] || {
  echo "failn: $test has no scenarios"
  exit 1
}
export FAILN_STRIDE=${FAILN_STRIDE:-1} test out
# shellcheck disable=SC2016 # for the inner shell
xargs -a "$out/names" -d '\n' -P "${JOBS:-2}" -I NAME bash -c '
  own=$(mktemp "$out/run.XXXXXX")
  FAILN_ONLY=$1 timeout 1800 "$test" >"$own" 2>&1
  echo "exit $?" >>"$own"
  grep "^# " "$own" | grep -v "^# failn: "
  grep -q "^exit 0$" "$own" || tail -n 30 "$own" | sed "s/^/  /"' bash NAME
awk '
  /^# failn: / { scenarios += $3; points += $5; empty += $5 == 0; torn += $7; lost += $9; leaks += $11 }
  /^exit / { runs++; failed += $2 != 0 }
  END {
    bad = failed > 0 || scenarios != runs || points == 0 || (empty > 0 && ENVIRON["FAILN_STRIDE"] == 1)
    printf "%sok 1 - failn: %d scenarios, %d points, %d torn, %d lost, %d leaks\n",
      bad ? "not " : "", scenarios - empty, points, torn, lost, leaks
    if (empty > 0) printf "ok 2 - %d scenarios # SKIP they have no point at this stride\n", empty
    printf "1..%d\n", (empty > 0 ? 2 : 1)
    exit bad
  }' "$out"/run.*
