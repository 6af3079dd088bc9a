#!/usr/bin/python3 -IS
"""A proxy before an S3 server, which makes it look like another one.

  disguise.py UPSTREAM_PORT SECRET WHAT...

Prints its port. WHAT:

  etags     an ETag is no MD5, as in a bucket that encrypts: each is random text, and the server's own only to the server
  nosums    it passes over what it is told of checksums, and tells none
  refuses   it answers 501 to each request that tells of a CRC64NVME or asks for one
  md5       a bulk delete without Content-MD5 is refused with 400

What it changes in a request is signed anew with SECRET.
"""
import base64
import hashlib
import hmac
import http.client
import http.server
import random
import re
import sys

HEX = "0123456789abcdef"
FORWARD = dict(zip(HEX, random.sample("ghijklmnopqrstuvwxyz", len(HEX))))
BACK = {value: key for key, value in FORWARD.items()}
ETAG = re.compile(r"\b[0-9a-f]{32}\b")
GIVEN = re.compile(r"\b[g-z]{32}\b")
SUMS = re.compile(rb"<Checksum(CRC64NVME|Algorithm|Type)>[^<]*</Checksum(CRC64NVME|Algorithm|Type)>")


def given(text):
    return ETAG.sub(lambda m: "".join(FORWARD[c] for c in m[0]), text)


def own(text):
    return GIVEN.sub(lambda m: "".join(BACK[c] for c in m[0]), text)


def sign(method, target, headers, secret):
    """Makes the signature of a request anew: it names its key, day, region and headers itself."""
    found = re.search(r"Credential=[^/]*/([^,]*),\s*SignedHeaders=([^,]*)", headers.get("authorization", ""))
    if not found:
        return
    names = [name for name in found[2].split(";") if name in headers]
    path, _, query = target.partition("?")
    lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in names)
    items = "&".join(sorted(query.split("&"))) if query else ""
    request = "\n".join([method, path, items, lines, ";".join(names), headers["x-amz-content-sha256"]])
    text = "\n".join(
        ["AWS4-HMAC-SHA256", headers["x-amz-date"], found[1], hashlib.sha256(request.encode()).hexdigest()]
    )
    key = ("AWS4" + secret).encode()
    for part in found[1].split("/") + [text]:
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    start = headers["authorization"].split("SignedHeaders=")[0]
    headers["authorization"] = f"{start}SignedHeaders={';'.join(names)},Signature={key.hex()}"


class Disguise(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream, secret, what = 0, "", []

    def answer(self, status, headers, body):
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        # The length of an answer to HEAD is the object's.
        if self.command != "HEAD":
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, code):
        body = b"" if self.command == "HEAD" else f"<Error><Code>{code}</Code></Error>".encode()
        self.answer(status, [("content-length", "0")] if self.command == "HEAD" else [], body)

    def disguise(self, headers, body):
        """The request as the server gets it."""
        if "nosums" in self.what:
            for name in [name for name in headers if name.startswith("x-amz-checksum-")]:
                del headers[name]
            body = SUMS.sub(b"", body) if self.command == "POST" else body
            if "delete" in self.path.split("?")[-1]:
                headers["content-md5"] = base64.b64encode(hashlib.md5(body).digest()).decode()
        if "etags" in self.what:
            for name in ("if-match", "if-none-match"):
                if name in headers:
                    headers[name] = own(headers[name])
            body = own(body.decode()).encode() if self.command == "POST" else body
        if self.command == "POST" and headers.get("x-amz-content-sha256", "UNSIGNED") != "UNSIGNED-PAYLOAD":
            headers["x-amz-content-sha256"] = hashlib.sha256(body).hexdigest()
        headers["content-length"] = str(len(body))
        sign(self.command, self.path, headers, self.secret)
        return body

    def serve(self):
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        sums = any(name.startswith("x-amz-checksum-") for name in headers)
        if "refuses" in self.what and sums:
            return self.refuse(501, "NotImplemented")
        if "md5" in self.what and self.path.endswith("?delete=") and "content-md5" not in headers:
            return self.refuse(400, "InvalidRequest")
        body = self.disguise(headers, body)
        server = http.client.HTTPConnection("127.0.0.1", self.upstream)
        server.request(self.command, self.path, body or None, headers)
        reply = server.getresponse()
        body = reply.read()
        kept = [
            (name, given(value) if name.lower() == "etag" and "etags" in self.what else value)
            for name, value in reply.getheaders()
            if name.lower() not in ("transfer-encoding", "connection")
            and (self.command == "HEAD" or name.lower() != "content-length")
            and not ("nosums" in self.what and name.lower().startswith("x-amz-checksum-"))
        ]
        server.close()
        if reply.getheader("content-type", "").startswith("application/xml"):
            if "nosums" in self.what:
                body = SUMS.sub(b"", body)
            if "etags" in self.what:
                body = re.sub(rb"<ETag>[^<]*</ETag>", lambda m: given(m[0].decode()).encode(), body)
        return self.answer(reply.status, kept, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve

    def log_message(self, *unused):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, *unused):
        pass


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    Disguise.upstream, Disguise.secret, Disguise.what = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    server = Server(("127.0.0.1", 0), Disguise)
    print(server.server_address[1], flush=True)
    server.serve_forever()
