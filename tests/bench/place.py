# SPDX-License-Identifier: Apache-2.0
"""place.py - the bench: three namespaces in a row, an origin, keys, processes

    client (load) --e0--bench0-- gateway --go--o0-- origin (nginx, behind.py)

The gateway under test runs alone on one core; load generator and origin share
the other. Nothing leaves the machine; processes are stopped by the pid that
was started.
"""
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SALLYPORT_BUILD", SOURCE / "build" / "release"))
LOAD = BUILD / "bin" / "sallyport-load"

CLIENT, GATEWAY_C = "10.213.1.2", "10.213.1.1"
ORIGIN, GATEWAY_O = "10.213.2.2", "10.213.2.1"
DOMAIN = "bench.test"
HOST = f"api.{DOMAIN}"
FRESH = [f"fresh{i}.{DOMAIN}" for i in range(1000)]  # for first contacts
H2_ORIGIN, H2_HOST = "10.213.2.3", f"h2.{DOMAIN}"  # the same over HTTP/2
PASS_ORIGIN, PASS_HOST = "10.213.2.4", "pinned.splice.test"  # not to be opened
BEHIND_PORT = 9000  # behind.py, behind the origin
TOKEN = "Bearer sk-bench-7d1f0c93be524a60"
CPU_LOAD, CPU_GATEWAY = "0", "1"
FILES_MAX = min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def run(*cmd, check=True, **kw):
    r = subprocess.run([str(c) for c in cmd], capture_output=True, text=True,
                       timeout=kw.pop("timeout", 120), **kw)
    if check and r.returncode:
        raise RuntimeError(f"{' '.join(r.args)}: exit {r.returncode}\n{r.stdout}{r.stderr}")
    return r


def tree(pid):
    """A process and all below it."""
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    pids, found = [pid], []
    while pids:
        p = pids.pop()
        found.append(p)
        pids += children.get(p, [])
    return found


def cpu_ns(pids):
    """Time on a CPU of all threads, kernel included, since they began."""
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                total += int(task.read_text().split()[0])
            except OSError:
                pass
    return total


def pss_kib(pids):
    """Proportional set size: shared pages count once over all of them."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total


def prefer(pids, nice):
    """On a machine with other work: before it, or at least as its equal.

    The kernel shares time among sessions first (autogroups), so what the shell
    is nice to says little."""
    for pid in pids:
        try:
            Path(f"/proc/{pid}/autogroup").write_text(str(nice))
        except OSError:
            pass  # none here, or gone


class Place:
    def __init__(self, nice=0):
        self.nice = nice
        self.tmp = Path(tempfile.mkdtemp(prefix="sallyport-bench-", dir="/run"))
        self.tmp.chmod(0o755)
        name = f"spb{os.getpid() % 10000}"
        self.client, self.gateway, self.origin = (name + x for x in "cgo")
        self.nginx = self.behind = None
        self.plugged = 0

    # -- network -----------------------------------------------------------
    def up(self):
        for ns in (self.client, self.gateway, self.origin):
            run("ip", "netns", "add", ns)
            run("ip", "-n", ns, "link", "set", "lo", "up")
        self._link("e0", self.client, CLIENT, "bench0", GATEWAY_C)
        self._link("o0", self.origin, ORIGIN, "go", GATEWAY_O)
        for address in (H2_ORIGIN, PASS_ORIGIN):
            run("ip", "-n", self.origin, "addr", "add", f"{address}/24", "dev", "o0")
        for ns in (self.client, self.gateway, self.origin):
            run("ip", "netns", "exec", ns, "sysctl", "-qw", "net.ipv4.ip_forward=1",
                "net.ipv4.ip_local_port_range=2048 65000", "net.ipv4.tcp_tw_reuse=1",
                "net.core.somaxconn=8192", "net.ipv4.tcp_max_syn_backlog=8192")
        etc = Path("/etc/netns") / self.gateway
        etc.mkdir(parents=True)
        names = "".join(f"{ORIGIN} {name}\n" for name in (HOST, *FRESH))
        names += f"{H2_ORIGIN} {H2_HOST}\n{PASS_ORIGIN} {PASS_HOST}\n"
        (etc / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        (etc / "resolv.conf").write_text("nameserver 127.0.0.1\n")

    def _link(self, dev, ns, address, gateway_dev, gateway_address):
        g = self.gateway
        run("ip", "link", "add", dev, "netns", ns, "type", "veth",
            "peer", "name", gateway_dev, "netns", g)
        for n, d, a in ((ns, dev, address), (g, gateway_dev, gateway_address)):
            run("ip", "-n", n, "addr", "add", f"{a}/24", "dev", d)
            run("ip", "-n", n, "link", "set", d, "up")
        run("ip", "-n", ns, "route", "add", "default", "via", gateway_address)

    def down(self):
        for process in (self.nginx, self.behind):
            if process:
                self.stop(process)
        for ns in (self.client, self.gateway, self.origin):
            run("ip", "netns", "del", ns, check=False)
        shutil.rmtree(Path("/etc/netns") / self.gateway, ignore_errors=True)
        if not os.environ.get("SALLYPORT_KEEP"):
            shutil.rmtree(self.tmp, ignore_errors=True)

    def plug(self, count):
        """Interfaces for as many sandboxes that say nothing."""
        self.plugged = count
        run("ip", "-n", self.gateway, "-batch", "-", timeout=300, input="".join(
            f"link add bench-{i} type veth peer name peer-{i}\n" for i in range(count)))

    def unplug(self):
        run("ip", "-n", self.gateway, "-batch", "-", timeout=300, input="".join(
            f"link del bench-{i}\n" for i in range(self.plugged)))
        self.plugged = 0

    def redirect(self, ports):
        """Brings the client's TLS to a gateway that has no way of its own: the
        port for each origin; the others' by the first."""
        nft = ["ip", "netns", "exec", self.gateway, "nft", "-f", "-"]
        run(*nft, input="table ip bench\ndelete table ip bench\n")
        if ports:
            rules = "; ".join(f"iifname bench0 ip daddr {a} tcp dport 443 redirect to :{p}"
                              for a, p in ports.items())
            run(*nft, input=f"""table ip bench {{
                chain pre {{
                    type nat hook prerouting priority dstnat;
                    {rules};
                }}
            }}
            """)

    # -- processes ---------------------------------------------------------
    def start(self, ns, cpu, log, *cmd):
        """The pid that comes back is the command's own: all others exec."""
        limit = f"ulimit -n {FILES_MAX}; exec \"$@\""
        with open(self.tmp / log, "ab") as out:
            process = subprocess.Popen(
                ["ip", "netns", "exec", ns, "taskset", "-c", cpu, "bash", "-c", limit, "bench",
                 *map(str, cmd)], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True)
        prefer([process.pid], self.nice)
        return process

    @staticmethod
    def stop(process):
        below = tree(process.pid)[1:]
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pid in below:  # what outlived its parent
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass

    # -- keys --------------------------------------------------------------
    def pki(self):
        """One CA that gateways trust, one that the client trusts."""
        for ca in ("origin-ca", "bench-ca"):
            self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
                          "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                          "-subj", f"/CN={ca}", "-keyout", f"{ca}.key", "-out", f"{ca}.crt",
                          "-addext", "keyUsage=critical,keyCertSign,cRLSign")
            self._join(f"{ca}.pem", f"{ca}.key", f"{ca}.crt")
        self._leaf("origin", "origin-ca")
        self._leaf("fixed", "bench-ca")

    def _openssl(self, *args):
        run("openssl", *args, cwd=self.tmp)

    def _join(self, to, *parts):
        (self.tmp / to).write_bytes(b"".join((self.tmp / p).read_bytes() for p in parts))

    def _leaf(self, name, ca):
        (self.tmp / "ext").write_text(f"subjectAltName=DNS:*.{DOMAIN},DNS:{PASS_HOST}\n"
                                      "extendedKeyUsage=serverAuth\n")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                      "-subj", f"/CN={DOMAIN}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        self._openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.crt", "-CAkey",
                      f"{ca}.key", "-CAcreateserial", "-days", "30", "-extfile", "ext",
                      "-out", f"{name}.crt")
        self._join(f"{name}.pem", f"{name}.crt", f"{name}.key")

    # -- the origin --------------------------------------------------------
    def start_origin(self):
        t = self.tmp
        (t / "www").mkdir()
        for name, size in (("1k", 1 << 10), ("64k", 1 << 16), ("64m", 1 << 26)):
            (t / "www" / name).write_bytes(os.urandom(size))
        (t / "origin.conf").write_text(f"""
daemon off; master_process off; user root; pid {t}/origin.pid;
error_log {t}/origin.log warn; worker_rlimit_nofile {FILES_MAX};
events {{ worker_connections 16384; multi_accept on; }}
http {{
  access_log off; server_tokens off; etag off; types {{ }}
  default_type application/octet-stream;
  sendfile on; tcp_nopush on; open_file_cache max=16; open_file_cache_valid 1d;
  keepalive_timeout 1h; keepalive_requests 1000000000;
  client_body_temp_path {t}; proxy_temp_path {t}; fastcgi_temp_path {t};
  uwsgi_temp_path {t}; scgi_temp_path {t};
  map $http_authorization $injected {{ default 0; "{TOKEN}" 1; }}
  ssl_certificate origin.crt; ssl_certificate_key origin.key;
  ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:origin:16m;
  root {t}/www; add_header x-inj $injected always;
  server {{
    listen {ORIGIN}:443 ssl backlog=8192; listen {PASS_ORIGIN}:443 ssl backlog=8192;
    location /events {{
      proxy_pass http://127.0.0.1:{BEHIND_PORT}; proxy_http_version 1.1; proxy_buffering off;
    }}
    location /take {{
      proxy_pass http://127.0.0.1:{BEHIND_PORT}; proxy_http_version 1.1;
      proxy_request_buffering off; client_max_body_size 0;
    }}
  }}
  server {{
    listen {H2_ORIGIN}:443 ssl http2 backlog=8192;
  }}
}}
""")
        self.nginx = self.start(self.origin, CPU_LOAD, "origin.out", "nginx", "-c",
                                t / "origin.conf", "-e", t / "origin.log")
        self.behind = self.start(self.origin, CPU_LOAD, "behind.out", sys.executable,
                                 SOURCE / "tests" / "bench" / "behind.py", BEHIND_PORT)
        self.bundle = t / "trust-origin.pem"
        self._join(self.bundle.name, "origin-ca.crt")
        self.load(self.bundle, "-m", "wait", "-t", TOKEN)

    # -- the load generator --------------------------------------------------
    def load(self, ca, *args, look=None):
        """Runs it to the end. What it printed, and what look() returned at the
        beginning and at the end of the time that was measured."""
        host = [] if "-H" in args else ["-H", HOST]
        command = ["ip", "netns", "exec", self.client, "taskset", "-c", CPU_LOAD, LOAD,
                   "-a", ORIGIN, "-C", ca, *host, *args]
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        prefer([process.pid], self.nice)
        figures = {}
        for line in process.stdout:
            if "=" in line:
                figures |= {k: float(v) for k, v in (w.split("=") for w in line.split())}
                continue
            figures[line.strip()] = look() if look else None
            process.stdin.write("\n")
            process.stdin.flush()
        figures["stderr"] = process.stderr.read()
        if process.wait(60):
            raise RuntimeError(f"load {' '.join(process.args[8:])}: {figures['stderr']}")
        return figures


def wait(condition, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.001)
    raise RuntimeError(f"waited {seconds} s for {what}")
