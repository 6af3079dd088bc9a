#!/bin/bash
# The outside judge with so many histories: make judge. Environment: SEED (the time), COUNT (1000), STORES
# (dir,versitygw,minio), JOBS (6), MINUTES (none begins later), CKPT_LUA.
set -u
cd "$(dirname "$0")/../.." || exit 1
[[ -z ${SANITIZE-} ]] || export COUNT=${COUNT:-200}
exec spec/judge/judge.py ${SEED:+--seed "$SEED"} --count "${COUNT:-1000}" --stores "${STORES:-dir,versitygw,minio}" \
  --jobs "${JOBS:-6}" --minutes "${MINUTES:-600}"
