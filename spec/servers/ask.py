#!/usr/bin/env python3
"""One signed request to the S3 server at AWS_ENDPOINT_URL, as any other tool makes it.

    ask.py METHOD PATH [QUERY [HEADER...]]     PATH with its bucket, and QUERY, as they are sent, e.g. uploads=;
                                               a HEADER as "name: value"

Prints the body of the answer; exit status 1 if it is no 2xx. The keys are those of the AWS_* variables, and
AWS_CA_BUNDLE is whom it trusts over https. BODY in the environment is what it sends.
"""
import base64
import datetime
import hashlib
import hmac
import http.client
import os
import ssl
import sys


def connect():
    protocol, host = os.environ["AWS_ENDPOINT_URL"].split("://")
    if protocol == "http":
        return http.client.HTTPConnection(host, timeout=60)
    trusted = ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE"))
    return http.client.HTTPSConnection(host, timeout=60, context=trusted)


def sign(method, path, query, headers, digest):
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{os.environ['AWS_REGION']}/s3/aws4_request"
    headers |= {"host": os.environ["AWS_ENDPOINT_URL"].split("://")[1], "x-amz-content-sha256": digest,
                "x-amz-date": stamp}
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{digest}"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = ("AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"]).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    credential = f"{os.environ['AWS_ACCESS_KEY_ID']}/{scope}"
    headers["Authorization"] = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"
    return headers


def ask(method, path, query="", headers=(), body=b"", server=None):
    """Status and body of one request, over a connection that is there, or a new one."""
    server = server or connect()
    given = dict(headers)
    if body:
        given["content-md5"] = base64.b64encode(hashlib.md5(body).digest()).decode()
    signed = sign(method, path, query, given, hashlib.sha256(body).hexdigest())
    server.request(method, path + ("?" + query if query else ""), body=body or None, headers=signed)
    answer = server.getresponse()
    return answer.status, answer.read()


def main():
    method, path, query = (sys.argv[1:4] + [""])[:3]
    headers = dict(line.split(": ", 1) for line in sys.argv[4:])
    status, body = ask(method, path, query, headers, os.environ.get("BODY", "").encode())
    sys.stdout.buffer.write(body)
    sys.exit(status // 100 != 2)


if __name__ == "__main__":
    main()
