#!/bin/bash
# A process that has saved with keys of several sources ends with a core file: no key and no token is in it.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=$PWD
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
SCRIPT=${CKPT_BUILD:-$PWD/build}/libexec/ckpt-script
work=$S3_DIR/core
mkdir -p "$work"
mkfifo "$work/port"
spec/servers/aws.py "${AWS_ENDPOINT_URL##*:}" >"$work/port" 2>"$work/aws.err" &
aws_pid=$!
disown
trap 'kill $aws_pid 2>/dev/null; s3_end' EXIT
read -r port <"$work/port"
AWS=http://127.0.0.1:$port
curl -sS "$AWS/_/set?life=8" >/dev/null

home() { mkdir -p "$work/$1/.aws/sso/cache" && cat >"$work/$1/env"; }
home imds <<<$'AWS_METADATA_SERVICE_TIMEOUT=5\nAWS_EC2_METADATA_SERVICE_ENDPOINT='"$AWS/"
printf 'hidden-web-token' >"$work/web.token"
home web <<<$'AWS_WEB_IDENTITY_TOKEN_FILE='"$work"$'/web.token\nAWS_ROLE_ARN=arn:aws:iam::1:role/irsa'
printf 'hidden-eks-token' >"$work/eks.token"
home eks <<<$'AWS_CONTAINER_CREDENTIALS_FULL_URI='"$AWS"$'/container/eks\nAWS_CONTAINER_AUTHORIZATION_TOKEN_FILE='"$work/eks.token"
home chain <<<'AWS_PROFILE=outer'
printf '[base]\naws_access_key_id = AKBASE\naws_secret_access_key = hidden-base-secret\n' >"$work/chain/.aws/credentials"
printf '[profile outer]\nrole_arn = arn:aws:iam::1:role/first\nsource_profile = base\n' >"$work/chain/.aws/config"
home process <<<'AWS_PROFILE=p'
printf '[profile p]\ncredential_process = curl -sS %s/_/process\n' "$AWS" >"$work/process/.aws/config"
home sso <<<'AWS_PROFILE=s'
printf '[profile s]\nsso_session = corp\nsso_account_id = 012345678901\nsso_role_name = my role\n[sso-session corp]\nsso_start_url = https://corp/start\nsso_region = us-east-1\n' \
  >"$work/sso/.aws/config"
printf '{"accessToken":"hidden-old","expiresAt":"2001-01-01T00:00:00Z","clientId":"id","clientSecret":"hidden-client-secret","registrationExpiresAt":"2099-01-01T00:00:00Z","refreshToken":"hidden-refresh-1"}' \
  >"$work/sso/.aws/sso/cache/$(printf corp | sha1sum | cut -d ' ' -f 1).json"

dump() { # NAME: the core of a process that is at work, as $work/NAME/core
  local -a given
  mapfile -t given <"$work/$1/env"
  (
    cd "$work/$1" && ulimit -c unlimited
    exec env -i PATH="$PATH" HOME="$work/$1" CKPT_LUADIR="$here/lua" AWS_DEFAULT_REGION=us-east-1 AWS_ENDPOINT_URL="$AWS" \
      "${given[@]}" "$SCRIPT" "$here/spec/store/credentials_puts.lua" "core-$1" 60 0.05 >"$work/$1/log" 2>&1
  ) &
  local pid=$!
  sleep 10 # longer than its first keys live
  [[ -z ${GCORE-} ]] || gcore -o "$work/$1/core" "$pid" >/dev/null 2>&1
  kill -ABRT "$pid" 2>/dev/null
  wait "$pid" 2>/dev/null
}

# The registers of its threads are left out: what was copied last is in them, for a moment.
look='import re, struct, sys
core = open(sys.argv[1], "rb").read()
at, size, count = struct.unpack_from("<Q", core, 32)[0], *struct.unpack_from("<HH", core, 54)
heads = [struct.unpack_from("<IIQQQQQQ", core, at + i * size) for i in range(count)]
memory = b"".join(core[h[2]:h[2] + h[5]] for h in heads if h[0] == 1)
# The name of an object stands in what is sent: else this would look at nothing.
if sys.argv[2].encode() not in memory:
    sys.exit("there is nothing in this core")
found = [m.start() for m in re.finditer(rb"hidden[/-]", memory)]
for i in found[:20]:
    print(re.sub(rb"[^ -~]", b".", memory[max(i - 60, 0):i + 60]).decode())
sys.exit(len(found) > 0)'

sources=(imds web eks chain process sso)
for name in "${sources[@]}"; do
  dump "$name" 2>/dev/null &
  dumps[$!]=$name
done
for pid in "${!dumps[@]}"; do wait "$pid"; done
for name in "${sources[@]}"; do
  core=$(find "$work/$name" -maxdepth 1 -name 'core*' | head -n 1)
  TELL_LOG=$work/$name/log
  if [[ -z $core ]]; then
    tests=$((tests + 1))
    echo "ok $tests - no core has keys by way of: $name # SKIP the kernel writes no core here"
    continue
  fi
  python3 -c "$look" "$core" "core-$name" >"$work/$name/near" 2>&1
  rc=$?
  TELL_LOG=$work/$name/near
  tell $rc "no core has keys or tokens, by way of: $name"
done
echo "1..$tests"
exit $((failures > 0))
