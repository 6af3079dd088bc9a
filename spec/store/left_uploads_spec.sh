#!/bin/bash
# Uploads in parts that a killed save left, on a server that lists them by prefix, and on one that lists them by
# whole keys and for the whole bucket only, as MinIO does: the next run's first commit, or gc, takes them away.
#
# Environment: SERVER (versitygw, before which a proxy answers as MinIO), minio for the real one.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
s3_tests
s3_proxy 0
direct=$AWS_ENDPOINT_URL
export AWS_ENDPOINT_URL=$PROXY

# What begins with a whole name is answered, a directory's is not; nor are others' uploads ours.
as_minio='9999 GET .bin&uploads=\n9999 GET encoding-type=url&prefix=team say <ListMultipartUploadsResult></ListMultipartUploadsResult>\n'
[[ ${SERVER:-versitygw} == versitygw ]] || as_minio=''

uploads() { # KEY: how many
  AWS_ENDPOINT_URL=$direct spec/servers/ask.py GET "/$S3_BUCKET" "prefix=${1//\//%2F}&uploads=" | grep -o '<UploadId>' | wc -l
}
is() { # TEXT WANTED GOT
  echo "wanted $2, got $3" >>"$S3_DIR/log"
  tell "$([[ $2 == "$3" ]]; echo $?)" "$how: $1"
}
make_one() { # STEP BYTES
  mkdir -p "$out/checkpoint-$1" && head -c "$2" /dev/urandom >"$out/checkpoint-$1/model.bin" && touch "$out/checkpoint-$1/DONE"
}
killed() { # STEP: a save that is killed when it has sent a part
  make_one "$1" 30000000
  rules "$listing"'99 PUT partNumber=3& hang\n'
  setsid "$CKPT" sync "$out" --to "$to" --marker DONE --settle 0 --run one >"$S3_DIR/log" 2>&1 &
  local pid=$!
  disown
  wait_for 60 "the third part" grep -qs 'partNumber=3&' "$RULES.log"
  kill -9 -- "-$pid"
  wait_for 20 "its end" bash -c "! pgrep -s $pid"
  rules "$listing"
}

each() { # NAME RULES
  how=$1 listing=$2 out=$S3_DIR/$1 to=s3://$S3_BUCKET/team/$1
  local at=team/$1
  AWS_ENDPOINT_URL=$direct spec/servers/ask.py POST "/$S3_BUCKET/team/$how-other/model.bin" uploads= >/dev/null
  rules "$listing"
  make_one 1 1000
  ckpt sync "$out" --to "$to" --marker DONE --settle 0 --run one
  killed 2
  is "a killed save leaves its upload" 1 "$(uploads "$at/checkpoint-2/model.bin")"
  rm -rf "$out/checkpoint-2"
  make_one 3 1000
  ckpt run --dir "$out" --to "$to" --marker DONE --settle 0 --run one --take-over -- true
  is "a run that cannot go on with it" 0 $?
  is "has it removed after its commit" 0 "$(uploads "$at/checkpoint-2/model.bin")"

  killed 4
  is "another one" 1 "$(uploads "$at/checkpoint-4/model.bin")"
  rm -rf "$out"
  if [[ -n $S3_DATA ]]; then # its term seems to be alive until its log is older
    find "$S3_DATA/$at/.ckpt" -exec touch -d '3 hours ago' {} +
  else # or another one has followed, which removes nothing
    make_one 5 1000
    ckpt sync "$out" --to "$to" --marker DONE --settle 0 --run one
  fi
  ckpt gc "$to" --grace-delete 0 --dry-run
  grep -q checkpoint-4 "$S3_DIR/log"
  tell $? "$how: is named by gc without doing it"
  ckpt gc "$to" --grace-delete 0
  is "and removed by gc" "0 0" "$? $(uploads "$at/checkpoint-4/model.bin")"
  is "another place's stays" 1 "$(uploads "team/$how-other/model.bin")"
}
if [[ ${SERVER:-versitygw} == versitygw ]]; then
  each by-prefix ''
  each as-minio "$as_minio"
else
  each "$SERVER" ''
fi
echo "1..$tests"
exit $((failures > 0))
