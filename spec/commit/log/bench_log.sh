#!/bin/bash
# `make bench-log`: what it takes to list a log in a bucket that is 40 ms away.
set -u
cd "$(dirname "$0")/../../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_begin || exit 0
CKPT=${CKPT_LUA:-$PWD/ckpt-lua}
# shellcheck source=spec/commit/log/counted.sh
. spec/commit/log/counted.sh
counted_begin "${DELAY_MS:-40}"
printf '%-8s %8s %9s %7s %8s %7s %10s\n' verb commits requests rounds wall_s cpu_s max_rss_KiB
for commits in ${COMMITS:-1 80 300 10000}; do
  log_of "$commits"
  for verb in ls latest; do
    counted "$verb" "$to"
    [[ $code == 0 ]] || { cat "$S3_DIR/log"; exit 1; }
    printf '%-8s %8d %9d %7d %8s %7s %10d\n' "$verb" "$commits" "$requests" "$rounds" "$wall" "$cpu" "$rss"
  done
done
