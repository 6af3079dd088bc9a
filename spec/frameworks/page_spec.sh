#!/bin/bash
# docs/frameworks.md says what `make test-frameworks` does.
exec python3 "$(dirname "$0")/page_spec.py"
