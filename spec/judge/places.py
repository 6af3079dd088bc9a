"""The store as the judge sees it: by its own eyes, past the clients, and past what spoils their way there.

A place has list() -> {key: size}, get(key) -> bytes or None, put(key, bytes), remove(key) and flip(key, at). Keys are
those below the target; put() is what some other tool does, and knows nothing of marks.
"""
import datetime
import hashlib
import hmac
import http.client
import os
import urllib.parse
import xml.etree.ElementTree as xml


class Missing(Exception):
    """The store answers something that is neither the object nor its absence."""


class Dir:
    """A directory of this machine."""

    def __init__(self, root):
        self.root = root

    def path(self, key):
        return os.path.join(self.root, key)

    def list(self, below=""):
        out = {}
        for folder, _, names in os.walk(os.path.join(self.root, below)):
            for name in names:
                path = os.path.join(folder, name)
                try:
                    out[os.path.relpath(path, self.root)] = os.lstat(path).st_size
                except FileNotFoundError:
                    pass  # it went while it was looked at
        return out

    def list_logs(self):
        """Of each epoch."""
        out = {}
        for epoch in range(len(os.listdir(self.path(".ckpt"))) if os.path.isdir(self.path(".ckpt")) else 0):
            out.update(self.list(f".ckpt/log.{epoch}" if epoch else ".ckpt/log"))
        return out

    def get(self, key):
        try:
            with open(self.path(key), "rb") as f:
                return f.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def put(self, key, data, make=True):
        path = self.path(key)
        try:
            if make:
                os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
            return os.path.exists(path)
        except OSError:
            return False  # the directory was renamed away at this moment: nothing was put

    def remove(self, key):
        os.unlink(self.path(key))

    def flip(self, key, at, mask=1):
        """Another bit in a byte. The time stays, as with a disk that forgets."""
        st = os.stat(self.path(key))
        with open(self.path(key), "r+b") as f:
            f.seek(at)
            byte = f.read(1)[0] ^ mask
            f.seek(at)
            f.write(bytes([byte]))
        os.utime(self.path(key), ns=(st.st_atime_ns, st.st_mtime_ns))


class Bucket:
    """A prefix of a bucket, signed by the published rule. One connection for each thread is made anew for each
    request: servers of tests close idle ones."""

    def __init__(self, endpoint, bucket, prefix, keys=("testkey", "testsecret"), region="us-east-1"):
        self.host = endpoint.split("://", 1)[1]
        self.bucket, self.prefix, self.keys, self.region = bucket, prefix, keys, region

    def ask(self, method, key="", query=(), body=b"", headers=()):
        now = datetime.datetime.now(datetime.timezone.utc)
        stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        path = "/" + self.bucket + ("/" + urllib.parse.quote(key, safe="/-_.~") if key else "")
        text = "&".join(
            f"{urllib.parse.quote(k, safe='-_.~')}={urllib.parse.quote(v, safe='-_.~')}" for k, v in sorted(query)
        )
        said = {"host": self.host, "x-amz-date": stamp, "x-amz-content-sha256": hashlib.sha256(body).hexdigest()}
        said.update(headers)
        names = ";".join(sorted(said))
        lines = [method, path, text] + [f"{k}:{said[k]}" for k in sorted(said)]
        lines += ["", names, said["x-amz-content-sha256"]]
        scope = f"{day}/{self.region}/s3/aws4_request"
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        key_of = ("AWS4" + self.keys[1]).encode()
        for part in (day, self.region, "s3", "aws4_request"):
            key_of = hmac.new(key_of, part.encode(), hashlib.sha256).digest()
        signed = hmac.new(key_of, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}".encode(), hashlib.sha256).hexdigest()
        said["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.keys[0]}/{scope}, SignedHeaders={names}, Signature={signed}"
        )
        for tries in range(5):
            link = http.client.HTTPConnection(self.host, timeout=30)
            try:
                link.request(method, path + ("?" + text if text else ""), body=body, headers=said)
                answer = link.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException):
                if tries == 4:
                    raise
            finally:
                link.close()

    def full(self, key):
        return f"{self.prefix}/{key}" if key else self.prefix + "/"

    def list(self, below=""):
        out, more = {}, None
        while True:
            query = [("list-type", "2"), ("prefix", self.full(below))]
            query += [("continuation-token", more)] if more else []
            status, body = self.ask("GET", "", query)
            if status != 200:
                raise Missing(f"a listing got {status}: {body[:200]!r}")
            root = xml.fromstring(body)
            space = root.tag[: root.tag.index("}") + 1] if root.tag.startswith("{") else ""
            for each in root.iter(space + "Contents"):
                key = each.find(space + "Key").text[len(self.prefix) + 1 :]
                out[key] = int(each.find(space + "Size").text)
            more = root.findtext(space + "NextContinuationToken")
            if not more:
                return out

    def list_logs(self):
        return self.list(".ckpt/log")

    def get(self, key):
        status, body = self.ask("GET", self.full(key))
        if status == 404:
            return None
        if status != 200:
            raise Missing(f"{key}: got {status}: {body[:200]!r}")
        return body

    def put(self, key, data, make=True):
        status, body = self.ask("PUT", self.full(key), body=data)
        if status != 200:
            raise Missing(f"{key}: put got {status}: {body[:200]!r}")
        return True

    def remove(self, key):
        self.ask("DELETE", self.full(key))

    def flip(self, key, at, mask=1):
        """Another bit in a byte, under the marks that the object has."""
        data = bytearray(self.get(key))
        data[at] ^= mask
        self.ask("PUT", self.full(key), body=bytes(data), headers={})
