#!/bin/bash
# Lightning, whose best checkpoint is not there when it resumes.
exec "$(dirname "$0")/packages.sh" run missing_best_spec.py
