#!/bin/bash
# The walk of zombie.sh with some of its points; `make test-zombie` walks all.
ZOMBIE_STRIDE=${ZOMBIE_STRIDE:-9} exec "$(dirname "$0")/zombie.sh"
