#!/bin/bash
# Starts an S3 server and a proxy before it, and runs test_store_s3_slow against them.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_begin || exit 0
s3_proxy 0
exec_test=${CKPT_BUILD:-build}/spec/store/test_store_s3_slow
CKPT_TEST_S3=$AWS_ENDPOINT_URL CKPT_TEST_S3_PROXY=$PROXY CKPT_TEST_S3_RULES=$RULES "$exec_test"
