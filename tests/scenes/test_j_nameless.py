# SPDX-License-Identifier: Apache-2.0
"""TLS that says no name is no way around inspection, and what passes unseen ends when
policy or a credential wants to see it."""
import contextlib
import subprocess

import pytest
from conftest import HERE, open_lab
from lab import ORIGIN4, run

# addresses that count as public, in the origin's namespace only, and their names
SEEN, OTHER, UNTOLD = "11.22.33.44", "11.22.33.45", "11.22.33.46"
NAMES = {"seen.lab.test": SEEN, "other.lab.test": OTHER}

# A connection that stays open: looks a name up or not, shakes hands with SNI or without,
# then a request for each line of its input; says what came of each.
CLIENT = """
import socket, ssl, sys
address, lookup, sni, ech = sys.argv[1:5]
if lookup:
    assert address in {a[4][0] for a in socket.getaddrinfo(lookup, 443, socket.AF_INET)}
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
def hello():
    # the first message of a handshake without a name, with ECH's extension (0xfe0d) added
    a, b = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        context.wrap_bio(a, b).do_handshake()
    except ssl.SSLWantReadError:
        pass
    record = b.read()
    body = record[9:]
    at = 34 + 1 + body[34]
    at += 2 + int.from_bytes(body[at:at + 2], "big")
    at += 1 + body[at]
    more = b"\\xfe\\x0d" + (64).to_bytes(2, "big") + b"\\0\\0\\1\\0\\1\\7" + bytes([0, 20]) + bytes(20) \\
        + bytes([0, 34]) + bytes(34)
    extensions = body[at + 2:] + more
    body = body[:at] + len(extensions).to_bytes(2, "big") + extensions
    message = b"\\1" + len(body).to_bytes(3, "big") + body
    return b"\\x16\\3\\1" + len(message).to_bytes(2, "big") + message
try:
    s = socket.create_connection((address, 443), timeout=10)
    if ech:
        s.sendall(hello())
        answer = s.recv(7)
        print("alert" if answer[:1] == b"\\x15" else "answered" if answer else "closed", flush=True)
        sys.exit()
    s = context.wrap_socket(s, server_hostname=sni or None)
except ssl.SSLError as e:
    print("alert" if "ALERT" in str(e).upper() else str(e), flush=True)
    sys.exit()
except OSError as e:
    print(e, flush=True)
    sys.exit()
issuer = b"Sallyport" in s.getpeercert(True)
print("opened" if issuer else "unseen", flush=True)
for line in sys.stdin:
    try:
        s.sendall(f"GET /{line.strip()} HTTP/1.1\\r\\nHost: {sni or address}\\r\\n\\r\\n".encode())
        data = s.recv(65536)
        print(data.split(b"\\r\\n")[0].decode() if data else "closed", flush=True)
    except (OSError, ssl.SSLError):
        print("cut", flush=True)
"""


def prepare(lab):
    for address in (SEEN, OTHER, UNTOLD):
        run("ip", "-n", lab.org, "addr", "add", address, "dev", "o0")
        run("ip", "-n", lab.gw, "route", "add", address, "via", ORIGIN4)
    ready = lab.tmp / "public.ready"
    lab.in_origin("/usr/bin/python3", HERE / "origin.py", lab.tmp / "origin.json", f"{SEEN},{OTHER},{UNTOLD}",
                  stdout=open(ready, "wb"))
    lab.wait(ready.read_text, 10, "the public origin")


@pytest.fixture(scope="module")
def lab():
    with open_lab("j", prepare=prepare, config={"pins": {n: [a] for n, a in NAMES.items()}}) as lab:
        yield lab


class Connection:
    def __init__(self, sandbox, address, lookup="", sni="", ech=""):
        self.process = sandbox.popen("/usr/bin/python3", "-c", CLIENT, address, lookup, sni, ech,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.began = self.process.stdout.readline().strip()

    def ask(self, path="again"):
        self.process.stdin.write(path + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(10)


def began(sandbox, *args, **kw):
    with Connection(sandbox, *args, **kw) as connection:
        return connection.began


def by_default(lab, egress=(), **more):
    return lab.policy(list(egress), defaultAction="allow", **more)


LOOKS = {"inspect": ["seen.lab.test"]}


def test_without_a_name_is_no_way_around_the_inspect_list(lab, sandbox):
    with by_default(lab, **LOOKS):
        assert began(sandbox, SEEN, "seen.lab.test", "seen.lab.test") == "opened"
        assert began(sandbox, SEEN, "seen.lab.test") == "alert"
        record = lab.record(kind="connect", reason="no_sni", host="seen.lab.test")
        assert record["hostFrom"] == "dns" and record["verdict"] == "deny", record
        # a name that nobody looks into may be left out
        assert began(sandbox, OTHER, "other.lab.test") == "unseen"


def test_with_nothing_but_an_encrypted_name_is_the_same(lab, sandbox):
    with by_default(lab, **LOOKS):
        assert began(sandbox, SEEN, "seen.lab.test", "", "ech") == "alert"
        assert began(sandbox, OTHER, "other.lab.test", "", "ech") == "answered"
        assert lab.record(kind="connect", reason="no_sni", host="seen.lab.test")


def test_an_address_from_elsewhere_is_no_way_around_it(lab, sandbox):
    """DNS has told nobody's name for it; then policy that looks into nothing lets it pass."""
    with by_default(lab, **LOOKS):
        assert began(sandbox, UNTOLD) == "alert"
        assert lab.record(kind="connect", reason="no_sni", original=f"{UNTOLD}:443")
    with by_default(lab, [{"action": "deny", "target": "x.lab.test", "methods": ["POST"]}]):
        assert began(sandbox, UNTOLD) == "alert"
    with by_default(lab):
        assert began(sandbox, UNTOLD) == "unseen"


def test_a_rule_with_the_address_allows_it(lab, sandbox):
    with by_default(lab, [{"action": "allow", "target": SEEN}, {"action": "allow", "target": f"{UNTOLD}/32"}], **LOOKS):
        assert began(sandbox, SEEN, "seen.lab.test") == "unseen"
        assert began(sandbox, UNTOLD) == "unseen"
        # the name, when it is said, is looked into all the same
        assert began(sandbox, SEEN, "seen.lab.test", "seen.lab.test") == "opened"


def test_a_name_that_is_denied_stays_denied_without_a_name(lab, sandbox):
    with by_default(lab):
        assert began(sandbox, OTHER, "other.lab.test") == "unseen"
    with by_default(lab, [{"action": "deny", "target": "other.lab.test"}]):
        assert began(sandbox, OTHER) == "alert"
        assert lab.record(kind="connect", reason="policy", host="other.lab.test")


def test_a_bound_name_cannot_be_left_out(lab, sandbox):
    lab.binding({"name": "seen", "match": {"hosts": ["seen.lab.test"]},
                 "auth": {"type": "bearer", "credential": "api-token"}})
    try:
        with by_default(lab):
            assert began(sandbox, SEEN, "seen.lab.test") == "alert"
            assert lab.record(kind="connect", reason="no_sni", host="seen.lab.test")
    finally:
        lab.admin.call("DELETE", "/v1/bindings/seen", expect=204)


# -- what is open already -----------------------------------------------------------

OK = "HTTP/1.1 200 OK"


def test_a_new_inspect_entry_cuts_what_passes_unseen(lab, sandbox):
    """By its name and without one; and nothing else."""
    with by_default(lab):
        with Connection(sandbox, SEEN, "seen.lab.test", "seen.lab.test") as named, \
                Connection(sandbox, SEEN, "seen.lab.test") as nameless, \
                Connection(sandbox, OTHER, "other.lab.test", "other.lab.test") as other, \
                Connection(sandbox, OTHER, "other.lab.test") as nameless_other:
            all_of_them = (named, nameless, other, nameless_other)
            assert [c.began for c in all_of_them] == ["unseen"] * 4
            assert [c.ask() for c in all_of_them] == [OK] * 4
            with by_default(lab, **LOOKS):
                assert named.ask() in ("closed", "cut") and nameless.ask() in ("closed", "cut")
                assert other.ask() == OK and nameless_other.ask() == OK
                assert lab.record(kind="tunnel", host="seen.lab.test", reason="cut")


def test_a_new_binding_cuts_what_passes_unseen(lab, sandbox):
    """The next connection is opened and carries the credential."""
    with by_default(lab):
        with Connection(sandbox, SEEN, "seen.lab.test", "seen.lab.test") as named, \
                Connection(sandbox, SEEN, "seen.lab.test") as nameless, \
                Connection(sandbox, OTHER, "other.lab.test", "other.lab.test") as other:
            assert [c.ask() for c in (named, nameless, other)] == [OK] * 3
            lab.binding({"name": "seen", "match": {"hosts": ["seen.lab.test"]},
                         "auth": {"type": "bearer", "credential": "api-token"}})
            try:
                assert named.ask() in ("closed", "cut") and nameless.ask() in ("closed", "cut")
                assert other.ask() == OK
                assert began(sandbox, SEEN, "seen.lab.test", "seen.lab.test") == "opened"
            finally:
                lab.admin.call("DELETE", "/v1/bindings/seen", expect=204)
            assert other.ask() == OK
