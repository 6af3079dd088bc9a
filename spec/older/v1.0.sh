#!/bin/bash
# ckpt-lua 1.0, as it was released: spec/older/v1.0.sh VERB
#
#   install   builds it once, from this repository's history, below ${XDG_CACHE_HOME:-~/.cache}/ckpt-lua/v1.0
#   path      prints its program; fails, and says why, where it is not there
set -u
cd "$(dirname "$0")/../.." || exit 1
COMMIT=30872c74d06a24daa2c03891c8687943ce75518c # tagged v1.0
ROOT=${XDG_CACHE_HOME:-$HOME/.cache}/ckpt-lua
HOME_OF=$ROOT/v1.0

build() { # what this make was told is not for that one
  if env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u BUILD -u SANITIZE -u CFLAGS \
    make -C "$HOME_OF" SETUP=no -j2 all >"$HOME_OF/log" 2>&1; then
    touch "$HOME_OF/whole"
  else
    tail -n 5 "$HOME_OF/log" >&2
    return 1
  fi
}

install() {
  [[ ! -e $HOME_OF/whole ]] || return 0
  git cat-file -e "$COMMIT^{commit}" 2>/dev/null || {
    echo "this is no clone with the history in which 1.0 is" >&2
    return 1
  }
  mkdir -p "$ROOT" || return 1
  (
    flock -w 1800 9 || exit 1
    [[ ! -e $HOME_OF/whole ]] || exit 0
    echo "building ckpt-lua 1.0 for the specs, once: it takes a minute" >&2
    rm -rf "$HOME_OF" && mkdir "$HOME_OF" && git archive "$COMMIT" | tar -x -C "$HOME_OF" && build
  ) 9>"$ROOT/v1.0.lock"
}

case ${1-} in
install) install ;;
path)
  [[ -e $HOME_OF/whole ]] || { echo "1.0 is not there: spec/older/v1.0.sh install builds it, from a clone with its history"; exit 1; }
  # Of its own tree, whatever the version beside it was told.
  printf '#!/bin/sh\nunset CKPT_POLICIES CKPT_LUADIR\nexec "%s/ckpt-lua" "$@"\n' "$HOME_OF" >"$HOME_OF/alone.$$" &&
    chmod +x "$HOME_OF/alone.$$" && mv "$HOME_OF/alone.$$" "$HOME_OF/alone"
  echo "$HOME_OF/alone"
  ;;
*)
  echo "v1.0.sh: install or path" >&2
  exit 1
  ;;
esac
