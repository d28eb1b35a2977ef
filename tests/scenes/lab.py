# SPDX-License-Identifier: Apache-2.0
"""lab.py - a small internet in network namespaces: sandboxes, gateway, origin

    sandbox 1  --sp-l1--+
                        +-- gateway --go-- origin (nginx, DNS, raw servers)
    sandbox 2  --sp-l2--+

Everything is made here, named after this process, and removed again. Nothing
leaves the machine; processes are stopped by the pid that was started.
"""
import contextlib
import http.client
import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SALLYPORT_BUILD", SOURCE / "build" / "release"))
BIN = BUILD / "bin"
# What is allowed is written within 10 ms (AUDIT_WAIT_MS), also by a gateway that is not asked.
AUDIT_WAIT_S = 0.02

ORIGIN4, ORIGIN6 = "10.212.2.2", "fd12:2::2"
OTHER4 = "10.212.2.3"  # a second origin address: the attacker's
GATEWAY_O4, GATEWAY_O6 = "10.212.2.1", "fd12:2::1"


def run(*cmd, check=True, **kw):
    """Runs to the end; output as text with its line ends left alone."""
    kw.setdefault("timeout", 60)
    if isinstance(kw.get("input"), str):
        kw["input"] = kw["input"].encode()
    r = subprocess.run([str(c) for c in cmd], capture_output=True, **kw)
    r.stdout, r.stderr = (x.decode(errors="replace") for x in (r.stdout, r.stderr))
    if check and r.returncode:
        raise AssertionError(f"{' '.join(r.args)}: exit {r.returncode}\n{r.stdout}{r.stderr}")
    return r


def netns_drop(name):
    """May fail for a moment, while others on the machine mount and unmount."""
    for _ in range(20):
        said = run("ip", "netns", "del", name, check=False)
        if not os.path.exists(f"/run/netns/{name}"):
            return
        time.sleep(0.1)
    print(f"network namespace {name} stays: {said.stderr}", flush=True)


def netns_make(name):
    """The name has our process number: one that is there is left over."""
    if os.path.exists(f"/run/netns/{name}"):
        netns_drop(name)
    run("ip", "netns", "add", name)


class Sandbox:
    """One isolated client: a namespace with lo and one veth."""

    def __init__(self, lab, number):
        self.lab, self.number = lab, number
        self.ns = f"{lab.prefix}s{number}"
        self.iface = f"sp-{os.getpid() % 10000}l{number}"
        self.v4, self.gw4 = f"10.211.{number}.2", f"10.211.{number}.1"
        self.v6, self.gw6 = f"fd11:{number}::2", f"fd11:{number}::1"
        self.id = f"sandbox-{number}"

    def attach(self):
        g = self.lab.gw
        netns_make(self.ns)
        run("ip", "link", "add", "e0", "netns", self.ns, "type", "veth",
            "peer", "name", self.iface, "netns", g)
        for ns, dev, a4, a6 in ((self.ns, "e0", self.v4, self.v6),
                                (g, self.iface, self.gw4, self.gw6)):
            run("ip", "-n", ns, "addr", "add", f"{a4}/24", "dev", dev)
            run("ip", "-n", ns, "addr", "add", f"{a6}/64", "dev", dev, "nodad")
            run("ip", "-n", ns, "link", "set", dev, "up")
        run("ip", "-n", self.ns, "link", "set", "lo", "up")
        run("ip", "-n", self.ns, "route", "add", "default", "via", self.gw4)
        run("ip", "-n", self.ns, "-6", "route", "add", "default", "via", self.gw6)
        etc = Path("/etc/netns") / self.ns
        etc.mkdir(parents=True, exist_ok=True)
        (etc / "resolv.conf").write_text(f"nameserver {self.gw4}\noptions timeout:4 attempts:2\n")
        (etc / "hosts").write_text("127.0.0.1 localhost\n")

    def detach(self):
        netns_drop(self.ns)
        shutil.rmtree(Path("/etc/netns") / self.ns, ignore_errors=True)

    def env(self):
        bundle = str(self.lab.run_dir / "ca-bundle.pem")
        env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
                     "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"):
            env[name] = bundle
        env["HOME"] = str(self.lab.tmp)
        return env

    def run(self, *cmd, check=False, **kw):
        return run("ip", "netns", "exec", self.ns, *cmd, check=check,
                   env=kw.pop("env", None) or self.env(), **kw)

    def popen(self, *cmd, **kw):
        return subprocess.Popen(["ip", "netns", "exec", self.ns, *[str(c) for c in cmd]],
                                env=self.env(), **kw)

    def curl(self, *args, **kw):
        """curl with status and body: returns (status, body, stderr)."""
        r = self.run("curl", "-sS", "--max-time", "15", "-o", "-", "-w",
                     "\n%{http_code}", *args, **kw)
        body, _, status = r.stdout.rpartition("\n")
        return int(status or 0), body, r.stderr

    def python(self, code, *args, **kw):
        return self.run("/usr/bin/python3", "-c", code, *args, **kw)


class Admin:
    """The admin API over its unix socket."""

    def __init__(self, path):
        self.path = path

    def call(self, method, path, body=None, expect=None):
        conn = http.client.HTTPConnection("sallyport")
        conn.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        conn.sock.settimeout(20)
        conn.sock.connect(str(self.path))
        data = None if body is None else json.dumps(body)
        conn.request(method, path, data, {"Content-Type": "application/json"})
        reply = conn.getresponse()
        text = reply.read().decode()
        conn.close()
        value = json.loads(text) if text and "json" in reply.getheader("Content-Type", "") else text
        if expect is not None and reply.status != expect:
            raise AssertionError(f"{method} {path}: {reply.status} {text}")
        return reply.status, value

    def get(self, path, expect=200):
        return self.call("GET", path, expect=expect)[1]


class Lab:
    all = []  # those that are up

    def __init__(self, sandboxes=2, config=None, tag=""):
        """tag tells labs apart that live at the same time."""
        self.prefix = f"spl{os.getpid()}{tag}"
        self.gw, self.org = self.prefix + "g", self.prefix + "o"
        self.tmp = Path(tempfile.mkdtemp(prefix="sallyport-lab-"))
        self.tmp.chmod(0o755)
        self.run_dir, self.state = self.tmp / "run", self.tmp / "state"
        self.policies = self.tmp / "policies"
        self.audit_path = self.tmp / "audit.jsonl"
        self.audit_mark = (0, 0)
        self.extra_config = config or {}
        self.procs, self.daemon = [], None
        self.sandboxes = [Sandbox(self, i + 1) for i in range(sandboxes)]
        self.admin = Admin(self.run_dir / "admin.sock")

    # -- network ---------------------------------------------------------
    def up(self):
        Lab.all.append(self)
        for ns in (self.gw, self.org):
            netns_make(ns)
            run("ip", "-n", ns, "link", "set", "lo", "up")
        run("ip", "link", "add", "o0", "netns", self.org, "type", "veth",
            "peer", "name", "go", "netns", self.gw)
        for ns, dev, a4, a6 in ((self.org, "o0", ORIGIN4, ORIGIN6),
                                (self.gw, "go", GATEWAY_O4, GATEWAY_O6)):
            run("ip", "-n", ns, "addr", "add", f"{a4}/24", "dev", dev)
            run("ip", "-n", ns, "addr", "add", f"{a6}/64", "dev", dev, "nodad")
            run("ip", "-n", ns, "link", "set", dev, "up")
        run("ip", "-n", self.org, "addr", "add", f"{OTHER4}/24", "dev", "o0")
        run("ip", "-n", self.org, "route", "add", "default", "via", GATEWAY_O4)
        # a careless node: it would route, if the fence did not forbid it
        run("ip", "netns", "exec", self.gw, "sysctl", "-qw", "net.ipv4.ip_forward=1",
            "net.ipv6.conf.all.forwarding=1")
        for s in self.sandboxes:
            s.attach()

    def in_origin(self, *cmd, **kw):
        """Starts a server in the origin's namespace; stopped with the lab."""
        p = subprocess.Popen(["ip", "netns", "exec", self.org, *[str(c) for c in cmd]], **kw)
        self.procs.append(p)
        return p

    def pki(self):
        """A CA for origins, and a helper for leaves of it."""
        ca, key = self.tmp / "origin-ca.pem", self.tmp / "origin-ca.key"
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-keyout", key, "-out", ca, "-days", "30", "-subj", "/CN=lab origin CA")
        self.origin_ca = ca

    def leaf(self, name, *sans):
        crt, key = self.tmp / f"{name}.pem", self.tmp / f"{name}.key"
        if crt.exists():
            return crt, key
        san = ",".join(("IP:" if _is_ip(s) else "DNS:") + s for s in sans)
        run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", key, "-out", self.tmp / "csr.pem", "-subj", f"/CN={name}")
        ext = self.tmp / "ext.cnf"
        ext.write_text(f"subjectAltName={san}\n")
        run("openssl", "x509", "-req", "-in", self.tmp / "csr.pem", "-CA", self.origin_ca,
            "-CAkey", self.tmp / "origin-ca.key", "-CAcreateserial", "-days", "30",
            "-extfile", ext, "-out", crt)
        return crt, key

    # -- the daemon ------------------------------------------------------
    def configure(self, **more):
        for d in (self.run_dir, self.state, self.policies):
            d.mkdir(exist_ok=True)
        key = self.tmp / "vault.key"
        if not key.exists():
            key.write_bytes(os.urandom(32))
            key.chmod(0o600)
        config = {
            "stateDir": str(self.state), "runDir": str(self.run_dir),
            "policyDir": str(self.policies), "auditFile": str(self.audit_path),
            "user": "", "logLevel": "info", "sandboxInterfaces": ["sp-*"],
            "dns": {"upstreams": [f"{ORIGIN4}:53"], "hostsFile": ""},
            "upstream": {"trustSystem": False, "trustFiles": [str(self.origin_ca)]},
            "vault": {"keyFile": str(key)},
        }
        for source in (self.extra_config, more):
            for k, v in source.items():
                if isinstance(v, dict) and isinstance(config.get(k), dict):
                    config[k].update(v)
                else:
                    config[k] = v
        self.config_path = self.tmp / "sallyport.json"
        self.config_path.write_text(json.dumps(config, indent=1))

    def start(self, *wrapper):
        """wrapper: a command in front of the daemon's."""
        self.log_path = self.tmp / "daemon.log"
        self.log_mark = len(self.log())
        log = open(self.log_path, "ab")
        self.daemon = subprocess.Popen(
            ["ip", "netns", "exec", self.gw, *wrapper, str(BIN / "sallyportd"), "--config",
             str(self.config_path)], stdout=log, stderr=log)
        self.wait(lambda: self.ready(), 20, "the daemon to serve")

    def ready(self):
        if self.daemon.poll() is not None:
            raise AssertionError(f"the daemon ended:\n{self.log()}")
        try:
            status = self.admin.get("/v1/status")
            return "serving" in self.log()[self.log_mark:] and status["ready"]
        except (OSError, AssertionError, http.client.HTTPException):
            return False

    def stop(self, sig=signal.SIGTERM, timeout=20):
        if self.daemon and self.daemon.poll() is None:
            self.daemon.send_signal(sig)
            try:
                self.daemon.wait(timeout)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait(5)
                raise AssertionError(f"the daemon did not stop:\n{self.log()}")
        code = self.daemon.returncode if self.daemon else 0
        self.daemon = None
        return code

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def role_pid(self, name):
        """The pid of a role of our daemon; KeyError while it has none."""
        for role in self.admin.get("/v1/status")["roles"]:
            # 0, while it is being started again, would be ourselves to kill(2)
            if role.get("role") == name and role["pid"] > 0:
                return role["pid"]
        raise KeyError(name)

    def down(self):
        if self in Lab.all:
            Lab.all.remove(self)
        try:
            if self.daemon:
                self.stop()
        finally:
            for p in self.procs:
                if p.poll() is None:
                    p.terminate()
            for p in self.procs:
                try:
                    p.wait(5)
                except subprocess.TimeoutExpired:
                    p.kill()
                    p.wait()
            for s in self.sandboxes:
                s.detach()
            for ns in (self.gw, self.org):
                netns_drop(ns)
            if not os.environ.get("SALLYPORT_KEEP"):
                shutil.rmtree(self.tmp, ignore_errors=True)

    # -- what tests ask ----------------------------------------------------
    @staticmethod
    def wait(condition, seconds, what):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.02)
        raise AssertionError(f"waited {seconds} s for {what}")

    def register(self, sandbox, **labels):
        self.admin.call("POST", "/v1/sandboxes", {
            "id": sandbox.id, "interface": sandbox.iface,
            "addresses": [sandbox.v4, sandbox.v6], "labels": labels}, expect=201)

    def put_policy(self, name, policy, expect=None):
        status, value = self.admin.call("PUT", f"/v1/policies/{name}", policy)
        assert status in ((200, 201) if expect is None else (expect,)), value
        return value

    @contextlib.contextmanager
    def policy(self, egress, **more):
        """The policy of every sandbox, for a while."""
        try:
            self.put_policy("lab", {"name": "lab", "sandboxes": {"ids": ["sandbox-*"]},
                                    "egress": egress, **more})
            yield
        finally:
            self.put_policy("lab", self.usual_policy)

    def credential(self, name, value):
        status, reply = self.admin.call("PUT", f"/v1/credentials/{name}",
                                        {"name": name, "source": {"value": value}})
        assert status in (200, 201), reply

    def binding(self, binding):
        status, reply = self.admin.call("PUT", f"/v1/bindings/{binding['name']}", binding)
        assert status in (200, 201), reply

    def audit_settle(self):
        """What was recorded until now is in the file: for its status a gateway writes all of
        it, however busy the machine. One that drains, or whose control is gone, is waited for."""
        time.sleep(AUDIT_WAIT_S)
        with contextlib.suppress(OSError, AssertionError, http.client.HTTPException):
            self.admin.get("/v1/status")

    def mark(self):
        """What was recorded until now is nothing to records() and record().

        Done before each test; a test that looks for the record of something it
        did before in the same words does it again."""
        self.audit_settle()
        if self.audit_path.exists():
            stat = self.audit_path.stat()
            self.audit_mark = (stat.st_ino, stat.st_size)

    def audit_text(self):
        """All of the audit file, with what was still waiting to be written."""
        self.audit_settle()
        return self.audit_path.read_text()

    def records(self, **match):
        """Audit records since the mark that have all these members."""
        self.audit_settle()
        if not self.audit_path.exists():
            return []
        with open(self.audit_path, "rb") as file:
            inode, size = self.audit_mark
            stat = os.fstat(file.fileno())
            if stat.st_ino == inode and stat.st_size >= size:  # else it was rotated
                file.seek(size)
            # the last line may be on its way
            lines = file.read().rpartition(b"\n")[0].splitlines()
        found = []
        for line in lines:
            record = json.loads(line)
            if all(record.get(k) == v for k, v in match.items()):
                found.append(record)
        return found

    def record(self, **match):
        """The newest such record since the mark; waits for it a little."""
        return self.wait(lambda: self.records(**match), 5, f"an audit record {match}")[-1]


def _is_ip(text):
    try:
        ipaddress.ip_address(text)
        return True
    except ValueError:
        return False
