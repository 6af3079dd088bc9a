#!/bin/bash
# The walk of kill.sh with some of its points; `make test-kill` walks all.
KILL_STRIDE=${KILL_STRIDE:-17} exec "$(dirname "$0")/kill.sh"
