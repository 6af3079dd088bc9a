#!/usr/bin/python3 -IS
"""A proxy between the engine and an HTTP server, that does what networks and servers do at times.

  proxy.py UPSTREAM_PORT RULES [RATE]

Prints its port. RULES is a file that is read anew for each request; each line is a rule,

  COUNT METHOD TEXT ACTION [ARGUMENT]

and the first that fits the method (* fits all) and whose TEXT stands in the request's target (* fits
all) is obeyed, COUNT times. Actions:

  lose             the request is carried out, and the connection closed instead of an answer
  cut BYTES        so many bytes of the body go on to the server, then both connections are closed
  short BYTES      the answer ends after so many bytes of its body
  bare BYTES       the answer says no length, and ends after so many bytes of its body
  spoil BYTE       that byte of the request's body, from 0, has another bit when the server gets it
  flip BYTE        that byte of the answer's body, from 0, has another bit
  swap OLD NEW     where the answer's body has OLD it has NEW, which is as long
  status CODE[/WORD]   the proxy answers so itself; WORD is S3's <Code>
  say BODY         the proxy answers so itself, with 200
  region NAME      the proxy answers 301, the bucket is in that region
  strip NAME [SERVER]  the request goes on without that header, signed anew by AWS_SECRET_ACCESS_KEY; SERVER is
                   how the server calls itself then
  hang             nothing more happens on this connection
  late SECONDS     the answer comes so much later
  says OLD NEW     where the answer's status is OLD it is NEW
  date SECONDS     the server's clock is so far ahead of its own

What was asked is noted in RULES.log, a line "METHOD TARGET ACTION" for each request. RATE: bytes a second
that go through, of all connections together, counted as the client sends them.
"""
import email.utils
import hashlib
import hmac
import os
import re
import socket
import sys
import threading
import time

CHUNK = 64 << 10


class Rules:
    """The rules that are left, by the file's lines; a line that is written anew counts anew."""

    def __init__(self, path):
        self.path, self.lock, self.used, self.stamp = path, threading.Lock(), {}, None

    def pick(self, method, target):
        with self.lock:
            action = self.find(method, target)
            with open(self.path + ".log", "a") as log:
                log.write(f"{method} {target} {' '.join(action)}\n")
            return action

    def find(self, method, target):
        try:
            st = os.stat(self.path)
            with open(self.path) as f:
                lines = f.read().splitlines()
        except FileNotFoundError:
            return []
        if self.stamp != (st.st_ino, st.st_mtime_ns):
            self.stamp, self.used = (st.st_ino, st.st_mtime_ns), {}
        for i, line in enumerate(lines):
            count, verb, text, *action = line.split()
            if verb in ("*", method) and (text == "*" or text in target):
                if self.used.get(i, 0) < int(count):
                    self.used[i] = self.used.get(i, 0) + 1
                    return action
        return []


class Rate:
    """So many bytes a second, for all who ask."""

    def __init__(self, rate):
        self.rate, self.lock, self.free_at = rate, threading.Lock(), time.monotonic()

    def wait(self, count):
        if not self.rate:
            return
        with self.lock:
            now = time.monotonic()
            self.free_at = max(self.free_at, now - 0.05) + count / self.rate
            pause = self.free_at - now
        if pause > 0:
            time.sleep(pause)


class Gone(Exception):
    pass


class Stream:
    """The reading half of a connection, with what was read too far."""

    def __init__(self, sock):
        self.sock, self.data = sock, b""

    def more(self):
        got = self.sock.recv(CHUNK)
        if not got:
            raise Gone
        self.data += got

    def head(self):
        while b"\r\n\r\n" not in self.data:
            self.more()
        head, self.data = self.data.split(b"\r\n\r\n", 1)
        return head + b"\r\n\r\n"

    def some(self, most):
        if not self.data:
            self.more()
        out, self.data = self.data[:most], self.data[most:]
        return out

    def line(self):
        while b"\r\n" not in self.data:
            self.more()
        line, self.data = self.data.split(b"\r\n", 1)
        return line + b"\r\n"


def field(head, name):
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip()
    return b""


def without(head, name):
    kept = [line for line in head.split(b"\r\n") if not line.lower().startswith(name.lower().encode() + b":")]
    return b"\r\n".join(kept)


def signed_anew(head, name):
    """The head with a signature that does not count on that header."""
    said = field(head, b"authorization").decode()
    words = dict(word.strip().split("=", 1) for word in said.partition(" ")[2].split(",") if "=" in word)
    names = [word for word in words.get("SignedHeaders", "").split(";") if word and word != name.lower()]
    if not names:
        return head
    method, target = head.decode("latin-1").split(" ")[:2]
    path, _, query = target.partition("?")
    scope = words["Credential"].partition("/")[2]
    lines = "".join(f"{word}:{field(head, word.encode()).decode('latin-1')}\n" for word in names)
    digest = field(head, b"x-amz-content-sha256").decode()
    request = f"{method}\n{path}\n{query}\n{lines}\n{';'.join(names)}\n{digest}".encode("latin-1")
    text = f"AWS4-HMAC-SHA256\n{field(head, b'x-amz-date').decode()}\n{scope}\n{hashlib.sha256(request).hexdigest()}"
    key = ("AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"]).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    line = (f"Authorization: AWS4-HMAC-SHA256 Credential={words['Credential']}, "
            f"SignedHeaders={';'.join(names)}, Signature={signature}\r\n\r\n")
    return without(head, "authorization")[:-2] + line.encode()


def body_of(stream, head, status=0, method=b""):
    """The pieces of a body, as they come, framing included."""
    if method == b"HEAD" or status in (204, 304) or 100 <= status < 200:
        return
    if field(head, b"transfer-encoding").lower() == b"chunked":
        while True:
            line = stream.line()
            yield line
            left = int(line.split(b";")[0], 16) + 2
            last = left == 2
            while left:
                piece = stream.some(left)
                left -= len(piece)
                yield piece
            if last:
                return
    left = int(field(head, b"content-length") or 0)
    while left:
        piece = stream.some(min(left, CHUNK))
        left -= len(piece)
        yield piece


def answer(client, status, word="", extra=""):
    tell(client, status, f"<Error><Code>{word or 'Made'}</Code><RequestId>PROXY</RequestId></Error>", extra)


def tell(client, status, body, extra=""):
    client.sendall(
        f"HTTP/1.1 {status} Made\r\nX-Amz-Request-Id: PROXY\r\nContent-Length: {len(body)}\r\nContent-Type: application/xml\r\n"
        f"{extra}\r\n{body}".encode()
    )


def flipped(piece, at):
    return piece[:at] + bytes([piece[at] ^ 4]) + piece[at + 1 :]


def one(client, back, server, upstream, rules, rate):
    """One request and its answer; False: the connection is over."""
    head = client.head()
    method, target = head.split(b" ")[:2]
    action = rules.pick(method.decode(), target.decode("latin-1"))
    do, arg = (action + ["", ""])[:2]
    if do == "hang":
        time.sleep(3600)
    if do in ("status", "region", "say"):
        for piece in body_of(client, head):
            rate.wait(len(piece))
        if do == "region":
            answer(back, 301, "PermanentRedirect", f"x-amz-bucket-region: {arg}\r\n")
        elif do == "say":
            tell(back, 200, arg)
        else:
            answer(back, *arg.split("/"))
        return True
    server.sock.sendall(signed_anew(without(head, arg), arg) if do == "strip" else head)
    sent = 0
    for piece in body_of(client, head):
        rate.wait(len(piece))
        if do == "cut" and sent + len(piece) >= int(arg):
            server.sock.sendall(piece[: int(arg) - sent])
            return False
        if do == "spoil" and sent <= int(arg) < sent + len(piece):
            piece = flipped(piece, int(arg) - sent)
        server.sock.sendall(piece)
        sent += len(piece)
    if do == "cut":
        return False
    while True:
        reply = server.head()
        status = int(reply.split(b" ")[1])
        if status >= 200:
            break
    head_read = reply
    if do == "says":
        reply = reply.replace(f" {arg} ".encode(), f" {action[2]} ".encode(), 1)
    if do == "date":
        then = email.utils.formatdate(time.time() + float(arg), usegmt=True).encode()
        reply = re.sub(rb"(?i)(\r\ndate: )[^\r]*", rb"\g<1>" + then, reply)
    if do == "late":
        time.sleep(float(arg))
    if do == "bare":
        kept = [line for line in reply.split(b"\r\n") if not line.lower().startswith(b"content-length:")]
        reply = b"\r\n".join([kept[0], b"Connection: close"] + kept[1:])
    if do == "strip" and len(action) > 2:
        reply = without(reply, "server")[:-2] + f"Server: {action[2]}\r\n\r\n".encode()
    if do != "lose":
        back.sendall(reply)
    sent = 0
    for piece in body_of(server, head_read, status, method):
        if do in ("short", "bare") and sent + len(piece) > int(arg):
            back.sendall(piece[: int(arg) - sent])
            return False
        if do == "flip" and sent <= int(arg) < sent + len(piece):
            piece = flipped(piece, int(arg) - sent)
        if do == "swap":
            piece = piece.replace(arg.encode(), action[2].encode())
        if do != "lose":
            back.sendall(piece)
        sent += len(piece)
    return do != "lose" and field(reply, b"connection").lower() != b"close"


def serve(sock, upstream, rules, rate):
    server = None
    try:
        server = socket.create_connection(("127.0.0.1", upstream))
        # A head and its body are two sends: else the second one waits 40 ms for the first one's acknowledgement.
        for one_way in (sock, server):
            one_way.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client, remote = Stream(sock), Stream(server)
        while one(client, sock, remote, upstream, rules, rate):
            pass
    except (Gone, OSError):
        pass
    finally:
        sock.close()
        if server:
            server.close()


def main(upstream, path, rate="0"):
    rules, limit = Rules(path), Rate(float(rate))
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if limit.rate:
        # A large window would hold seconds of it.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 256 << 10)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    print(listener.getsockname()[1], flush=True)
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve, args=(sock, int(upstream), rules, limit), daemon=True).start()


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
