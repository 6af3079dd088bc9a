#!/bin/bash
# `make bench-ranks`: what ranks ask of a bucket, real ones, and more that are simulated. The last figures are in build/bench/ranks.txt, and as JSON in
# ranks.json beside it; ranks.kinds says of what kind they were.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_begin || exit 0
out=${CKPT_BUILD:-build}/bench
mkdir -p "$out" && rm -f "$out"/ranks.{txt,json,kinds}
{
  printf '%5s %-22s %9s %6s %7s %7s %6s %8s\n' ranks phase requests files rank_0 median most a_second
  for world in ${RANKS:-16 64}; do
    RANKS=$world TARGET=s3://ckpt-test/cost-$world KINDS=$out/ranks.kinds ROWS=$out/ranks.json \
      python3 spec/ranks/cost.py || exit 1
  done
  printf '\nsimulated:\n'
  BENCH=$out/ranks.many WORLDS=${WORLDS-16 64 1000 10000} "${CKPT_BUILD:-build}"/spec/job/save/test_job_ranks_many \
    >"$out/ranks.log" 2>&1 || { cat "$out/ranks.log" && exit 1; }
  cat "$out/ranks.many"
} | tee "$out/ranks.txt"
exit "${PIPESTATUS[0]}"
