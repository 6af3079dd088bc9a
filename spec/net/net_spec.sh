#!/bin/bash
# Some of the scenarios of net.sh; `make test-net` plays 200.
COUNT=${COUNT:-12} PATIENCE=${PATIENCE:-8} exec "$(dirname "$0")/net.sh"
