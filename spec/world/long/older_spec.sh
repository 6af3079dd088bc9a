#!/bin/bash
# 1.0 and this version on each other's targets, with each scene of spec/older/both_ways.sh.
cd "$(dirname "$0")/../../.." || exit 1
SCENES="plain percent many generations groups dropped results nan beside ranks" exec spec/older/older_spec.sh
