# SPDX-License-Identifier: Apache-2.0
"""An address that was a name's: when its time is over it is no way out any more

Told by our DNS once, kept in mind by the sandbox, tried again when the name may
long have another address. Where bytes name nobody (UDP, a server that greets)
the address is all there is to decide by.
"""
import time
from pathlib import Path

import pytest
from conftest import open_lab
from lab import ORIGIN4, run

HERE = Path(__file__).parent.parent
V4, V6 = "11.22.33.44", "2a0a:1::44"  # public, in the origin's namespace only
NAME, UDP_PORT, GREETS = "stale.lab.test", 7000, 3306
TTL_S, HOLD_S = 1, 3

RESOLVE = "import socket,sys; print(*sorted({a[4][0] for a in socket.getaddrinfo(sys.argv[1], 1)}))"
GREETED = """
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)
    s.settimeout(5)
    print("greeted" if s.recv(100) else "closed")
except OSError as e:
    print(type(e).__name__)
"""


def prepare(lab):
    for address in (V4, V6):
        family = ["-6"] if ":" in address else []
        run("ip", "-n", lab.org, *family, "addr", "add", address, "dev", "o0", *(["nodad"] if family else []))
        run("ip", "-n", lab.gw, *family, "route", "add", address, "via", "fd12:2::2" if family else ORIGIN4)
    lab.echoed, lab.greeted = lab.tmp / "echo.log", lab.tmp / "greeter.log"
    for address in (V4, V6):
        lab.in_origin("/usr/bin/python3", HERE / "udp_echo.py", lab.echoed, address, str(UDP_PORT))
    lab.in_origin("/usr/bin/python3", HERE / "greeter.py", lab.greeted, stdout=open(lab.tmp / "greets", "wb"))
    lab.wait(lambda: lab.echoed.exists() and lab.echoed.read_text().count("ready") == 2
             and (lab.tmp / "greets").read_text(), 10, "the servers")
    zone = lab.tmp / "zone.json"
    zone.write_text(zone.read_text()[:-1] + f', "{NAME}": {{"A": ["{V4}"], "AAAA": ["{V6}"], "ttl": {TTL_S}}}}}')


@pytest.fixture(scope="module")
def lab():
    dns = {"minTtlS": TTL_S, "maxTtlS": TTL_S, "holdS": HOLD_S}
    with open_lab("es", prepare=prepare, config={"dns": dns}) as lab:
        yield lab


def told(sandbox):
    assert sandbox.python(RESOLVE, NAME).stdout.split() == [V4, V6]


def asked(sandbox, address, text):
    said = sandbox.run("/usr/bin/python3", HERE / "udp_ask.py", address, UDP_PORT, text, "2").stdout
    return said.rsplit(maxsplit=1)[0]


def greets(sandbox, address):
    return sandbox.python(GREETED, address, str(GREETS)).stdout.strip()


def assert_open(sandbox, text):
    for address in (V4, V6):
        told(sandbox)  # each time: a loaded machine takes longer than it is held
        assert asked(sandbox, address, text) == f"echo {text}"
        told(sandbox)
        assert greets(sandbox, address) == "greeted"


def test_stale_learned_address(lab):
    one, two = lab.sandboxes
    egress = [{"action": "allow", "target": NAME, "protocol": p, "ports": [port]}
              for p, port in (("udp", UDP_PORT), ("tcp", GREETS))]
    with lab.policy(egress):
        for address in (V4, V6):  # what DNS told nobody yet
            assert not asked(one, address, "untold").startswith("echo")
            assert greets(one, address) != "greeted"
        assert_open(one, "fresh")
        told(two)
        time.sleep(TTL_S + HOLD_S + 0.5)
        for address in (V4, V6):
            assert not asked(two, address, "stale").startswith("echo")
            assert greets(two, address) != "greeted"
            for kind in ("flow", "connect"):
                assert lab.record(kind=kind, sandbox=two.id, verdict="deny", reason="policy")
        heard = lab.echoed.read_text()
        assert "fresh" in heard and "stale" not in heard and "untold" not in heard
        assert_open(two, "again")
