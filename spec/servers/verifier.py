#!/usr/bin/env python3
"""Verifies the signatures of S3 requests, AWS Signature Version 4, from the published rule alone.

    verifier.py SECRET [--token TOKEN] [--tls CERTIFICATE.pem] [--forward PORT] [--domain DOMAIN]
                [--region REGION] [--note FILE]

It prints its port, answers on 127.0.0.1, and ends when its standard input does. A request that is
signed as the rule wants it gets 200 "good", any other one 403 and what is wrong with it. With
--forward a good one goes on to the S3 server at that port (whose keys are "testkey" and
"testsecret"), signed anew, and gets that server's answer. --domain: the host has to be
BUCKET.DOMAIN, as virtual-host style wants it. --region: the bucket lives there, and a request that is
signed for another region is answered as AWS answers it: only what has a body, or is about the bucket,
says where. --note: each request that is signed well is noted in that file, as a line of JSON with its
method, target and headers; what is about encryption, storage class and payer then goes no further."""
import argparse
import datetime
import hashlib
import hmac
import http.client
import json
import re
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, unquote_to_bytes

parser = argparse.ArgumentParser()
parser.add_argument("secret")
parser.add_argument("--token")
parser.add_argument("--tls")
parser.add_argument("--forward", type=int)
parser.add_argument("--domain")
parser.add_argument("--region")
parser.add_argument("--note")
ARGS = parser.parse_args()
CREDENTIAL = re.compile(
    r"^AWS4-HMAC-SHA256 Credential=([^/,]+)/(\d{8})/([a-z0-9-]+)/s3/aws4_request,\s*"
    r"SignedHeaders=([a-z0-9;-]+),\s*Signature=([0-9a-f]{64})$"
)


def encode(raw, slash=""):
    return quote(raw, safe="-_.~" + slash)


def mac(key, text):
    return hmac.new(key, text.encode("latin-1"), hashlib.sha256).digest()


def canonical_query(query):
    pairs = []
    for pair in query.split("&") if query else []:
        name, _, value = pair.partition("=")
        pairs.append((encode(unquote_to_bytes(name)), encode(unquote_to_bytes(value))))
    return "&".join(name + "=" + value for name, value in sorted(pairs))


def sign(secret, day, region, stamp, digest):
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, f"{day}/{region}/s3/aws4_request", digest])
    key = ("AWS4" + secret).encode()
    for part in (day, region, "s3", "aws4_request"):
        key = mac(key, part)
    return mac(key, text).hex()


def canonical(method, path, query, headers, payload):
    """The digest of a request, and its text. `headers`: sorted pairs of those that are signed."""
    lines = [method, encode(unquote_to_bytes(path), "/"), canonical_query(query)]
    lines += [name + ":" + value for name, value in headers]
    lines += ["", ";".join(name for name, _ in headers), payload]
    text = "\n".join(lines)
    return hashlib.sha256(text.encode("latin-1")).hexdigest(), text


OPTIONS = ("x-amz-server-side-encryption", "x-amz-storage-class", "x-amz-request-payer")
NOTED = threading.Lock()


class Verifier(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def headers_of(self, name):
        values = [re.sub(" +", " ", v.strip(" \t")) for v in self.headers.get_all(name) or []]
        return ",".join(values)

    def complaint(self, body):
        found = CREDENTIAL.match(self.headers.get("authorization", ""))
        if not found:
            return "no authorization that the rule knows"
        _, day, region, listed, signature = found.groups()
        names = listed.split(";")
        stamp = self.headers.get("x-amz-date", "")
        if not re.match(r"^\d{8}T\d{6}Z$", stamp) or stamp[:8] != day:
            return "the date differs from the scope's"
        if names != sorted(set(names)):
            return "the signed headers are not sorted: " + listed
        must = {h.lower() for h in self.headers if h.lower().startswith("x-amz-")} | {"host"}
        if must - set(names):
            return "not signed: " + " ".join(sorted(must - set(names)))
        if ARGS.token and self.headers.get("x-amz-security-token") != ARGS.token:
            return "another token"
        payload = self.headers.get("x-amz-content-sha256", "")
        if payload not in ("UNSIGNED-PAYLOAD", hashlib.sha256(body).hexdigest()):
            return "another body than the one that was signed"
        if ARGS.domain and not self.bucket():
            return "the host is not BUCKET." + ARGS.domain
        path, _, query = self.path.partition("?")
        headers = [(name, self.headers_of(name)) for name in names]
        digest, text = canonical(self.command, path, query, headers, payload)
        if not hmac.compare_digest(sign(ARGS.secret, day, region, stamp, digest), signature):
            return "the signature differs; the request is\n" + text
        return None

    def bucket(self):
        host = self.headers.get("host", "").partition(":")[0]
        end = "." + (ARGS.domain or "")
        return host[: -len(end)] if host.endswith(end) else ""

    def forward(self, body):
        """The same request in path style, as somebody else's. Returns the answer and its body."""
        path, _, query = self.path.partition("?")
        if ARGS.domain:
            path = "/" + self.bucket() + path
        path, query = encode(unquote_to_bytes(path), "/"), canonical_query(query)
        now = datetime.datetime.now(datetime.timezone.utc)
        stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        mine = {
            "host": "127.0.0.1:%d" % ARGS.forward,
            "x-amz-content-sha256": hashlib.sha256(body).hexdigest(),
            "x-amz-date": stamp,
        }
        out = dict(mine)
        for name in self.headers:
            lower = name.lower()
            if lower in ("connection", "authorization", "x-amz-security-token") or lower in mine:
                continue
            if ARGS.note and lower.startswith(OPTIONS):
                continue
            out[lower] = self.headers[name]
            if lower.startswith("x-amz-"):
                mine[lower] = self.headers_of(name)
        digest, _ = canonical(self.command, path, query, sorted(mine.items()),
                              mine["x-amz-content-sha256"])
        out["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential=testkey/{day}/us-east-1/s3/aws4_request,"
            f"SignedHeaders={';'.join(sorted(mine))},"
            f"Signature={sign('testsecret', day, 'us-east-1', stamp, digest)}"
        )
        server = http.client.HTTPConnection("127.0.0.1", ARGS.forward)
        target = path + ("?" + query if query else "")
        server.putrequest(self.command, target, skip_host=True, skip_accept_encoding=True)
        for name, value in out.items():
            server.putheader(name, value)
        server.endheaders(body or None)
        answer = server.getresponse()
        return answer, answer.read()

    def pass_on(self, body):
        answer, content = self.forward(body)
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length", "keep-alive"):
                self.send_header(name, value)
        length = answer.getheader("content-length") if self.command == "HEAD" else len(content)
        if length is not None and answer.status != 204:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def note(self):
        line = json.dumps([self.command, self.path, {k.lower(): v for k, v in self.headers.items()}])
        with NOTED, open(ARGS.note, "a", encoding="utf-8") as out:
            out.write(line + "\n")

    def elsewhere(self):
        """Says, as AWS does, that the bucket is in another region than the signature's."""
        code = "AuthorizationHeaderMalformed"
        text = f"<Error><Code>{code}</Code><Region>{ARGS.region}</Region></Error>".encode()
        path = self.path.partition("?")[0].strip("/")
        of_bucket = not path if ARGS.domain else "/" not in path
        self.send_response(400)
        if of_bucket:
            self.send_header("x-amz-bucket-region", ARGS.region)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def verify(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        wrong = self.complaint(body)
        if not wrong and ARGS.note:
            self.note()
        if ARGS.region and not wrong:
            if CREDENTIAL.match(self.headers["authorization"]).group(3) != ARGS.region:
                self.elsewhere()
                return
        if ARGS.forward and not wrong:
            self.pass_on(body)
            return
        text = (wrong or "good").encode("latin-1")
        self.send_response(403 if wrong else 200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = verify

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a client that goes away is part of the tests

    def process_request_thread(self, request, client_address):
        # In the thread: a client that is slow to shake hands must not hold up the others.
        try:
            if CONTEXT:
                request = CONTEXT.wrap_socket(request, server_side=True)
        except OSError:
            self.shutdown_request(request)
            return
        super().process_request_thread(request, client_address)


CONTEXT = None
if ARGS.tls:
    CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    CONTEXT.load_cert_chain(ARGS.tls)
server = Server(("127.0.0.1", 0), Verifier)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
