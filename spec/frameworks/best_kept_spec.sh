#!/bin/bash
# Real trainings under a policy that keeps the best.
exec "$(dirname "$0")/packages.sh" run best_kept_spec.py
