#!/bin/bash
# The real frameworks, killed and resumed: spec/frameworks/frameworks.sh
#
# Environment: GROUP (names of spec/frameworks/groups.py; all), KILLS (10), LOSSES (2), SEED (1), KEEP (yes: what was
# trained stays), CKPT_LUA, SETUP (no: nothing is installed), TABLE (where the rows go).
set -u
cd "$(dirname "$0")/../.." || exit 1
spec/frameworks/packages.sh install || echo "# the frameworks could not all be installed"
python=$(spec/frameworks/packages.sh python) || {
  echo "1..0 # SKIP the frameworks of spec/frameworks/packages.txt are not there"
  exit 0
}
export CKPT_LUA=${CKPT_LUA:-$PWD/ckpt-lua} LOGS=${LOGS:-$PWD/build/frameworks/logs}
export TABLE=${TABLE-$PWD/build/frameworks/table.txt}
if [[ -n $TABLE ]]; then
  mkdir -p "$(dirname "$TABLE")"
  echo "| group | package | kills | losses | resumed right | commits loaded | s to commit (median/longest) | failed | took |" >"$TABLE"
fi
read -ra groups <<<"${GROUP-}"
exec "$python" spec/frameworks/drive.py ${groups[@]+"${groups[@]}"}
