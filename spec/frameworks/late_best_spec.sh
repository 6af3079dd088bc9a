#!/bin/bash
# Hugging Face's Trainer, whose best checkpoint comes back behind its start.
set -u
cd "$(dirname "$0")/../.." || exit 1
python=$(spec/frameworks/packages.sh python) || {
  echo "1..0 # SKIP the frameworks of spec/frameworks/packages.txt are not there"
  exit 0
}
exec "$python" spec/frameworks/late_best_spec.py
