#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""sse.py PORT - a stream of events for every request, behind the bench's origin

Each event is the time on the monotonic clock, in microseconds, just before it
was written; whoever receives it on this machine knows how long it took.
"""
import asyncio
import sys
import time

EVERY_S = 0.02
HEAD = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        b"Cache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n")


async def stream(reader, writer):
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        while not writer.is_closing():
            event = b"data: %d\n\n" % (time.monotonic_ns() // 1000)
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            await writer.drain()
            await asyncio.sleep(EVERY_S)
    except (OSError, asyncio.IncompleteReadError):
        pass  # the client has gone
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(stream, "127.0.0.1", int(sys.argv[1]), backlog=512)
    await server.serve_forever()


asyncio.run(main())
