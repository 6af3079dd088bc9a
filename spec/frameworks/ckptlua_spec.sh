#!/bin/bash
# The package `ckptlua`, with the real frameworks where they are installed.
set -u
cd "$(dirname "$0")/../.." || exit 1
python=$(spec/frameworks/packages.sh python) || python=python3
exec "$python" spec/frameworks/ckptlua_spec.py
