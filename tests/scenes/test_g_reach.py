# SPDX-License-Identifier: Apache-2.0
"""Under a policy that allows everything a sandbox still reaches no neighbour, no service
of the node, no metadata service and no socket of the gateway but DNS and the explicit
proxy; and packets in pieces are put together before anything is decided."""
import struct
import subprocess
import time

import frames
import pytest
from conftest import open_lab
from frames import IP4, IP6, ether
from lab import GATEWAY_O4, GATEWAY_O6, ORIGIN4, ORIGIN6, run
from test_g_lock import hardware

METADATA = ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16")
PORTS = (22, 80, 2375, 2376, 6443, 10250)

# answers on every address of its namespace and notes each connection
LISTENER = """
import select, socket, sys
socks = []
for port in map(int, sys.argv[2:]):
    for family, address in ((socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):
        s = socket.socket(family, socket.SOCK_STREAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.bind((address, port)); s.listen(16); socks.append(s)
print('ready', flush=True)
while True:
    for s in select.select(socks, [], [])[0]:
        c, peer = s.accept()
        open(sys.argv[1], 'a').write(f'{s.getsockname()} {peer}\\n')
        c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 10\\r\\n\\r\\nwithin it!')
        c.close()
"""

# sends frames and prints what comes back within half a second
TALK = """
import socket, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(('e0', 3))
for frame in sys.argv[1:]:
    s.send(bytes.fromhex(frame))
end = time.monotonic() + 0.7
while (left := end - time.monotonic()) > 0:
    s.settimeout(left)
    try:
        data, where = s.recvfrom(65536)
    except TimeoutError:
        break
    if where[2] != 4:
        print(data.hex())
"""


def listen(lab, ns, name, *ports):
    out, ready = lab.tmp / f"heard-{name}", lab.tmp / f"heard-{name}.ready"
    lab.procs.append(subprocess.Popen(
        ["ip", "netns", "exec", ns, "/usr/bin/python3", "-c", LISTENER, str(out), *map(str, ports)],
        stdout=open(ready, "wb")))
    lab.wait(ready.read_text, 5, "the listener")
    return out


@pytest.fixture(scope="module")
def lab():
    def metadata(lab):
        for a in METADATA:
            run("ip", "-n", lab.org, "addr", "add", f"{a}/{128 if ':' in a else 32}", "dev", "lo")
            via = ORIGIN6 if ":" in a else ORIGIN4
            run("ip", "-n", lab.gw, *(["-6"] if ":" in a else []), "route", "add", a, "via", via)

    with open_lab("gr", prepare=metadata) as lab:
        lab.put_policy("lab", {"name": "lab", "sandboxes": {"ids": ["sandbox-*"]}, "defaultAction": "allow"})
        lab.heard = {"node": listen(lab, lab.gw, "node", *PORTS),
                     "neighbour": listen(lab, lab.sandboxes[1].ns, "neighbour", 80, 2375),
                     "metadata": listen(lab, lab.org, "metadata", 8775)}
        yield lab


def heard(lab, name):
    time.sleep(0.05)
    return lab.heard[name].read_text() if lab.heard[name].exists() else ""


def get(sandbox, address, port):
    host = f"[{address}]" if ":" in address else address
    return sandbox.run("curl", "-sSg", "--max-time", "3", f"http://{host}:{port}/")


def test_they_can_be_heard(lab):
    """From where it is allowed, each listener answers."""
    for address, port in ((GATEWAY_O4, 2375), (GATEWAY_O6, 22)):
        host = f"[{address}]" if ":" in address else address
        r = run("ip", "netns", "exec", lab.org, "curl", "-sg", f"http://{host}:{port}/")
        assert r.stdout == "within it!"
    assert heard(lab, "node").count("\n") == 2
    lab.heard["node"].unlink()
    for a in METADATA:
        host = f"[{a}]" if ":" in a else a
        assert run("ip", "netns", "exec", lab.gw, "curl", "-sg", f"http://{host}:8775/").stdout == "within it!"
    lab.heard["metadata"].unlink()


@pytest.mark.parametrize("port", PORTS)
def test_node(lab, sandbox, port):
    for address in (sandbox.gw4, sandbox.gw6, GATEWAY_O4, GATEWAY_O6):
        r = get(sandbox, address, port)
        assert "within it!" not in r.stdout, (address, r)
        assert r.returncode != 28, "hangs"
    assert heard(lab, "node") == ""


def test_node_by_other_names_of_its_addresses(lab, sandbox):
    """IPv4 inside IPv6 does not go around the guard."""
    a, b, c, d = (int(x) for x in GATEWAY_O4.split("."))
    for address in (f"64:ff9b::{GATEWAY_O4}", f"2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1", f"::{GATEWAY_O4}"):
        assert "within it!" not in get(sandbox, address, 80).stdout
    assert heard(lab, "node") == ""


def test_neighbour(lab, sandbox, neighbour):
    for address in (neighbour.v4, neighbour.v6):
        for port in (80, 2375):
            r = get(sandbox, address, port)
            assert "within it!" not in r.stdout and r.returncode != 28, r
        assert sandbox.run("ping", "-c1", "-W1", address).returncode != 0
    assert heard(lab, "neighbour") == ""


@pytest.mark.parametrize("address", METADATA)
def test_metadata(lab, sandbox, address):
    r = get(sandbox, address, 8775)
    assert "within it!" not in r.stdout and r.returncode != 28, r
    assert heard(lab, "metadata") == ""
    record = lab.record(kind="http") if r.returncode == 0 else lab.record(kind="connect")
    assert record["verdict"] == "deny", record


def test_sockets_of_the_gateway(lab, sandbox):
    """Its addresses are reached by TPROXY alone: dialled as such, only DNS and the explicit
    proxy answer for themselves."""
    for address in ("192.0.0.8", "100::5350"):
        for port in (80, 443, 8080, 23057, 15001):
            r = get(sandbox, address, port)
            assert r.returncode != 28 and not r.stdout.startswith("HTTP/1.1 200"), (address, port, r)


# -- pieces ---------------------------------------------------------------------------

def question(name, ident=0x5157):
    labels = b"".join(bytes([len(x)]) + x.encode() for x in name.split("."))
    return struct.pack(">HHHHHH", ident, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", 1, 1)


def pieces(sandbox, dst, proto, payload, cuts, ident):
    """The payload as fragments; cuts: (from, to) in bytes, in the order of sending."""
    own, gw = hardware(sandbox.ns), hardware(sandbox.lab.gw, sandbox.iface)
    for start, end in cuts:
        more = int(end < len(payload))
        if ":" in dst:
            head = struct.pack(">BBHI", proto, 0, start | more, ident)
            yield ether(own, gw, IP6, frames.v6(sandbox.v6, dst, 44, head + payload[start:end]))
        else:
            yield ether(own, gw, IP4, frames.v4(sandbox.v4, dst, proto, payload[start:end],
                                                fragment=more << 13 | start // 8, ident=ident))


def talk(sandbox, *what):
    r = sandbox.run("/usr/bin/python3", "-c", TALK, *[f.hex() for f in what])
    return [bytes.fromhex(line) for line in r.stdout.split()]


def versions(sandbox):
    return ((sandbox.v4, sandbox.gw4, ORIGIN4, 34), (sandbox.v6, sandbox.gw6, ORIGIN6, 54))


def test_dns_question_in_pieces(lab, sandbox):
    for n, (src, resolver, _, head) in enumerate(versions(sandbox)):
        data = frames.udp(src, resolver, 5353, 53, question("api.lab.test"))
        cuts = [(0, 8), (8, 16), (16, len(data))]  # the first piece is the UDP header alone
        for i, order in enumerate((cuts, cuts[::-1])):
            answers = [f for f in talk(sandbox, *pieces(sandbox, resolver, 17, data, order, 100 + 2 * n + i))
                       if f[head + 8:head + 10] == b"\x51\x57"]
            assert answers and answers[0][head + 11] & 0xf == 0, (resolver, order)


def test_tcp_in_tiny_pieces(lab, sandbox):
    """Ports in the first piece, flags in the second: put together before it is decided. In
    IPv6 a first piece without the whole header is no packet (RFC 8200 4.5)."""
    for n, (src, _, origin, head) in enumerate(versions(sandbox)):
        data = frames.tcp_syn(src, origin, 443, 41000 + n)
        got = talk(sandbox, *pieces(sandbox, origin, 6, data, [(0, 8), (8, 16), (16, 20)], 200 + n))
        flags = [f[head + 13] for f in got if f[head:head + 4] == struct.pack(">HH", 443, 41000 + n)]
        if ":" in origin:
            assert flags == []
        else:
            assert 0x12 in flags, (origin, flags)  # SYN and ACK, from the gateway


def test_overlapping_pieces_are_nothing(lab, sandbox):
    """RFC 5722, and Linux for IPv4 as well: the whole packet is dropped."""
    for n, (src, resolver, _, head) in enumerate(versions(sandbox)):
        data = frames.udp(src, resolver, 5354, 53, question("api.lab.test"))
        got = talk(sandbox, *pieces(sandbox, resolver, 17, data, [(0, 24), (16, len(data))], 300 + n))
        assert not [f for f in got if f[head + 8:head + 10] == b"\x51\x57"], resolver


def test_pieces_that_never_end(lab, sandbox):
    """First pieces without their rest, and rests without a first: nothing is decided by them,
    and the node goes on."""
    for n, (src, _, origin, head) in enumerate(versions(sandbox)):
        data = frames.tcp_syn(src, origin, 443, 42000 + n)
        for cut in ((0, 8), (8, 16)):
            got = talk(sandbox, *[f for i in range(100) for f in
                                  pieces(sandbox, origin, 6, data, [cut], 1000 + i)])
            assert not [f for f in got if f[head:head + 2] == struct.pack(">H", 443)]
    assert sandbox.curl("https://api.lab.test/works")[0] == 200


# first pieces of so many packets, none of which ever ends
FLOOD = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(('e0', 3))
frame, at = bytearray.fromhex(sys.argv[1]), int(sys.argv[2])
for i in range(4000):
    frame[at:at + 2] = i.to_bytes(2, 'big')
    if sys.argv[3] == '4':  # the checksum of the header, which was right for 0
        frame[24:26] = ((int(sys.argv[4]) - i - 1) % 65535 + 1).to_bytes(2, 'big')
    s.send(frame)
"""


@pytest.mark.parametrize("version", [4, 6])
def test_pieces_of_one_leave_room_for_those_of_others(lab, sandbox, neighbour, version):
    """The kernel has so much memory for pieces in all, and keeps each half a minute."""
    n = version == 6
    src, resolver, origin, head = versions(sandbox)[n]
    first = next(pieces(sandbox, origin, 17, frames.udp(src, origin, 5355, 7000, b"x" * 2000), [(0, 1400)], 0))
    sandbox.run("/usr/bin/python3", "-c", FLOOD, first.hex(), head + 6 if n else 18, version,
                int.from_bytes(first[24:26], "big"), check=True)
    src, resolver, _, head = versions(neighbour)[n]
    data = frames.udp(src, resolver, 5356, 53, question("api.lab.test"))
    answers = talk(neighbour, *pieces(neighbour, resolver, 17, data, [(0, 16), (16, len(data))], 77))
    assert [f for f in answers if f[head + 8:head + 10] == b"\x51\x57"], lab.admin.get("/v1/status")["gateway"]["drops"]
    assert lab.records(kind="packet", reason="limit", sandbox=sandbox.id)
    assert neighbour.curl("https://api.lab.test/works")[0] == 200
