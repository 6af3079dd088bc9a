#!/bin/bash
# Starts an S3 server, and runs test_store_s3_options against it.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_begin || exit 0
CKPT_TEST_S3=$AWS_ENDPOINT_URL "${CKPT_BUILD:-build}/spec/store/test_store_s3_options"
