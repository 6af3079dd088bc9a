#!/usr/bin/env python3
"""A stand-in for what gives keys at AWS, and for the S3 that honours them: STS, SSO and its OIDC, a container's agent,
an instance's metadata; all on one port of loopback, which it prints.

  aws.py UPSTREAM_PORT

S3 is a server on that port, whose keys are testkey and testsecret: a request is passed on, signed anew, if its own
signature, its session token and their expiration are good, else refused in AWS's words. It knows only what AWS's
documentation says; spec/store/credentials_spec.sh shows it to boto3 first.

Requests below /_/ are the spec's own:

  /_/set?NAME=VALUE   life (seconds of the keys that are given from here on); fail (a path that answers 500)
  /_/revoke           no key that was given so far is good any more
  /_/log              what was asked so far, a line each
"""
import datetime
import hashlib
import hmac
import http.client
import json
import secrets
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

UPSTREAM = int(sys.argv[1])
EMPTY = hashlib.sha256(b"").hexdigest()
REFUSED = {"InvalidAccessKeyId": 403, "SignatureDoesNotMatch": 403, "ExpiredToken": 400, "InvalidToken": 400}
lock, log, settings = threading.Lock(), [], {"life": "3600", "fail": ""}
# Access key: secret, token, until when it is good, whose it is.
keys = {"AKBASE": ("hidden-base-secret", "", float("inf"), "base")}
WEB, SSO, ECS, EKS = "hidden-web-token", "hidden-sso-token", "hidden-ecs-token", "hidden-eks-token"
sso_tokens, refresh_tokens, imds_tokens = {SSO}, {"hidden-refresh-1"}, set()


def give(whose):
    access = "ASIA" + secrets.token_hex(8).upper()
    # Long as the real ones are, with the bytes that need care.
    secret, token = "hidden/+" + secrets.token_hex(16), "hidden//+=" + secrets.token_hex(400)
    until = time.time() + float(settings["life"])
    keys[access] = (secret, token, until, whose)
    text = datetime.datetime.fromtimestamp(until, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return access, secret, token, text


def sign(secret, method, path, query, headers, names, payload, stamp, scope):
    pairs = sorted((quote(k, safe="-_.~"), quote(v, safe="-_.~")) for k, v in parse_qsl(query, keep_blank_values=True))
    lines = "".join(f"{name}:{' '.join((headers.get(name) or '').split())}\n" for name in names)
    text = "\n".join([method, path, "&".join(f"{k}={v}" for k, v in pairs), lines, ";".join(names), payload])
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(text.encode()).hexdigest()}"
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Refused(Exception):
    pass


class AWS(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="application/json"):
        body = body if isinstance(body, bytes) else body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def note(self, what):
        with lock:
            log.append(what)

    def who(self, service, body):
        """Whose keys signed this request."""
        words = self.headers.get("Authorization", "")
        if not words.startswith("AWS4-HMAC-SHA256 "):
            raise Refused("AccessDenied")
        parts = dict(part.strip().split("=", 1) for part in words.split(" ", 1)[1].split(","))
        access, scope = parts["Credential"].split("/", 1)
        if access not in keys:
            raise Refused("InvalidAccessKeyId")
        secret, token, until, whose = keys[access]
        if scope.split("/")[2] != service:
            raise Refused("SignatureDoesNotMatch")
        path, _, query = self.path.partition("?")
        payload = self.headers.get("x-amz-content-sha256") or hashlib.sha256(body).hexdigest()
        names = parts["SignedHeaders"].split(";")
        if payload not in ("UNSIGNED-PAYLOAD", hashlib.sha256(body).hexdigest()) and not payload.startswith("STREAMING"):
            raise Refused("SignatureDoesNotMatch")
        stamp = self.headers["x-amz-date"]
        if sign(secret, self.command, path, query, self.headers, names, payload, stamp, scope) != parts["Signature"]:
            raise Refused("SignatureDoesNotMatch")
        if (self.headers.get("x-amz-security-token") or "") != token or (token and "x-amz-security-token" not in names):
            raise Refused("InvalidToken")
        if time.time() > until:
            raise Refused("ExpiredToken")
        return whose

    # ---- S3 ----

    def pass_on(self, body):
        try:
            self.note(f"s3 {self.command} {self.who('s3', body)}")
        except Refused as why:
            self.note(f"s3 refused {why}")
            text = f"<Error><Code>{why}</Code><Message>refused</Message></Error>"
            return self.answer(REFUSED.get(str(why), 403), text, "application/xml")
        drop = {"host", "authorization", "x-amz-security-token", "x-amz-date", "connection", "content-length"}
        headers = {k.lower(): v for k, v in self.headers.items() if k.lower() not in drop}
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        payload = headers["x-amz-content-sha256"] = self.headers.get("x-amz-content-sha256", EMPTY)
        headers.update({"host": f"127.0.0.1:{UPSTREAM}", "x-amz-date": stamp})
        names = sorted(name for name in headers if name.startswith("x-amz-") or name in ("host", "content-md5"))
        path, _, query = self.path.partition("?")
        scope = f"{stamp[:8]}/us-east-1/s3/aws4_request"
        signature = sign("testsecret", self.command, path, query, headers, names, payload, stamp, scope)
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential=testkey/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}"
        )
        server = http.client.HTTPConnection("127.0.0.1", UPSTREAM, timeout=60)
        server.request(self.command, self.path, body=body or (b"" if self.command in ("PUT", "POST") else None), headers=headers)
        reply = server.getresponse()
        data = reply.read()
        self.send_response(reply.status)
        length = len(data)
        for name, value in reply.getheaders():
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(data)
        server.close()
        return None

    # ---- STS ----

    def sts_refuses(self, code, status=403):
        self.note(f"sts refused {code}")
        text = f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"
        self.answer(status, text, "text/xml")

    def sts(self, body):
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        action, role = form.get("Action", ""), form.get("RoleArn", "")
        name = role.rsplit("/", 1)[-1]
        if action == "AssumeRole":
            try:
                whose = self.who("sts", body)
            except Refused as why:
                return self.sts_refuses(why)
            if name == "external" and form.get("ExternalId") != "ext 42/+":
                return self.sts_refuses("AccessDenied")
            if name == "second" and whose != "first":
                return self.sts_refuses("AccessDenied")
            if name == "named" and (form.get("RoleSessionName"), form.get("DurationSeconds")) != ("me", "900"):
                return self.sts_refuses("AccessDenied")
        elif action == "AssumeRoleWithWebIdentity":
            if "Authorization" in self.headers or form.get("WebIdentityToken") != WEB:
                return self.sts_refuses("InvalidIdentityToken", 400)
        else:
            return self.sts_refuses("InvalidAction", 400)
        if not form.get("RoleSessionName") or form.get("Version") != "2011-06-15":
            return self.sts_refuses("ValidationError", 400)
        with lock:
            access, secret, token, until = give(name)
        self.note(f"sts {action} {name}")
        space = "https://sts.amazonaws.com/doc/2011-06-15/"
        return self.answer(
            200,
            f'<{action}Response xmlns="{space}">\n <{action}Result>\n  <AssumedRoleUser><Arn>{role}</Arn>'
            f"<AssumedRoleId>AROA:x</AssumedRoleId></AssumedRoleUser>\n  <Credentials><AccessKeyId>{access}</AccessKeyId>"
            f"<SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{token}</SessionToken><Expiration>{until}</Expiration>"
            f"</Credentials>\n </{action}Result><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></{action}Response>",
            "text/xml",
        )

    # ---- the others ----

    def sso(self):
        query = parse_qs(urlsplit(self.path).query)
        if self.headers.get("x-amz-sso_bearer_token") not in sso_tokens:
            self.note("sso refused")
            return self.answer(401, '{"message":"Session token not found or invalid","__type":"UnauthorizedException"}')
        if query.get("role_name") != ["my role"] or query.get("account_id") != ["012345678901"]:
            return self.answer(403, '{"message":"No access","__type":"ForbiddenException"}')
        with lock:
            access, secret, token, until = give("sso")
        self.note("sso keys")
        return self.answer(
            200,
            json.dumps(
                {
                    "roleCredentials": {
                        "accessKeyId": access,
                        "secretAccessKey": secret,
                        "sessionToken": token,
                        "expiration": int(keys[access][2] * 1000),
                    }
                }
            ),
        )

    def oidc(self, body):
        asked = json.loads(body)
        if asked.get("grantType") != "refresh_token" or asked.get("clientSecret") != "hidden-client-secret":
            return self.answer(400, '{"error":"invalid_client"}')
        if asked.get("refreshToken") not in refresh_tokens:
            self.note("oidc refused")
            return self.answer(400, '{"error":"invalid_grant","error_description":"it was used before"}')
        refresh_tokens.discard(asked["refreshToken"])
        token, refresh = "hidden-sso-" + secrets.token_hex(8), "hidden-refresh-" + secrets.token_hex(8)
        sso_tokens.add(token)
        refresh_tokens.add(refresh)
        self.note("oidc renewed")
        fresh = {"accessToken": token, "expiresIn": 28800, "refreshToken": refresh, "tokenType": "Bearer"}
        return self.answer(200, json.dumps(fresh))

    def lend(self, whose):
        with lock:
            access, secret, token, until = give(whose)
        self.note(f"{whose} keys")
        lent = {"AccessKeyId": access, "SecretAccessKey": secret, "Token": token, "Expiration": until}
        if whose == "imds":
            lent.update({"Code": "Success", "Type": "AWS-HMAC", "LastUpdated": "2026-01-01T00:00:00Z"})
        elif whose == "process":
            lent.update({"Version": 1, "SessionToken": lent.pop("Token")})
        self.answer(200, json.dumps(lent))

    def container(self, path):
        whose = "eks" if path.endswith("eks") else "ecs"
        if self.headers.get("Authorization") != {"ecs": ECS, "eks": EKS}[whose]:
            self.note(f"{whose} refused")
            return self.answer(401, '{"code":"Unauthorized","message":"no"}')
        return self.lend(whose)

    def imds(self, path):
        if path == "/latest/api/token":
            if self.command != "PUT" or self.headers.get("x-aws-ec2-metadata-token-ttl-seconds") != "21600":
                return self.answer(400, "")
            token = "hidden-imds-" + secrets.token_hex(8)
            imds_tokens.add(token)
            self.note("imds token")
            return self.answer(200, token, "text/plain")
        if self.headers.get("x-aws-ec2-metadata-token") not in imds_tokens:
            self.note("imds refused")
            return self.answer(401, "")
        if path.endswith("/security-credentials/"):
            return self.answer(200, "node-role", "text/plain")
        if path.endswith("/security-credentials/node-role"):
            return self.lend("imds")
        return self.answer(404, "")

    def own(self, path, query):
        if path == "/_/set":
            settings.update({name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()})
        elif path == "/_/revoke":
            for access in [access for access, key in keys.items() if key[3] != "base"]:
                del keys[access]
        elif path == "/_/process":
            return self.lend("process")
        with lock:
            return self.answer(200, "\n".join(log) + "\n" if path == "/_/log" else "", "text/plain")

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        if path.startswith("/_/"):
            return self.own(path, query)
        if settings["fail"] and settings["fail"] in path:
            self.note(f"failed {path}")
            return self.answer(500, "")
        if path == "/" and self.command == "POST":
            return self.sts(body)
        if path == "/federation/credentials":
            return self.sso()
        if path == "/token":
            return self.oidc(body)
        if path.startswith("/container/"):
            return self.container(path)
        if path.startswith("/latest/"):
            return self.imds(path)
        return self.pass_on(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve


server = ThreadingHTTPServer(("127.0.0.1", 0), AWS)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
