#!/usr/bin/env python3
"""A bucket that has the keys that are named on its command line, below "exp/" in "theirs", each with its own name as its bytes:
also keys that other servers would make other ones of. It prints its port, and ends when its standard input does."""
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit

KEYS = sorted(b"exp/" + os.fsencode(key) for key in sys.argv[1:])


class Bucket(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.send_header("ETag", '"1"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        at = urlsplit(self.path)
        key = os.fsencode(unquote(at.path, errors="surrogateescape")).partition(b"/theirs/")[2]
        if key:
            known = key in KEYS
            return self.answer(200 if known else 404, key[4:] if known else b"<Error><Code>NoSuchKey</Code></Error>")
        asked = parse_qs(at.query, keep_blank_values=True)
        prefix = os.fsencode(asked.get("prefix", [""])[0])
        rows = "".join("<Contents><Key>%s</Key><Size>%d</Size><ETag>1</ETag>"
                       "<LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>" % (quote(key), len(key) - 4)
                       for key in KEYS if key.startswith(prefix))
        self.answer(200, ("<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>%s"
                          "</ListBucketResult>" % rows).encode())

    do_HEAD = do_GET


server = ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
