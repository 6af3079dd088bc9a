#!/bin/bash
# Each source of keys: a stand-in for what gives them at AWS, and for an S3 that checks session tokens, serves boto3
# first, unchanged, and then us, over the end of the keys and after they were revoked.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
BOTO=$(spec/servers/boto.sh python) || {
  echo "1..0 # SKIP there is no boto3: spec/servers/boto.sh install brings it"
  exit 0
}
SCRIPT=${CKPT_BUILD:-$PWD/build}/libexec/ckpt-script
export CKPT_LUADIR=$PWD/lua
work=$S3_DIR/keys
mkdir -p "$work"
mkfifo "$work/port"
spec/servers/aws.py "${AWS_ENDPOINT_URL##*:}" >"$work/port" 2>"$work/aws.err" &
aws_pid=$!
disown
trap 'kill $aws_pid 2>/dev/null; s3_end' EXIT
read -r port <"$work/port"
AWS=http://127.0.0.1:$port
own() { curl -sS --max-time 10 "$AWS/_/$1"; }
asked() { own log | grep -c -- "$1"; }

# ---- the sources: each with a home and variables of its own ----

home() { # NAME: a home, and its variables on standard input
  mkdir -p "$work/$1/.aws/sso/cache"
  cat >"$work/$1/env"
}
base='aws_access_key_id = AKBASE\naws_secret_access_key = hidden-base-secret'
printf 'hidden-web-token' >"$work/web.token"
printf 'hidden-eks-token' >"$work/eks.token"
token() { # START SESSION-OR-START EXPIRES: a token as aws sso login leaves it
  local name
  name=$(printf %s "$2" | sha1sum | cut -d ' ' -f 1)
  printf '{"startUrl":"%s","region":"us-east-1","accessToken":"hidden-sso-token","expiresAt":"%s","clientId":"id",%s}\n' \
    "$1" "$3" '"clientSecret":"hidden-client-secret","registrationExpiresAt":"2099-01-01T00:00:00Z","refreshToken":"hidden-refresh-1"' \
    >"$work/$4/.aws/sso/cache/$name.json"
}

home variables <<<$'AWS_ACCESS_KEY_ID=AKBASE\nAWS_SECRET_ACCESS_KEY=hidden-base-secret'
home file <<<'AWS_PROFILE=one'
printf '%b' "[one]\n$base\n" >"$work/file/.aws/credentials"
home config <<<'X=1'
printf '%b' "[default]\n$base\n" >"$work/config/.aws/config"
home role <<<'AWS_PROFILE=r'
printf '%b' "[base]\n$base\n" >"$work/role/.aws/credentials"
printf '[profile r]\nrole_arn = arn:aws:iam::1:role/named\nsource_profile = base\nrole_session_name = me\nduration_seconds = 900\n' \
  >"$work/role/.aws/config"
home external <<<'AWS_PROFILE=r'
printf '%b' "[profile r]\n$base\nrole_arn = arn:aws:iam::1:role/external\nsource_profile = r\nexternal_id = ext 42/+\n" \
  >"$work/external/.aws/config"
home chain <<<'AWS_PROFILE=outer'
printf '%b' "[base]\n$base\n" >"$work/chain/.aws/credentials"
printf '[profile outer]\nrole_arn = arn:aws:iam::1:role/second\nsource_profile = inner\n[profile inner]\nrole_arn = arn:aws:iam::1:role/first\nsource_profile = base\n' \
  >"$work/chain/.aws/config"
home environment <<<$'AWS_PROFILE=r\nAWS_CONTAINER_CREDENTIALS_FULL_URI='"$AWS"$'/container/ecs\nAWS_CONTAINER_AUTHORIZATION_TOKEN=hidden-ecs-token'
printf '[profile r]\nrole_arn = arn:aws:iam::1:role/by-ecs\ncredential_source = EcsContainer\n' >"$work/environment/.aws/config"
home on-ec2 <<<$'AWS_PROFILE=r\nAWS_METADATA_SERVICE_TIMEOUT=5\nAWS_EC2_METADATA_SERVICE_ENDPOINT='"$AWS/"
printf '[profile r]\nrole_arn = arn:aws:iam::1:role/by-ec2\ncredential_source = Ec2InstanceMetadata\n' >"$work/on-ec2/.aws/config"
home web <<<$'AWS_WEB_IDENTITY_TOKEN_FILE='"$work"$'/web.token\nAWS_ROLE_ARN=arn:aws:iam::1:role/irsa\nAWS_ROLE_SESSION_NAME=pod'
home web-profile <<<'AWS_PROFILE=w'
printf '[profile w]\nrole_arn = arn:aws:iam::1:role/irsa-profile\nweb_identity_token_file = %s\n' "$work/web.token" >"$work/web-profile/.aws/config"
home sso <<<'AWS_PROFILE=s'
printf '[profile s]\nsso_session = corp\nsso_account_id = 012345678901\nsso_role_name = my role\n[sso-session corp]\nsso_start_url = https://corp.example/start\nsso_region = us-east-1\nsso_registration_scopes = sso:account:access\n' \
  >"$work/sso/.aws/config"
token https://corp.example/start corp 2099-01-01T00:00:00Z sso
home sso-old <<<'AWS_PROFILE=s'
printf '[profile s]\nsso_start_url = https://corp.example/start\nsso_region = us-east-1\nsso_account_id = 012345678901\nsso_role_name = my role\n' \
  >"$work/sso-old/.aws/config"
token https://corp.example/start https://corp.example/start 2099-01-01T00:00:00Z sso-old
home process <<<'AWS_PROFILE=p'
# shellcheck disable=SC2016 # the dollars are that program's
printf '#!/bin/sh\n[ "$1" = "two words" ] || exit 3\necho "some words for people" >&2\nexec curl -sS "$2/_/process"\n' >"$work/give keys"
chmod +x "$work/give keys"
printf '[profile p]\ncredential_process = "%s" "two words" '"'%s'"'\n' "$work/give keys" "$AWS" >"$work/process/.aws/config"
home ecs <<<$'AWS_CONTAINER_CREDENTIALS_FULL_URI='"$AWS"$'/container/ecs\nAWS_CONTAINER_AUTHORIZATION_TOKEN=hidden-ecs-token'
home eks <<<$'AWS_CONTAINER_CREDENTIALS_FULL_URI='"$AWS"$'/container/eks\nAWS_CONTAINER_AUTHORIZATION_TOKEN_FILE='"$work/eks.token"
home imds <<<$'AWS_METADATA_SERVICE_TIMEOUT=5\nAWS_EC2_METADATA_SERVICE_ENDPOINT='"$AWS/"

STATIC=(variables file config)
LENT=(role external chain environment on-ec2 web web-profile sso sso-old process ecs eks imds)

as() { # NAME COMMAND...: with that home and those variables alone
  local -a given
  mapfile -t given <"$work/$1/env"
  env -i PATH="$PATH" HOME="$work/$1" CKPT_LUADIR="$CKPT_LUADIR" AWS_DEFAULT_REGION=us-east-1 AWS_ENDPOINT_URL="$AWS" "${given[@]}" "${@:2}"
}

# ---- boto3 first ----

boto='import boto3, sys
s3 = boto3.client("s3")
key = "boto/" + sys.argv[1]
s3.put_object(Bucket="ckpt-test", Key=key, Body=b"from boto3")
assert s3.get_object(Bucket="ckpt-test", Key=key)["Body"].read() == b"from boto3"
print(boto3.Session().get_credentials().method)'

for name in "${STATIC[@]}" "${LENT[@]}"; do
  as "$name" timeout 60 "$BOTO" -c "$boto" "$name" >"$work/$name.boto" 2>&1 &
  boto_pids[$!]=$name
done
for pid in "${!boto_pids[@]}"; do
  wait "$pid"
  rc=$?
  TELL_LOG=$work/${boto_pids[pid]}.boto
  tell $rc "boto3 has keys by way of: ${boto_pids[pid]} ($(tail -n 1 "$TELL_LOG"))"
done
TELL_LOG=$work/bad.boto
! as imds env AWS_EC2_METADATA_SERVICE_ENDPOINT="$AWS/none/" timeout 60 "$BOTO" -c "$boto" bad >"$work/bad.boto" 2>&1
tell $? "the stand-in refuses boto3 what it has no keys for"

# ---- and we, over the end of the keys ----

own "set?life=15" >/dev/null
declare -A pids
for name in "${STATIC[@]}" "${LENT[@]}"; do
  as "$name" timeout 100 "$SCRIPT" spec/store/credentials_puts.lua "$name" 25 0.5 >"$work/$name.log" 2>&1 &
  pids[$name]=$!
done
for name in "${STATIC[@]}" "${LENT[@]}"; do
  wait "${pids[$name]}"
  rc=$?
  TELL_LOG=$work/$name.log
  ((rc == 0)) || echo "status $rc" >>"$TELL_LOG"
  tell $rc "keys are found and last for 25 s, of which they live 15, by way of: $name"
done
TELL_LOG=$work/told
own log >"$work/told"
! grep -E -B3 's3 refused (Expired|Invalid|Signature)' "$work/told" >"$work/refused"
TELL_LOG=$work/refused
tell $? "they were fetched again before they expired: no request was refused"
TELL_LOG=$work/told
for what in "sts AssumeRole named" "sts AssumeRole second" "sts AssumeRoleWithWebIdentity irsa$" "sso keys" "ecs keys" "eks keys" "imds keys" "process keys"; do
  (($(grep -c "$what" "$work/told") >= 3))
  tell $? "more than once: $what"
done

# ---- after they were revoked ----

own "set?life=3600" >/dev/null
before=$(asked 's3 refused InvalidAccessKeyId')
for name in "${LENT[@]}"; do
  as "$name" timeout 100 "$SCRIPT" spec/store/credentials_puts.lua "$name-2" 16 1 >"$work/$name.log" 2>&1 &
  pids[$name]=$!
done
sleep 13
own revoke >/dev/null
for name in "${LENT[@]}"; do
  wait "${pids[$name]}"
  rc=$?
  TELL_LOG=$work/$name.log
  ((rc == 0)) || echo "status $rc" >>"$TELL_LOG"
  tell $rc "keys that the server refuses are fetched again, by way of: $name"
done
(($(asked 's3 refused InvalidAccessKeyId') >= before + ${#LENT[@]}))
tell $? "all of those were refused once"

# ---- what is said when there are none ----

TELL_LOG=$work/why
fails() { # NAME TEXT WHAT [VARIABLE=VALUE...]
  as "$1" env "${@:4}" timeout 60 "$SCRIPT" spec/store/credentials_puts.lua never 0 >"$work/why" 2>&1
  [[ $? == 1 && $(wc -l <"$work/why") == 1 ]] && grep -q -- "$2" "$work/why" && ! grep -q hidden "$work/why"
  tell $? "$3"
}
home nothing <<<'AWS_METADATA_SERVICE_TIMEOUT=1'
fails nothing 'AWS_ACCESS_KEY_ID.*credentials and .*config.*AWS_CONTAINER_CREDENTIALS.*the instance.*127.0.0.1:1' \
  "without keys one line says what was looked at" AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:1
fails nothing 'AWS_EC2_METADATA_DISABLED is set' "metadata that is switched off is not asked" AWS_EC2_METADATA_DISABLED=true
fails nothing '"nobody" is not in' "a profile that is not there is no reason to ask the machine" AWS_PROFILE=nobody
fails ecs 'status 401 Unauthorized' "a container's token that is refused" AWS_CONTAINER_AUTHORIZATION_TOKEN=hidden-wrong
fails ecs '10.0.0.1.*over http://' "a container's keys come from this machine alone" AWS_CONTAINER_CREDENTIALS_FULL_URI=http://10.0.0.1/x
fails web 'irsa by web identity: status 400 InvalidIdentityToken' "a token that STS refuses" AWS_WEB_IDENTITY_TOKEN_FILE="$work/eks.token"
fails web 'cannot open /nowhere' "a token file that is not there" AWS_WEB_IDENTITY_TOKEN_FILE=/nowhere
printf '[profile r]\nrole_arn = a/b\nsource_profile = q\n[profile q]\nrole_arn = c/d\nsource_profile = r\n[profile m]\nrole_arn = a/b\nmfa_serial = x\nsource_profile = q\n' \
  >"$work/nothing/.aws/config"
fails nothing 'own source_profile' "roles in a circle" AWS_PROFILE=r
fails nothing 'MFA' "a role with MFA names a way out" AWS_PROFILE=m
printf '[profile p]\ncredential_process = sh -c "echo no luck >&2; exit 4"\n' >"$work/nothing/.aws/config"
fails nothing 'exit code 4: no luck' "a program that fails says why" AWS_PROFILE=p
token https://corp.example/start https://corp.example/start 2001-01-01T00:00:00Z sso-old
fails sso-old 'aws sso login --profile s' "a token of SSO that has expired names the remedy"

# ---- a token of SSO that can be renewed ----

token https://corp.example/start corp 2001-01-01T00:00:00Z sso
as sso timeout 60 "$SCRIPT" spec/store/credentials_puts.lua sso-3 0 >"$work/why" 2>&1
tell $? "a token of a session that has expired is renewed"
as sso timeout 60 "$SCRIPT" spec/store/credentials_puts.lua sso-4 0 >>"$work/why" 2>&1 && [[ $(asked 'oidc renewed') == 1 ]]
tell $? "and kept for others: what it was renewed with is good once"
as sso timeout 60 "$BOTO" -c "$boto" sso-5 >>"$work/why" 2>&1 && [[ $(asked 'oidc renewed') == 1 ]]
tell $? "boto3 takes what we kept"
[[ $(stat -c %a "$work"/sso/.aws/sso/cache/*.json) == 600 ]]
tell $? "nobody else may read it"

# ---- while who gives them does not answer ----

own "set?life=24" >/dev/null
as ecs timeout 100 "$SCRIPT" spec/store/credentials_puts.lua late 20 0.2 >"$work/why" 2>&1 &
pid=$!
sleep 4
own "set?fail=/container/" >/dev/null
wait "$pid"
tell $? "keys that have not expired go on while there are no new ones"
(($(asked 'failed /container') >= 1))
tell $? "which were asked for"
own "set?fail=" >/dev/null

echo "1..$tests"
exit $((failures > 0))
