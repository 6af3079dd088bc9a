#!/usr/bin/env python3
"""What hands out Google's tokens, and a gate before a storage server that lets them pass.

    tokens.py UPSTREAM_PORT DIR NOTES

It prints its port, answers on 127.0.0.1, and ends when its standard input does. In DIR it makes a key
pair and files of credentials, as Google's tools write them, whose tokens are fetched here:

    service.json, short.json, revoked.json, never.json   of service accounts
    user.json, application_default_credentials.json      of a user, as gcloud leaves them

A token lives for an hour, but those of "short" for 4 s; the first one of "revoked" is refused after one
request, and those of "never" always. POST /token takes a signed assertion (its signature, audience and
time are checked) or the refresh token; /computeMetadata/ is the machine's metadata server. Everything
else goes on to the storage server if it has a token that is good just now. NOTES gets a line for each
token that was handed out ("token KIND"), each request that was let through ("storage METHOD TARGET")
and each that was not ("refused METHOD TARGET")."""
import base64
import http.client
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

UPSTREAM, DIR, NOTES = int(sys.argv[1]), sys.argv[2], sys.argv[3]
REFRESH = "1//refresh+of/the=user"
CLIENT = ("client.apps.example", "client secret &=")
AUDIENCE = "https://oauth2.googleapis.com/token"  # google-auth signs for that, whatever token_uri says
LOCK = threading.Lock()
TOKENS = {}  # token: [until, requests left]
REVOKED = []


def note(text):
    with LOCK, open(NOTES, "a", encoding="utf-8") as out:
        out.write(text + "\n")


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def check_assertion(text):
    """Returns the account that signed it; None: it is no good."""
    head, claims, signature = text.split(".")
    name = os.path.join(DIR, secrets.token_hex(8))
    try:
        with open(name, "wb") as out:
            out.write(decode(signature))
        good = subprocess.run(
            ["openssl", "dgst", "-sha256", "-verify", os.path.join(DIR, "public.pem"), "-signature", name],
            input=(head + "." + claims).encode(), capture_output=True, check=False).returncode == 0
    finally:
        os.unlink(name)
    head, claims = json.loads(decode(head)), json.loads(decode(claims))
    now = time.time()
    good = good and head["alg"] == "RS256" and head["kid"] == "key-1" and claims["aud"] == AUDIENCE
    good = good and claims["iat"] <= now + 30 and now < claims["exp"] <= claims["iat"] + 3600
    good = good and ("devstorage" in claims["scope"] or "cloud-platform" in claims["scope"])
    return claims["iss"].partition("@")[0] if good else None


def new_token(account, kind):
    token = "ya29." + secrets.token_urlsafe(60)
    life, left = (4 if account == "short" else 3600), 1 << 30
    with LOCK:
        if account == "never":
            left = 0
        if account == "revoked" and not REVOKED:
            REVOKED.append(token)
            left = 1
        TOKENS[token] = [time.monotonic() + life, left]
    note("token " + kind)
    return {"access_token": token, "expires_in": life, "token_type": "Bearer"}


def is_good(header):
    with LOCK:
        token = TOKENS.get(header[7:] if header.startswith("Bearer ") else "")
        if not token or time.monotonic() > token[0] or token[1] <= 0:
            return False
        token[1] -= 1
        return True


class Gate(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, status, body, headers=()):
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def tell(self, status, value):
        self.answer(status, json.dumps(value).encode(), [("Content-Type", "application/json"),
                                                         ("Metadata-Flavor", "Google")])

    def give_token(self, body):
        form = {k: v[0] for k, v in parse_qs(body.decode()).items()}
        if form.get("grant_type") == "refresh_token":
            if (form["client_id"], form["client_secret"]) == CLIENT and form["refresh_token"] == REFRESH:
                return self.tell(200, new_token("user", "refresh_token"))
        elif form.get("grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer":
            account = check_assertion(form["assertion"])
            if account:
                return self.tell(200, new_token(account, "assertion"))
        return self.tell(400, {"error": "invalid_grant", "error_description": "Bad " + body.decode()})

    def metadata(self):
        path = self.path.partition("?")[0]
        if self.headers.get("metadata-flavor") != "Google":
            return self.tell(403, {})
        if path.endswith("/token"):
            return self.tell(200, new_token("machine", "metadata"))
        if path.endswith("/project/project-id"):
            return self.answer(200, b"project", [("Metadata-Flavor", "Google"), ("Content-Type", "application/text")])
        return self.tell(200, {"email": "default@x", "scopes": ["cloud-platform"], "aliases": ["default"]})

    def pass_on(self, body):
        out = {k: v for k, v in self.headers.items()
               if k.lower() not in ("host", "authorization", "connection", "content-length")}
        out["Host"] = "127.0.0.1:%d" % UPSTREAM
        server = http.client.HTTPConnection("127.0.0.1", UPSTREAM)
        server.request(self.command, self.path, body if body or self.command in ("PUT", "POST") else None, out)
        answer = server.getresponse()
        content = answer.read()
        self.answer(answer.status, content, [
            (k, v.replace("http://127.0.0.1:%d" % UPSTREAM, URL)) for k, v in answer.getheaders()
            if k.lower() not in ("connection", "transfer-encoding", "content-length")])
        server.close()

    def serve(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/token":
            self.give_token(body)
        elif self.path == "/" or self.path.startswith("/computeMetadata/"):
            self.metadata()
        elif is_good(self.headers.get("authorization", "")):
            note(f"storage {self.command} {self.path}")
            self.pass_on(body)
        else:
            note(f"refused {self.command} {self.path}")
            self.tell(401, {"error": {"code": 401, "message": "Invalid Credentials", "errors": [
                {"reason": "authError", "message": self.headers.get("authorization", "")}]}})

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = serve

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass


def write(name, value):
    with open(os.path.join(DIR, name), "w", encoding="utf-8") as out:
        json.dump(value, out)


def write_files():
    key = os.path.join(DIR, "private.pem")
    subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048",
                    "-out", key], check=True, capture_output=True)
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", os.path.join(DIR, "public.pem")],
                   check=True, capture_output=True)
    with open(key, encoding="utf-8") as pem:
        text = pem.read()
    for name in ("service", "short", "revoked", "never"):
        write(name + ".json", {
            "type": "service_account", "project_id": "p", "private_key_id": "key-1", "private_key": text,
            "client_email": name + "@p.iam.example", "token_uri": URL + "/token"})
    user = {"type": "authorized_user", "client_id": CLIENT[0], "client_secret": CLIENT[1],
            "refresh_token": REFRESH, "token_uri": URL + "/token"}
    write("user.json", user)
    write("application_default_credentials.json", user)


server = Server(("127.0.0.1", 0), Gate)
URL = "http://127.0.0.1:%d" % server.server_address[1]
write_files()
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
