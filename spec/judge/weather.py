"""The way to a bucket, spoiled by lot: what a proxy, a network and a server may do, and nothing that S3 rules out.

  delay    the request comes later, or its answer does
  lose     the request never comes; or it is carried out, and its answer is lost
  cut      the connection is closed in the middle of the request's body
  again    the request is carried out twice, and the second answer counts (a proxy that tried once more)
  late     a copy of the request is carried out once more, up to two seconds after it was answered
  busy     503 SlowDown, 500 InternalError, and 500 after the request was carried out

Listings and reads are never stale: since 2020 S3's are not.
"""
import importlib.util
import os
import random
import socket
import threading
import time

_spec = importlib.util.spec_from_file_location(
    "proxy", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "servers", "proxy.py")
)
wire = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(wire)

# How often each comes, in a thousand requests.
SKIES = {
    "calm": {},
    "windy": {"delay": 120, "late_answer": 60, "lose": 6, "lose_answer": 10, "again": 15, "late": 20, "busy": 8},
    "storm": {
        "delay": 120, "late_answer": 60, "lose": 12, "lose_answer": 25, "again": 40, "late": 50, "busy": 15,
        "busy_done": 10, "cut": 10,
    },
}


class Proxy:
    """One for each history. stop() waits for what is still on its way."""

    def __init__(self, port, sky, seed):
        self.upstream, self.sky, self.lot = port, SKIES[sky], random.Random(seed)
        self.guard, self.threads, self.log, self.over = threading.Lock(), [], [], False
        self.trap, self.trapped = None, threading.Event()  # a PUT with this in its name comes no further
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.over:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def pick(self, method, target):
        with self.guard:
            at, pause = self.lot.random() * 1000, self.lot.random()
            what = ""
            for name, share in self.sky.items():
                if at < share:
                    what = name
                    break
                at -= share
            if what:
                self.log.append((time.time(), what, method, target))
            return what, pause

    def connect(self):
        server = socket.create_connection(("127.0.0.1", self.upstream), timeout=60)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return server

    def copy(self, whole, method, pause):
        """A late one, whose answer nobody hears."""
        time.sleep(pause)
        try:
            with self.connect() as server:
                server.sendall(whole)
                self.answer(wire.Stream(server), method)
        except (wire.Gone, OSError, ValueError):
            pass

    @staticmethod
    def answer(server, method):
        while True:
            reply = server.head()
            status = int(reply.split(b" ")[1])
            if status >= 200:
                return reply, b"".join(wire.body_of(server, reply, status, method)), status

    def one(self, client, sock, server):
        """One request; False: the connection is over."""
        head = client.head()
        method, target = head.split(b" ")[:2]
        what, pause = self.pick(method.decode(), target.decode("latin-1"))
        if wire.field(head, b"expect"):
            sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            lines = head.split(b"\r\n")
            head = b"\r\n".join(line for line in lines if not line.lower().startswith(b"expect:"))
        body = b"".join(wire.body_of(client, head))
        if self.trap and method == b"PUT" and self.trap in target:
            self.trapped.set()
            return False
        if what == "delay":
            time.sleep(pause * 0.3)
        if what == "lose":
            return False
        if what == "cut" and body:
            server.sock.sendall(head + body[: int(len(body) * pause)])
            server.sock.close()
            return False
        if what == "busy":
            wire.answer(sock, *(("503", "SlowDown") if pause < 0.6 else ("500", "InternalError")))
            return True
        server.sock.sendall(head + body)
        reply, data, _ = self.answer(server, method)
        if what == "again":
            server.sock.sendall(head + body)
            reply, data, _ = self.answer(server, method)
        if what == "late":
            late = threading.Thread(target=self.copy, args=(head + body, method, pause * 2), daemon=True)
            late.start()  # before stop() may wait for its end
            with self.guard:
                self.threads.append(late)
        if what == "late_answer":
            time.sleep(pause * 0.3)
        if what == "lose_answer":
            return False
        if what == "busy_done":
            wire.answer(sock, "500", "InternalError")
            return True
        sock.sendall(reply + data)
        return wire.field(reply, b"connection").lower() != b"close"

    def serve(self, sock):
        server = None
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = wire.Stream(self.connect())
            client = wire.Stream(sock)
            while self.one(client, sock, server):
                pass
        except (wire.Gone, OSError, ValueError):
            pass
        finally:
            sock.close()
            if server:
                server.sock.close()

    def stop(self):
        self.over = True
        self.listener.close()
        with self.guard:
            late = list(self.threads)
        for each in late:
            each.join(5)
