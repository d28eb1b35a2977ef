# SPDX-License-Identifier: Apache-2.0
"""Nothing of a sandbox gets past, around or into the node, whatever it sends and
whatever happens to the daemon or its rules. Every packet sent here carries a
mark, and sniffers behind the fence look for it."""
import contextlib
import json
import os
import signal
import subprocess
import time

import pytest
from conftest import HERE, open_lab
from lab import BIN, GATEWAY_O4, GATEWAY_O6, ORIGIN4, ORIGIN6, run

MARK = "Mark-Of-The-Sandbox-7f3a"
OPEN = {"name": "lab", "sandboxes": {"ids": ["sandbox-*"]}, "defaultAction": "allow"}

# a service of the node itself, which no sandbox may reach
SERVICE = """
import socket, sys, threading
def serve(family, address):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind((address, int(sys.argv[1]))); s.listen(8)
    while True:
        c, peer = s.accept()
        try:
            c.settimeout(2)
            c.recv(65536)  # closed with something unread, the answer might be lost
            c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 11\\r\\n\\r\\nnode itself')
        except OSError:
            pass
        c.close()
threading.Thread(target=serve, args=(socket.AF_INET6, '::'), daemon=True).start()
serve(socket.AF_INET, '0.0.0.0')
"""

SEND = """
import socket, struct, sys
MARK, kind, address = sys.argv[1].encode(), sys.argv[2], sys.argv[3]
family = socket.AF_INET6 if ':' in address else socket.AF_INET
if kind.startswith('udp'):
    s = socket.socket(family, socket.SOCK_DGRAM)
    if len(sys.argv) > 4:
        s.bind((sys.argv[4], 0))
    data = MARK * (200 if kind == 'udp-fragments' else 1)
    s.sendto(data, (address, int(kind.partition(':')[2] or 9999)))
elif kind == 'ping':
    v6 = family == socket.AF_INET6
    s = socket.socket(family, socket.SOCK_RAW, 58 if v6 else 1)
    data = struct.pack('>BBHHH', 128 if v6 else 8, 0, 0, 7, 7) + MARK
    if not v6:
        total = sum(struct.unpack('>%dH' % (len(data) // 2), data))
        total = (total & 0xffff) + (total >> 16)
        total = (total & 0xffff) + (total >> 16)
        data = data[:2] + struct.pack('>H', 0xffff - total) + data[4:]
    where = socket.getaddrinfo(address, None)[0][4]
    if v6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)  # we are all-nodes, too
    s.sendto(data, where)
    s.settimeout(0.4)
    try:
        while True:
            got = s.recv(2000)
            if MARK in got and (got[:1] == b'\\x81' if v6 else got[20:21] == b'\\0'):
                print('answered')
                break
    except TimeoutError:
        pass
else:
    s = socket.socket(family, socket.SOCK_RAW, int(kind))
    s.sendto(b'\\0' * 20 + MARK, (address, 0))
"""


def watch(lab, ns, name):
    out = lab.tmp / f"sniff-{name}"
    ready = open(lab.tmp / f"sniff-{name}.ready", "wb")
    p = subprocess.Popen(["ip", "netns", "exec", ns, "/usr/bin/python3", str(HERE / "sniff.py"),
                          str(out), MARK], stdout=ready)
    lab.procs.append(p)
    lab.wait(lambda: (lab.tmp / f"sniff-{name}.ready").read_text(), 5, "the sniffer")
    return out


@pytest.fixture(scope="module")
def lab():
    with open_lab("i", {"admin": {}}) as lab:
        lab.seen = {"origin": watch(lab, lab.org, "origin"),
                    "neighbour": watch(lab, lab.sandboxes[1].ns, "neighbour")}
        p = subprocess.Popen(["ip", "netns", "exec", lab.gw, "/usr/bin/python3", "-c", SERVICE, "8080"])
        lab.procs.append(p)
        lab.node = p
        run("ip", "netns", "exec", lab.gw, "nft", "add table inet of_the_operator; add chain inet "
            "of_the_operator c { type filter hook input priority 10; }; add rule inet of_the_operator "
            "c counter accept")
        # others do reach it
        lab.wait(lambda: run("ip", "netns", "exec", lab.org, "curl", "-s", "--max-time", "3",
                             f"http://{GATEWAY_O4}:8080/", check=False).stdout == "node itself", 10,
                 "the node's service")
        yield lab


def escaped(lab):
    """What the sniffers saw since the last call."""
    time.sleep(0.1)
    found = []
    for name, file in lab.seen.items():
        if file.exists():
            found += [f"{name}: {line}" for line in file.read_text().splitlines()]
            file.unlink()
    return found


@pytest.fixture(autouse=True)
def clean(lab):
    escaped(lab)


def send(sandbox, kind, address, *more):
    return sandbox.python(SEND, MARK, kind, address, *more)


@contextlib.contextmanager
def open_policy(lab):
    """Everything is allowed that a rule must not name: the fence alone remains."""
    lab.put_policy("lab", OPEN)
    try:
        yield
    finally:
        lab.put_policy("lab", lab.usual_policy)


# -- the node ------------------------------------------------------------------

@pytest.mark.parametrize("port", [8080, 15001, 22, 53000])
@pytest.mark.parametrize("address", ["gw4", "gw6", GATEWAY_O4, GATEWAY_O6, "192.0.0.8", "100::5350"])
def test_node_cannot_be_reached(lab, sandbox, address, port):
    address = getattr(sandbox, address, address)
    where = f"[{address}]" if ":" in address else address
    with open_policy(lab):  # even if the policy says yes to all
        start = time.monotonic()
        r = sandbox.run("curl", "-sS", "--max-time", "5", f"http://{where}:{port}/")
        assert "node itself" not in r.stdout, r.stdout
        assert r.returncode or "Sallyport" in r.stdout or '"error":"denied"' in r.stdout, r.stdout
        assert time.monotonic() - start < 2


def test_node_cannot_be_reached_by_a_name_of_it(lab, sandbox):
    zone = lab.tmp / "zone.json"
    before = zone.read_text()
    zone.write_text(json.dumps(json.loads(before) | {
        "node.lab.test": {"A": [GATEWAY_O4, sandbox.gw4, "127.0.0.1"], "AAAA": [sandbox.gw6, "::1"]}}))
    try:
        with open_policy(lab):
            status, _, err = sandbox.curl("http://node.lab.test:8080/")
            assert status == 0 and "Could not resolve host" in err, err
            # nor who learned the address elsewhere
            status, body, _ = sandbox.curl("--resolve", f"node.lab.test:8080:{GATEWAY_O4}",
                                           "http://node.lab.test:8080/")
            assert status == 403 and "no_allowed_address" in body, body
    finally:
        zone.write_text(before)


def test_link_local_address_of_the_node(lab, sandbox):
    out = run("ip", "-n", lab.gw, "-6", "-j", "addr", "show", "dev", sandbox.iface).stdout
    [local] = [a["local"] for a in json.loads(out)[0]["addr_info"] if a["scope"] == "link"]
    with open_policy(lab):
        r = sandbox.run("curl", "-sS", "--max-time", "3", "-g", f"http://[{local}%25e0]:8080/")
        assert "node itself" not in r.stdout and (r.returncode or "denied" in r.stdout), r.stdout
        for address in (f"{local}%e0", "ff02::1%e0", "ff02::2%e0"):
            assert send(sandbox, "ping", address).stdout == "", address


def test_admin_api_over_tcp_is_of_the_node(lab, sandbox):
    # no listener is configured here; nobody answers on its usual places either
    for port in (8443, 443):
        r = sandbox.run("curl", "-sSk", "--max-time", "3", f"https://{sandbox.gw4}:{port}/v1/status")
        assert r.returncode != 0


def test_sandbox_of_run_cannot_use_the_admin_socket(lab):
    socket = lab.run_dir / "admin.sock"
    r = run("ip", "netns", "exec", lab.gw, BIN / "sallyport", "run", "--config", lab.config_path, "--",
            "/bin/sh", "-c", f"ls -la {lab.run_dir}; curl -sS --max-time 3 --unix-socket {socket} "
            "http://x/v1/status", check=False)
    assert '"version"' not in r.stdout and "admin.sock" not in r.stdout, r.stdout
    assert r.returncode == 7 and "curl: (7)" in r.stderr, r.stderr  # curl ran, and found no socket


# -- others, and the outside ------------------------------------------------------

@pytest.mark.parametrize("kind", ["udp:9999", "udp:443", "udp:123", "udp-fragments", "ping", "47", "132",
                                  "50", "4"])
@pytest.mark.parametrize("version", [4, 6])
def test_nothing_but_tcp_and_dns_leaves(lab, sandbox, neighbour, kind, version):
    with open_policy(lab):
        for address in ((ORIGIN4, neighbour.v4, sandbox.gw4) if version == 4 else
                        (ORIGIN6, neighbour.v6, sandbox.gw6)):
            r = send(sandbox, kind, address)
            assert r.returncode == 0 and r.stdout == "", r.stdout + r.stderr
    assert escaped(lab) == []


@pytest.mark.parametrize("version", [4, 6])
def test_sandboxes_cannot_reach_each_other(lab, sandbox, neighbour, version):
    server = neighbour.popen("/usr/bin/python3", "-c", SERVICE, "8081")
    try:
        where = neighbour.v4 if version == 4 else f"[{neighbour.v6}]"
        lab.wait(lambda: neighbour.run("curl", "-sg", "--max-time", "3", f"http://{where}:8081/").stdout
                 == "node itself", 10, "the neighbour's service")
        with open_policy(lab):
            r = sandbox.run("curl", "-sSg", "--max-time", "3", "-H", f"X: {MARK}", f"http://{where}:8081/")
            assert "node itself" not in r.stdout and (r.returncode or "denied" in r.stdout)
    finally:
        server.kill()
        server.wait()
    assert escaped(lab) == []


def test_addresses_of_the_machine_room(lab, sandbox):
    """Allowed by default action is not allowed by a rule that names them."""
    with open_policy(lab):
        for address in ("169.254.169.254", ORIGIN4, "100.64.0.1", "192.168.1.1", "[fd12:2::2]",
                        "[::ffff:10.212.2.2]", "[64:ff9b::10.212.2.2]", "[2002:ad4:202::1]"):
            status, body, _ = sandbox.curl("-g", "--max-time", "3", f"http://{address}/")
            assert status == 403, (address, status, body)
            assert json.loads(body)["reason"] in ("address", "no_allowed_address"), body


# -- whose packet ------------------------------------------------------------------

@contextlib.contextmanager
def address_of(sandbox, *addresses):
    for a in addresses:
        run("ip", "-n", sandbox.ns, "addr", "add", a, "dev", "e0", *(["nodad"] if ":" in a else []))
    try:
        yield
    finally:
        for a in addresses:
            run("ip", "-n", sandbox.ns, "addr", "del", a, "dev", "e0", check=False)


def test_forged_source_is_nobody(lab, sandbox, neighbour, origin_seen):
    mark = len(lab.audit_text()) if lab.audit_path.exists() else 0
    forged = (neighbour.v4, neighbour.v6, "10.212.2.2", "198.51.100.7")
    with address_of(sandbox, *(f"{a}/{128 if ':' in a else 32}" for a in forged)):
        for a in forged:
            host = f"[{ORIGIN6}]" if ":" in a else ORIGIN4
            r = sandbox.run("curl", "-sSg", "--max-time", "1", "--interface", a, "-H",
                            "Host: plain.lab.test", f"http://{host}/forged")
            assert r.returncode != 0, r.stdout
            send(sandbox, "udp:53", ORIGIN6 if ":" in a else ORIGIN4, a)
    assert not origin_seen(path="/forged") and escaped(lab) == []
    assert neighbour.id not in lab.audit_text()[mark:]


def test_unregistered_address_of_the_same_network_is_dropped(lab, sandbox, origin_seen):
    """The lock; on an interface that nobody registered the gateway resets and says so."""
    mark = lab.audit_path.stat().st_size if lab.audit_path.exists() else 0
    with address_of(sandbox, "10.211.1.77/32", "fd11:1::77/128"):
        for a, host in (("10.211.1.77", ORIGIN4), ("fd11:1::77", f"[{ORIGIN6}]")):
            r = sandbox.run("curl", "-sSg", "--max-time", "1", "--interface", a, "-H",
                            "Host: plain.lab.test", f"http://{host}/stranger")
            assert r.returncode == 28, (r.returncode, r.stderr)
    assert not origin_seen(path="/stranger")
    assert "unknown_sandbox" not in lab.audit_text()[mark:]


# -- the rules ----------------------------------------------------------------------

def nft(lab, *args, **kw):
    return run("ip", "netns", "exec", lab.gw, "nft", *args, **kw).stdout


def works(sandbox):
    return sandbox.curl("--connect-timeout", "2", "https://api.lab.test/works")[0] == 200


@contextlib.contextmanager
def storm(sandbox):
    """Marked packets of all kinds, without pause."""
    code = f"""
import socket, time
s4 = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
print('ready', flush=True)
while True:
    for s, a in ((s4, '{ORIGIN4}'), (s6, '{ORIGIN6}')):
        try:
            s.sendto(b'{MARK}', (a, 9999))
        except OSError:
            pass
    time.sleep(0.0005)
"""
    p = sandbox.popen("/usr/bin/python3", "-c", code, stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "ready\n"
    try:
        yield
    finally:
        p.kill()
        p.wait()


def test_only_our_table_and_whole(lab):
    tables = nft(lab, "list", "tables").split("\n")
    assert "table inet sallyport" in tables and "table inet of_the_operator" in tables
    text = nft(lab, "list", "table", "inet", "sallyport")
    assert text.count("tproxy") == 6 and 'iifname "sp-*"' in text
    assert lab.admin.get("/v1/status")["rulesInstalled"] is True


def test_restart_lets_nothing_through(lab, sandbox):
    operator = nft(lab, "list", "table", "inet", "of_the_operator")
    with storm(sandbox):
        assert lab.stop() == 0
        time.sleep(0.2)
        lab.start()
    assert escaped(lab) == []
    assert works(sandbox)
    strip = [line for line in nft(lab, "list", "table", "inet", "of_the_operator").splitlines()
             if "counter" not in line]
    assert strip == [line for line in operator.splitlines() if "counter" not in line]


@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL"])
def test_stopped_daemon_opens_nothing(lab, sandbox, neighbour, origin_seen, how):
    roles = [lab.role_pid(r) for r in ("gateway", "vault", "control")]
    with storm(sandbox):
        if how == "SIGTERM":
            assert lab.stop() == 0
        else:
            lab.daemon.kill()
            lab.daemon.wait(5)
            lab.daemon = None
            lab.wait(lambda: not any(os.path.exists(f"/proc/{p}") for p in roles), 5,
                     "the roles to follow")
        for kind in ("ping", "udp:53", "udp-fragments", "47"):
            for address in (ORIGIN4, ORIGIN6, neighbour.v4, sandbox.gw4):
                assert send(sandbox, kind, address).stdout == ""
        for url in (f"http://{ORIGIN4}/stopped", f"http://[{ORIGIN6}]/stopped",
                    f"http://{sandbox.gw4}:8080/", f"http://{neighbour.v4}:8081/"):
            r = sandbox.run("curl", "-sSg", "--max-time", "0.4", "-H", f"X: {MARK}", url)
            assert r.returncode != 0
    assert escaped(lab) == [] and not origin_seen(path="/stopped")
    assert "inet sallyport" in nft(lab, "list", "tables")
    lab.start()
    lab.wait(lambda: works(sandbox), 5, "service")


def rules_of_ours(lab):
    return [x for v in ("-4", "-6") for x in run("ip", "-n", lab.gw, v, "rule").stdout.splitlines()
            if "23057" in x or "0x5a11" in x]


def test_remove_rules_removes_ours_and_only_ours(lab, sandbox):
    assert len(rules_of_ours(lab)) == 2
    before = [x for x in run("ip", "-n", lab.gw, "rule").stdout.splitlines() if "0x5a11" not in x]
    assert lab.stop() == 0
    r = run("ip", "netns", "exec", lab.gw, BIN / "sallyportd", "--config", lab.config_path,
            "--remove-rules")
    assert r.returncode == 0
    try:
        tables = nft(lab, "list", "tables")
        assert "sallyport" not in tables and "of_the_operator" in tables
        assert rules_of_ours(lab) == []
        assert run("ip", "-n", lab.gw, "rule").stdout.splitlines() == before
        # now the careless node shows, and that the sniffers do see what comes
        for kind, address in (("udp:9999", ORIGIN4), ("udp:9999", ORIGIN6), ("47", ORIGIN4)):
            send(sandbox, kind, address)
            assert escaped(lab), (kind, address)
        for address in (ORIGIN4, sandbox.gw4, sandbox.gw6):
            assert send(sandbox, "ping", address).stdout.strip() == "answered"
        # again is no error
        run("ip", "netns", "exec", lab.gw, BIN / "sallyportd", "--config", lab.config_path,
            "--remove-rules")
    finally:
        lab.start()
    escaped(lab)
    assert works(sandbox)
    send(sandbox, "udp:9999", ORIGIN4)
    assert escaped(lab) == []


@pytest.mark.parametrize("command", [
    "delete table inet sallyport", "flush table inet sallyport", "flush ruleset",
    "insert rule inet sallyport prerouting accept",
    "delete chain inet sallyport forward_from", "add table inet sallyport { flags dormant; }"])
def test_meddling_with_the_table_is_undone_and_reported(lab, sandbox, command):
    want = nft(lab, "-s", "-t", "list", "table", "inet", "sallyport")
    mark = len(lab.log())
    run("ip", "netns", "exec", lab.gw, "nft", command)
    start = time.monotonic()
    lab.wait(lambda: run("ip", "netns", "exec", lab.gw, "nft", "-s", "-t", "list", "table", "inet",
                         "sallyport", check=False).stdout == want, 3, "the table to come back")
    assert time.monotonic() - start < 1.5
    lab.wait(lambda: "found the table inet sallyport changed" in lab.log()[mark:], 3, "a word of it")
    lab.wait(lambda: lab.admin.get("/v1/status")["rulesInstalled"], 3, "the status")
    assert works(sandbox)
    send(sandbox, "udp:9999", ORIGIN4)
    assert escaped(lab) == []


def test_meddling_with_the_routes_is_undone(lab, sandbox):
    want = rules_of_ours(lab)
    for version in ("-4", "-6"):
        run("ip", "-n", lab.gw, version, "rule", "del", "fwmark", "0x5a11")
        run("ip", "-n", lab.gw, version, "route", "flush", "table", "23057")
    lab.wait(lambda: rules_of_ours(lab) == want, 5, "the rules")
    lab.wait(lambda: works(sandbox), 3, "service")


def test_second_daemon_does_not_disturb_the_first(lab, sandbox):
    r = run("ip", "netns", "exec", lab.gw, BIN / "sallyportd", "--config", lab.config_path, check=False,
            timeout=20)
    assert r.returncode == 1 and r.stderr, r
    assert works(sandbox) and lab.admin.get("/v1/status")["rulesInstalled"]
