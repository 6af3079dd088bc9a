#!/usr/bin/python3 -IS
"""A proxy before an HTTP server, as far away as it is told, that counts what was asked of it.

  count.py UPSTREAM_PORT DELAY_MS

Prints its port. GET /counted answers "REQUESTS ROUNDS", and begins anew. A request is of the first round
if it came before any answer had gone out, and of round N + 1 if an answer to one of round N had: so many
times the client has waited for the way there and back, whatever it asked side by side.
"""
import asyncio
import sys


class Count:
    def __init__(self):
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
        self.__init__()
        return text.encode()


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
            writer.write(reply)
            await writer.drain()
    except (asyncio.IncompleteReadError, OSError):
        pass
    finally:
        writer.close()
        if server:
            server[1].close()


async def main(upstream, delay):
    count = Count()
    listener = await asyncio.start_server(
        lambda r, w: serve(r, w, upstream, delay, count), "127.0.0.1", 0, limit=1 << 20, backlog=256
    )
    print(listener.sockets[0].getsockname()[1], flush=True)
    async with listener:
        await listener.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]) / 1000))
    except KeyboardInterrupt:
        pass
