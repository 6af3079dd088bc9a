#!/bin/bash
# spec/store/left_uploads_spec.sh on a real MinIO.
cd "$(dirname "$0")/../.." || exit 1
[[ ${SETUP-} == no ]] || spec/servers/minio.sh install
SERVER=minio exec spec/store/left_uploads_spec.sh
