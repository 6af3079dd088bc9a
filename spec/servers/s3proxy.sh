#!/bin/bash
# S3Proxy, an S3 in Java before a directory, on loopback: spec/servers/s3proxy.sh VERB [DIR]
#
#   install      brings it, once, with Maven below ${XDG_CACHE_HOME:-~/.cache}/ckpt-lua/servers/s3proxy (60 MB;
#                needs Java 11 or newer)
#   start DIR    starts one for DIR (which has its data, its log and its pid), makes the bucket "ckpt-test"
#                and prints the endpoint. PORT in the environment takes that one instead of a free one.
#   stop DIR     ends it
#
# The keys are "testkey" and "testsecret".
set -u
NAME=s3proxy WHAT="S3Proxy"
# shellcheck source=spec/servers/server.sh
. "$(dirname "$0")/server.sh"
SERVER=$ROOT/s3proxy/whole

# shellcheck disable=SC2317 # server.sh's main calls it
install() {
  local work=$ROOT/s3proxy
  command -v mvn >/dev/null && command -v java >/dev/null || .ci/setup maven default-jre-headless || return 1
  rm -rf "$work" && mkdir -p "$work" || return 1
  # The jackson that it names itself is older than what it calls.
  cat >"$work/pom.xml" <<'POM'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>ckpt</groupId> <artifactId>s3proxy-for-specs</artifactId> <version>1</version>
  <dependencyManagement> <dependencies> <dependency>
    <groupId>com.fasterxml.jackson.core</groupId> <artifactId>jackson-annotations</artifactId> <version>2.21</version>
  </dependency> </dependencies> </dependencyManagement>
  <dependencies> <dependency>
    <groupId>org.gaul</groupId> <artifactId>s3proxy</artifactId> <version>4.1.0</version>
  </dependency> </dependencies>
</project>
POM
  # Else it writes a line for each byte range.
  echo '<configuration><root level="ERROR"/></configuration>' >"$work/logback.xml"
  (cd "$work" && timeout 1800 mvn -q -B dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=lib >&2) || return 1
  printf '%s\n' '#!/bin/sh' "exec java -Xmx1g -Dlogback.configurationFile='$work/logback.xml' -cp '$work/lib/*' org.gaul.s3proxy.Main \"\$@\"" >"$SERVER" && chmod +x "$SERVER"
}

start() { # DIR
  local dir=$1 port
  mkdir -p "$dir/data" || die "$dir cannot be made"
  port=${PORT:-$(free_port)}
  printf '%s\n' "s3proxy.endpoint=http://127.0.0.1:$port" s3proxy.authorization=aws-v4 s3proxy.identity=testkey \
    s3proxy.credential=testsecret jclouds.provider=filesystem-nio2 "jclouds.filesystem.basedir=$dir/data" >"$dir/conf"
  # A start of Java takes 10 s, and more on a busy machine.
  port=$(PATIENCE=120 begin "$dir" "$port" "$SERVER" --properties "$dir/conf") || exit 1
  AWS_ENDPOINT_URL=http://127.0.0.1:$port
  export AWS_ENDPOINT_URL AWS_ACCESS_KEY_ID=testkey AWS_SECRET_ACCESS_KEY=testsecret AWS_REGION=us-east-1
  "$(dirname "$0")/ask.py" PUT /ckpt-test >/dev/null || die "it made no bucket: $(tail -n 3 "$dir/log")"
  echo "$AWS_ENDPOINT_URL"
}

main "$@"
