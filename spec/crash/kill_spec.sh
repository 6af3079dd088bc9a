#!/bin/bash
# The walk of kill.sh with a few of its points; `make test-kill` walks all.
export KILL_SCENARIOS=${KILL_SCENARIOS:-first partial sealed among given} KILL_STRIDE=${KILL_STRIDE:-29}
exec "$(dirname "$0")/kill.sh"
