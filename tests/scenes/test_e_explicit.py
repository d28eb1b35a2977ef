# SPDX-License-Identifier: Apache-2.0
"""The explicit proxy, for clients that insist on one: what is intercepted and
what comes through it is decided, opened, injected and refused alike."""
import json
import subprocess

import nginx
import pytest
from conftest import SECRET, open_lab
from lab import ORIGIN4, OTHER4, run

NAME, PORT = "proxy.sallyport.internal", 3128
HTTP = f"http://{NAME}:{PORT}"

# python in the sandbox: a connection to the proxy, and what can be said on it
PEER = """
import json, socket, ssl, struct, sys, time
PROXY = ('192.0.0.8', 3128)
def dial(address=PROXY):
    s = socket.create_connection(address, timeout=10)
    return s
def until(s, mark):
    data = b''
    while mark not in data:
        more = s.recv(65536)
        if not more:
            break
        data += more
    return data
def answer(s):
    '''One response with Content-Length: (status, head, body).'''
    data = until(s, b'\\r\\n\\r\\n')
    if b'\\r\\n\\r\\n' not in data:
        return 0, data, b''
    head, body = data.split(b'\\r\\n\\r\\n', 1)
    length = 0
    for line in head.split(b'\\r\\n')[1:]:
        name, value = line.split(b':', 1)
        if name.lower() == b'content-length':
            length = int(value)
    while len(body) < length:
        more = s.recv(65536)
        if not more:
            break
        body += more
    return int(head.split(b' ')[1]), head, body
def connect(target, more=b'', address=PROXY):
    s = dial(address)
    s.sendall(b'CONNECT %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n' % (target.encode(), target.encode()) + more)
    return s
def tunnel(target, address=PROXY):
    s = connect(target, address=address)
    head = b''
    while not head.endswith(b'\\r\\n\\r\\n'):  # and no byte of what follows
        more = s.recv(1)
        assert more, head
        head += more
    assert head.startswith(b'HTTP/1.1 200 '), head
    return s
def socks(request, methods=b'\\5\\1\\0'):
    s = dial()
    s.sendall(methods + request)
    chosen = s.recv(2)
    return s, chosen, s.recv(10)
def by_name(name, port):
    return b'\\5\\1\\0\\3' + bytes([len(name)]) + name.encode() + struct.pack('>H', port)
def tls(s, sni):
    c = ssl.create_default_context()
    c.check_hostname = bool(sni)
    return c.wrap_socket(s, server_hostname=sni)
def get(s, host, path):
    s.sendall(b'GET %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n' % (path.encode(), host.encode()))
    return answer(s)
def end(s):
    '''How it ends: "end", "reset" or "open".'''
    s.settimeout(5)
    try:
        while s.recv(65536):
            pass
        return 'end'
    except ConnectionError:
        return 'reset'
    except TimeoutError:
        return 'open'
"""


@pytest.fixture(scope="module")
def lab():
    with open_lab("e", {"timeouts": {"headMs": 1500}}) as lab:
        lab.binding({"name": "api", "match": {"hosts": ["api.lab.test"],
                                              "schemes": ["https", "http"],
                                              "ports": [443, 80]},
                     "auth": {"type": "bearer", "credential": "api-token"}})
        yield lab


def peer(sandbox, code, *args):
    """Runs code after PEER; its output."""
    r = sandbox.python(PEER + code, *args, timeout=60)
    assert r.returncode == 0, r.stdout + r.stderr
    return r.stdout


def was_injected(origin_seen, **match):
    seen = origin_seen(**match)
    assert seen, match
    return all(["Authorization", f"Bearer {SECRET}"] in r["headers"] for r in seen)


# -- clients ------------------------------------------------------------------

@pytest.mark.parametrize("proxy", [
    HTTP, f"http://192.0.0.8:{PORT}", f"http://[100::5350]:{PORT}",
    f"socks5h://{NAME}:{PORT}", f"socks5://{NAME}:{PORT}", f"socks5h://[100::5350]:{PORT}"])
def test_curl_with_a_proxy_carries_the_credential(lab, sandbox, origin_seen, proxy):
    path = "/by/" + proxy.replace("/", "").replace(":", "-").replace("[", "").replace("]", "")
    status, body, err = sandbox.curl("-x", proxy, "https://api.lab.test" + path)
    assert status == 200, body + err
    assert was_injected(origin_seen, path=path)
    record = lab.record(path=path)
    assert record["injected"] and record["inspected"] and record["host"] == "api.lab.test"
    assert record["sandbox"] == "sandbox-1"
    assert record["proxy"] == ("socks5" if "socks" in proxy else "connect")
    assert SECRET not in body + lab.log() + lab.audit_text()


@pytest.mark.parametrize("proxy", [HTTP, f"socks5h://{NAME}:{PORT}", f"socks5://{NAME}:{PORT}"])
def test_curl_with_a_proxy_over_plain_http(lab, sandbox, origin_seen, proxy):
    path = "/plain-" + proxy[:6].strip(":/")
    status, body, err = sandbox.curl("-x", proxy, f"http://api.lab.test{path}")
    assert status == 200, body + err
    assert was_injected(origin_seen, path=path, scheme="http")
    assert lab.record(path=path)["proxy"] == ("socks5" if "socks" in proxy else "absolute")


def test_what_is_not_opened_passes_through_a_tunnel(lab, sandbox, origin_seen):
    status, body, err = sandbox.curl("-x", HTTP, "--cacert", lab.origin_ca,
                                     "https://pinned.lab.test/own-tls")
    assert status == 200, body + err
    record = lab.record(kind="tunnel", host="pinned.lab.test")
    assert record["proxy"] == "connect" and not record.get("inspected")


def test_python_git_and_their_variables(lab, sandbox, origin_seen):
    env = dict(sandbox.env(), HTTPS_PROXY=HTTP, https_proxy=HTTP, http_proxy=HTTP)
    r = sandbox.run("/usr/bin/python3", "-c", """
import urllib.request
for url in ('https://api.lab.test/urllib', 'http://plain.lab.test/urllib-plain'):
    print(urllib.request.urlopen(url, timeout=10).status)
""", env=env)
    assert r.stdout.split() == ["200", "200"], r.stdout + r.stderr
    assert was_injected(origin_seen, path="/urllib")
    sandbox.run("git", "ls-remote", "https://api.lab.test/x.git", env=env)
    assert was_injected(origin_seen, path="/x.git/info/refs?service=git-upload-pack")
    assert lab.record(path="/x.git/info/refs")["proxy"] == "connect"
    assert lab.record(path="/urllib-plain")["proxy"] == "absolute"


def test_case_44_plain_http_inside_connect(lab, sandbox, origin_seen):
    """node's undici asks with CONNECT for http:// destinations as well."""
    r = sandbox.run("node", "-e", """
const http = require('http');
const req = http.request({host: '192.0.0.8', port: 3128, method: 'CONNECT',
                          path: 'api.lab.test:80'});
req.on('connect', (res, socket) => {
  const inner = http.request({createConnection: () => socket,
      host: 'api.lab.test', path: '/case-44'}, (r) => {
    console.log(res.statusCode, r.statusCode);
    r.resume(); r.on('end', () => socket.destroy());
  });
  inner.end();
});
req.end();
""")
    assert r.stdout.strip() == "200 200", r.stdout + r.stderr
    assert was_injected(origin_seen, path="/case-44", scheme="http")
    record = lab.record(path="/case-44")
    assert record["proxy"] == "connect" and record["scheme"] == "http"


def test_an_upgrade_inside_connect(lab, sandbox, origin_seen):
    out = peer(sandbox, """
s = tls(tunnel('api.lab.test:443'), 'api.lab.test')
s.sendall(b'GET /upgrade HTTP/1.1\\r\\nHost: api.lab.test\\r\\nConnection: Upgrade\\r\\n'
          b'Upgrade: websocket\\r\\n\\r\\n')
print(until(s, b'\\r\\n\\r\\n').split(b' ')[1].decode())
s.sendall(b'there and back')
print(until(s, b'back').decode())
""")
    assert out.split("\n")[:2] == ["101", "there and back"]
    assert was_injected(origin_seen, path="/upgrade")


H2 = """
  server {{
    listen {address}:443 ssl http2; server_name two.lab.test;
    ssl_certificate {crt}; ssl_certificate_key {key};
    location /echo {{ add_header X-Length $http_authorization; return 200 "two\\n"; }}
  }}
"""


def test_http2_inside_a_tunnel(lab, sandbox):
    address = "10.212.2.5"  # where open_lab pins it to
    run("ip", "-n", lab.org, "addr", "add", f"{address}/24", "dev", "o0")
    crt, key = lab.leaf("two", "two.lab.test")
    web = lab.tmp / "two"
    nginx.launch(lab, web, H2.format(address=address, crt=crt, key=key))
    lab.binding({"name": "two", "match": {"hosts": ["two.lab.test"]},
                 "auth": {"type": "bearer", "credential": "api-token"}})
    with lab.policy([{"action": "allow", "target": "two.lab.test"}]):
        for proxy in (HTTP, f"socks5h://{NAME}:{PORT}"):
            r = sandbox.run("curl", "-sS", "--http2", "-x", proxy, "-D", "-", "--max-time", "15",
                            "https://two.lab.test/echo")
            assert r.stdout.endswith("two\n") and "HTTP/2 200" in r.stdout, r.stdout + r.stderr
            # it came with the credential, of which the answer must not tell
            assert "x-length: Bearer [REDACTED]" in r.stdout and SECRET not in r.stdout
    assert lab.record(host="two.lab.test", path="/echo")["proxy"] == "socks5"


# -- absolute-form ------------------------------------------------------------

def test_one_connection_to_many_hosts(lab, sandbox, origin_seen):
    out = peer(sandbox, """
s = dial()
for host in ('plain.lab.test', 'evil.lab.test', 'other.lab.test', 'api.lab.test',
             'plain.lab.test', 'evil.lab.test:80'):
    s.sendall(b'GET http://%s/many HTTP/1.1\\r\\nHost: %s\\r\\nProxy-Connection: keep-alive\\r\\n'
              b'Proxy-Authorization: Basic c2VjcmV0\\r\\n\\r\\n' % (host.encode(), host.encode()))
    status, head, body = answer(s)
    print(host, status)
    if status == 403:
        assert b'Sallyport-Denied: policy' in head, head
        assert json.loads(body)['host'] == host, body
""")
    assert out.split("\n")[:-1] == [
        "plain.lab.test 200", "evil.lab.test 200", "other.lab.test 403", "api.lab.test 200",
        "plain.lab.test 200", "evil.lab.test:80 200"]
    seen = origin_seen(path="/many")
    assert [r["local"] == OTHER4 for r in seen] == [False, True, False, False, True]
    for r in seen:
        names = {k.lower(): v for k, v in r["headers"]}
        assert "proxy-authorization" not in names and "proxy-connection" not in names
        assert ("authorization" in names) == (names["host"] == "api.lab.test")
    assert [r["host"] for r in lab.records(path="/many", proxy="absolute")] == [
        "plain.lab.test", "evil.lab.test", "other.lab.test", "api.lab.test",
        "plain.lab.test", "evil.lab.test"]


def test_a_connection_may_ask_for_ever(lab, sandbox):
    """Nothing is kept of the destinations before."""
    out = peer(sandbox, """
s = dial()
done = 0
for turn in range(60):
    for i in range(100):
        s.sendall(b'GET http://plain.lab.test/204 HTTP/1.1\\r\\nHost: plain.lab.test\\r\\n\\r\\n')
        head = until(s, b'\\r\\n\\r\\n')
        done += head.startswith(b'HTTP/1.1 204')
print(done)
""")
    assert out.strip() == "6000"


def test_requests_pipelined_to_several_hosts(lab, sandbox, origin_seen):
    out = peer(sandbox, """
s = dial()
s.sendall(b''.join(b'GET http://%s/piped HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n' % (h, h)
                   for h in (b'plain.lab.test', b'other.lab.test', b'evil.lab.test')) +
          b'CONNECT api.lab.test:443 HTTP/1.1\\r\\nHost: api.lab.test:443\\r\\n\\r\\n')
data = b''
while b'200 Connection established\\r\\n\\r\\n' not in data:
    more = s.recv(65536)
    assert more, data
    data += more
print([int(x.split(b' ')[0]) for x in data.split(b'HTTP/1.1 ')[1:]])
c = tls(s, 'api.lab.test')
print(get(c, 'api.lab.test', '/after-pipe')[0])
""")
    assert out.split("\n")[:2] == ["[200, 403, 200, 200]", "200"]
    assert was_injected(origin_seen, path="/after-pipe")


@pytest.mark.parametrize("line, more, status", [
    ("GET http://plain.lab.test/x HTTP/1.1", "Host: api.lab.test", 400),
    ("GET https://plain.lab.test/x HTTP/1.1", "Host: plain.lab.test", 400),
    ("GET /x HTTP/1.1", f"Host: {NAME}:{PORT}", 400),
    ("OPTIONS * HTTP/1.1", "Host: plain.lab.test", 400),
    ("GET http://user@plain.lab.test/x HTTP/1.1", "Host: plain.lab.test", 400),
    ("GET ftp://plain.lab.test/x HTTP/1.1", "Host: plain.lab.test", 400),
    ("CONNECT plain.lab.test HTTP/1.1", "Host: plain.lab.test", 400),
    ("CONNECT plain.lab.test:0 HTTP/1.1", "Host: plain.lab.test:0", 400),
    ("CONNECT 127.1:80 HTTP/1.1", "Host: 127.1:80", 400),
    ("CONNECT plain.lab.test:80 HTTP/1.1", "Host: plain.lab.test:80\r\nContent-Length: 5", 400),
    (f"CONNECT {NAME}:{PORT} HTTP/1.1", f"Host: {NAME}:{PORT}", 403),
    (f"CONNECT 192.0.0.8:{PORT} HTTP/1.1", f"Host: 192.0.0.8:{PORT}", 403),
    (f"CONNECT [100::5350]:{PORT} HTTP/1.1", f"Host: [100::5350]:{PORT}", 403),
    (f"GET http://{NAME}:{PORT}/ HTTP/1.1", f"Host: {NAME}:{PORT}", 403),
    ("CONNECT other.lab.test:443 HTTP/1.1", "Host: other.lab.test:443", 403),
    ("CONNECT plain.lab.test:443 HTTP/2.0", "Host: plain.lab.test:443", 400),
])
def test_requests_that_are_refused(lab, sandbox, origin_seen, line, more, status):
    out = peer(sandbox, """
s = dial()
s.sendall(('\\r\\n'.join(sys.argv[1:]) + '\\r\\n\\r\\n').encode())
status, head, body = answer(s)
print(status, b'Sallyport-Denied: ' in head, 'detail' in json.loads(body))
""", line, more)
    assert out.strip() == f"{status} True True", out
    assert not origin_seen()


# -- what is inside must be what was asked for ---------------------------------

def test_the_name_inside_must_be_the_one_asked_for(lab, sandbox, origin_seen):
    out = peer(sandbox, """
for ask, sni in (('plain.lab.test:443', 'api.lab.test'), ('api.lab.test:443', 'plain.lab.test')):
    try:
        tls(tunnel(ask), sni)
        print('opened')
    except ssl.SSLError as e:
        print(e.reason)
s = tunnel('plain.lab.test:80')
print(get(s, 'api.lab.test', '/other')[0], get(s, 'plain.lab.test', '/same')[0])
""")
    assert out.split("\n")[:3] == ["TLSV1_ALERT_ACCESS_DENIED", "TLSV1_ALERT_ACCESS_DENIED",
                                   "421 200"]
    assert [r["path"] for r in origin_seen()] == ["/same"]
    assert lab.record(reason="misdirected", kind="connect")["proxy"] == "connect"


def test_without_a_name_inside_the_one_asked_for_stands(lab, sandbox, origin_seen):
    out = peer(sandbox, "print(get(tls(tunnel('api.lab.test:443'), None), 'api.lab.test',"
                        " '/no-sni')[0])")
    assert out.strip() == "200"
    assert was_injected(origin_seen, path="/no-sni")


def test_an_address_is_an_original_destination(lab, sandbox, origin_seen):
    """By address the name inside decides, as for a connection made to it."""
    out = peer(sandbox, """
address = sys.argv[1]
print(get(tls(tunnel(address + ':443'), 'api.lab.test'), 'api.lab.test', '/by-address')[0])
print(get(tunnel(address + ':80'), 'plain.lab.test', '/by-address-plain')[0])
try:
    tls(tunnel(address + ':443'), 'other.lab.test')
except ssl.SSLError as e:
    print(e.reason)
s, _, reply = socks(b'\\5\\1\\0\\1' + socket.inet_aton(address) + b'\\x01\\xbb')
print(reply[1], get(tls(s, 'api.lab.test'), 'api.lab.test', '/by-socks')[0])
print(get(tunnel(address + ':80'), address, '/nobody')[0])
""", ORIGIN4)
    assert out.split("\n")[:5] == ["200", "200", "TLSV1_ALERT_ACCESS_DENIED", "0 200", "403"]
    assert was_injected(origin_seen, path="/by-address")
    assert was_injected(origin_seen, path="/by-socks")
    record = lab.record(path="/by-address")
    assert record["original"] == f"{ORIGIN4}:443" and record["proxy"] == "connect"


def test_a_private_address_stays_refused(lab, sandbox, origin_seen):
    """A name that is allowed everywhere leads no further inside by proxy."""
    with lab.policy([], defaultAction="allow"):
        out = peer(sandbox, """
print(answer(connect('free.lab.test:443'))[0])
print(socks(by_name('free.lab.test', 443))[2][1])
s = dial(); s.sendall(b'GET http://%s/in HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n' % ((sys.argv[1].encode(),) * 2))
print(answer(s)[0])
print(get(tunnel(sys.argv[1] + ':80'), sys.argv[1], '/in')[0])
""", ORIGIN4)
    assert out.split() == ["403", "2", "403", "403"]
    assert not origin_seen()


def test_no_address_is_found_in_a_name(lab, sandbox, origin_seen):
    """A denied name has no address that a rule for every address could allow."""
    with lab.policy([{"action": "deny", "target": "other.lab.test"},
                     {"action": "allow", "target": "::/0"},
                     {"action": "allow", "target": "0.0.0.0/0"}]):
        out = peer(sandbox, """
print(answer(connect('other.lab.test:443'))[0], socks(by_name('other.lab.test', 443))[2][1])
""")
    assert out.split() == ["403", "2"]


# -- servers that greet ---------------------------------------------------------

GREETER = """
import socket, sys, threading
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], int(sys.argv[2]))); s.listen(16); print('ready', flush=True)
def serve(c):
    c.sendall(b'220 greeting\\r\\n')
    while True:
        data = c.recv(4096)
        if not data: break
        c.sendall(b'you said ' + data)
    c.close()
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"""


@pytest.fixture(scope="module")
def greeter(lab):
    for port in (2525, 22):
        ready = lab.tmp / f"greeter-{port}"
        lab.in_origin("/usr/bin/python3", "-c", GREETER, ORIGIN4, port, stdout=open(ready, "wb"))
        lab.wait(lambda: ready.read_text(), 5, "the greeter")


@pytest.mark.parametrize("port", [2525, 22])
def test_a_server_speaks_first_inside(lab, sandbox, greeter, port):
    with lab.policy([{"action": "allow", "target": "plain.lab.test"}]):
        out = peer(sandbox, """
port = int(sys.argv[1])
s = tunnel('plain.lab.test:%d' % port)
print(s.recv(100)); s.sendall(b'hello'); print(s.recv(100))
s, _, reply = socks(by_name('plain.lab.test', port))
print(reply[1], s.recv(100))
""", port)
    assert out.split("\n")[:3] == ["b'220 greeting\\r\\n'", "b'you said hello'",
                                  "0 b'220 greeting\\r\\n'"]
    record = lab.record(kind="tunnel", port=port, proxy="connect")
    assert record["host"] == "plain.lab.test" and record["scheme"] == "tcp"
    assert "hostFrom" not in record


def test_unseen_bytes_go_nowhere_that_is_to_be_seen(lab, sandbox, greeter):
    """Methods in a rule, and a credential that is bound, ask for HTTP."""
    with lab.policy([{"action": "allow", "target": "limited.lab.test", "methods": ["GET"]},
                     {"action": "allow", "target": "api.lab.test"}]):
        out = peer(sandbox, """
for name, port in (('limited.lab.test', 2525), ('api.lab.test', 443), ('limited.lab.test', 22)):
    s = tunnel('%s:%d' % (name, port))
    if port != 22:
        s.sendall(b'\\0\\1\\2\\3')
    print(end(s))
""")
    assert out.split() == ["reset"] * 3


# -- SOCKS5 --------------------------------------------------------------------

@pytest.mark.parametrize("request_hex, reply", [
    ("0502000100000000 0050", 7), ("0503000100000000 0000", 7),  # BIND, UDP ASSOCIATE
    ("0501000200000000 0050", 8), ("0501010100000000 0050", 1),
    ("050100010a000001 0000", 1),  # port 0
    ("05010003 15 6576696c2e636f6d002e747275737465642e636f6d 01bb", 1),  # case 4: NUL
    ("05010003 00 01bb", 1),
    ("05010001 c0000008 0c38", 2),  # the proxy itself
    ("05010003 0e 6f746865722e6c61622e74657374 01bb", 2),  # other.lab.test
    ("05010003 10 6e6f7468696e672e6c61622e74657374 01bb", 2),
])
def test_socks_refusals(lab, sandbox, origin_seen, request_hex, reply):
    out = peer(sandbox, """
s, chosen, reply = socks(bytes.fromhex(sys.argv[1]))
print(chosen, reply[1], len(reply), end(s))
""", request_hex)
    assert out.strip() == f"{bytes([5, 0])} {reply} 10 end"
    assert lab.record(kind="connect")["verdict"] == "deny"


def test_socks_methods(lab, sandbox):
    out = peer(sandbox, """
for methods in (b'\\5\\1\\2', b'\\5\\0', b'\\5\\2\\1\\2'):
    s = dial(); s.sendall(methods); print(s.recv(9).hex(), end(s))
s, chosen, reply = socks(by_name('plain.lab.test', 80), b'\\5\\3\\1\\2\\0')
print(chosen.hex(), reply[1], get(s, 'plain.lab.test', '/methods')[0])
s = dial(); s.sendall(b'\\4\\1\\0\\x50\\x0a\\0\\0\\1u\\0'); print(end(s))
""")
    lines = out.split("\n")
    assert lines[:4] == ["05ff end"] * 3 + ["0500 0 200"]
    assert lines[4] in ("end", "reset")


def test_socks_in_single_bytes_and_all_at_once(lab, sandbox, origin_seen):
    out = peer(sandbox, """
whole = b'\\5\\1\\0' + by_name('plain.lab.test', 80) + b'GET /at-once HTTP/1.1\\r\\nHost: plain.lab.test\\r\\n\\r\\n'
s = dial(); s.sendall(whole); print(s.recv(2) , s.recv(10)[1], answer(s)[0])
s = dial(); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for i in range(len(whole)):
    s.sendall(whole[i:i + 1]); time.sleep(0.002)
data = until(s, b'\\r\\n\\r\\n')
print(data[:2], data[3], data[12:].split(b' ')[1].decode())
""")
    assert out.split("\n")[:2] == ["b'\\x05\\x00' 0 200", "b'\\x05\\x00' 0 200"]
    assert len(origin_seen(path="/at-once")) == 2


# -- time, change, noise --------------------------------------------------------

def test_the_half_said_is_bounded(lab, sandbox):
    out = peer(sandbox, """
import threading
started, results = time.monotonic(), {}
def one(name, said):
    s = dial(); s.settimeout(8)
    if said: s.sendall(said)
    try:
        while s.recv(65536): pass
        how = 'end'
    except ConnectionError: how = 'reset'
    except TimeoutError: how = 'open'
    results[name] = how
pieces = {'silent': b'', 'greeting': b'\\5', 'methods': b'\\5\\3\\0', 'request': b'\\5\\1\\0\\5\\1\\0\\3\\x20pla',
          'head': b'CONNECT plain.lab.test:443 HT', 'absolute': b'GET http://plain.lab.test/ HTTP/1.1\\r\\nHos',
          'tunnel': b'CONNECT plain.lab.test:443 HTTP/1.1\\r\\n\\r\\n\\x16\\x03\\x01'}
pieces['tunnel'] = pieces['tunnel'].replace(b'\\r\\n\\r\\n', b'\\r\\nHost: plain.lab.test:443\\r\\n\\r\\n')
threads = [threading.Thread(target=one, args=p) for p in pieces.items()]
for t in threads: t.start()
for t in threads: t.join()
print(json.dumps(results), time.monotonic() - started < 7)
""")
    results, in_time = out.rsplit(" ", 1)
    assert "open" not in json.loads(results).values(), results
    assert in_time.strip() == "True"


def test_a_change_of_policy_cuts_what_waits_in_a_tunnel(lab, sandbox):
    code = PEER + "s = tunnel('plain.lab.test:80'); print('up', flush=True); print(end(s))"
    p = sandbox.popen("/usr/bin/python3", "-c", code, stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline().strip() == "up"
    try:
        with lab.policy([{"action": "allow", "target": "api.lab.test"}]):
            assert p.stdout.readline().strip() == "reset"
    finally:
        p.wait(10)


def test_the_name_is_answered_whatever_the_policy(lab, sandbox):
    code = (f"import socket; print(sorted(a[4][0] for a in"
            f" socket.getaddrinfo('{NAME}', {PORT}, type=socket.SOCK_STREAM)))")
    with lab.policy([]):
        r = sandbox.python(code)
    assert r.stdout.strip() == "['100::5350', '192.0.0.8']", r.stderr


def test_the_sandbox_is_known_by_its_packets(lab, neighbour, origin_seen):
    """Who asks is known from the packet, whatever is said inside."""
    status, body, _ = neighbour.curl("-x", HTTP, "--proxy-header", "X-Sandbox: sandbox-1",
                                     "https://api.lab.test/neighbour")
    assert status == 200
    assert lab.record(path="/neighbour", proxy="connect")["sandbox"] == "sandbox-2"


def test_noise_ends(lab, sandbox):
    """Random bytes, and TLS to the proxy itself, are no proxy request."""
    out = peer(sandbox, """
import random
rng, ends = random.Random(7), []
for i in range(60):
    s = dial()
    try:
        s.sendall(rng.choice((b'', b'\\5', b'\\5\\1\\0', b'\\x16\\3\\1', b'CONNECT ')) + rng.randbytes(rng.randrange(1, 600)))
        s.shutdown(socket.SHUT_WR)
    except OSError: pass
    ends.append(end(s))
print(ends.count('open'))
print(get(tls(tunnel('api.lab.test:443'), 'api.lab.test'), 'api.lab.test', '/still')[0])
""")
    assert out.split() == ["0", "200"]


def test_off_and_elsewhere(sandbox):
    """Another port, another name; and 0 is none. (A lab of its own.)"""
    with open_lab("e2", {"explicitProxyPort": 8118, "explicitProxyName": "Out.Example"}) as lab:
        box = lab.sandboxes[0]
        assert box.curl("-x", "http://out.example:8118", "https://api.lab.test/moved")[0] == 200
        assert box.curl("-x", f"http://192.0.0.8:{PORT}", "https://api.lab.test/old")[0] == 0
        lab.stop()
        lab.configure(explicitProxyPort=0, pins={"api.lab.test": [ORIGIN4]})
        lab.start()
        assert box.curl("-x", "http://192.0.0.8:8118", "https://api.lab.test/off")[0] == 0
        assert box.curl("-x", "http://out.example:8118", "https://api.lab.test/off")[0] == 0
        assert box.curl("https://api.lab.test/direct")[0] == 200
