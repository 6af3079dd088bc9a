# shellcheck shell=bash
# TAP for specs in shell: to be sourced.
#
#   tell RC TEXT   one test, which failed unless RC is 0: then the end of TELL_LOG is shown, which may be
#                  a list of files, where that is set. Counted in `tests` and `failures`.
#   wait_for SECONDS TEXT COMMAND...   until COMMAND holds; after so long, the end of all tests, and
#                  TELL_LOG is shown
tests=0 failures=0

tell() {
  tests=$((tests + 1))
  if (($1)); then
    failures=$((failures + 1))
    printf 'not '
  fi
  printf 'ok %d - %s\n' "$tests" "$2"
  # Not within the line, or it would read "ok".
  (($1 == 0)) || [[ -z ${TELL_LOG-} ]] || tail -n 20 "${TELL_LOG[@]}" | sed 's/^/# /'
}

wait_for() {
  local until=$((SECONDS + $1))
  until "${@:3}" >/dev/null 2>&1; do
    if ((SECONDS >= until)); then
      echo "Bail out! $2 did not come"
      sed 's/^/# /' "${TELL_LOG[@]}"
      exit 1
    fi
    sleep 0.05
  done
}
