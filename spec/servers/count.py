#!/usr/bin/python3 -IS
"""A proxy before an HTTP server, as far away as it is told, that counts what was asked of it.

  count.py UPSTREAM_PORT DELAY_MS [PORTS LOG]

Prints its port; or so many, one for each client, and notes in the file LOG what came by which: a line
"SECONDS PORT METHOD TARGET STATUS" for each request, when its answer goes out. A client that shall not
know has it as its http_proxy. GET /counted answers "REQUESTS ROUNDS", and begins anew. A request is of the first round
if it came before any answer had gone out, and of round N + 1 if an answer to one of round N had: so many
times the client has waited for the way there and back, whatever it asked side by side.
"""
import asyncio
import sys
import time


class Count:
    def __init__(self, log=None):
        self.log = log
        self.begin()

    def begin(self):
        self.requests = self.answered = self.rounds = 0

    def ask(self):
        self.requests += 1
        mine = self.answered + 1
        self.rounds = max(self.rounds, mine)
        return mine

    def told(self, mine):
        self.answered = max(self.answered, mine)

    def take(self):
        text = f"{self.requests} {self.rounds}\n"
        self.begin()
        return text.encode()

    def note(self, port, method, target, status):
        if self.log:
            words = b"%.3f %d %s %s %s\n" % (time.time(), port, method, target, status)
            self.log.write(words)


def field(head, name):
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip().lower()
    return b""


async def body(reader, head, none):
    if none:
        return b""
    if field(head, b"transfer-encoding") == b"chunked":
        parts = []
        while True:
            line = await reader.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            parts += [line, await reader.readexactly(size + 2)]
            if size == 0:
                return b"".join(parts)
    return await reader.readexactly(int(field(head, b"content-length") or 0))


async def serve(reader, writer, upstream, delay, count):
    server = None
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            method, target = head.split(b" ")[:2]
            if target.startswith(b"http://"):
                whole, target = target, b"/" + target.split(b"/", 3)[3]
                head = head.replace(whole, target, 1)
            sent = await body(reader, head, False)
            if target == b"/counted":
                text = count.take()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
                await writer.drain()
                continue
            mine = count.ask()
            await asyncio.sleep(delay)
            if server is None:
                server = await asyncio.open_connection("127.0.0.1", upstream, limit=1 << 20)
            server[1].write(head + sent)
            reply = await server[0].readuntil(b"\r\n\r\n")
            while reply.split(b" ")[1] == b"100":
                reply = await server[0].readuntil(b"\r\n\r\n")
            empty = method == b"HEAD" or reply.split(b" ")[1] in (b"204", b"304")
            reply += await body(server[0], reply, empty)
            count.told(mine)
            count.note(writer.get_extra_info("sockname")[1], method, target, reply.split(b" ")[1])
            writer.write(reply)
            await writer.drain()
    except (asyncio.IncompleteReadError, OSError):
        pass
    finally:
        writer.close()
        if server:
            server[1].close()


async def main(upstream, delay, ports, log):
    count = Count(open(log, "ab", buffering=0) if log else None)

    async def client(r, w):
        await serve(r, w, upstream, delay, count)

    made = [
        await asyncio.start_server(client, "127.0.0.1", 0, limit=1 << 20, backlog=256)
        for _ in range(ports)
    ]
    print(*[listener.sockets[0].getsockname()[1] for listener in made], flush=True)
    await asyncio.gather(*[listener.serve_forever() for listener in made])


if __name__ == "__main__":
    if len(sys.argv) not in (3, 5):
        sys.exit(__doc__)
    ports, log = (int(sys.argv[3]), sys.argv[4]) if len(sys.argv) == 5 else (1, None)
    try:
        asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]) / 1000, ports, log))
    except KeyboardInterrupt:
        pass
