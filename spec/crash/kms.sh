#!/bin/bash
# crash.sh with a bucket of MinIO that is encrypted by SSE-KMS. Environment: as there; N (60), SIZE (48MiB, of which
# half is one file, which goes in parts).
TARGET=s3 SERVER=minio-kms N=${N:-60} SIZE=${SIZE:-48MiB} exec "$(dirname "$0")/crash.sh"
