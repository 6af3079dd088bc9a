#!/bin/bash
# The real frameworks, for `make test-frameworks`: spec/frameworks/packages.sh VERB
#
#   install   brings those of packages.txt, once: from PyPI below
#             ${XDG_CACHE_HOME:-~/.cache}/ckpt-lua/frameworks, about 9 GB and some minutes
#   run       plays a script of this folder with the Python that has them; else it is skipped, and says so (TAP)
#   python    prints the Python that has them, if there is one
#
# With SETUP=no nothing is installed: what is there is used. An environment belongs to one packages.txt and one
# Python: after a change of either another one is made, and those of before go.
set -u
cd "$(dirname "$0")" || exit 1
ROOT=${XDG_CACHE_HOME:-$HOME/.cache}/ckpt-lua/frameworks
PYTHON=${PYTHON:-python3}
KEY=$({ "$PYTHON" --version && grep -v '^#' packages.txt; } 2>&1 | sha256sum | cut -c 1-12)
PLACE=$ROOT/$KEY

# What was installed and cannot be imported must not look whole. Ray brings what Train needs only when asked.
IMPORTS='import torch, transformers, accelerate, safetensors, lightning, jax, orbax.checkpoint, flax, keras, xgboost, \
lightgbm, sklearn, stable_baselines3, ray.tune, ray.train'

# Scripts of an environment name its place, so it is made where it stays: the file `whole` is what puts it in place.
# pip unpacks one after the other and compiles each file of 9 GB, whether it is ever imported or not: it did not end in
# 50 minutes on a machine with other work. uv takes half a minute of a core; what is imported is compiled then.
make_place() {
  rm -rf "$PLACE" && "$PYTHON" -m venv "$PLACE" &&
    "$PLACE/bin/pip" install -q --no-cache-dir --disable-pip-version-check uv >&2 &&
    UV_CACHE_DIR=$PLACE/cache timeout "${PIP_PATIENCE:-3000}" \
      "$PLACE/bin/uv" pip install -q --python "$PLACE/bin/python" -r packages.txt >&2 &&
    rm -rf "$PLACE/cache" &&
    KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES='' \
      timeout 600 "$PLACE/bin/python" -W ignore -c "$IMPORTS" >&2 &&
    touch "$PLACE/whole"
}

install() {
  [[ ${SETUP-} != no && ! -e $PLACE/whole ]] || return 0
  mkdir -p "$ROOT" || return 1
  (
    flock -w 3600 9 || exit 1
    [[ ! -e $PLACE/whole ]] || exit 0
    "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null || ../../.ci/setup python3-venv || exit 1
    make_place || exit 1
    find "$ROOT" -mindepth 1 -maxdepth 1 -type d ! -name "$KEY" -exec rm -rf {} +
  ) 9>"$ROOT/lock"
}

case ${1-} in
install) install ;;
run)
  if [[ -e $PLACE/whole ]]; then exec "$PLACE/bin/python" "${@:2}"; fi
  echo "1..0 # SKIP the frameworks of spec/frameworks/packages.txt are not there"
  ;;
python) [[ -e $PLACE/whole ]] && echo "$PLACE/bin/python" ;;
*)
  echo "packages.sh: install, run or python" >&2
  exit 1
  ;;
esac
