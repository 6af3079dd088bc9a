#!/bin/bash
# boto3 alone, for specs that hold a stand-in against it: spec/servers/boto.sh VERB
#
#   install   brings it, once: from PyPI below ${XDG_CACHE_HOME:-~/.cache}/ckpt-lua/servers/boto (30 MB, seconds)
#   python    prints the Python that has it, if there is one
#
# With SETUP=no nothing is installed: what is there is used.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/go.sh
. spec/servers/go.sh
BOTO=$ROOT/boto

install() {
  [[ ${SETUP-} != no && ! -e $BOTO/whole ]] || return 0
  mkdir -p "$ROOT" || return 1
  (
    flock -w 600 9 || exit 1
    [[ ! -e $BOTO/whole ]] || exit 0
    python3 -c 'import venv, ensurepip' 2>/dev/null || .ci/setup python3-venv || exit 1
    python3 -m venv --clear "$BOTO" &&
      timeout "${PIP_PATIENCE:-300}" "$BOTO/bin/pip" install -q --disable-pip-version-check 'boto3>=1.40' >&2 &&
      touch "$BOTO/whole"
  ) 9>"$ROOT/boto.lock"
}

case ${1-} in
install) install ;;
python) [[ -e $BOTO/whole ]] && echo "$BOTO/bin/python" ;;
*)
  echo "boto.sh: install or python" >&2
  exit 1
  ;;
esac
