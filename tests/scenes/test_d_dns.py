# SPDX-License-Identifier: Apache-2.0
"""DNS as a sandbox sees it: our answers from any address it asks, and silence
about what policy denies, towards the outside too."""
import json
import re
import time

import pytest
from conftest import HERE, open_lab
from lab import ORIGIN4, ORIGIN6, OTHER4

MANY = [f"10.212.3.{i}" for i in range(1, 33)]
ZONE = {
    "plain.dns.test": {"A": [ORIGIN4], "AAAA": [ORIGIN6], "ttl": 300},
    "zero.dns.test": {"A": [ORIGIN4], "ttl": 0},
    "long.dns.test": {"A": [ORIGIN4], "ttl": 10_000_000},
    "big.dns.test": {"A": MANY, "truncate": True},
    "many.dns.test": {"A": MANY},
    "v6.dns.test": {"AAAA": [ORIGIN6]},
    "alias.dns.test": {"CNAME": "middle.dns.test", "ttl": 100},
    "middle.dns.test": {"CNAME": "plain.dns.test", "ttl": 50},
    "away.dns.test": {"CNAME": "elsewhere.other.test"},
    "elsewhere.other.test": {"A": [OTHER4]},
    "loop.dns.test": {"CNAME": "loop.dns.test"},
    "text.dns.test": {"TXT": "some words", "A": [ORIGIN4]},
    "broken.dns.test": {"rcode": 2},
    "silent.dns.test": {"silent": True},
    "denied.other.test": {"A": [ORIGIN4], "TXT": "words"},
    "pin.dns.test": {"A": ["192.0.2.9"]},
    "host.dns.test": {"A": ["192.0.2.9"]},
}
SECOND = {"silent.dns.test": {"A": [OTHER4]}, "broken.dns.test": {"A": [OTHER4]}}


@pytest.fixture(scope="module")
def lab():
    config = {"pins": {"pin.dns.test": ["10.212.2.77", "fd12:2::77"]},
              "dns": {"timeoutMs": 300, "upstreams": [f"{ORIGIN4}:53", f"{OTHER4}:53"]}}

    def prepare(lab):
        zone = lab.tmp / "zone.json"
        zone.write_text(json.dumps(json.loads(zone.read_text()) | ZONE))
        second = lab.tmp / "second.json"
        second.write_text(json.dumps(SECOND))
        lab.in_origin("/usr/bin/python3", HERE / "dnsd.py", OTHER4, second)
        hosts = lab.tmp / "hosts"
        hosts.write_text("# of the node\n10.212.2.78 host.dns.test also.dns.test\n"
                         "fd12:2::78 host.dns.test\n")
        config["dns"]["hostsFile"] = str(hosts)
        lab.usual_policy = {"name": "lab", "sandboxes": {"ids": ["sandbox-*"]},
                            "egress": [{"action": "allow", "target": "*.dns.test"},
                                       # addresses of the lab are private ones
                                       {"action": "allow", "target": "10.212.0.0/16"},
                                       {"action": "allow", "target": "fd12:2::/64"}]}
    with open_lab("d", config, prepare) as lab:
        yield lab


class Asked:
    """What the upstream servers were asked since the test began."""

    def __init__(self, lab):
        self.logs = [lab.tmp / "zone.json.log", lab.tmp / "second.json.log"]
        self.marks = [log.stat().st_size if log.exists() else 0 for log in self.logs]

    def __call__(self, name):
        lines = []
        for log, mark in zip(self.logs, self.marks):
            if log.exists():
                lines += log.read_bytes()[mark:].decode().splitlines()
        return [line.split()[1:] for line in lines if line.split()[0] == name]

    def nothing(self):
        return all(not log.exists() or log.stat().st_size == mark
                   for log, mark in zip(self.logs, self.marks))


@pytest.fixture
def asked(lab):
    return Asked(lab)


class Answer:
    def __init__(self, text):
        self.text = text
        status = re.search(r"status: (\w+)", text)
        self.status = status.group(1) if status else None
        self.records = [line.split(None, 4) for line in text.splitlines()
                        if line and not line.startswith(";")]
        self.data = sorted(r[4] for r in self.records)
        self.ttls = {int(r[1]) for r in self.records}
        ede = re.search(r"EDE: (\d+) \([^)]*\): \((.*)\)", text)
        self.ede = (int(ede.group(1)), ede.group(2)) if ede else None


def dig(sandbox, name, *args, server=None):
    r = sandbox.run("dig", "+noall", "+answer", "+comments", "+time=3", "+tries=1", "+nocookie",
                    f"@{server or sandbox.gw4}", name, *args, timeout=20)
    return Answer(r.stdout)


# -- transport ---------------------------------------------------------------

@pytest.mark.parametrize("tcp", [[], ["+tcp"]], ids=["udp", "tcp"])
@pytest.mark.parametrize("server", [None, "8.8.8.8", "fd11:1::1", "2001:4860:4860::8888", ORIGIN4])
def test_every_server_address_is_us(sandbox, server, tcp):
    # dig refuses an answer from another address than it asked
    a = dig(sandbox, "plain.dns.test", "A", *tcp, server=server)
    assert a.status == "NOERROR" and a.data == [ORIGIN4], a.text
    a = dig(sandbox, "plain.dns.test", "AAAA", *tcp, server=server)
    assert a.data == [ORIGIN6], a.text


def test_tcp_questions_in_a_row_are_all_answered(sandbox):
    r = sandbox.python("""
import socket, struct
names = ['plain', 'v6', 'denied', 'alias', 'pin'] * 10
def query(i, name):
    q = struct.pack('>HHHHHH', i, 0x100, 1, 0, 0, 0)
    q += b''.join(bytes([len(x)]) + x for x in [name.encode(), b'dns', b'test']) + b'\\0\\0\\1\\0\\1'
    return struct.pack('>H', len(q)) + q
s = socket.create_connection(('8.8.4.4', 53), timeout=5)
s.sendall(b''.join(query(i, n) for i, n in enumerate(names)))
data, seen = b'', set()
while len(seen) < len(names):
    data += s.recv(65536)
    while len(data) > 2 and len(data) >= 2 + struct.unpack('>H', data[:2])[0]:
        n = struct.unpack('>H', data[:2])[0]
        seen.add(struct.unpack('>H', data[2:4])[0])
        data = data[2 + n:]
print(len(seen))
""")
    assert r.stdout.strip() == "50", r.stderr


def test_answer_that_does_not_fit_comes_over_tcp(lab, sandbox):
    before = lab.admin.get("/v1/status")["gateway"]["dns"]["truncated"]
    a = dig(sandbox, "many.dns.test", "A", "+noedns")
    assert a.data == sorted(MANY) and "Truncated" in a.text, a.text
    assert lab.admin.get("/v1/status")["gateway"]["dns"]["truncated"] == before + 1
    a = dig(sandbox, "many.dns.test", "A", "+bufsize=1232")
    assert a.data == sorted(MANY) and "Truncated" not in a.text


def test_truncated_upstream_answer_is_asked_for_over_tcp(sandbox, asked):
    a = dig(sandbox, "big.dns.test", "A", "+bufsize=1232")
    assert a.data == sorted(MANY), a.text
    assert ["1", "udp"] in asked("big.dns.test") and ["1", "tcp"] in asked("big.dns.test")


def test_names_come_back_as_they_were_asked(sandbox):
    # clients that mix case check that the answer repeats it
    assert "PlAiN.dNs.TeSt." in dig(sandbox, "PlAiN.dNs.TeSt", "A").records[0]


# -- what is answered ----------------------------------------------------------

def test_ttls_have_a_floor_and_a_ceiling(sandbox):
    # what an answer has left, counted down while it is kept
    for name, most in (("zero", 5), ("long", 3600), ("plain", 300)):
        ttl = max(dig(sandbox, f"{name}.dns.test", "A").ttls)
        assert max(1, most - 20) <= ttl <= most, name


def test_answers_are_kept(sandbox, asked):
    for _ in range(5):
        assert dig(sandbox, "zero.dns.test", "A").data == [ORIGIN4]
    assert len([q for q in asked("zero.dns.test") if q[0] == "1"]) <= 1


def test_aliases_are_followed(sandbox):
    assert ORIGIN4 in dig(sandbox, "alias.dns.test", "A").data
    assert ORIGIN6 in dig(sandbox, "alias.dns.test", "AAAA").data
    # where an allowed name leads is the name's owner's business
    a = dig(sandbox, "away.dns.test", "A")
    assert a.data == [OTHER4] and a.records[0][0] == "away.dns.test.", a.text


def test_alias_that_leads_to_itself_ends(sandbox):
    start = time.monotonic()
    a = dig(sandbox, "loop.dns.test", "A")
    assert not a.data or a.status != "NOERROR", a.text
    assert time.monotonic() - start < 3


def test_no_such_name_and_no_such_data(sandbox):
    assert dig(sandbox, "nothing.dns.test", "A").status == "NXDOMAIN"
    assert dig(sandbox, "nothing.dns.test", "A").ede is None  # not our doing
    a = dig(sandbox, "v6.dns.test", "A")
    assert a.status == "NOERROR" and not a.records


def test_text_is_passed_on_and_odd_types_are_not(sandbox, asked):
    assert dig(sandbox, "text.dns.test", "TXT").data == ['"some words"']
    for kind in ("PTR", "NS", "SOA", "DNSKEY", "TYPE65400"):
        a = dig(sandbox, "text.dns.test", kind)
        assert a.status == "NOERROR" and not a.records and a.ede, a.text
    assert {q[0] for q in asked("text.dns.test")} == {"16"}


@pytest.mark.parametrize("args", [["ANY"], ["AXFR"], ["-c", "CH", "TXT"], ["TYPE0"]])
def test_questions_of_other_kinds_are_refused(sandbox, asked, args):
    r = sandbox.run("dig", "+time=2", "+tries=1", f"@{sandbox.gw4}", "plain.dns.test", *args)
    assert "REFUSED" in r.stdout or "Transfer failed" in r.stdout, r.stdout
    assert asked.nothing()


def test_pins_and_hosts_come_before_dns(sandbox, asked):
    assert dig(sandbox, "pin.dns.test", "A").data == ["10.212.2.77"]
    assert dig(sandbox, "pin.dns.test", "AAAA").data == ["fd12:2::77"]
    assert dig(sandbox, "host.dns.test", "A").data == ["10.212.2.78"]
    assert dig(sandbox, "also.dns.test", "A").data == ["10.212.2.78"]
    assert not dig(sandbox, "also.dns.test", "AAAA").data
    assert not dig(sandbox, "pin.dns.test", "TXT").data
    assert asked.nothing()


@pytest.mark.parametrize("name", ["silent.dns.test", "broken.dns.test"])
def test_second_server_is_asked_when_the_first_is_no_use(sandbox, name):
    start = time.monotonic()
    assert dig(sandbox, name, "A").data == [OTHER4]
    assert time.monotonic() - start < 1.5


# -- what is not -----------------------------------------------------------------

@pytest.mark.parametrize("kind", ["A", "AAAA", "TXT", "HTTPS", "CNAME"])
@pytest.mark.parametrize("tcp", [[], ["+tcp"]], ids=["udp", "tcp"])
def test_denied_name_is_never_asked_for(lab, sandbox, asked, kind, tcp):
    name = f"data-{kind.lower()}{len(tcp)}.denied.other.test"
    a = dig(sandbox, name, kind, *tcp)
    assert a.status == "NXDOMAIN" and not a.records
    assert a.ede[0] == 17 and "policy lab" in a.ede[1], a.text
    record = lab.record(kind="dns", host=name)
    assert record["verdict"] == "deny" and record["sandbox"] == sandbox.id
    assert record["policy"] == "lab" and record["reason"] == "policy"
    assert asked.nothing()


def test_denial_reaches_old_clients_without_edns(sandbox):
    a = dig(sandbox, "denied.other.test", "A", "+noedns")
    assert a.status == "NXDOMAIN" and a.ede is None


def test_unknown_sandbox_gets_no_answer_to_anything(lab, neighbour, asked):
    lab.admin.call("DELETE", f"/v1/sandboxes/{neighbour.id}", expect=204)
    try:
        for name in ("plain.dns.test", "pin.dns.test"):
            a = dig(neighbour, name, "A")
            assert a.status in ("NXDOMAIN", "REFUSED") and not a.records
            assert "not a registered sandbox" in a.ede[1]
        record = lab.record(kind="dns", reason="unknown_sandbox")
        assert record["verdict"] == "deny" and "sandbox" not in record
        assert asked.nothing()
    finally:
        lab.register(neighbour, team="lab")
    assert dig(neighbour, "plain.dns.test", "A").data == [ORIGIN4]


def test_a_change_of_policy_holds_for_kept_answers_too(lab, sandbox):
    assert dig(sandbox, "plain.dns.test", "A").data
    with lab.policy([]):
        assert dig(sandbox, "plain.dns.test", "A").status == "NXDOMAIN"
    assert dig(sandbox, "plain.dns.test", "A").data


def test_garbage_is_dropped_and_counted(lab, sandbox, asked):
    head = "struct.pack('>HHHHHH', 7, %s, %d, %d, 0, 0)"
    good = r"b'\5plain\3dns\4test\0\0\1\0\1'"
    packets = [
        "b''", "b'x'", "bytes(11)", "b'\\xff' * 40", "bytes(600)", "bytes(1400)",
        head % ("0x8100", 1, 0) + "+" + good,  # a response
        head % ("0x100", 0, 0),  # no question
        head % ("0x100", 2, 0) + "+" + good * 1 + "+" + good,  # two
        head % ("0x100", 1, 0) + r"+ b'\xc0\x0c\0\1\0\1'",  # a name that points to itself
        head % ("0x100", 1, 0) + r"+ b'\x3fshort'",  # a label that is cut off
        head % ("0x100", 1, 0) + r"+ b'\x41' + b'a' * 65 + b'\0\0\1\0\1'",  # too long a label
        head % ("0x100", 1, 0) + r"+ (b'\x3f' + b'a' * 63) * 5 + b'\0\0\1\0\1'",  # too long a name
    ]
    before = lab.admin.get("/v1/status")["gateway"]["dns"]
    r = sandbox.python("import socket, struct\n"
                       "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                       "s.connect(('8.8.8.8', 53)); s.settimeout(0.5)\n"
                       f"for p in [{', '.join(packets)}]: s.send(p)\n"
                       "try:\n  print('answer', s.recv(2000))\nexcept TimeoutError: print('silence')\n")
    assert r.stdout.strip() == "silence", r.stdout + r.stderr
    after = lab.admin.get("/v1/status")["gateway"]["dns"]
    assert after["malformed"] - before["malformed"] == len(packets)
    assert after["queries_udp"] == before["queries_udp"]
    assert asked.nothing()
    assert dig(sandbox, "plain.dns.test", "A").data  # and we are still here


def test_status_counts_what_happened(lab, sandbox):
    before = lab.admin.get("/v1/status")["gateway"]["dns"]
    dig(sandbox, "plain.dns.test", "A")
    dig(sandbox, "plain.dns.test", "A", "+tcp")
    dig(sandbox, "denied.other.test", "A")
    dig(sandbox, "pin.dns.test", "A")
    after = lab.admin.get("/v1/status")["gateway"]["dns"]
    grown = {k: after[k] - before[k] for k in after if after[k] != before[k]}
    assert grown.pop("from_pins") == 1 and grown.pop("denied") == 1 and grown.pop("answered") == 3
    assert grown["queries_udp"] == 3 and grown["queries_tcp"] == 1 and grown["from_cache"] == 2
