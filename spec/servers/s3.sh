# shellcheck shell=bash
# For specs that need an S3 server: to be sourced.
#
#   s3_begin           starts one on fresh data; sets S3_DIR (a scratch directory), S3_BUCKET, the AWS_* variables, and,
#                      of versitygw, S3_DATA (what that bucket, "ckpt-test", holds). Fails, and has said so in TAP,
#                      where there is none. SERVER in the environment names another one than versitygw: minio,
#                      minio-versioned, minio-locked, minio-kms (buckets of it), moto, s3proxy.
#   s3_tests           the same for a spec that tells TAP itself: takes spec/tap.sh, whose TELL_LOG
#                      is $S3_DIR/log, and ends the spec where there is no server
#   ckpt ARG...        ckpt-lua, which is CKPT; what it says goes to that log
#   s3_proxy RATE      starts spec/servers/proxy.py before it: PROXY is its endpoint, RULES its file
#   s3_disguise WHAT.. starts spec/servers/disguise.py before it: DISGUISE is its endpoint
#   rules TEXT         what that proxy does from here on; its log begins anew
#
# All of it ends with the shell, or s3_end, which a trap of its own has to call.
SERVERS=$PWD/spec/servers
proxy_pid=""
disguise_pids=()

s3_end() {
  [[ -z $proxy_pid ]] || kill "$proxy_pid" 2>/dev/null
  ((${#disguise_pids[@]} == 0)) || kill "${disguise_pids[@]}" 2>/dev/null
  proxy_pid=""
  "$SERVERS/$s3_program.sh" stop "$S3_DIR/server"
  rm -rf "$S3_DIR"
}

# The same, and what is not there is S3_WHY.
s3_serve() {
  S3_DIR=$(mktemp -d "${TMPDIR:-/tmp}/ckpt-s3.XXXXXX") || exit 1
  local server=${SERVER:-versitygw} bucket=
  s3_program=${server%%-*}
  [[ $server == "$s3_program" ]] || bucket=${server#*-}
  S3_BUCKET=ckpt-${bucket:-test}
  S3_DATA=""
  [[ $s3_program != versitygw ]] || S3_DATA=$S3_DIR/server/data/$S3_BUCKET
  trap s3_end EXIT
  trap 'exit 130' INT TERM
  # It is on loopback, and no proxy of this machine's knows the way there.
  unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
  unset AWS_PROFILE AWS_SESSION_TOKEN AWS_DEFAULT_REGION AWS_ENDPOINT_URL_S3 AWS_CA_BUNDLE
  export AWS_ACCESS_KEY_ID=testkey AWS_SECRET_ACCESS_KEY=testsecret AWS_REGION=us-east-1
  export AWS_SHARED_CREDENTIALS_FILE=$S3_DIR/none AWS_CONFIG_FILE=$S3_DIR/none
  if ! AWS_ENDPOINT_URL=$("$SERVERS/$s3_program.sh" start "$S3_DIR/server" 2>"$S3_DIR/why"); then
    S3_WHY=$(tail -n 1 "$S3_DIR/why")
    return 1
  fi
  export AWS_ENDPOINT_URL S3_DATA S3_BUCKET
}

s3_begin() {
  s3_serve && return
  echo "1..0 # SKIP $S3_WHY"
  return 1
}

s3_tests() {
  CKPT=${CKPT_LUA:-$PWD/ckpt-lua}
  s3_begin || exit 0
  # shellcheck source=spec/tap.sh
  . spec/tap.sh
  TELL_LOG=$S3_DIR/log
}

ckpt() { "$CKPT" "$@" >"$S3_DIR/log" 2>&1; }

s3_proxy() { # RATE
  RULES=$S3_DIR/rules
  : >"$RULES"
  # A fifo: its one line is read as soon as it is there.
  mkfifo "$S3_DIR/port"
  "$SERVERS/proxy.py" "${AWS_ENDPOINT_URL##*:}" "$RULES" "$1" >"$S3_DIR/port" 2>"$S3_DIR/proxy.err" &
  proxy_pid=$!
  disown
  read -r PROXY <"$S3_DIR/port"
  PROXY=http://127.0.0.1:$PROXY
  export PROXY RULES
}

s3_disguise() { # WHAT...
  local port
  rm -f "$S3_DIR/disguised"
  mkfifo "$S3_DIR/disguised"
  "$SERVERS/disguise.py" "${AWS_ENDPOINT_URL##*:}" "$AWS_SECRET_ACCESS_KEY" "$@" >"$S3_DIR/disguised" 2>"$S3_DIR/disguise.err" &
  disguise_pids+=($!)
  disown
  read -r port <"$S3_DIR/disguised"
  DISGUISE=http://127.0.0.1:$port
  export DISGUISE
}

rules() {
  printf '%b' "$1" >"$RULES.new" && mv "$RULES.new" "$RULES" && rm -f "$RULES.log"
}
