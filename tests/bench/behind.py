#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""behind.py PORT - what the bench's origin cannot do by itself

A stream of events for every GET: each event is the time on the monotonic clock,
in microseconds, just before it was written; whoever receives it on this machine
knows how long it took. A POST is read to its end and answered then.
"""
import asyncio
import re
import sys
import time

EVERY_S = 0.02
READ_BYTES = 1 << 20
STREAM = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
          b"Cache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n")
TAKEN = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ntaken\n"


async def stream(writer):
    writer.write(STREAM)
    while not writer.is_closing():
        event = b"data: %d\n\n" % (time.monotonic_ns() // 1000)
        writer.write(b"%x\r\n%s\r\n" % (len(event), event))
        await writer.drain()
        await asyncio.sleep(EVERY_S)


async def take(head, reader, writer):
    left = int(re.search(rb"(?i)\r\ncontent-length: *(\d+)\r\n", head)[1])
    while left:
        part = await reader.read(min(left, READ_BYTES))
        if not part:
            return
        left -= len(part)
    writer.write(TAKEN)
    await writer.drain()


async def serve(reader, writer):
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        while head.startswith(b"POST "):
            await take(head, reader, writer)
            head = await reader.readuntil(b"\r\n\r\n")
        await stream(writer)
    except (OSError, asyncio.IncompleteReadError):
        pass  # the client has gone
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=512,
                                        limit=READ_BYTES)
    await server.serve_forever()


asyncio.run(main())
