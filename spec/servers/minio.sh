#!/bin/bash
# MinIO, on loopback: spec/servers/minio.sh VERB [DIR]
#
#   install      builds it once, as spec/servers/versitygw.sh does its server (10 minutes, 2 GB on the way)
#   start DIR    starts one for DIR (which has its data, its log and its pid) and prints the endpoint. With
#                TLS=yes that is https://localhost:PORT, whose authority is spec/data/tls/ca.pem. PORT in the
#                environment takes that one instead of a free one. It makes the buckets
#                  ckpt-test        as they come
#                  ckpt-versioned   with versions
#                  ckpt-locked      with object lock, whose default holds each object for a day
#                  ckpt-kms         with SSE-KMS as its default: no ETag there is an MD5
#   stop DIR     ends it
#
# The keys are "testkey" and "testsecret", the region is us-east-1. Its own key for KMS is made up here.
set -u
NAME=minio WHAT="MinIO" MODULE=github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c GO_PATIENCE=${GO_PATIENCE:-3000}
# shellcheck source=spec/servers/server.sh
. "$(dirname "$0")/server.sh"

ask() { # METHOD PATH [QUERY [HEADER...]], BODY in the environment
  "$(dirname "$0")/ask.py" "$@" >>"$dir/asked" 2>&1 || die "it did not take $1 $2?${3-}: $(tail -n 3 "$dir/asked")"
}

buckets() {
  export AWS_ACCESS_KEY_ID=testkey AWS_SECRET_ACCESS_KEY=testsecret AWS_REGION=us-east-1
  ask PUT /ckpt-test
  ask PUT /ckpt-versioned
  BODY='<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>' ask PUT /ckpt-versioned versioning=
  ask PUT /ckpt-locked "" "x-amz-bucket-object-lock-enabled: true"
  BODY='<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>' \
    ask PUT /ckpt-locked object-lock=
  ask PUT /ckpt-kms
  BODY='<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>aws:kms</SSEAlgorithm><KMSMasterKeyID>ckpt-key</KMSMasterKeyID></ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>' \
    ask PUT /ckpt-kms encryption=
}

start() { # DIR
  local dir=$1 port certs=() tls=spec/data/tls
  mkdir -p "$dir/data" "$dir/certs" || die "$dir cannot be made"
  AWS_ENDPOINT_URL=http://127.0.0.1
  if [[ ${TLS-} == yes ]]; then
    cd "$(dirname "$0")/../.." || exit 1
    openssl pkey -in $tls/server.pem -out "$dir/certs/private.key" || die "there is no key in $tls/server.pem"
    openssl x509 -in $tls/server.pem -out "$dir/certs/public.crt" || die "there is no certificate in $tls/server.pem"
    certs=(--certs-dir "$dir/certs")
    AWS_ENDPOINT_URL=https://localhost
    export AWS_CA_BUNDLE=$PWD/$tls/ca.pem
    cd - >/dev/null || exit 1
  fi
  # MINIO_CI_CD: it takes a directory that is no disk of its own.
  port=$(begin "$dir" "${PORT-}" env MINIO_CI_CD=1 MINIO_BROWSER=off MINIO_ROOT_USER=testkey MINIO_ROOT_PASSWORD=testsecret \
    MINIO_KMS_SECRET_KEY="ckpt-key:$(printf 'no secret: tests use this key %2d' 1 | base64)" \
    "$SERVER" server "${certs[@]}" --quiet --address 127.0.0.1:@PORT "$dir/data") || exit 1
  AWS_ENDPOINT_URL=$AWS_ENDPOINT_URL:$port
  export AWS_ENDPOINT_URL
  buckets
  echo "$AWS_ENDPOINT_URL"
}

main "$@"
