#!/usr/bin/env python3
"""One signed request to the S3 server at AWS_ENDPOINT_URL, as any other tool makes it.

    ask.py METHOD PATH [QUERY]     PATH with its bucket; QUERY as it is sent, e.g. uploads=

Prints the body of the answer; exit status 1 if it is no 2xx. The keys are those of the AWS_* variables.
"""
import datetime
import hashlib
import hmac
import http.client
import os
import sys

method, path, query = (sys.argv[1:] + [""])[:3]
host = os.environ["AWS_ENDPOINT_URL"].split("//")[1]
stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
scope = f"{stamp[:8]}/{os.environ['AWS_REGION']}/s3/aws4_request"
empty = hashlib.sha256(b"").hexdigest()
headers = {"host": host, "x-amz-content-sha256": empty, "x-amz-date": stamp}
names = ";".join(headers)
lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{empty}"
text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
key = ("AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"]).encode()
for part in scope.split("/"):
    key = hmac.new(key, part.encode(), hashlib.sha256).digest()
signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
credential = f"{os.environ['AWS_ACCESS_KEY_ID']}/{scope}"
headers["Authorization"] = (
    f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"
)
server = http.client.HTTPConnection(host, timeout=30)
server.request(method, path + ("?" + query if query else ""), headers=headers)
answer = server.getresponse()
print(answer.read().decode())
sys.exit(answer.status // 100 != 2)
