#!/bin/sh -e
# Writes spec/data/format1/store anew, or with `thin` the store beside it, by the library as it is now: for entries that are new within
# format 1. What is committed here stays readable for ever, so a store of a released version is
# never written over; the next one gets a folder of its own.
cd "$(dirname "$0")/../../.."
build=${BUILD:-build}
make test-c BUILD="$build" ONLY=spec/commit/test_fixtures >/dev/null 2>&1 || : # without a store it fails
[ "$1" = thin ] || "$build/spec/commit/test_fixtures" make spec/data/format1/store
[ "$1" != thin ] || "$build/spec/commit/test_fixtures" make-thin spec/data/format1/thin
