#!/usr/bin/env python3
"""One signed request to the S3 server at AWS_ENDPOINT_URL, as any other tool makes it.

    ask.py METHOD PATH [QUERY [HEADER...]]     PATH with its bucket; QUERY as it is sent, e.g. uploads=;
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

method, path, query = (sys.argv[1:4] + [""])[:3]
protocol, host = os.environ["AWS_ENDPOINT_URL"].split("://")
body = os.environ.get("BODY", "").encode()
stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
scope = f"{stamp[:8]}/{os.environ['AWS_REGION']}/s3/aws4_request"
digest = hashlib.sha256(body).hexdigest()
headers = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": stamp}
if body:
    headers["content-md5"] = base64.b64encode(hashlib.md5(body).digest()).decode()
headers.update(line.split(": ", 1) for line in sys.argv[4:])
headers = dict(sorted(headers.items()))
names = ";".join(headers)
lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{digest}"
text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
key = ("AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"]).encode()
for part in scope.split("/"):
    key = hmac.new(key, part.encode(), hashlib.sha256).digest()
signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
credential = f"{os.environ['AWS_ACCESS_KEY_ID']}/{scope}"
headers["Authorization"] = (
    f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"
)
if protocol == "https":
    trusted = ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE"))
    server = http.client.HTTPSConnection(host, timeout=30, context=trusted)
else:
    server = http.client.HTTPConnection(host, timeout=30)
server.request(method, path + ("?" + query if query else ""), body=body or None, headers=headers)
answer = server.getresponse()
print(answer.read().decode())
sys.exit(answer.status // 100 != 2)
