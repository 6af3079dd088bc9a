#!/bin/bash
# How often `ls` and `latest` wait for a bucket, whatever the length of its log: counted, not timed.
set -u
cd "$(dirname "$0")/../../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
# shellcheck source=spec/commit/log/counted.sh
. spec/commit/log/counted.sh
counted_begin 100 # so far that no answer comes while others are still being asked

for commits in 1 3 40 63 80 126 300; do
  log_of "$commits"
  for verb in ls latest; do
    counted "$verb" "$to"
    [[ $code == 0 ]] && ((rounds <= 8))
    tell $? "$verb of $commits commits: $requests requests in $rounds rounds, of 8"
    ((requests <= 300))
    tell $? "and no more than it needs"
  done
  [[ $commits == "$(AWS_ENDPOINT_URL=$COUNT "$CKPT" ls "$to" 2>/dev/null | grep -c checkpoint-)" ]]
  tell $? "all of them are listed"
done
rm -rf "${S3_DATA:?}/log/.ckpt/head"
counted ls "$to"
((code == 0 && rounds <= 25))
tell $? "without its head a log of 300 commits is read in $rounds rounds"
echo "1..$tests"
exit $((failures > 0))
