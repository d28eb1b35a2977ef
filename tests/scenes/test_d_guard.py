# SPDX-License-Identifier: Apache-2.0
"""What answers of DNS may not bring in, and questions may not carry out: rebinding,
service bindings, other resolvers, names made up under a wildcard."""
import base64
import json
import os
import threading
import time

import pytest
from conftest import HERE, open_lab
from lab import GATEWAY_O4, ORIGIN4, run
from test_d_dns import Asked, dig

PUBLIC = "198.51.101.7"  # of the origin; global, unlike the lab's other addresses
MANY = [f"198.51.101.{i}" for i in range(1, 61)]  # PUBLIC is in the first half
INWARD = ["127.0.0.1", "10.9.8.7", "192.168.0.1", "169.254.169.254", "100.64.0.1", "224.0.0.1",
          "0.0.0.0", GATEWAY_O4]
INWARD6 = ["::1", "fd00:ec2::254", "fe80::1", "ff02::1", "64:ff9b::7f00:1"]


def alpn(*ids):
    value = b"".join(bytes([len(i)]) + i.encode() for i in ids)
    return b"\0\1" + len(value).to_bytes(2, "big") + value


def wire(name):
    return b"".join(bytes([len(x)]) + x.encode() for x in name.split(".")) + b"\0"


SERVICES = {
    "ech": b"\0\1\0" + alpn("h3", "h3-29", "h2") + b"\0\3\0\2\x01\xbb\0\4\0\4\x0a\0\0\1"
           b"\0\5\0\x08\0\6\xfe\x0d\0\2ab\0\6\0\x10" + bytes(15) + b"\1",
    "only3": b"\0\1\0" + alpn("h3") + b"\0\2\0\0",
    "alias": b"\0\0" + wire("plain.dns.test"),
    "away": b"\0\0" + wire("secret.other.test"),
    "broken": b"\0\1\0\0\3\0\1\1",
}
ZONE = {
    "plain.dns.test": {"A": [PUBLIC]},
    "inward.dns.test": {"A": INWARD, "AAAA": INWARD6},
    "mixed.dns.test": {"A": ["127.0.0.1", PUBLIC, "10.0.0.1"]},
    "covered.dns.test": {"CNAME": "inward.other.test"},
    "inward.other.test": {"A": ["10.0.0.1"]},
    "mail.dns.test": {"MX": "inward.dns.test"},
    "rotating.dns.test": {"A": MANY, "rotate": 30, "ttl": 0},
    "chain0.dns.test": {"CNAME": "chain1.other.test"},
    "chain14.other.test": {"A": [PUBLIC]},
    "ring.dns.test": {"CNAME": "ring.other.test"},
    "ring.other.test": {"CNAME": "ring.dns.test"},
    "cover.dns.test": {"A": ["8.8.8.8"]},
    "dns.google": {"A": [PUBLIC]},
} | {f"chain{i}.other.test": {"CNAME": f"chain{i + 1}.other.test"} for i in range(1, 14)} | {
    f"{name}.dns.test": {"A": [PUBLIC], "HTTPS": [data.hex()]} for name, data in SERVICES.items()}

# speaks first on 2525, answers HTTP on 80, like a resolver on 853
SERVER = """
import http.server, socket, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(200)
        self.send_header('Alt-Svc', 'h3=":443"; ma=3600, h2=":443"')
        self.send_header('Content-Length', '5')
        self.end_headers()
        self.wfile.write(b'hello')
    do_GET = do_POST
    def log_message(self, *args): pass
def greet(port):
    s = socket.create_server(('', port))
    while True:
        c, _ = s.accept()
        c.sendall(b'220 hello\\r\\n')
        c.close()
for port in 2525, 853:
    threading.Thread(target=greet, args=(port,), daemon=True).start()
http.server.ThreadingHTTPServer((ADDRESS, 80), Handler).serve_forever()
"""
ALLOW = [{"action": "allow", "target": "*.dns.test"}]


@pytest.fixture(scope="module")
def lab():
    def prepare(lab):
        zone = lab.tmp / "zone.json"
        zone.write_text(json.dumps(json.loads(zone.read_text()) | ZONE))
        run("ip", "-n", lab.org, "addr", "add", f"{PUBLIC}/32", "dev", "o0")
        run("ip", "-n", lab.gw, "route", "add", "198.51.101.0/24", "via", ORIGIN4)
        lab.in_origin("/usr/bin/python3", "-c", f"ADDRESS = '{PUBLIC}'\n" + SERVER)
        lab.usual_policy = {"name": "lab", "sandboxes": {"ids": ["sandbox-*"]}, "egress": ALLOW}
    config = {"dns": {"timeoutMs": 300}}
    with open_lab("dg", config, prepare) as lab:
        yield lab


@pytest.fixture
def asked(lab):
    return Asked(lab)


def dns_status(lab):
    return lab.admin.get("/v1/status")["gateway"]["dns"]


def greeting(sandbox, address, port):
    """What a server that speaks first says, or why it does not."""
    return sandbox.python("import socket, sys\ntry:\n"
                          "  s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)\n"
                          "  print(s.recv(100).decode().strip())\n"
                          "except OSError as e: print(type(e).__name__)\n",
                          address, port).stdout.strip()


# -- rebinding ---------------------------------------------------------------

@pytest.mark.parametrize("kind", ["A", "AAAA"])
def test_case_09_addresses_inside_are_not_told(lab, sandbox, kind):
    before = dns_status(lab)
    a = dig(sandbox, "inward.dns.test", kind)
    assert a.status == "NOERROR" and not a.records, a.text
    assert a.ede[0] == 17 and "may not reach" in a.ede[1]
    record = lab.record(kind="dns", host="inward.dns.test")
    assert record["verdict"] == "deny" and record["reason"] == "no_allowed_address"
    after = dns_status(lab)
    assert after["filtered"] == before["filtered"] + 1
    left_out = len(INWARD if kind == "A" else INWARD6)
    assert after["addresses_left_out"] == before["addresses_left_out"] + left_out


def test_what_is_outside_is_still_told(sandbox):
    a = dig(sandbox, "mixed.dns.test", "A")
    assert a.data == [PUBLIC] and a.ede is None


def test_an_alias_does_not_hide_it(sandbox):
    a = dig(sandbox, "covered.dns.test", "A")
    assert not a.records and a.ede[0] == 17, a.text


def test_no_glue_comes_along(sandbox):
    r = sandbox.run("dig", "+time=3", "+tries=1", f"@{sandbox.gw4}", "mail.dns.test", "MX")
    assert "10 inward.dns.test." in r.stdout
    assert "10.9.8.7" not in r.stdout and "ADDITIONAL: 1" in r.stdout, r.stdout  # OPT


def test_a_rule_by_address_lets_it_be_told(lab, sandbox):
    rules = ALLOW + [{"action": "allow", "target": "10.9.8.0/24", "ports": [443]},
                     {"action": "allow", "target": f"{GATEWAY_O4}/32"}]
    with lab.policy(rules):
        # the node's own address is never told, whatever a rule says
        assert dig(sandbox, "inward.dns.test", "A").data == ["10.9.8.7"]
    assert not dig(sandbox, "inward.dns.test", "A").data


# -- aliases, many addresses -------------------------------------------------

def test_a_chain_ends_under_the_name_that_was_asked(sandbox):
    a = dig(sandbox, "chain0.dns.test", "A")
    assert [r[0] for r in a.records] == ["chain0.dns.test."] and a.data == [PUBLIC], a.text
    # the names on the way are not allowed for that
    assert dig(sandbox, "chain5.other.test", "A").status == "NXDOMAIN"


@pytest.mark.parametrize("kind", ["A", "TXT", "HTTPS"])
def test_a_ring_ends(sandbox, kind):
    start = time.monotonic()
    a = dig(sandbox, "ring.dns.test", kind)
    assert a.status == "SERVFAIL" and time.monotonic() - start < 3, a.text


def test_case_10_a_rotating_name_keeps_its_addresses(lab, sandbox):
    """60 addresses, 30 at a time, TTL 0: what was told stays usable."""
    first = dig(sandbox, "rotating.dns.test", "A", "+tcp")
    assert len(first.data) == 30 and PUBLIC in first.data and first.ttls == {5}
    time.sleep(5.5)  # past the TTL
    second = dig(sandbox, "rotating.dns.test", "A", "+tcp")
    assert len(second.data) == 30 and not set(first.data) & set(second.data)
    with lab.policy([{"action": "allow", "target": "rotating.dns.test"}]):
        assert greeting(sandbox, PUBLIC, 2525) == "220 hello"
        assert greeting(sandbox, "198.51.101.99", 2525) != "220 hello"


# -- service bindings --------------------------------------------------------

def test_case_14_keys_of_ech_do_not_come_in(lab, sandbox, asked):
    a = dig(sandbox, "ech.dns.test", "HTTPS")
    assert a.status == "NOERROR" and a.data == ['1 . alpn="h2" port=443'], a.text
    assert asked("ech.dns.test") == [["65", "udp"]]


def test_case_54_http3_does_not_come_in(lab, sandbox):
    a = dig(sandbox, "only3.dns.test", "HTTPS")
    assert a.status == "NOERROR" and not a.records and a.ede[0] == 17, a.text
    # by HTTP neither
    status, body, _ = sandbox.curl("-i", "http://plain.dns.test/")
    assert status == 200 and "hello" in body and "alt-svc" not in body.lower(), body


def test_case_15_a_binding_leads_where_policy_allows(lab, sandbox):
    assert dig(sandbox, "alias.dns.test", "HTTPS").data == ["0 plain.dns.test."]
    a = dig(sandbox, "away.dns.test", "HTTPS")
    assert not a.records and a.ede[0] == 17, a.text
    with lab.policy([{"action": "allow", "target": "*.dns.test", "ports": [80]}]):
        assert not dig(sandbox, "ech.dns.test", "HTTPS").records  # it says port 443


def test_a_malformed_binding_is_none(sandbox):
    a = dig(sandbox, "broken.dns.test", "HTTPS")
    assert a.status == "NOERROR" and not a.records and a.ede[0] == 24, a.text
    assert dig(sandbox, "broken.dns.test", "A").data == [PUBLIC]


# -- other resolvers ---------------------------------------------------------

ANYTHING = {"egress": [], "defaultAction": "allow"}
DOH = ("-H", "content-type: application/dns-message", "--data-binary", "x")


def test_resolvers_of_others_are_refused(lab, sandbox, asked):
    with lab.policy(**ANYTHING):
        for name in ("dns.google", "use-application-dns.net"):
            a = dig(sandbox, name, "A")
            assert a.status == "NXDOMAIN" and "resolver of others" in a.ede[1], a.text
        assert asked.nothing()
        record = lab.record(kind="dns", host="dns.google")
        assert record["decidedBy"] == "foreign resolver"
        # by address, also under another name
        for target in ("http://8.8.8.8/", "http://cover.dns.test/"):
            assert sandbox.curl(target)[0] == 403
        # DNS over TLS
        assert greeting(sandbox, PUBLIC, 2525) == "220 hello"
        assert greeting(sandbox, PUBLIC, 853) != "220 hello"
        # DNS over HTTPS at any host
        assert sandbox.curl("http://plain.dns.test/x")[0] == 200
        for args in (("http://plain.dns.test/dns-query?dns=AAAB",),
                     (*DOH, "http://plain.dns.test/x")):
            status, body, _ = sandbox.curl(*args)
            assert status == 403 and "resolver of others" in body, body


def test_a_rule_that_names_it_allows_a_resolver(lab, sandbox):
    with lab.policy([{"action": "allow", "target": "dns.google"},
                     {"action": "allow", "target": PUBLIC}]):
        assert dig(sandbox, "dns.google", "A").data == [PUBLIC]
        assert sandbox.curl(*DOH, "http://dns.google/dns-query")[0] == 200
        assert greeting(sandbox, PUBLIC, 853) == "220 hello"


def test_our_resolver_tells_of_no_other(sandbox, asked, lab):
    with lab.policy(**ANYTHING):
        assert not dig(sandbox, "_dns.resolver.arpa", "SVCB").records
        assert asked.nothing()


# -- names as a way out ------------------------------------------------------

def chunks(count, size):
    for _ in range(count):
        yield base64.b32encode(os.urandom(size)).decode().rstrip("=").lower()


def ask_all(sandbox, names, kind=1):
    """Asks for all names at once, counts the codes of the answers."""
    r = sandbox.python("""
import collections, json, socket, struct, sys
names, kind = json.load(sys.stdin)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('9.9.9.9', 53)); s.settimeout(3)
codes = collections.Counter()
for i, name in enumerate(names):
    q = struct.pack('>HHHHHH', i, 0x100, 1, 0, 0, 0)
    q += b''.join(bytes([len(x)]) + x.encode() for x in name.split('.')) + b'\\0'
    s.send(q + struct.pack('>HH', kind, 1))
    codes[s.recv(2000)[3] & 15] += 1
print(json.dumps(codes))
""", input=json.dumps([names, kind]))
    return {int(k): v for k, v in json.loads(r.stdout).items()}


@pytest.mark.parametrize("kind", [1, 16, 65])
def test_denied_names_carry_nothing_out(sandbox, asked, kind):
    names = [f"{c}.denied.test" for c in chunks(100, 30)]
    assert ask_all(sandbox, names, kind) == {3: 100}
    assert asked.nothing()


def test_made_up_names_carry_little_out(lab, neighbour, asked):
    with lab.policy([{"action": "allow", "target": "*.tunnel.test"}]):
        before = dns_status(lab)["limited"]
        names = [f"{c}.tunnel.test" for c in chunks(1000, 30)]
        began = time.monotonic()
        codes = ask_all(neighbour, names, 16)
        # a minute's worth, and what the time it took adds
        most = 125 + 2 * (time.monotonic() - began)
        assert codes[5] + codes[3] == 1000 and 120 <= codes[3] <= most, (codes, most)
        assert dns_status(lab)["limited"] - before == codes[5]
        log = (lab.tmp / "zone.json.log").read_text()
        assert log.count(".tunnel.test ") == codes[3]
        record = lab.record(kind="dns", reason="dns_limit")
        assert record["sandbox"] == neighbour.id and record["verdict"] == "deny"
        # neither in the ClientHello or Host of a connection, while nothing is left
        more = threading.Thread(target=ask_all, args=(
            neighbour, [f"{c}.tunnel.test" for c in chunks(1000, 30)], 16))

        def refused():
            name = next(chunks(1, 30)) + ".tunnel.test"
            status, _, _ = neighbour.curl("--resolve", f"{name}:80:{PUBLIC}", f"http://{name}/")
            return name if status == 429 else None
        more.start()
        try:
            name = lab.wait(refused, 10, "a refusal")
            assert name not in (lab.tmp / "zone.json.log").read_text()
        finally:
            more.join()


def test_long_names_and_many_labels_stay_here(lab, sandbox, asked):
    for name in (f"{'a' * 63}.{'b' * 63}.dns.test", "1.2.3.4.5.6.7.8.9.10.11.dns.test"):
        a = dig(sandbox, name, "A")
        assert a.status == "REFUSED" and a.ede[0] == 18 and "too long" in a.ede[1], a.text
    assert asked.nothing()
    # a rule that spells it out has its say
    name = f"{'a' * 63}.{'b' * 63}.dns.test"
    with lab.policy([{"action": "allow", "target": name}]):
        assert dig(sandbox, name, "A").status == "NXDOMAIN" and asked(name)
