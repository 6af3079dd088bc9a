#!/bin/bash
# clang-tidy over one file, unless this very text has passed it on this machine before: it takes two
# seconds for each of 600 files. Called as spec/check_tidy.sh FILE FLAG..., by make check-tidy.
#
# The key is all that a finding may hang on: the tool, its settings, the flags, and the file with
# all that it includes, macros and comments (NOLINT) as they are, but for comments in directives. A
# finding is never kept.
set -uo pipefail
file=$1
shift
passed=${XDG_CACHE_HOME:-$HOME/.cache}/ckpt-lua/tidy

key=$({
  clang-tidy --version && cat .clang-tidy && echo "$@" && clang -E -C -dD "$@" "$file"
} | sha256sum | cut -d ' ' -f 1) || exit 1
[[ -e $passed/$key ]] && exit
said=$(clang-tidy --quiet "$file" -- "$@" 2>&1) || {
  echo "$said" >&2
  exit 1
}
mkdir -p "$passed" && touch "$passed/$key"
