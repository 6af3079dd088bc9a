# shellcheck shell=bash disable=SC2034 # what is set here is the caller's
# For what counts requests: to be sourced after spec/servers/s3.sh and s3_begin.
#
#   counted_begin MS   starts spec/servers/count.py before the server, so far away: COUNT is its endpoint
#   log_of COMMITS     puts a log of that length below s3://ckpt-test/log, which is `to`
#   counted ARG...     ckpt-lua by that way: sets code, requests, rounds, wall and cpu (seconds), rss (KiB)
#   counted_end        ends the proxy
made=${CKPT_BUILD:-build}/spec/commit/log/test_log_made
to=s3://ckpt-test/log

counted_begin() {
  mkfifo "$S3_DIR/port"
  /usr/bin/python3 -IS spec/servers/count.py "${AWS_ENDPOINT_URL##*:}" "$1" >"$S3_DIR/port" &
  count_pid=$!
  trap 'counted_end; s3_end' EXIT
  read -r port <"$S3_DIR/port"
  COUNT=http://127.0.0.1:$port
}

counted_end() {
  kill "$count_pid" 2>/dev/null
}

log_of() {
  rm -rf "${S3_DATA:?}/log"
  "$made" "$S3_DATA/log" "$1" || exit 1
}

counted() {
  curl -sf "$COUNT/counted" >/dev/null
  AWS_ENDPOINT_URL=$COUNT /usr/bin/python3 -IS -c '
import os, resource, subprocess, sys, time
begun = time.monotonic()
code = subprocess.call(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=open(sys.argv[1] + "/log", "w"))
wall = time.monotonic() - begun
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(code, f"{wall:.2f} {used.ru_utime + used.ru_stime:.2f}", used.ru_maxrss)
' "$S3_DIR" "$CKPT" "$@" >"$S3_DIR/used"
  read -r code wall cpu rss <"$S3_DIR/used"
  read -r requests rounds < <(curl -sf "$COUNT/counted")
}
