#!/bin/bash
# Google's own library for tokens, for spec/store/gs_spec.sh: spec/servers/google.sh VERB
#
#   install   brings it from PyPI, once, below ${XDG_CACHE_HOME:-~/.cache}/ckpt-lua/servers/google
#   python    prints the Python that has it, if there is one
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/go.sh
. spec/servers/go.sh
PLACE=$ROOT/google

install() {
  [[ ! -e $PLACE/whole ]] || return 0
  mkdir -p "$ROOT" || return 1
  (
    flock -w 900 9 || exit 1
    [[ ! -e $PLACE/whole ]] || exit 0
    python3 -m venv --clear "$PLACE" &&
      timeout "${PIP_PATIENCE:-600}" "$PLACE/bin/pip" install -q --disable-pip-version-check 'google-auth>=2.30' requests >&2 &&
      touch "$PLACE/whole"
  ) 9>"$ROOT/google.lock"
}

case ${1-} in
install) install ;;
python) [[ -e $PLACE/whole ]] && echo "$PLACE/bin/python" ;;
*)
  echo "google.sh: install or python" >&2
  exit 1
  ;;
esac
