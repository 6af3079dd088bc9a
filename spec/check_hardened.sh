#!/bin/bash
# check_hardened.sh SANITIZE BINARY...: each is built as Debian builds its own: position independent,
# bound and read-only before it starts, with a stack protector and checked calls of the C library.
set -euo pipefail

[[ -z $1 ]] || { echo "hardened: skipped, sanitizers look at more"; exit 0; }
shift
bad=0
lacks() {
  echo "$1: $2" >&2
  bad=1
}
for file; do
  head=$(readelf -hW "$file") program=$(readelf -lW "$file") dynamic=$(readelf -dW "$file")
  symbols=$(readelf --dyn-syms -W "$file")
  grep -q 'Type: *DYN' <<<"$head" || lacks "$file" "not position independent (-pie, -fPIC)"
  grep -q GNU_RELRO <<<"$program" || lacks "$file" "no RELRO (-Wl,-z,relro)"
  grep -qE 'BIND_NOW|FLAGS_1.*NOW' <<<"$dynamic" || lacks "$file" "bound late (-Wl,-z,now)"
  grep -q 'GNU_STACK.* RW ' <<<"$program" || lacks "$file" "a stack that code may run on"
  grep -q __stack_chk_fail <<<"$symbols" || lacks "$file" "no stack protector (-fstack-protector-strong)"
  grep -qE '__[a-z]+_chk@' <<<"$symbols" || lacks "$file" "no checked calls (-D_FORTIFY_SOURCE=2)"
done
[[ $bad = 0 ]]
echo "hardened: $# binaries"
