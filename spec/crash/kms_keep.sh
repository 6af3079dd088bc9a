#!/bin/bash
# crash.sh with a bucket of MinIO that is encrypted by SSE-KMS, and a policy that keeps three. Environment: as there.
KEEP=${KEEP:-3} exec "$(dirname "$0")/kms.sh"
