#!/bin/bash
# What judges the frameworks notices what is wrong.
exec python3 "$(dirname "$0")/judge_spec.py"
