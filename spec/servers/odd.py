#!/usr/bin/env python3
"""A web server that misbehaves on request: the first part of the path says how. It is a proxy, too:
whatever host it is asked for is the machine that it runs on.

    odd.py [CERTIFICATE.pem]      (with one: over TLS)

It prints its port, answers on 127.0.0.1, and ends when its standard input does."""
import hashlib
import socket
import socketserver
import ssl
import sys
import threading
import time

STATE = {"connections": 0}
LOCK = threading.Lock()


class Odd(socketserver.StreamRequestHandler):
    def setup(self):
        if CONTEXT:
            self.request = CONTEXT.wrap_socket(self.request, server_side=True)
        super().setup()
        with LOCK:
            STATE["connections"] += 1

    def handle(self):
        self.served = 0
        self.doomed = False
        try:
            while self.one():
                self.served += 1
        except (OSError, ValueError):
            pass

    def one(self):
        line = self.rfile.readline(65537)
        if not line:
            return False
        self.method, target, _ = line.decode("latin-1").split(" ")
        self.target = target
        self.lines = []
        while True:
            header = self.rfile.readline(65537).decode("latin-1").rstrip("\r\n")
            if not header:
                break
            self.lines.append(header)
        if self.method == "CONNECT":
            self.wfile.write(b"HTTP/1.1 200 Connected\r\nX-Proxy: odd\r\n\r\n")
            return self.tunnel(int(target.rpartition(":")[2]))
        parts = target.partition("?")[0].split("/")
        if parts[0] == "http:":  # an absolute target is what a proxy gets to see
            port = int(parts[2].partition(":")[2] or 0)
            if port:
                return self.pass_on(port, "/" + target.split("/", 3)[3])
            parts = parts[2:]
        if parts[1] != "noread":
            self.body = self.rfile.read(self.length())
        if self.doomed:  # what a server does that gave the connection up meanwhile
            return False
        return getattr(self, "do_" + parts[1])(*parts[2:])

    def length(self):
        for header in self.lines:
            name, _, value = header.partition(":")
            if name.lower() == "content-length":
                return int(value)
        return 0

    def pass_on(self, port, target):
        """The request to that port, and all that comes back; then the connection is over."""
        head = [self.method + " " + target + " HTTP/1.1"]
        head += [h for h in self.lines if not h.lower().startswith(("proxy-", "connection:"))]
        head += ["Connection: close", "", ""]
        with socket.create_connection(("127.0.0.1", port)) as up:
            up.sendall("\r\n".join(head).encode("latin-1") + self.rfile.read(self.length()))
            while True:
                data = up.recv(65536)
                if not data:
                    return False
                self.wfile.write(data)

    def tunnel(self, port):
        def copy(source, to):
            try:
                while True:
                    data = source.recv(65536)
                    if not data:
                        break
                    to.sendall(data)
                to.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        with socket.create_connection(("127.0.0.1", port)) as up:
            back = threading.Thread(target=copy, args=(up, self.request), daemon=True)
            back.start()
            copy(self.request, up)
            back.join()
        return False

    def answer(self, body, status="200 OK", headers=()):
        head = ["HTTP/1.1 " + status, "Content-Length: %d" % len(body)] + list(headers)
        self.wfile.write("\r\n".join(head + ["", ""]).encode("latin-1"))
        if self.method != "HEAD":
            self.wfile.write(body)
        return True

    def do_echo(self, *_):
        lines = [self.method + " " + self.target] + self.lines
        lines.append("body %d %s" % (len(self.body), hashlib.sha256(self.body).hexdigest()))
        return self.answer("\n".join(lines).encode("latin-1"))

    def do_bytes(self, count):
        return self.answer(bytes(range(256)) * (int(count) // 256) + bytes(range(int(count) % 256)))

    def do_status(self, status):
        return self.answer(b"slow down, please", status + " Odd", ["X-Odd:   some thing \t"])

    def do_count(self):
        return self.answer(b"%d" % STATE["connections"])

    def do_cut(self, count):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * int(count))
        return False

    def do_cuthead(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Odd: 1\r\nContent-Le")
        return False

    def do_halt(self, count):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * int(count))
        return self.do_never()

    def do_header(self, count):
        return self.answer(b"", headers=["X-Long: " + "h" * int(count)])

    def do_never(self):
        time.sleep(30)
        return False

    do_noread = do_never

    def do_trickle(self, seconds):
        """Alive, at a few bytes a second."""
        count = int(float(seconds) * 10)
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % count)
        for _ in range(count):
            self.wfile.write(b"t")
            time.sleep(0.1)
        return True

    def do_slow(self, ms):
        time.sleep(int(ms) / 1000)
        return self.answer(b"slow")

    def do_endless(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            self.wfile.write(b"10000\r\n" + b"e" * 65536 + b"\r\n")

    def do_garbage(self):
        self.wfile.write(b"\0\1\2 no HTTP at all\r\n\r\n" * 20)
        return False

    def do_close(self):
        return False

    def do_continue(self):
        self.wfile.write(b"HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n")
        self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nX-Early: 2\r\n\r\n")
        return self.answer(b"late", headers=["X-Late: 3"])

    def do_redirect(self):
        return self.answer(b"", "302 Found", ["Location: /echo", "Set-Cookie: odd=1; Path=/"])

    def do_doomed(self):
        """The next request on this connection is read, and never answered."""
        self.doomed = True
        return self.answer(b"doomed")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a client that goes away in a handshake is part of the tests


CONTEXT = None
if len(sys.argv) > 1:
    CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    CONTEXT.load_cert_chain(sys.argv[1])
server = Server(("127.0.0.1", 0), Odd)
server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
