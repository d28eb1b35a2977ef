# SPDX-License-Identifier: Apache-2.0
"""ws_peer.py serve ADDRESS PORT LOG | h1 URL | h2 ADDRESS HOST PATH - WebSocket both ways

serve echoes text and binary messages and logs the request's headers. h1 is a
client of the usual kind; h2 is one of RFC 8441 (extended CONNECT).
"""
import asyncio
import json
import os
import socket
import ssl
import struct
import sys


async def serve(address, port, log):
    import websockets

    async def echo(ws):
        with open(log, "a") as out:
            out.write(json.dumps(dict(ws.request_headers)) + "\n")
        async for message in ws:
            await ws.send(message)
    async with websockets.serve(echo, address, int(port), max_size=1 << 24, compression=None,
                                subprotocols=["lab"]):
        print("ready", flush=True)
        await asyncio.Future()


async def h1(url):
    import websockets
    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    async with websockets.connect(url, ssl=context, max_size=1 << 24, compression=None,
                                  subprotocols=["lab"]) as ws:
        for message in ("hello", b"\x00\xff" * 1000, "x" * (1 << 20)):
            await ws.send(message)
            assert await ws.recv() == message
        await (await ws.ping())
        print("ok", ws.subprotocol)


def frame(data):
    mask = b"\x01\x02\x03\x04"
    body = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))
    return b"\x81" + size + mask + body


def h2(address, host, path):
    import h2.connection
    import h2.events
    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    context.set_alpn_protocols(["h2"])
    sock = context.wrap_socket(socket.create_connection((address, 443)), server_hostname=host)
    assert sock.selected_alpn_protocol() == "h2"
    conn = h2.connection.H2Connection()
    conn.initiate_connection()
    sock.sendall(conn.data_to_send())
    got, status, enabled, asked = b"", None, False, False
    sock.settimeout(10)
    while len(got) < 2 + 5 + 4 + 1000:
        for e in conn.receive_data(sock.recv(65536)):
            if isinstance(e, h2.events.RemoteSettingsChanged):
                enabled = enabled or conn.remote_settings.get(8) == 1
            if isinstance(e, h2.events.ResponseReceived):
                status = dict(e.headers)[b":status"].decode()
                conn.send_data(1, frame(b"hello") + frame(b"y" * 1000))
            if isinstance(e, h2.events.DataReceived):
                got += e.data
                conn.acknowledge_received_data(len(e.data), 1)
            if isinstance(e, h2.events.StreamReset):
                print("reset", e.error_code)
                return
        if enabled and not asked:
            asked = True
            conn.send_headers(1, [(":method", "CONNECT"), (":protocol", "websocket"),
                                  (":scheme", "https"), (":authority", host), (":path", path),
                                  ("sec-websocket-version", "13"), ("sec-websocket-protocol", "lab")])
        sock.sendall(conn.data_to_send())
    print(status, got[2:7].decode(), got[-3:].decode())


if sys.argv[1] == "serve":
    asyncio.run(serve(*sys.argv[2:5]))
elif sys.argv[1] == "h1":
    asyncio.run(h1(sys.argv[2]))
else:
    h2(*sys.argv[2:5])
