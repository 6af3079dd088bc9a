# shellcheck shell=bash
# TAP for specs in shell: to be sourced.
#
#   tell RC TEXT   one test, which failed unless RC is 0: then the end of the file TELL_LOG is shown,
#                  where that is set. Counted in `tests` and `failures`.
tests=0 failures=0

tell() {
  tests=$((tests + 1))
  if (($1)); then
    failures=$((failures + 1))
    printf 'not '
  fi
  printf 'ok %d - %s\n' "$tests" "$2"
  # Not within the line, or it would read "ok".
  (($1 == 0)) || [[ -z ${TELL_LOG-} ]] || tail -n 20 "$TELL_LOG" | sed 's/^/# /'
}
