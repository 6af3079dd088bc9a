#!/bin/bash
# Starts an S3 server, and has stores, trees and runs of one process use keys of their own.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_begin || exit 0
printf '[mine]\naws_access_key_id = testkey\naws_secret_access_key = testsecret\n' >"$S3_DIR/profiles"
export AWS_ACCESS_KEY_ID=nobody AWS_SECRET_ACCESS_KEY=nothing AWS_EC2_METADATA_DISABLED=true
CKPT_LUADIR=$PWD/lua timeout 120 "${CKPT_BUILD:-build}/libexec/ckpt-script" spec/store/environment.lua "$S3_DIR/profiles"
