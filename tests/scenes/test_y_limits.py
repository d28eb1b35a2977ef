# SPDX-License-Identifier: Apache-2.0
"""What one sandbox may use: connections, bytes, leaves; and that nobody else
notices when it uses all of it."""
import contextlib
import os
import resource
import subprocess
import time
from pathlib import Path

import pytest
from conftest import POLICY, open_lab
from lab import BIN, ORIGIN4, run

# Opens as many connections as it is told, at once, and says what came of them:
# count, then how many were opened, refused (reset or closed), left without answer.
FLOOD = """
import errno, select, socket, sys, time
count, seconds, say = int(sys.argv[2]), float(sys.argv[3]), sys.argv[4].encode()
poll, socks, done, opened, refused = select.poll(), {}, 0, 0, 0
def begin():
    s = socket.socket()
    s.setblocking(False)
    e = s.connect_ex((sys.argv[1], 443))
    if e not in (0, errno.EINPROGRESS):
        s.close()
        return False
    socks[s.fileno()] = s
    poll.register(s, select.POLLOUT)
    return True
end = time.monotonic() + seconds
while (done < count or socks) and time.monotonic() < end:
    while done < count and len(socks) < 900 and begin():
        done += 1
    for fd, what in poll.poll(50):
        s = socks[fd]
        try:
            if what & select.POLLOUT and not what & (select.POLLHUP | select.POLLERR):
                opened += 1
                if say:
                    s.send(say)
                poll.modify(s, select.POLLIN)
                continue
            if s.recv(100):
                continue
        except OSError:
            pass
        refused += 1
        poll.unregister(s)
        s.close()
        del socks[fd]
print(opened, refused, len(socks), flush=True)
"""

# Downloads over so many connections at once for some seconds: bytes of each.
DOWNLOAD = """
import socket, ssl, sys, threading, time
host, path, count, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
context = ssl.create_default_context(cafile=sys.argv[5])
got, end = [0] * count, time.monotonic() + seconds
def load(i):
    s = context.wrap_socket(socket.create_connection((host, 443)), server_hostname=host)
    s.sendall(f"GET {path} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode())
    while time.monotonic() < end:
        s.settimeout(max(0.01, end - time.monotonic()))
        try:
            n = len(s.recv(65536))
        except TimeoutError:
            break
        if not n:
            break
        got[i] += n
threads = [threading.Thread(target=load, args=(i,)) for i in range(count)]
for t in threads: t.start()
for t in threads: t.join()
print(*got)
"""

NAMES = [f"n{i}.sub.lab.test" for i in range(12)]

TIMED = ("-w", "%{time_total} %{speed_download} %{speed_upload}", "-o", "/dev/null", "-s", "-S",
         "--max-time", "30")


@pytest.fixture(scope="module")
def lab():
    with open_lab("y", config={"pins": {n: [ORIGIN4] for n in NAMES}}) as lab:
        yield lab


@pytest.fixture(autouse=True)
def as_usual(lab):
    """Sandbox 2 is under the usual policy; sandbox 1 under one with limits."""
    yield
    lab.admin.call("DELETE", "/v1/policies/a-tight")
    lab.wait(lambda: usage(lab, 1)["connections"]["used"] == 0, 10, "connections to end")


def limit(lab, **limits):
    """Sandbox 1 gets limits; in force when this returns."""
    # the first policy by name that chooses it
    lab.put_policy("a-tight", dict(POLICY, name="a-tight", sandboxes={"ids": ["sandbox-1"]},
                                   limits=limits))


def usage(lab, number):
    return lab.admin.get(f"/v1/sandboxes/sandbox-{number}")["usage"]


def flood(sandbox, count, seconds=20.0, say="", **kw):
    r = sandbox.python(FLOOD, ORIGIN4, str(count), str(seconds), say, check=True, **kw)
    return tuple(int(n) for n in r.stdout.split())


def fast(sandbox, *args):
    """Seconds, bytes a second down and up."""
    r = sandbox.run("curl", *TIMED, *args)
    assert r.returncode == 0, r.stderr
    return tuple(float(x) for x in r.stdout.split())


# -- connections -----------------------------------------------------------------

def test_open_connections_are_limited_over_all_loops(lab):
    a, b = lab.sandboxes
    limit(lab, connections=20)
    holder = a.popen("/usr/bin/python3", "-c", FLOOD, ORIGIN4, "60", "6", "",
                     stdout=subprocess.PIPE, text=True)
    try:
        lab.wait(lambda: usage(lab, 1)["connections"]["refused"] >= 40, 5, "refusals")
        used = usage(lab, 1)["connections"]
        assert used == {"used": 20, "limit": 20, "refused": 40}, used
        assert b.curl("https://api.lab.test/neighbour")[0] == 200
        assert usage(lab, 2)["connections"]["refused"] == 0
    finally:
        out, _ = holder.communicate(timeout=20)
    opened, refused, open_still = (int(n) for n in out.split())
    assert (refused, open_still) == (40, 20)
    lab.record(kind="connect", reason="limit", sandbox=a.id)
    lab.wait(lambda: usage(lab, 1)["connections"]["used"] == 0, 5, "the end of all")
    assert a.curl("https://api.lab.test/again")[0] == 200

    status = lab.admin.get("/v1/status")
    mine = [s for s in status["gateway"]["limited"] if s["sandbox"] == a.id]
    assert mine and mine[0]["usage"]["connections"]["refused"] == 40
    assert status["gateway"]["counters"]["connections_limited"] >= 40
    shown = run(BIN / "sallyport", "sandbox", "show", a.id, "--socket",
                lab.run_dir / "admin.sock").stdout
    assert "CONNECTIONS  used=0,limit=20,refused=40" in shown, shown


def test_new_connections_have_a_rate_and_few_records(lab):
    a, _ = lab.sandboxes
    limit(lab, connectionsPerSecond=50)
    before = len(lab.records(kind="connect", reason="limit"))
    began = time.monotonic()
    _, refused, waiting = flood(a, 2000, seconds=5)
    took = time.monotonic() - began
    served = 2000 - refused
    # a second's worth at once, and the rate; two more for when we look
    assert 50 <= waiting <= served <= 50 * (took + 2), (refused, waiting, took)
    lab.wait(lambda: any("alike" in r for r in lab.records(kind="connect", reason="limit")), 5,
             "a sum")
    time.sleep(1.2)
    records = lab.records(kind="connect", reason="limit")[before:]
    stood = sum(r.get("alike", 1) for r in records)
    assert stood == refused == usage(lab, 1)["connectionsPerSecond"]["refused"]
    # 10 and a sum, a second and an event loop
    assert len(records) <= 11 * os.cpu_count() * (took + 2), len(records)
    assert lab.sandboxes[1].curl("https://api.lab.test/neighbour")[0] == 200


def latencies(sandbox, seconds):
    """Of new TLS connections with a request, one after the other."""
    took, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        took.append(fast(sandbox, "https://api.lab.test/quick")[0])
    return sorted(took)


def test_a_flood_of_one_is_not_the_others_delay(lab):
    """10,000 connections of one sandbox against a limit; another one works on."""
    a, b = lab.sandboxes
    limit(lab, connections=100, connectionsPerSecond=100)
    latencies(b, 0.5)
    calm = latencies(b, 3)
    storm = a.popen("/usr/bin/python3", "-c", FLOOD, ORIGIN4, "10000", "20", "",
                    stdout=subprocess.PIPE, text=True)
    try:
        time.sleep(0.2)
        busy = latencies(b, 3)
    finally:
        out, _ = storm.communicate(timeout=40)
    opened, refused, waiting = (int(n) for n in out.split())
    print(f"flood: opened {opened}, refused {refused}, waiting {waiting}; neighbour median "
          f"{calm[len(calm) // 2]:.4f} s calm, {busy[len(busy) // 2]:.4f} s amid it, "
          f"worst {busy[-1]:.4f} s")
    assert refused > 9000 and refused + waiting == 10000
    assert busy[len(busy) // 2] < 0.25 and busy[-1] < 3.2, busy


SYNS = """
import socket, struct, sys, time
# first packets of TCP, from a raw socket, as fast as they go
own, to, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
def checksum(data):
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", 0xFFFF - total)
pseudo = socket.inet_aton(own) + socket.inet_aton(to) + struct.pack(">HH", 6, 20)
packets = []
for port in range(1024, 65000, 3):
    head = struct.pack(">HHIIBBHHH", port, 443, port, 0, 5 << 4, 2, 64000, 0, 0)
    packets.append(head[:16] + checksum(pseudo + head) + head[18:])
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
sent, end = 0, time.monotonic() + seconds
while time.monotonic() < end:
    for packet in packets[:2000]:
        s.sendto(packet, (to, 0))
        sent += 1
    packets = packets[2000:] + packets[:2000]
print(sent)
"""


@pytest.fixture
def narrow():
    """With a rate that any machine is faster than."""
    with open_lab("ys", config={"limits": {"synsPerSecond": 200}}) as lab:
        yield lab


def test_a_flood_of_handshakes_does_not_reach_the_shared_queue(narrow):
    """What is over the rate is dropped in front of the listeners, and said."""
    lab = narrow
    a, b = lab.sandboxes

    def held():
        rules = run("ip", "netns", "exec", lab.gw, "nft", "list", "chain", "inet", "sallyport", "opening").stdout
        line = next(x for x in rules.splitlines() if "@opening_v4" in x)
        return int(line.split("packets ")[-1].split()[0])
    before, records = held(), len(lab.records(kind="packet", reason="limit", sandbox=a.id))
    # answers are not waited for
    a.run("iptables", "-A", "OUTPUT", "-p", "tcp", "--tcp-flags", "RST", "RST", "-j", "DROP", check=True)
    p = a.popen("/usr/bin/python3", "-c", SYNS, a.v4, ORIGIN4, "5", stdout=subprocess.PIPE, text=True)
    try:
        time.sleep(0.5)
        took = []
        for i in range(6):
            began = time.monotonic()
            assert b.curl(f"https://api.lab.test/calm{i}")[0] == 200
            took.append(time.monotonic() - began)
            time.sleep(0.3)
    finally:
        sent = int(p.communicate(timeout=30)[0])
        a.run("iptables", "-F", "OUTPUT")
    print(f"{sent} first packets; the neighbour took {[round(t, 3) for t in took]} s")
    assert sent > 4000
    # five seconds of 200, as many saved up, and what a busy machine adds
    assert held() - before >= sent - 2500, (held() - before, sent)
    assert sorted(took)[-2] < 2, took
    assert len(lab.records(kind="packet", reason="limit", sandbox=a.id)) > records
    lab.wait(lambda: a.curl("https://api.lab.test/later")[0] == 200, 15, "its own connections")


# -- bytes -------------------------------------------------------------------------

MBYTE = 1000 * 1000


@pytest.mark.parametrize("host", ["api", "plain"])
def test_bytes_have_a_rate_in_both_directions(lab, host):
    """Opened and looked into, or spliced: the same."""
    a, b = lab.sandboxes
    url = f"https://{host}.lab.test"
    ca = ("--cacert", lab.tmp / "both.pem")
    (lab.tmp / "both.pem").write_text(lab.origin_ca.read_text() +
                                      (lab.run_dir / "ca-bundle.pem").read_text())
    payload = lab.tmp / "payload"
    payload.write_bytes(bytes(2 * MBYTE))
    # several times the rate, also where the machine has other things to do
    free = fast(a, *ca, f"{url}/big/{8 * MBYTE}")
    assert free[1] > 3 * MBYTE, free
    limit(lab, bytesPerSecond=MBYTE)
    _, down, _ = fast(a, *ca, f"{url}/big/{3 * MBYTE}")
    assert 0.5 * MBYTE < down < 1.25 * MBYTE, down
    _, _, up = fast(a, *ca, "--data-binary", f"@{payload}", f"{url}/post")
    assert 0.4 * MBYTE < up < 1.35 * MBYTE, up
    state = usage(lab, 1)
    assert state["bytesPerSecondIn"]["limit"] == MBYTE
    assert state["bytesPerSecondIn"]["refused"] and state["bytesPerSecondOut"]["refused"]
    assert fast(b, *ca, f"{url}/big/{8 * MBYTE}")[1] > 3 * MBYTE


def test_connections_share_the_bytes(lab):
    a, b = lab.sandboxes
    limit(lab, bytesPerSecond=MBYTE)
    r = a.python(DOWNLOAD, "api.lab.test", f"/big/{50 * MBYTE}", "8", "6",
                 str(lab.run_dir / "ca-bundle.pem"), check=True, timeout=40)
    got = [int(n) for n in r.stdout.split()]
    assert 4.5 * MBYTE < sum(got) < 7.5 * MBYTE, got
    # event loops come to the bucket when they come; nobody is left behind
    assert min(got) > 0.3 * sum(got) / len(got), got


def test_a_newcomer_has_its_turn(lab):
    """200 hungry connections do not keep a small request of their sandbox out."""
    a, _ = lab.sandboxes
    limit(lab, bytesPerSecond=MBYTE)
    p = a.popen("/usr/bin/python3", "-c", DOWNLOAD, "api.lab.test", f"/big/{50 * MBYTE}", "200",
                "9", str(lab.run_dir / "ca-bundle.pem"), stdout=subprocess.PIPE, text=True)
    try:
        lab.wait(lambda: usage(lab, 1)["connections"]["used"] >= 190, 8, "the hungry ones")
        took = [fast(a, "https://api.lab.test/small")[0] for _ in range(3)]
    finally:
        p.communicate(timeout=40)
    assert max(took) < 4, took


def test_a_change_of_the_rate_holds_at_once(lab):
    """A transfer under way becomes slow, and fast again."""
    a, _ = lab.sandboxes
    limit(lab, bytesPerSecond=200 * 1000)
    p = a.popen("curl", *TIMED, f"https://api.lab.test/big/{20 * MBYTE}",
                stdout=subprocess.PIPE, text=True)
    try:
        time.sleep(2)
        assert p.poll() is None
        limit(lab)
        out, _ = p.communicate(timeout=5)
    finally:
        if p.poll() is None:
            p.kill()
            p.wait()
    assert p.returncode == 0 and 2 < float(out.split()[0]) < 5, out


def test_waiting_for_bytes_costs_no_time(lab):
    """Nothing spins while 50 connections stand in line."""
    a, _ = lab.sandboxes
    pid = lab.role_pid("gateway")
    limit(lab, bytesPerSecond=50 * 1000)
    p = a.popen("/usr/bin/python3", "-c", DOWNLOAD, "api.lab.test", f"/big/{50 * MBYTE}", "50",
                "5", str(lab.run_dir / "ca-bundle.pem"), stdout=subprocess.PIPE, text=True)
    time.sleep(2)
    before = cpu_s(pid)
    time.sleep(2)
    used = cpu_s(pid) - before
    out, _ = p.communicate(timeout=30)
    assert used < 0.4, used
    assert sum(int(n) for n in out.split()) < 50 * 1000 * 9


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# -- leaves --------------------------------------------------------------------------

def shake(sandbox, name, *more):
    return sandbox.run("openssl", "s_client", "-connect", f"{ORIGIN4}:443", "-servername", name,
                       *more, input="")


def test_case_24_leaves_have_a_rate(lab):
    """No leaf for a name that policy denies, and so many a second for others."""
    a, b = lab.sandboxes
    counters = lambda: lab.admin.get("/v1/status")["gateway"]["counters"]  # noqa: E731
    with lab.policy(POLICY["egress"], inspect=["*.sub.lab.test"]):
        lab.put_policy("a-tight", dict(POLICY, name="a-tight", inspect=["*.sub.lab.test"],
                                       sandboxes={"ids": ["sandbox-1"]},
                                       limits={"mintsPerSecond": 1}))
        before = counters()["leaves_minted"]
        r = shake(a, "denied.lab.test")
        assert "access denied" in r.stderr and counters()["leaves_minted"] == before

        began = time.monotonic()
        results = [shake(a, name, "-no_ticket") for name in NAMES]
        minted = counters()["leaves_minted"] - before
        refused = [r for r in results if "access denied" in r.stderr]
        assert minted + len(refused) == len(NAMES), results[0].stderr
        assert minted <= 2 + (time.monotonic() - began)
        assert refused and usage(lab, 1)["mintsPerSecond"]["refused"] == len(refused)
        lab.record(kind="connect", reason="limit", sandbox=a.id, scheme="https")
        # another sandbox has its own
        another = [n for n, r in zip(NAMES, results) if r in refused][0]
        assert "access denied" not in shake(b, another).stderr
        # what was signed needs no signature
        [known] = [n for n, r in zip(NAMES, results) if r not in refused][:1]
        for _ in range(5):
            assert "access denied" not in shake(a, known).stderr


# -- resumption ----------------------------------------------------------------------

def test_case_27_a_session_is_resumed_by_its_own_name_and_sandbox_only(lab):
    a, b = lab.sandboxes
    ticket = lab.tmp / "ticket.pem"

    def reused(sandbox, name):
        r = sandbox.run("openssl", "s_client", "-connect", f"{ORIGIN4}:443", "-servername", name,
                        "-sess_in", ticket, "-ign_eof",
                        input=f"HEAD / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n")
        assert "HTTP/1.1 200" in r.stdout, r.stdout + r.stderr
        return "Reused," in r.stdout

    def fresh():
        r = a.run("openssl", "s_client", "-connect", f"{ORIGIN4}:443", "-servername",
                  "api.lab.test", "-sess_out", ticket, "-ign_eof",
                  input="HEAD / HTTP/1.1\r\nHost: api.lab.test\r\nConnection: close\r\n\r\n")
        assert "HTTP/1.1 200" in r.stdout and ticket.exists(), r.stderr

    with lab.policy(POLICY["egress"], inspect=["*.lab.test"]):
        fresh()
        assert reused(a, "api.lab.test")
        fresh()
        assert not reused(a, "git.lab.test")
        fresh()
        assert not reused(b, "api.lab.test")


# -- descriptors ----------------------------------------------------------------------

FEW = 400


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident_kib(pid):
    return int(Path(f"/proc/{pid}/smaps_rollup").read_text().split("Pss:")[1].split()[0])


@contextlib.contextmanager
def few_descriptors(pid):
    """The role has FEW descriptors and no more, for a while."""
    former = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (FEW, former[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, former)


def test_case_49_without_descriptors_it_says_so_and_recovers(lab):
    a, b = lab.sandboxes
    pid = lab.role_pid("gateway")
    assert lab.admin.get("/v1/status")["ready"]
    with few_descriptors(pid):
        storm = a.popen("/usr/bin/python3", "-c", FLOOD, ORIGIN4, "800", "6", "",
                        stdout=subprocess.PIPE, text=True)
        try:
            lab.wait(lambda: not lab.admin.get("/v1/status")["ready"], 6, "not ready")
            status = lab.admin.get("/v1/status")
            assert status["gateway"]["outOfDescriptors"]
            # the loop sheds and rests; it does not spin
            before = cpu_s(pid)
            time.sleep(1)
            assert cpu_s(pid) - before < 0.5
        finally:
            out, _ = storm.communicate(timeout=30)
        assert int(out.split()[1]) > 0, out  # refused rather than left hanging
        lab.wait(lambda: b.curl("https://api.lab.test/after")[0] == 200, 15, "service again")
    lab.wait(lambda: lab.admin.get("/v1/status")["ready"], 10, "ready again")
    assert lab.log().count("too many open files") < 10
    # with a limit of its own the sandbox does not get there, and b is served
    limit(lab, connections=60)
    with few_descriptors(pid):
        storm = a.popen("/usr/bin/python3", "-c", FLOOD, ORIGIN4, "800", "4", "",
                        stdout=subprocess.PIPE, text=True)
        try:
            time.sleep(1)
            for _ in range(5):
                assert b.curl("https://api.lab.test/amid")[0] == 200
            assert lab.admin.get("/v1/status")["ready"]
        finally:
            storm.communicate(timeout=30)


ABORT = """
import os, socket, ssl, struct, sys
address, count, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rst = struct.pack("ii", 1, 0)
context = ssl.create_default_context(cafile=sys.argv[4])
end = b" HTTP/1.1\\r\\nHost: api.lab.test\\r\\n"
post = b"POST /post" + end + b"Content-Length: 100000\\r\\n\\r\\n" + bytes(999)
get = b"GET /big/900000" + end + b"\\r\\n"
for i in range(count):
    s = socket.create_connection((address, 443), timeout=10)
    if kind == "tls":
        t = context.wrap_socket(s, server_hostname="api.lab.test", do_handshake_on_connect=False)
        try:
            if i % 4:
                t.do_handshake()
                if i % 4 > 1:
                    t.sendall(post if i % 8 < 4 else get)
                if i % 8 == 7:
                    t.recv(100)
        except OSError:
            pass
        s = t
    else:
        s.send([b"", b"\\x16", b"GET /", b"\\x00" * 50][i % 4])
    if i % 2:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, rst)
    s.close()
print("done")
"""


def test_case_48_aborted_connections_leave_nothing(lab):
    """10,000 of them, in every state, by FIN and by RST."""
    a, _ = lab.sandboxes
    limit(lab, connectionsPerSecond=0)  # a thousand a second would be refused
    pid = lab.role_pid("gateway")
    bundle = str(lab.run_dir / "ca-bundle.pem")

    def abort(count):
        jobs = [a.popen("/usr/bin/python3", "-c", ABORT, ORIGIN4, str(n), kind, bundle,
                        stdout=subprocess.PIPE, text=True)
                for kind, n in (("tls", count // 5), ("raw", count - count // 5))]
        for job in jobs:
            out, _ = job.communicate(timeout=200)
            assert out == "done\n"
        lab.wait(lambda: usage(lab, 1)["connections"]["used"] == 0, 40, "all to be over")

    abort(1000)  # caches, pools and heaps fill
    time.sleep(3)
    fds, kib = descriptors(pid), resident_kib(pid)
    abort(10000)
    lab.wait(lambda: descriptors(pid) <= fds + 8, 10, "descriptors to be closed")
    assert resident_kib(pid) < kib + 8 * 1024, (kib, resident_kib(pid))
    states = run("ip", "netns", "exec", lab.gw, "ss", "-tnHo", "state", "fin-wait-2", "state",
                 "close-wait").stdout
    assert all("timer:" in line for line in states.splitlines()), states
