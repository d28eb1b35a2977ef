# SPDX-License-Identifier: Apache-2.0
"""h2_client.py ADDRESS HOST - one connection of HTTP/2 that does as stdin says

A line is a JSON list of requests, made at the same time:
{"path", "method", "protocol", "headers", "body", "trailers", "open"}; "open"
leaves the request without its end. The answer is a list of
{"status", "headers", "interim", "body", "trailers", "reset"}. An empty line
asks what became of the connection.
"""
import json
import os
import select
import socket
import ssl
import sys
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import hyperframe.frame

ADDRESS, HOST = sys.argv[1:3]
context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
context.set_alpn_protocols(["h2"])
sock = context.wrap_socket(socket.create_connection((ADDRESS, 443)), server_hostname=HOST)
assert sock.selected_alpn_protocol() == "h2"
conn = h2.connection.H2Connection(h2.config.H2Configuration(
    header_encoding="utf-8", normalize_outbound_headers=False, validate_outbound_headers=False))
conn.initiate_connection()
sock.sendall(conn.data_to_send())
state, open_streams = {"goaway": [], "closed": False}, {}


def on_goaway(frame):
    """The library would take no more frames; open streams go on, though."""
    state["goaway"].append([frame.error_code, frame.last_stream_id])
    return [], []


conn._frame_dispatch_table[hyperframe.frame.GoAwayFrame] = on_goaway


def on(event):
    stream = open_streams.get(getattr(event, "stream_id", None))
    if stream is None:
        return
    if isinstance(event, h2.events.InformationalResponseReceived):
        stream["interim"].append(event.headers)
    elif isinstance(event, h2.events.ResponseReceived):
        stream["status"] = int(dict(event.headers)[":status"])
        stream["headers"] = event.headers
    elif isinstance(event, h2.events.DataReceived):
        stream["body"] += event.data.decode("latin1")
        conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
    elif isinstance(event, h2.events.TrailersReceived):
        stream["trailers"] = event.headers
    elif isinstance(event, h2.events.StreamReset):
        stream["reset"] = int(event.error_code)
        stream["done"] = True
    elif isinstance(event, h2.events.StreamEnded):
        stream["done"] = True


def turn(seconds):
    if not sock.pending() and not select.select([sock], [], [], seconds)[0]:
        return
    data = sock.recv(65536)
    if not data:
        state["closed"] = True
        return
    for event in conn.receive_data(data):
        on(event)
    out = conn.data_to_send()
    if out:
        sock.sendall(out)


def ask(request):
    stream = conn.get_next_available_stream_id()
    fields = [(":method", request.get("method", "GET")), (":scheme", "https"),
              (":authority", request.get("authority", HOST)), (":path", request["path"])]
    if "protocol" in request:  # RFC 8441
        fields.append((":protocol", request["protocol"]))
    body, trailers, left_open = request.get("body"), request.get("trailers"), request.get("open")
    open_streams[stream] = {"status": None, "headers": [], "interim": [], "body": "",
                            "trailers": [], "reset": None, "done": False}
    conn.send_headers(stream, fields + [tuple(x) for x in request.get("headers", [])],
                      end_stream=body is None and not trailers and not left_open)
    if body is not None:
        pieces = [body[i:i + 16000].encode() for i in range(0, len(body), 16000)] or [b""]
        for i, piece in enumerate(pieces):
            conn.send_data(stream, piece, end_stream=not trailers and not left_open and i == len(pieces) - 1)
    if trailers:
        conn.send_headers(stream, [tuple(x) for x in trailers], end_stream=True)
    return open_streams[stream]


for line in sys.stdin:
    streams = []
    try:
        streams = [ask(r) for r in json.loads(line)] if line.strip() else []
        sock.sendall(conn.data_to_send())
        end = time.monotonic() + (15 if streams else 0.3)
        while not state["closed"] and time.monotonic() < end and (
                not streams or not all(s["done"] for s in streams)):
            turn(0.05)
    except (OSError, h2.exceptions.ProtocolError) as e:
        state["closed"] = repr(e)
    print(json.dumps(streams if line.strip() else state), flush=True)
