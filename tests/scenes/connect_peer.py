# SPDX-License-Identifier: Apache-2.0
"""connect_peer.py FILE ADDRESS PORT - an HTTP proxy that knows CONNECT only

FILE is JSON {"log": path, "names": {name: ip}, "credential": "user:password",
"tls": [crt, key], "refuse": {host: status}, "mode": word}; all but log may be
missing. It dials what "names" says for a name. mode: "chatty" sends an interim
answer first and its head in pieces, "mute" never answers, "endless" never ends
its head, "garbage" is no HTTP. Each request is logged as a line of JSON, with
its fields' names and whether its credential was right, never the credential.
"""
import base64
import json
import select
import socket
import ssl
import sys
import threading
import time

CONFIG = json.load(open(sys.argv[1]))
LOCK = threading.Lock()


def note(record):
    with LOCK, open(CONFIG["log"], "a") as log:
        log.write(json.dumps(record) + "\n")


def pump(a, b):
    """Both ways until both ended. One thread: a TLS socket is not for two."""
    open_ends = {a: b, b: a}
    while open_ends:
        ready = [s for s in open_ends if getattr(s, "pending", int)()]
        for s in ready or select.select(list(open_ends), [], [])[0]:
            data = s.recv(65536)
            if data:
                open_ends[s].sendall(data)
                continue
            sink = open_ends.pop(s)
            if isinstance(sink, ssl.SSLSocket):
                return  # no half-close that the other end could trust
            sink.shutdown(socket.SHUT_WR)


def answer(client, status, text, more=""):
    mode = CONFIG.get("mode")
    head = f"HTTP/1.1 {status} {text}\r\n{more}\r\n".encode()
    if mode == "chatty":
        client.sendall(b"HTTP/1.1 102 Processing\r\n\r\n")
        for i in range(len(head)):
            client.sendall(head[i:i + 1])
    else:
        client.sendall(head)


def misbehave(client, mode):
    if mode == "mute":
        time.sleep(60)
    elif mode == "endless":
        client.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            client.sendall(b"X-Filler: " + b"x" * 1000 + b"\r\n")
    elif mode == "garbage":
        client.sendall(b"\0\1\2 this is no HTTP\r\n\r\n")
    else:
        return False
    return True


def serve(client):
    data = b""
    while b"\r\n\r\n" not in data:
        more = client.recv(4096)
        if not more:
            return
        data += more
    head, rest = data.split(b"\r\n\r\n", 1)
    lines = head.decode("latin1").split("\r\n")
    method, target, _ = lines[0].split(" ")
    fields = dict((k.lower(), v.strip()) for k, v in (x.split(":", 1) for x in lines[1:]))
    wanted = CONFIG.get("credential")
    right = not wanted or fields.get("proxy-authorization") == \
        "Basic " + base64.b64encode(wanted.encode()).decode()
    host, _, port = target.rpartition(":")
    host = host.strip("[]")
    status = 407 if not right else CONFIG.get("refuse", {}).get(host, 200)
    note({"method": method, "target": target, "host": fields.get("host"), "right": right,
          "fields": sorted(fields), "status": status})
    if method != "CONNECT":
        status = 405
    if misbehave(client, CONFIG.get("mode")):
        return
    if status != 200:
        answer(client, status, "No", "Content-Length: 0\r\nProxy-Authenticate: Basic realm=\"x\"\r\n")
        return
    try:
        origin = socket.create_connection((CONFIG.get("names", {}).get(host, host), int(port)), 10)
    except OSError:
        answer(client, 503, "Unreachable")
        return
    origin.settimeout(None)
    # an origin that greets may have its words right behind our head
    answer(client, 200, "Connection established", "X-From: connect_peer\r\n")
    if rest:
        origin.sendall(rest)
    with origin:
        pump(client, origin)


def client_thread(conn, context):
    try:
        conn.settimeout(60)
        if context:
            conn = context.wrap_socket(conn, server_side=True)
        serve(conn)
    except (OSError, ValueError):
        pass
    finally:
        try:
            conn.close()
        except OSError:
            pass


context = None
if CONFIG.get("tls"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*CONFIG["tls"])
listener = socket.socket(socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((sys.argv[2], int(sys.argv[3])))
listener.listen(512)
print("ready", flush=True)
while True:
    threading.Thread(target=client_thread, args=(listener.accept()[0], context),
                     daemon=True).start()
