#!/bin/bash
# A start waits for a store that does not answer, and not for one that refuses.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
export AWS_ENDPOINT_URL=$PROXY
out=$S3_DIR/out to=s3://ckpt-test/slow
mkdir "$out"

run() { # WORDS...: of run; its job leaves a mark
  rm -f "$S3_DIR/began"
  ckpt run --run one --dir "$out" --to "$to" --marker DONE --settle 0.2 "$@" -- touch "$S3_DIR/began"
}
began() { [[ -e $S3_DIR/began ]]; }
heals_after() { # SECONDS
  (sleep "$1" && : >"$RULES.new" && mv "$RULES.new" "$RULES") &
  healer=$!
}

cat >"$S3_DIR/job" <<'JOB'
mkdir "$1/checkpoint-1" && echo weights >"$1/checkpoint-1/model.bin" && touch "$1/checkpoint-1/DONE"
JOB
known=$S3_DIR/known
mkdir "$known"
ckpt run --run two --dir "$known" --to s3://ckpt-test/known --marker DONE --settle 0.2 -- sh "$S3_DIR/job" "$known"
tell $? "a checkpoint is committed"
AWS_ENDPOINT_URL=http://127.0.0.1:9 timeout 17 "$CKPT" run --run two --dir "$known" --to s3://ckpt-test/known \
  -- true >"$S3_DIR/patient" 2>&1 & # the rest goes on meanwhile
patient=$!

rules "999 * * status 503/SlowDown\n"
heals_after 2
run --start-wait 60s && began
tell $? "5xx is waited out"
wait "$healer"
grep -q "trying again for up to" "$S3_DIR/log"
tell $? "and is told"

rules "1 * * hang\n"
run --start-wait 4s && began
tell $? "a request that is never answered is waited out"

rules ""
refused() { AWS_ENDPOINT_URL=http://127.0.0.1:9 run "$@"; }
refused --start-wait 2s
[[ $? == 6 ]] && ! began && grep -q -- "--start-wait waits longer" "$S3_DIR/log"
tell $? "a store that refuses connections for longer is 6, and the job is not begun"

at_once() { # CODE ACTION TEXT: the patience is longer than the spec's
  rules "999 * * $2\n"
  timeout 20 "$CKPT" run --run one --dir "$out" --to "$to" --start-wait 1h -- touch "$S3_DIR/began" \
    >"$S3_DIR/log" 2>&1
  [[ $? == "$1" ]] && ! began
  tell $? "$3 is told at once"
}
rm -f "$S3_DIR/began"
at_once 7 "status 403/AccessDenied" "what is forbidden"
at_once 10 "status 404/NoSuchBucket" "a bucket that is not there"
unknown() { python3 -c 'import socket, sys
try: socket.getaddrinfo("no-such-host.invalid", 80)
except socket.gaierror as e: sys.exit(e.errno != socket.EAI_NONAME)'; }
if unknown; then
  AWS_ENDPOINT_URL=http://no-such-host.invalid AWS_S3_ADDRESSING_STYLE=path at_once 2 status "a name that no server knows"
fi

wait "$patient"
grep -q "trying again for up to 1[12][0-9] s" "$S3_DIR/patient" &&
  grep -q "has not answered for 15 s; 120 s are waited" "$S3_DIR/patient"
tell $? "a place that has committed waits 2 minutes, and says so after 15 s"
AWS_ENDPOINT_URL=http://127.0.0.1:9 timeout 2 "$CKPT" run --run one --dir "$out" --to "$to" -- true >"$S3_DIR/log" 2>&1
grep -q "trying again for up to 1[45] s" "$S3_DIR/log"
tell $? "one that never has waits 15 s"
echo "1..$tests"
exit $((failures > 0))
