# SPDX-License-Identifier: Apache-2.0
"""/proxy/{port}/...: servers of the sandbox, reached from outside"""
import asyncio
import hashlib
import os
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
from execd import Connection, free_port, quiet, wait_for
from server import Server
from ws import TEXT, Closed, WebSocket

# a sanitizer keeps what was freed for a while
QUARANTINE_KIB = 300 * 1024 if "asan" in os.environ.get("SALLYPORT_BUILD", "") else 0


def reply(body=b"", status="200 OK", fields="", length=True):
    head = f"HTTP/1.1 {status}\r\n{fields}"
    if length:
        head += f"Content-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def answering(*pieces):
    """An answer that sends these and keeps the connection."""
    def answer(request, sock, reader):
        for piece in pieces:
            sock.sendall(piece)
    return answer


# -- heads -------------------------------------------------------------------------


def test_a_real_server(execd):
    """Python's http.server, as people start it."""
    (execd.tmp / "page.txt").write_text("some text")
    port = free_port()
    server = subprocess.Popen([sys.executable, "-m", "http.server", str(port), "--bind",
                               "127.0.0.1"], cwd=execd.tmp, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        got = wait_for(lambda: (r := execd.request("GET", f"/proxy/{port}/page.txt")).status != 502
                       and r)
        assert got.status == 200 and got.text == "some text"
        assert got.headers["content-type"] == "text/plain"
        assert "SimpleHTTP" in got.headers["server"]
        head = execd.request("HEAD", f"/proxy/{port}/page.txt")
        assert head.status == 200 and head.headers["content-length"] == "9"
        assert execd.request("GET", f"/proxy/{port}/nope").status == 404
        assert execd.request("POST", f"/proxy/{port}/", b"x").status == 501
        listing = execd.request("GET", f"/proxy/{port}")
        assert b"page.txt" in listing.body
    finally:
        server.kill()
        server.wait()


def test_what_passes_and_what_does_not(start_execd):
    daemon = start_execd(token="secret")
    with Server(answering(reply(b"ok"))) as s:
        got = daemon.request("GET", f"/proxy/{s.port}/a?b=c", headers={
            "Accept-Encoding": "br", "Cookie": "a=1; b=2",
            "Authorization": "Bearer its own", "X-Custom": "x", "x-lower": "y",
            "Connection": "keep-alive, X-Hop", "X-Hop": "1", "Keep-Alive": "timeout=5",
            "TE": "trailers", "Proxy-Authorization": "Basic eA==", "Proxy-Connection": "close",
            "X-Forwarded-Host": "evil.test", "X-Forwarded-Proto": "https",
            "X-Forwarded-For": "198.51.100.7", "Expect": "100-continue"})
        assert got.text == "ok"
        request, = s.requests
    assert request.line == "GET /a?b=c HTTP/1.1"
    assert request.get("Cookie") == "a=1; b=2"
    assert request.get("Authorization") == "Bearer its own"
    assert request.get("X-Custom") == "x" and ("x-lower", "y") in request.fields
    assert request.get("Accept-Encoding") == "br"
    assert request.get("X-Forwarded-For") == "198.51.100.7, 127.0.0.1"
    assert request.get("X-Forwarded-Proto") == "http"
    # trailers pass; who forwards TE names it (RFC 9110, section 10.1.4)
    assert request.get("TE") == "trailers" and request.get("Connection") == "TE"
    for name in ("X-Forwarded-Host", "X-Hop", "Keep-Alive", "Proxy-Authorization",
                 "Proxy-Connection", "Expect", "X-EXECD-ACCESS-TOKEN",
                 "Transfer-Encoding", "Content-Length", "Upgrade"):
        assert request.get(name) is None, name
    assert b"secret" not in request.raw


def test_the_host_is_the_clients(execd):
    with Server(answering(reply())) as s:
        execd.request("GET", f"/proxy/{s.port}/")
        assert s.requests[0].all("Host") == ["execd"]


@pytest.mark.parametrize("path,line", [
    ("", "/"), ("/", "/"), ("?q", "/?q"), ("/?", "/?"), ("/a%2Fb%2e%2E/../c//d;x?%20=%3F", None),
    ("/%zz%", None), ("/a/./b", None), ("/\u00e4".encode().decode("latin-1"), None),
    ("/proxy/1/x", None),
])
def test_the_path_is_kept_raw(execd, path, line):
    if any(ord(c) > 126 for c in path):
        path = "/%C3%A4"
    with Server(answering(reply())) as s:
        assert execd.request("GET", f"/proxy/{s.port}{path}").status == 200
        assert s.requests[0].target == (line or path)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE",
                                    "TRACE", "PROPFIND", "M-SEARCH"])
def test_every_method(execd, method):
    with Server(lambda r, sock, _: sock.sendall(
            reply(b"" if method == "HEAD" else method.encode(), fields="X-A: b\r\n"))) as s:
        got = execd.request(method, f"/proxy/{s.port}/m")
        assert got.status == 200 and got.headers["x-a"] == "b"
        assert got.text == ("" if method == "HEAD" else method)
        assert s.requests[0].method == method


def test_replies_pass_as_they_are(execd):
    head = ("HTTP/1.1 299 Rather Odd\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Empty:\r\n"
            "Connection: X-Gone\r\nX-Gone: 1\r\nKeep-Alive: timeout=5\r\nServer: mine\r\n"
            "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: x/y\r\nContent-Length: 2\r\n\r\nok")
    with Server(answering(head.encode())) as s:
        connection = execd.connect()
        connection.send("GET", f"/proxy/{s.port}/")
        raw = connection.until(b"\r\n\r\n").decode()
        assert connection.exactly(2) == b"ok"
    lines = raw.split("\r\n")
    assert lines[0] == "HTTP/1.1 299 Rather Odd"
    for line in ("Set-Cookie: a=1", "Set-Cookie: b=2", "Server: mine", "Content-Type: x/y",
                 "Date: Thu, 01 Jan 1970 00:00:00 GMT", "Content-Length: 2"):
        assert lines.count(line) == 1, raw
    assert any(line.startswith("X-Empty:") for line in lines)
    low = raw.lower()
    for word in ("x-gone", "keep-alive", "cache-control", "nosniff"):
        assert word not in low, raw


def test_bad_ports(execd):
    for port in ("", "0", "65536", "x", "80x", "-1", "08a", "99999999999999999999", "%38%30"):
        got = execd.request("GET", f"/proxy/{port}/x")
        assert got.status == 400 and got.json()["code"] == "INVALID_REQUEST_BODY", port
    assert execd.request("GET", "/proxy").status == 400


def test_nobody_listens(execd):
    got = execd.request("GET", f"/proxy/{free_port()}/x")
    assert got.status == 502 and got.text == "Bad Gateway\n"
    # a body that nobody wants does not break the connection
    connection = execd.connect()
    assert connection.request("POST", f"/proxy/{free_port()}/x", b"b" * 1000).status == 502
    assert connection.request("GET", "/ping").status == 200


def test_no_loop(execd):
    got = execd.request("GET", f"/proxy/{execd.port}/proxy/{execd.port}/ping")
    assert got.status == 400 and "itself" in got.json()["message"]


def test_ipv6_loopback(execd):
    with Server(answering(reply(b"six")), host="::1") as s:
        assert execd.request("GET", f"/proxy/{s.port}/").text == "six"


def test_the_token_guards_it(start_execd):
    daemon = start_execd(token="secret")
    with Server(answering(reply())) as s:
        assert daemon.request("GET", f"/proxy/{s.port}/", token=None).status == 401
        assert s.requests == []


# -- framing -----------------------------------------------------------------------


@pytest.mark.parametrize("pieces,body", [
    ((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", b"2;x=y\r\nde\r\n",
      b"0\r\nX-Trailer: 1\r\n\r\n"), b"abcde"),
    ((b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n",
      b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"), b"x"),
    ((b"HTTP/1.1 2", b"00 OK\r\nContent-Le", b"ngth: 3\r\n", b"\r\nab", b"c"), b"abc"),
    ((reply(b""),), b""),
    ((b"HTTP/1.1 204 No Content\r\n\r\n",), None),
    ((b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 10\r\n\r\n",), None),
])
def test_framings(execd, pieces, body):
    def answer(request, sock, reader):
        for piece in pieces:
            sock.sendall(piece)
            time.sleep(0.02)
    with Server(answer) as s:
        connection = execd.connect()
        for _ in range(2):
            got = connection.request("GET", f"/proxy/{s.port}/")
            assert got.body == (body or b"")
            if body is None:
                assert "content-length" not in got.headers
            # 100 is the proxy's own matter; hints and trailers pass
            assert connection.trailers == ([b"X-Trailer: 1"] if b"X-Trailer" in pieces[-1] else [])
            assert connection.hints == ([(103, {"link": "</x>"})] if b"103" in pieces[0] else [])


def test_a_reply_until_the_connection_ends(execd):
    def answer(request, sock, reader):
        sock.sendall(b"HTTP/1.0 200 OK\r\n\r\nuntil ")
        time.sleep(0.1)
        sock.sendall(b"the end")
        return True
    with Server(answer) as s:
        got = execd.request("GET", f"/proxy/{s.port}/")
        assert got.body == b"until the end"
        assert got.headers["transfer-encoding"] == "chunked"


@pytest.mark.parametrize("bytes_", [
    b"", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"x" * 40000 + b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n\r\n" * 50,
], ids=range(9))
def test_servers_that_speak_no_http(execd, bytes_):
    def answer(request, sock, reader):
        sock.sendall(bytes_)
        return True
    with Server(answer) as s:
        got = execd.request("GET", f"/proxy/{s.port}/")
        assert got.status == 502 and got.text == "Bad Gateway\n"
    assert execd.alive()


@pytest.mark.parametrize("bytes_", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX",
], ids=range(3))
def test_a_reply_that_is_cut_is_seen_as_cut(execd, bytes_):
    def answer(request, sock, reader):
        sock.sendall(bytes_)
        return True
    with Server(answer) as s, pytest.raises((ConnectionError, ValueError)):
        execd.request("GET", f"/proxy/{s.port}/")
    assert execd.alive()


# -- bodies ------------------------------------------------------------------------


def test_large_bodies_both_ways(execd):
    body = os.urandom(1 << 20) * 40
    with Server(lambda r, sock, _: sock.sendall(reply(r.body))) as s:
        before = execd.rss_kib()
        got = execd.request("PUT", f"/proxy/{s.port}/big", body)
        assert hashlib.sha1(got.body).digest() == hashlib.sha1(body).digest()
        assert execd.rss_kib() - before < 4000 + QUARANTINE_KIB
        assert s.requests[0].get("Content-Length") == str(len(body))


def test_chunked_bodies(execd):
    with Server(lambda r, sock, _: sock.sendall(reply(r.body))) as s:
        connection = execd.connect()
        for sizes in ((5, 1, 300000, 70), (), (1,) * 50):
            connection.sock.sendall(f"POST /proxy/{s.port}/c HTTP/1.1\r\nHost: x\r\n"
                                    "Transfer-Encoding: chunked\r\n\r\n".encode())
            for size in sizes:
                connection.sock.sendall(b"%x\r\n" % size + b"z" * size + b"\r\n")
            connection.sock.sendall(b"0\r\n\r\n")
            status, headers = connection.head()
            assert status == 200
            assert connection.body("POST", status, headers) == b"z" * sum(sizes)
        assert s.requests[0].get("Transfer-Encoding") == "chunked"


def test_expect_is_answered_here(execd):
    with Server(lambda r, sock, _: sock.sendall(reply(r.body))) as s:
        connection = execd.connect()
        connection.sock.sendall(f"PUT /proxy/{s.port}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
                                "Expect: 100-continue\r\n\r\n".encode())
        assert connection.head()[0] == 100
        connection.sock.sendall(b"body")
        status, headers = connection.head()
        assert connection.body("PUT", status, headers) == b"body"
        # and no invitation to send when there is nobody
        connection.sock.sendall(f"PUT /proxy/{free_port()}/ HTTP/1.1\r\nHost: x\r\n"
                                "Content-Length: 4\r\nExpect: 100-continue\r\n\r\n".encode())
        assert connection.head()[0] == 502


def test_an_upload_is_streamed(execd):
    """The server sees the first bytes while the client has not sent the last."""
    seen = []

    def answer(request, sock, reader):
        seen.append(reader.exactly(5))
        seen.append(reader.exactly(5))
        sock.sendall(reply(b"done"))
        return True
    with Server(answer, whole=False) as s:
        connection = execd.connect()
        connection.sock.sendall(f"POST /proxy/{s.port}/ HTTP/1.1\r\nHost: x\r\n"
                                "Content-Length: 10\r\n\r\nfirst".encode())
        wait_for(lambda: seen == [b"first"])
        connection.sock.sendall(b"after")
        assert connection.head()[0] == 200
        assert seen == [b"first", b"after"]


def test_an_answer_before_the_body_is_over(execd):
    """An echo that answers while it is being told; and one who wants no more."""
    def echo(request, sock, reader):
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            piece = reader.exactly(4)
            sock.sendall(b"4\r\n" + piece + b"\r\n")
        sock.sendall(b"0\r\n\r\n")

    with Server(echo, whole=False) as s:
        connection = execd.connect()
        connection.sock.sendall(f"POST /proxy/{s.port}/ HTTP/1.1\r\nHost: x\r\n"
                                "Content-Length: 12\r\n\r\n".encode())
        assert connection.head()[0] == 200
        for piece in (b"ping", b"pong", b"over"):
            connection.sock.sendall(piece)
            assert connection.chunk() == piece
        assert connection.chunk() == b""

    def refuse(request, sock, reader):
        reader.exactly(100000)
        sock.sendall(reply(b"too much", status="413 Too Large"))
        return True

    with Server(refuse, whole=False) as s:
        connection = execd.connect()
        connection.sock.sendall(f"POST /proxy/{s.port}/ HTTP/1.1\r\nHost: x\r\n"
                                "Content-Length: 500000000\r\n\r\n".encode() + b"x" * 100000)
        assert connection.head()[0] == 413


def test_a_server_that_does_not_read_holds_the_upload_back(execd):
    go = threading.Event()

    def answer(request, sock, reader):
        go.wait(20)
        digest = hashlib.sha1(reader.exactly(int(request.get("Content-Length"))))
        sock.sendall(reply(digest.hexdigest().encode()))
        return True

    body = os.urandom(1 << 20) * 64
    with Server(answer, whole=False) as s:
        before = execd.rss_kib()
        connection = execd.connect()
        connection.sock.sendall(f"PUT /proxy/{s.port}/ HTTP/1.1\r\nHost: x\r\n"
                                f"Content-Length: {len(body)}\r\n\r\n".encode())
        connection.sock.settimeout(1)
        sent = 0
        with pytest.raises(socket.timeout):
            while sent < len(body):
                sent += connection.sock.send(body[sent:sent + 262144])
        assert sent < len(body)
        assert execd.rss_kib() - before < 3000 + QUARANTINE_KIB
        assert execd.request("GET", "/ping").status == 200
        go.set()
        connection.sock.settimeout(30)
        connection.sock.sendall(body[sent:])
        status, headers = connection.head()
        assert connection.body("PUT", status, headers).decode() == hashlib.sha1(body).hexdigest()


def stands_still(sent):
    """How much was sent, if it does not get more."""
    before = len(sent)
    time.sleep(1)
    return before if len(sent) == before else 0


def test_a_client_that_does_not_read_holds_the_server_back(execd):
    body = os.urandom(1 << 20) * 64
    sent = []

    def answer(request, sock, reader):
        sock.sendall(reply(b"", fields=f"Content-Length: {len(body)}\r\n", length=False))
        for at in range(0, len(body), 1 << 20):
            sock.sendall(body[at:at + (1 << 20)])
            sent.append(at)
        return True

    with Server(answer) as s:
        before = execd.rss_kib()
        connection = execd.connect(rcvbuf=8192)
        connection.send("GET", f"/proxy/{s.port}/")
        held = wait_for(lambda: stands_still(sent))
        assert held < 50
        assert execd.rss_kib() - before < 3000 + QUARANTINE_KIB
        status, headers = connection.head()
        got = connection.body("GET", status, headers)
        assert hashlib.sha1(got).digest() == hashlib.sha1(body).digest()


def test_events_arrive_at_once(execd):
    go = [threading.Event() for _ in range(5)]

    def answer(request, sock, reader):
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n")
        for i, event in enumerate(go):
            event.wait(20)
            data = b"data: %d\n\n" % i
            sock.sendall(b"%x\r\n" % len(data) + data + b"\r\n")
        sock.sendall(b"0\r\n\r\n")

    with Server(answer) as s:
        connection = execd.connect()
        connection.send("GET", f"/proxy/{s.port}/events")
        status, headers = connection.head()  # before the first event
        assert headers["content-type"] == "text/event-stream"
        for i, event in enumerate(go):
            assert quiet(connection.sock, 0.05)
            event.set()
            began = time.monotonic()
            assert connection.chunk() == b"data: %d\n\n" % i
            assert time.monotonic() - began < 1
        assert connection.chunk() == b""


def test_a_client_that_leaves_is_seen_by_the_server(execd):
    for method, early in (("GET", False), ("GET", True), ("POST", False)):
        gone = threading.Event()

        def answer(request, sock, reader, early=early, gone=gone):
            if early:
                sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
            try:
                reader.more()
            except (EOFError, OSError):
                gone.set()
            return True

        with Server(answer, whole=False) as s:
            fds = execd.fd_count()
            connection = execd.connect()
            connection.sock.sendall(f"{method} /proxy/{s.port}/ HTTP/1.1\r\nHost: x\r\n".encode() +
                                    (b"Content-Length: 0\r\n\r\n"))
            wait_for(lambda s=s: s.requests)
            if early:
                connection.head()
            connection.close()
            assert gone.wait(5), (method, early)
            wait_for(lambda fds=fds: execd.fd_count() <= fds)


# -- connections to servers --------------------------------------------------------


def test_connections_are_used_again(execd):
    with Server(answering(reply(b"x"))) as s:
        for _ in range(20):
            assert execd.request("GET", f"/proxy/{s.port}/").text == "x"
        assert len(s.requests) == 20 and len(s.connections) == 1


def test_what_cannot_be_sent_twice_has_its_own_connection(execd):
    with Server(answering(reply(b"x"))) as s:
        for method, body in (("POST", None), ("POST", b"b"), ("PATCH", b"b"), ("PUT", b"b")):
            assert execd.request(method, f"/proxy/{s.port}/", body).text == "x"
        assert len(s.connections) == 4


def test_a_connection_its_server_closed_meanwhile(execd):
    """At every moment: before the request, and exactly when it comes."""
    seen = []

    def answer(request, sock, reader):
        seen.append(request.target)
        if request.target == "/second" and seen.count("/second") == 1:
            return True  # closes without a word
        sock.sendall(reply(request.target.encode()))
        return True if request.target == "/third" else None

    with Server(answer) as s:
        for path in ("/first", "/second", "/third", "/fourth"):
            assert execd.request("GET", f"/proxy/{s.port}{path}").text == path
        assert seen == ["/first", "/second", "/second", "/third", "/fourth"]
        assert len(s.connections) == 3


def test_surplus_bytes_poison_nothing(execd):
    with Server(answering(reply(b"one") + reply(b"two"))) as s:
        for _ in range(3):
            assert execd.request("GET", f"/proxy/{s.port}/").text == "one"
        assert len(s.connections) == 3


def test_many_at_once(execd):
    barrier = threading.Barrier(100)

    def answer(request, sock, reader):
        barrier.wait(30)
        sock.sendall(reply(request.target.encode()))

    with Server(answer) as s:
        connections = [execd.connect() for _ in range(100)]
        for i, connection in enumerate(connections):
            connection.send("GET", f"/proxy/{s.port}/{i}")
        for i, connection in enumerate(connections):
            status, headers = connection.head()
            assert connection.body("GET", status, headers) == b"/%d" % i
            connection.close()
        wait_for(lambda: execd.fd_count() < 100)
        s.close()
    wait_for(lambda: execd.fd_count() < 20)


# -- other protocols ---------------------------------------------------------------


def test_a_websocket_through_the_proxy(execd):
    """Server and client of python3-websockets, and a client of our own."""
    import websockets

    async def main():
        async def echo(ws):
            await ws.send(f"{ws.path} {ws.request_headers['X-Given']} "
                          f"{ws.request_headers.get('Sec-WebSocket-Extensions', '')} {ws.subprotocol}")
            async for message in ws:
                await ws.send(message)

        async with websockets.serve(echo, "127.0.0.1", 0, subprotocols=["b"],
                                    max_size=None) as server:
            port = server.sockets[0].getsockname()[1]
            uri = f"ws://127.0.0.1:{execd.port}/proxy/{port}/live%2Fx?q=1"
            async with websockets.connect(uri, subprotocols=["a", "b"], max_size=None,
                                          extra_headers={"X-Given": "yes"}) as ws:
                hello = await ws.recv()
                assert hello.startswith("/live%2Fx?q=1 yes permessage-deflate")
                assert ws.subprotocol == "b" and hello.endswith(" b")
                blob = os.urandom(3 << 20)
                await ws.send(blob)
                assert await ws.recv() == blob
                await (await ws.ping())
            assert ws.close_code == 1000

            def by_hand():
                ws = WebSocket(execd.port, f"/proxy/{port}/hand", headers={"X-Given": "no"})
                assert ws.status == 101
                assert ws.receive()[1].startswith(b"/hand no")
                for i in range(50):
                    ws.send(TEXT, b"%d" % i)
                    assert ws.receive() == (TEXT, b"%d" % i)
                ws.send(8, struct.pack(">H", 1000))
                with pytest.raises(Closed):
                    ws.receive()
            await asyncio.get_running_loop().run_in_executor(None, by_hand)

    asyncio.run(asyncio.wait_for(main(), 60))
    wait_for(lambda: execd.fd_count() < 20)


def test_any_upgrade(execd):
    """Bytes both ways, right behind the heads, and ends of one side alone."""
    def answer(request, sock, reader):
        assert request.get("Upgrade") == "chat/1" and request.get("Connection") == "Upgrade"
        sock.sendall(b"HTTP/1.1 101 Let Us Chat\r\nConnection: upgrade\r\nUpgrade: chat/1\r\n"
                     b"X-A: b\r\n\r\nhello")
        heard = reader.held
        while True:
            got = sock.recv(65536)
            if not got:
                break
            heard += got
        sock.sendall(b"heard " + heard)
        return True

    with Server(answer) as s:
        connection = execd.connect()
        connection.sock.sendall(f"GET /proxy/{s.port}/ HTTP/1.1\r\nHost: x\r\n"
                                "Connection: Upgrade\r\nUpgrade: chat/1\r\n\r\nearly ".encode())
        head = connection.until(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 Let Us Chat\r\n")
        assert b"X-A: b" in head and b"\r\nUpgrade: chat/1" in head
        assert connection.exactly(5) == b"hello"
        connection.sock.sendall(b"late")
        connection.sock.shutdown(socket.SHUT_WR)
        assert connection.exactly(16) == b"heard early late"
        assert connection.sock.recv(10) == b""
    wait_for(lambda: execd.fd_count() < 20)


def test_an_upgrade_that_is_refused(execd):
    with Server(answering(reply(b"no", status="403 Forbidden"))) as s:
        ws = Connection(execd.port)
        for _ in range(2):
            got = ws.request("GET", f"/proxy/{s.port}/", headers={"Connection": "Upgrade",
                                                                  "Upgrade": "websocket"})
            assert (got.status, got.text) == (403, "no")


def test_the_end_of_the_daemon_ends_what_is_under_way(start_execd):
    daemon = start_execd()
    with Server(lambda r, sock, reader: time.sleep(20)) as s:
        connection = daemon.connect()
        connection.send("GET", f"/proxy/{s.port}/")
        wait_for(lambda: s.requests)
        daemon.stop()
