#!/bin/bash
# Hugging Face's Trainer, whose best checkpoint comes back behind its start.
exec "$(dirname "$0")/packages.sh" run late_best_spec.py
