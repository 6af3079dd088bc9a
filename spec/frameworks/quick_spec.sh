#!/bin/bash
# One of the groups of `make test-frameworks`, with few kills, where the frameworks are installed:
# the one that begins soonest.
set -u
cd "$(dirname "$0")/../.." || exit 1
SETUP=no GROUP=${GROUP:-xgboost} KILLS=${KILLS:-1} LOSSES=${LOSSES:-1} TABLE='' LOGS=$(mktemp -d) || exit 1
trap 'rm -rf "$LOGS"' EXIT
export SETUP GROUP KILLS LOSSES TABLE LOGS
spec/frameworks/frameworks.sh
