#!/bin/bash
# 1.0 and this version on each other's targets: SCENES (some, for each of all is played by
# spec/world/long/older_spec.sh) on a directory and, where there is a server, in a bucket.
set -u
cd "$(dirname "$0")/../.." || exit 1
HERE=$PWD
NEW=${CKPT_LUA:-$PWD/ckpt-lua}
if ! OLD=$(spec/older/v1.0.sh path); then
  echo "1..0 # SKIP $OLD"
  exit 0
fi
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
# shellcheck source=spec/tap.sh
. spec/tap.sh
# shellcheck source=spec/older/both_ways.sh
. spec/older/both_ways.sh
SCENES=${SCENES:-plain percent dropped}
PLACES=${PLACES:-directory bucket}

for kind in $PLACES; do
  if [[ $kind == directory ]]; then
    S3_DIR=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-older.XXXXXX") || exit 1
    place=$S3_DIR/store
  elif s3_serve; then
    place=s3://$S3_BUCKET/older
  else
    tests=$((tests + 1))
    echo "ok $tests - in a bucket # SKIP $S3_WHY"
    s3_end
    continue
  fi
  cd "$S3_DIR" || exit 1
  for scene in $SCENES; do both_ways "$scene" "$place"; done
  cd "$HERE" || exit 1
  [[ $kind == bucket ]] || rm -rf "$S3_DIR"
done
echo "1..$tests"
exit $((failures > 0))
