# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 with real clients and origins, at their best and at their worst."""
import json
import subprocess
import threading
import time

import memory
import pytest
from conftest import HERE, SECRET
from h2_lab import ADDRESS, HOST, NGHTTPX, SHORT, WEB, ask, counter, curl, peer, rss  # noqa: F401
from lab import ORIGIN4

INTERNAL = 2  # INTERNAL_ERROR


class Client:
    """A connection that stays open: h2_client.py."""

    def __init__(self, sandbox, host=HOST):
        self.process = sandbox.popen("/usr/bin/python3", HERE / "h2_client.py", ADDRESS[host], host,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def begin(self, *requests):
        self.process.stdin.write(json.dumps(requests) + "\n")
        self.process.stdin.flush()

    def end(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, path, **more):
        self.begin(dict(more, path=path))
        return self.end()[0]

    def ask_all(self, *requests):
        self.begin(*requests)
        return self.end()

    def state(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.end()


@pytest.fixture
def client(peer):
    peer.peer.offers("h2")
    with Client(peer.sandboxes[0]) as c:
        assert c.ask("/ok")["status"] == 200
        yield c


NODE = """
const http2 = require('http2'), crypto = require('crypto');
const host = process.argv[1], session = http2.connect('https://' + host);
session.on('error', e => { console.log('session', e.message); process.exit(1); });
let left = 100, good = 0;
for (let i = 0; i < 100; i++) {
  const body = crypto.randomBytes(i * 700);
  const req = session.request({':method': 'POST', ':path': '/echo/' + i, 'x-mine': '' + i});
  let text = '', status;
  req.on('response', h => { status = h[':status']; });
  req.on('data', d => { text += d; });
  req.on('error', e => console.log(i, e.message));
  req.on('close', () => {
    const seen = status == 200 && JSON.parse(text);
    if (seen && seen.length == body.length && seen.path == '/echo/' + i) good++;
    if (!--left) { console.log('good', good); session.close(); }
  });
  req.end(body);
}
"""


def test_node_http2(peer):
    r = peer.sandboxes[0].run("node", "-e", NODE, HOST)
    assert r.stdout == "good 100\n", r.stdout + r.stderr
    seen = [x for x in peer.peer.seen(method="POST") if x["path"].startswith("/echo/")]
    assert len(seen) == 100 and all(dict(x["headers"])["authorization"] == f"Bearer {SECRET}"
                                    for x in seen)
    assert len({x["conn"] for x in seen}) <= 2


def test_curl_with_parallel_transfers(peer):
    before = counter(peer, "connections")
    r = peer.sandboxes[0].run("curl", "-sS", "--http2", "-Z", "--parallel-max", "60", "--max-time",
                              "30", "--resolve", f"{WEB}:443:{ADDRESS[WEB]}",
                              f"https://{WEB}/say/p[1-300]")
    assert sorted(r.stdout.split()) == sorted(("said " * 300).split() + [
        f"/say/p{i}" for i in range(1, 301)]), r.stderr
    assert len({x["conn"] for x in peer.nginx.seen() if x["path"].startswith("/say/p")}) <= 10
    assert counter(peer, "connections") > before


def test_nghttp_and_h2load(peer):
    r = peer.sandboxes[0].run("nghttp", "-nsv", *[f"https://{WEB}/say/n{i}" for i in range(20)])
    assert r.returncode == 0 and len([x for x in peer.nginx.seen(status=200)
                                      if x["path"].startswith("/say/n")]) == 20, r.stdout
    r = h2load(peer, WEB, 5000, 4, 100)
    assert "5000 succeeded, 0 failed, 0 errored" in r, r


def h2load(lab, host, count, clients, streams, path="/say/load"):
    return lab.sandboxes[0].run("h2load", "-n", count, "-c", clients, "-m", streams, "--connect-to",
                                f"{ADDRESS[host]}:443", f"https://{host}{path}").stdout


@pytest.mark.parametrize("streams", [1, 8, 50, 100])
def test_origin_that_takes_ten_requests_a_connection(peer, streams):
    """What its GOAWAY says it did not do is done again elsewhere."""
    r = h2load(peer, SHORT, 300, 2, streams, f"/say/ten{streams}")
    assert "300 succeeded, 0 failed, 0 errored" in r and "300 2xx" in r, r
    seen = peer.nginx.seen(path=f"/say/ten{streams}")
    assert len(seen) == 300, len(seen)
    assert len({x["conn"] for x in seen}) < 150


def test_origin_that_reloads(peer):
    """A graceful restart of the origin is not seen by anybody."""
    done = threading.Event()

    def reload():
        while not done.wait(0.25):
            peer.nginx.reload()
    thread = threading.Thread(target=reload)
    thread.start()
    try:
        r = h2load(peer, WEB, 6000, 4, 20, "/say/reload")
    finally:
        done.set()
        thread.join()
    assert "6000 succeeded, 0 failed, 0 errored" in r and "6000 2xx" in r, r


def test_nghttpx_origin(peer):
    crt, key = peer.leaf(NGHTTPX, NGHTTPX)
    peer.in_origin("nghttpx", f"--frontend={ADDRESS[NGHTTPX]},443", f"--backend={ORIGIN4},80",
                   "--workers=1", "--no-ocsp", "--errorlog-file=/dev/null", key, crt)
    peer.wait(lambda: curl(peer.sandboxes[0], "/ok", "-f", host=NGHTTPX).returncode == 0, 10, "nghttpx")
    r = h2load(peer, NGHTTPX, 500, 2, 40, "/load")
    assert "500 succeeded, 0 failed, 0 errored" in r and "500 2xx" in r, r


@pytest.mark.skipif(memory.ASAN, reason="a quarantine of freed memory grows with what passes")
def test_case_51_memory_is_that_of_what_is_under_way(peer):
    """Nothing of an exchange stays: neither its bytes nor its record."""
    def traffic():
        for count, clients, path in ((3000, 20, "/say/much"), (100, 4, "/big/1000000")):
            r = h2load(peer, WEB, count, clients, 20, path)
            assert f"{count} succeeded, 0 failed, 0 errored" in r, r
        r = peer.sandboxes[0].run("curl", "-sS", "--http1.1", "--max-time", "30", "--resolve",
                                  f"{WEB}:443:{ADDRESS[WEB]}", f"https://{WEB}/say/[1-500]")
        assert r.stdout.count("said") == 500, r.stderr
    def at_rest():
        time.sleep(2)  # after one second without traffic free memory is given back
        return rss(peer)
    traffic()
    rests, exchanges = [at_rest()], counter(peer, "exchanges")
    for _ in range(3):  # what leaks grows each time, how much of the heap is in use only now and then
        for _ in range(3):
            traffic()
        rests.append(at_rest())
        if rests[-1] - rests[-2] < 2048:
            break
    assert counter(peer, "exchanges") - exchanges == (len(rests) - 1) * 3 * 3600
    assert rests[-1] - rests[-2] < 2048, f"{rests} KiB"


# -- an origin that misbehaves -------------------------------------------------

def test_refused_stream_is_repeated_whatever_the_method(peer, client):
    assert client.ask("/once/get")["body"] == "at last\n"
    assert client.ask("/once/post", method="POST")["body"] == "at last\n"
    assert len(peer.peer.seen(path="/once/post")) == 2


def test_refused_stream_is_not_repeated_when_its_body_is_gone(peer, client):
    r = client.ask("/once/body", method="POST", body="x" * 1000)
    assert r["status"] == 502 and len(peer.peer.seen(path="/once/body")) == 1, r


def test_goaway_of_the_origin_with_streams_open(peer, client):
    """Those above the last id run again, those below run on."""
    slow, first, second = client.ask_all({"path": "/slow/0.1"}, {"path": "/goaway/1"}, {"path": "/ok"})
    assert first["body"] == "again\n", first
    assert slow["status"] in (200, 502) and second["status"] == 200, (slow, second)
    seen = peer.peer.seen(path="/goaway/1")
    assert len(seen) == 2 and seen[0]["conn"] != seen[1]["conn"]


@pytest.mark.parametrize("code", [1, 2, 8, 11, 13])
def test_reset_before_an_answer_is_a_502_with_its_reason(peer, client, code):
    r = client.ask(f"/reset/{code}")
    assert r["status"] == 502, r
    record = peer.record(path=f"/reset/{code}")
    assert record["reason"] == "origin_failed" and record["detail"], record
    assert client.ask("/ok")["status"] == 200  # the connections live on


def test_reset_in_the_middle_is_seen_as_broken_off(peer, client):
    r = client.ask("/half")
    assert r["reset"] == INTERNAL, r
    assert peer.record(path="/half")["reason"] == "origin_failed"
    assert client.ask("/ok")["status"] == 200


@pytest.mark.parametrize("code, told", [(0, INTERNAL), (1, INTERNAL), (3, INTERNAL), (7, 7), (8, 8),
                                        (10, 10), (11, 11), (12, 12), (13, 13), (99, INTERNAL)])
def test_code_of_a_reset_in_the_middle_is_passed_on(peer, client, code, told):
    """Clients of gRPC make a status of it."""
    r = client.ask(f"/torn/{code}")
    assert r["status"] == 200 and r["body"] == "half of it" and r["reset"] == told, r


def test_connection_closed_in_the_middle_is_seen_as_broken_off(peer, client):
    r = client.ask("/cut")
    assert r["status"] == 200 and r["body"] == "half of it" and r["reset"] == INTERNAL, r
    assert peer.record(path="/cut")["detail"] == "the connection ended"
    r = curl(peer.sandboxes[0], "/cut", "--http1.1")
    assert r.returncode in (18, 56) and r.stdout == "half of it", (r.returncode, r.stderr)


def test_connection_closed_before_an_answer(peer, client):
    """Repeated once where that is safe, then said."""
    client.ask("/ok")
    r = client.ask("/drop/get")
    assert r["status"] == 502 and len(peer.peer.seen(path="/drop/get")) == 2, r
    client.ask("/ok")
    r = client.ask("/drop/post", method="POST", body="x")
    assert r["status"] == 502 and len(peer.peer.seen(path="/drop/post")) == 1, r


def test_origin_that_went_away_between_two_requests(peer, client):
    for i in range(5):
        assert client.ask("/bye")["status"] == 200
        time.sleep(0.05 * i)
        assert client.ask("/ok")["status"] == 200


# -- bridges ---------------------------------------------------------------------

def body_of(response):
    return json.loads(response["body"])


def test_http1_client_of_an_origin_of_http2_only(peer):
    peer.peer.offers("h2")
    r = curl(peer.sandboxes[0], "/one", "--http1.1", "-H", "Connection: x-hop", "-H", "X-Hop: 1",
             "-d", "data", "-w", "%{http_version}")
    assert r.stdout.endswith("1.1"), r.stderr
    seen = json.loads(r.stdout[:-3])
    names = dict(seen["headers"])
    assert seen["version"] == 2 and seen["length"] == 4 and "x-hop" not in names, seen
    assert names["authorization"] == f"Bearer {SECRET}" and "connection" not in names


@pytest.fixture
def bridge(peer):
    """A client of HTTP/2 whose origin speaks HTTP/1.1 from now on."""
    peer.peer.offers("h2")
    with Client(peer.sandboxes[0]) as c:
        peer.peer.offers("http/1.1")
        for _ in range(30):  # each ends one of the connections that are kept
            if c.ask("/bye")["body"] != "bye\n":
                break
            time.sleep(0.15)
        yield c
    peer.peer.offers("h2")


def test_http2_client_of_an_http1_origin(peer, bridge):
    seen = body_of(bridge.ask("/ok", headers=[["x-mine", "1"], ["te", "trailers"]]))
    names = dict(seen["headers"])
    assert seen["version"] == 1 and names["host"] == HOST and names["x-mine"] == "1", seen
    assert names["authorization"] == f"Bearer {SECRET}" and not [n for n in names if n[0] == ":"]
    seen = body_of(bridge.ask("/up", method="POST", body="x" * 30000))
    assert seen["length"] == 30000 and dict(seen["headers"])["transfer-encoding"] == "chunked", seen
    seen = body_of(bridge.ask("/up", method="POST", body="x" * 30000,
                              headers=[["content-length", "30000"]]))
    assert seen["length"] == 30000 and dict(seen["headers"])["content-length"] == "30000", seen
    r = bridge.ask("/ok")
    assert not {"connection", "keep-alive", "transfer-encoding"} & set(dict(r["headers"])), r


def test_cookie_crumbs_are_one_cookie_in_http1(peer, bridge):
    seen = body_of(bridge.ask("/ok", headers=[["cookie", "a=1"], ["cookie", "b=2"], ["x", "y"],
                                              ["cookie", "c=3"]]))
    assert [v for n, v in seen["headers"] if n == "cookie"] == ["a=1; b=2; c=3"], seen


def test_trailers_cross_the_bridge_from_http2(peer, bridge):
    seen = body_of(bridge.ask("/up", method="POST", body="data", trailers=[["x-check", "abc"]]))
    assert seen["trailers"] == [["x-check", "abc"]] and seen["length"] == 4, seen
    r = bridge.ask("/trailers")
    assert r["body"] == "body\n" and r["trailers"] == [["x-sum", "42"], ["x-more", "7"]], r


def test_interim_answers_cross_the_bridge_from_http1(peer, bridge):
    r = bridge.ask("/interim")
    assert r["status"] == 200 and r["body"] == "final\n", r
    assert [dict(h)["link"] for h in r["interim"]] == ["</a>; rel=preload", "</b>; rel=preload"]


def test_http1_answer_that_is_cut_resets_the_stream(peer, bridge):
    r = bridge.ask("/cut")
    assert r["status"] == 200 and r["body"] == "half " and r["reset"] == INTERNAL, r


def test_trailers_cross_the_bridge_to_http2(peer):
    request = (f"POST /echo HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: chunked\r\n"
               "Trailer: X-Check\r\n\r\n4\r\ndata\r\n0\r\nX-Check: abc\r\n\r\n")
    r = peer.sandboxes[0].run("/usr/bin/python3", HERE / "raw.py", "tls", ADDRESS[HOST], "443", HOST,
                              input=request, env=dict(peer.sandboxes[0].env(), WAIT="1"))
    assert '"trailers": [["x-check", "abc"]]' in r.stdout and '"length": 4' in r.stdout, r.stdout
    r = peer.sandboxes[0].run("/usr/bin/python3", HERE / "raw.py", "tls", ADDRESS[HOST], "443", HOST,
                              input=f"GET /trailers HTTP/1.1\r\nHost: {HOST}\r\n\r\n",
                              env=dict(peer.sandboxes[0].env(), WAIT="1"))
    assert "body\n" in r.stdout and r.stdout.lower().rstrip().endswith("x-sum: 42\r\nx-more: 7"), r.stdout


def test_interim_answers_cross_the_bridge_to_http1(peer):
    for version in ("--http1.1", "--http2"):
        r = curl(peer.sandboxes[0], "/interim", version, "-i")
        assert r.stdout.count(" 103") == 2 and "rel=preload" in r.stdout, r.stdout
        assert r.stdout.endswith("final\n") and " 200" in r.stdout


# -- limits ------------------------------------------------------------------------

def test_large_header_lists_are_refused_cleanly(peer, client):
    big = [[f"x-{i}", "v" * 1000] for i in range(60)]
    assert client.ask("/ok", headers=big)["status"] == 200
    r = client.ask("/ok", headers=big + [["y", "v" * 8000]])
    assert r["status"] == 431 or r["reset"] is not None, r
    many = [[f"x-{i}", "v"] for i in range(400)]
    r = client.ask("/ok", headers=many)
    assert r["status"] in (200, 431) or r["reset"] is not None, r
    assert client.ask("/ok")["status"] == 200, client.state()


def test_large_header_list_of_an_origin_is_refused_cleanly(peer, client):
    assert client.ask("/bighead/50")["status"] == 200
    r = client.ask("/bighead/100")
    assert r["status"] == 502, r
    assert client.ask("/ok")["status"] == 200
    assert "502" in curl(peer.sandboxes[0], "/bighead/100", "--http1.1", "-i").stdout.split("\n")[0]


# -- what changes while a connection is open ------------------------------------------

def test_policy_is_asked_for_each_stream(peer, client):
    assert client.ask("/ok")["status"] == 200
    with peer.policy([{"action": "allow", "target": HOST, "methods": ["GET"], "paths": ["/ok"]},
                      {"action": "allow", "target": f"{ADDRESS[HOST]}/32", "methods": ["GET"],
                       "paths": ["/ok"]}]):
        time.sleep(0.2)
        assert client.ask("/ok")["status"] == 200
        r = client.ask("/other")
        assert r["status"] == 403 and dict(r["headers"])["sallyport-denied"], r
    time.sleep(0.2)
    assert client.ask("/other")["status"] == 200


def test_policy_that_forbids_the_host_cuts_its_streams(peer, client):
    client.begin({"path": "/hang"})
    time.sleep(0.3)
    with peer.policy([{"action": "allow", "target": "api.lab.test"}]):
        [r] = client.end()
        assert r["status"] == 403 or r["reset"] is not None, r
        state = client.state()
        assert state["goaway"] and state["closed"], state
        assert peer.record(path="/hang", reason="cut")
    assert curl(peer.sandboxes[0], "/ok").returncode == 0


def test_binding_is_looked_up_for_each_stream(peer, client):
    auth = dict(body_of(client.ask("/ok"))["headers"])["authorization"]
    assert auth == f"Bearer {SECRET}"
    other = "tok-other-19b7c0de55aa-of-the-day"
    peer.credential("other-token", other)
    hosts = {"match": {"hosts": list(ADDRESS)}}
    try:
        peer.binding(dict(hosts, name="opened", auth={"type": "bearer", "credential": "other-token"}))
        time.sleep(0.3)
        assert dict(body_of(client.ask("/ok"))["headers"])["authorization"] == f"Bearer {other}"
        peer.admin.call("DELETE", "/v1/bindings/opened", expect=204)
        time.sleep(0.3)
        assert "authorization" not in dict(body_of(client.ask("/ok"))["headers"])
    finally:
        peer.binding(dict(hosts, name="opened", auth={"type": "bearer", "credential": "api-token"}))
        time.sleep(0.3)


def test_sandbox_that_is_deregistered_is_cut(peer, client):
    client.begin({"path": "/hang"})
    time.sleep(0.3)
    sandbox = peer.sandboxes[0]
    peer.admin.call("DELETE", f"/v1/sandboxes/{sandbox.id}", expect=204)
    try:
        [r] = client.end()
        assert r["status"] == 403 or r["reset"] is not None, r
        state = client.state()
        assert state["closed"], state
        assert ask(sandbox)[0] == "000"
    finally:
        peer.register(sandbox, team="lab")
    peer.wait(lambda: ask(sandbox)[0] == "200", 5, "the sandbox to be back")


def test_sandboxes_share_no_connection(peer):
    for sandbox in peer.sandboxes * 2:
        assert curl(sandbox, "/share").returncode == 0
    seen = [x["conn"] for x in peer.peer.seen(path="/share")]
    assert len(seen) == 4 and seen[0] == seen[2] and seen[1] == seen[3] and seen[0] != seen[1], seen


def test_hosts_share_no_connection(peer):
    """The same address and certificate do not make the same destination."""
    assert curl(peer.sandboxes[0], "/say/mine", host=WEB).returncode == 0
    assert curl(peer.sandboxes[0], "/say/mine", host=SHORT).returncode == 0
    assert len({x["conn"] for x in peer.nginx.seen(path="/say/mine")}) == 2


# -- the end -----------------------------------------------------------------------

def test_stopping_lets_open_streams_end(peer):
    """Last: the daemon is stopped, and started again."""
    with Client(peer.sandboxes[0]) as busy, Client(peer.sandboxes[1]) as idle:
        assert idle.ask("/ok")["status"] == 200
        assert busy.ask("/ok")["status"] == 200
        busy.begin({"path": "/slow/1.5"}, {"path": "/drip/10"}, {"path": "/hang"})
        time.sleep(0.3)
        start = time.monotonic()
        stopped = threading.Thread(target=peer.stop)
        stopped.start()
        time.sleep(0.2)
        assert idle.state()["goaway"]
        slow, drip, hang = busy.end()
        assert slow["body"] == "slow\n" and drip["body"] == "first\n" + "drop\n" * 10, (slow, drip)
        assert hang["status"] is None, hang
        stopped.join()
        assert time.monotonic() - start < 8
        assert idle.state()["closed"] and busy.state()["closed"]
    peer.start()
    with Client(peer.sandboxes[0]) as busy:
        assert busy.ask("/ok")["status"] == 200
        busy.begin({"path": "/slow/1"})
        time.sleep(0.3)
        start = time.monotonic()
        assert peer.stop() == 0
        assert time.monotonic() - start < 3  # as soon as nothing is open
        assert busy.end()[0]["body"] == "slow\n"
    peer.start()
    peer.wait(lambda: ask(peer.sandboxes[1])[0] == "200", 5, "the gateway")
