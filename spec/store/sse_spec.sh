#!/bin/bash
# Starts a MinIO with a key for KMS, over TLS, and runs test_store_s3_options against it.
set -u
cd "$(dirname "$0")/../.." || exit 1
DIR=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-sse.XXXXXX") || exit 1
trap 'spec/servers/minio.sh stop "$DIR/server" 2>/dev/null; rm -rf "$DIR"' EXIT
trap 'exit 130' INT TERM
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
if ! CKPT_TEST_S3_KMS=$(TLS=yes spec/servers/minio.sh start "$DIR/server" 2>"$DIR/why"); then
  echo "1..0 # SKIP $(tail -n 1 "$DIR/why")"
  exit 0
fi
CKPT_TEST_S3_KMS=$CKPT_TEST_S3_KMS "${CKPT_BUILD:-build}/spec/store/test_store_s3_options"
