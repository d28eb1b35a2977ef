# SPDX-License-Identifier: Apache-2.0
"""gateways.py - what is compared: how each is configured, started, stopped

All of them open the client's TLS with a certificate for the asked name, set
the Authorization field, verify the origin's certificate, keep connections to
the origin, and run on one core. Sallyport does what it always does besides:
three roles, policy per request, credential from the vault, one audit record
per exchange. The others log nothing.
"""
import http.client
import json
import os
import socket
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from place import (BUILD, CLIENT, CPU_GATEWAY, FILES_MAX, FRESH, GATEWAY_C, H2_HOST, H2_ORIGIN,
                   HOST, ORIGIN, PASS_HOST, PASS_ORIGIN, SOURCE, TOKEN, pss_kib, run, tree, wait)

PORT, PORT_H2, PORT_PASS = 8443, 8444, 8445
RULES = 100000
REST_S = 2.5


class Gateway:
    """A peer behind a redirect. name, package and version() of its own."""
    name = package = None
    binary = None
    resumes = True  # TLS sessions of clients
    slow = False  # tests that count do a tenth
    ports = {ORIGIN: PORT}  # where it takes what is for an origin

    def __init__(self, place):
        self.place = place
        self.dir = place.tmp / self.name
        self.dir.mkdir(exist_ok=True)
        self.dir.chmod(0o755)
        self.ca = place.tmp / "bench-ca.crt"
        self.process = None

    def command(self):
        """Writes the configuration; the command to run."""
        raise NotImplementedError

    def version(self):
        return run(self.package and self.binary, "-v").stdout.splitlines()[0]

    def start(self):
        command = self.command()
        self.place.redirect(self.ports)
        self.process = self.place.start(self.place.gateway, CPU_GATEWAY, f"{self.name}.log",
                                        *command)

    def stop(self):
        self.place.redirect(None)
        if self.process:
            self.place.stop(self.process)
        self.process = None

    def pids(self):
        return tree(self.process.pid)

    def load_args(self):
        return []

    def extend(self, test):
        """What a test wants before it begins, while the gateway serves; the
        figures of that."""
        return {}

    def restore(self):
        """Takes it back, before the stop."""

    def config(self, name, text):
        path = self.dir / name
        path.write_text(text)
        return path


class Direct(Gateway):
    """No gateway: the client asks the origin, with the credential."""
    name = "direct"

    def __init__(self, place):
        super().__init__(place)
        self.ca = place.bundle

    def version(self):
        return "no gateway; forwarded by the kernel"

    def start(self):
        pass

    def pids(self):
        return []

    def load_args(self):
        return ["-t", TOKEN]


class Admin:
    """The admin API over its unix socket."""

    def __init__(self, path):
        self.path = str(path)

    def call(self, method, path, body=None):
        conn = http.client.HTTPConnection("sallyport", timeout=20)
        conn.sock = socket.socket(socket.AF_UNIX)
        conn.sock.connect(self.path)
        conn.request(method, path, body and json.dumps(body))
        reply = conn.getresponse()
        text = reply.read().decode()
        conn.close()
        if reply.status not in (200, 201, 204):
            raise RuntimeError(f"{method} {path}: {reply.status} {text}")


class Sallyport(Gateway):
    name = "sallyport"
    build = BUILD

    POLICY = {"policies": [{
        "name": "bench", "defaultAction": "deny", "sandboxes": {"ids": ["*"]},
        "egress": [
            {"action": "deny", "target": "169.254.0.0/16"},
            {"action": "allow", "target": "*.bench.test", "methods": ["GET", "HEAD", "POST"],
             "paths": ["/*"]},
            {"action": "allow", "target": PASS_HOST},
        ], "passthrough": [PASS_HOST]}]}
    BINDING = {"name": "bench", "match": {"hosts": ["*.bench.test"], "paths": ["/*"]},
               "auth": {"type": "bearer", "credential": "bench-token"}}

    def __init__(self, place):
        super().__init__(place)
        self.ca = self.dir / "run" / "ca-bundle.pem"
        self.admin = Admin(self.dir / "run" / "admin.sock")
        self.binary = self.build / "bin" / "sallyportd"
        self.config_path = self._configure()
        self.known, self.extra = False, []

    def version(self):
        revision = run("git", "-C", SOURCE, "rev-parse", "--short", "HEAD", check=False).stdout
        return f"{run(self.binary, '--version').stdout.strip()}, tree {revision.strip()}"

    def _configure(self):
        for name in ("run", "state", "policies"):
            (self.dir / name).mkdir()
        self.config("policies/bench.json", json.dumps(self.POLICY))
        key = self.config("vault.key", "")
        key.chmod(0o600)
        key.write_bytes(os.urandom(32))
        return self.config("sallyport.json", json.dumps({
            "stateDir": f"{self.dir}/state", "runDir": f"{self.dir}/run",
            "policyDir": f"{self.dir}/policies", "auditFile": f"{self.dir}/audit.jsonl",
            "user": "", "loops": 1, "sandboxInterfaces": ["bench0", "bench-*"],
            "dns": {"hostsFile": "", "newNamesPerMinute": 0}, "pins": {name: [ORIGIN] for name in (HOST, *FRESH)} |
            {H2_HOST: [H2_ORIGIN], PASS_HOST: [PASS_ORIGIN]},
            "upstream": {"trustSystem": False,
                         "trustFiles": [f"{self.place.tmp}/origin-ca.crt"]},
            "vault": {"keyFile": str(key)},
            "limits": {"connections": 16384, "upstreamIdle": 16384, "mintsPerSecond": 0,
                       "connectionsPerSecond": 0, "dnsPerSecond": 0, "synsPerSecond": 0},
        }))

    def _answers(self):
        if self.process.poll() is not None:
            raise RuntimeError((self.place.tmp / f"{self.name}.log").read_text())
        try:
            self.admin.call("GET", "/v1/status")
            return True
        except (OSError, RuntimeError, http.client.HTTPException):
            return False

    def start(self):
        (self.dir / "audit.jsonl").unlink(missing_ok=True)
        self.process = self.place.start(self.place.gateway, CPU_GATEWAY, f"{self.name}.log",
                                        self.binary, "--config", self.config_path)
        if not self.known:  # later starts find it in the vault
            wait(self._answers, 20, "sallyportd")
            self._register()
            self.known = True

    def _register(self):
        self.admin.call("PUT", "/v1/credentials/bench-token",
                        {"name": "bench-token", "source": {"value": TOKEN.split()[1]}})
        self.admin.call("PUT", "/v1/bindings/bench", self.BINDING)
        self.admin.call("POST", "/v1/sandboxes", {
            "id": "bench", "interface": "bench0", "addresses": [CLIENT]})

    # -- at scale ----------------------------------------------------------
    def extend(self, test):
        before = pss_kib(self.pids())
        if test.rules:
            return {"load_ms": self._load_rules(test.rules),
                    "rule_bytes": (pss_kib(self.pids()) - before) * 1024 / test.rules}
        if test.sandboxes:
            return self._add_sandboxes(test, before)
        return {}

    def _load_rules(self, count):
        """The same policy below many rules that do not match; ms to load it."""
        policy = dict(self.POLICY["policies"][0])
        policy["egress"] = [{"action": "deny", "target": f"*.host{i}.rules.test"}
                            for i in range(count - len(policy["egress"]))] + policy["egress"]
        self.config("policies/bench.json", json.dumps({"policies": [policy]}))
        return self._timed("POST", "/v1/policies/reload")

    def _add_sandboxes(self, test, before):
        """Each with an interface, a hardware address and, if it has rules, a policy of its own;
        times by the median, as one at a time waits for the disk; by several callers, of all.
        Memory is what stays: heaps are trimmed when nothing was asked for a second."""
        self.place.plug(test.sandboxes)
        begun = time.perf_counter()
        with ThreadPoolExecutor(test.callers) as pool:
            policies = list(pool.map(lambda i: self._add_policy(i, test.own_rules),
                                     range(test.sandboxes if test.own_rules else 0)))
            took = list(pool.map(self._add_sandbox, range(test.sandboxes)))
        all_s = time.perf_counter() - begun
        time.sleep(REST_S)
        return {"all_s": all_s, "register_ms": statistics.median(took), "register_mean_ms": sum(took) / len(took),
                "sandbox_kib": (pss_kib(self.pids()) - before) / len(took)} | (
                    {"policy_ms": statistics.median(policies)} if policies else {})

    def _add_policy(self, i, rules):
        name = f"own-{i}"
        took = self._timed("PUT", f"/v1/policies/{name}", {
            "name": name, "sandboxes": {"ids": [f"sandbox-{i}"]},
            "egress": [{"action": "allow", "target": f"h{j}.s{i}.bench.test"} for j in range(rules)]})
        self.extra.append(f"/v1/policies/{name}")
        return took

    def _add_sandbox(self, i):
        body = {"id": f"sandbox-{i}", "interface": f"bench-{i}",
                "mac": f"02:00:00:00:{i >> 8:02x}:{i & 255:02x}",
                "addresses": [f"10.214.{i // 250}.{i % 250 + 1}"], "labels": {"team": "bench"}}
        took = self._timed("POST", "/v1/sandboxes", body)
        self.extra.append(f"/v1/sandboxes/{body['id']}")
        return took

    def _timed(self, *call):
        begun = time.perf_counter()
        self.admin.call(*call)
        return (time.perf_counter() - begun) * 1000

    def restore(self):
        for path in reversed(self.extra):
            self.admin.call("DELETE", path)
        self.place.unplug()
        self.extra = []
        self.config("policies/bench.json", json.dumps(self.POLICY))

    def stop(self):
        if self.process:
            self.place.stop(self.process)
            run("ip", "netns", "exec", self.place.gateway, self.binary, "--config",
                self.config_path, "--remove-rules")
        self.process = None


class Before(Sallyport):
    """Another build of Sallyport, to see what a change did."""
    name = "before"

    def version(self):
        return str(self.build)


class Haproxy(Gateway):
    name = package = binary = "haproxy"
    ports = {ORIGIN: PORT, H2_ORIGIN: PORT_H2, PASS_ORIGIN: PORT_PASS}

    def command(self):
        t = self.place.tmp
        return "haproxy", "-db", "-f", self.config("haproxy.cfg", f"""
global
  nbthread 1
  maxconn 6000
  ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
  mode http
  timeout connect 10s
  timeout client 1h
  timeout server 1h
  http-reuse always
frontend sandboxes
  bind {GATEWAY_C}:{PORT} ssl crt {t}/fixed.pem alpn http/1.1
  http-request set-header Authorization "{TOKEN}"
  default_backend origin
backend origin
  server o {ORIGIN}:443 ssl verify required ca-file {t}/origin-ca.crt sni ssl_fc_sni alpn http/1.1 pool-low-conn 4000
frontend sandboxes_h2
  bind {GATEWAY_C}:{PORT_H2} ssl crt {t}/fixed.pem alpn h2
  http-request set-header Authorization "{TOKEN}"
  default_backend origin_h2
backend origin_h2
  server o {H2_ORIGIN}:443 ssl verify required ca-file {t}/origin-ca.crt sni ssl_fc_sni alpn h2
listen spliced
  mode tcp
  bind {GATEWAY_C}:{PORT_PASS}
  option splice-auto
  server o {PASS_ORIGIN}:443
""")


class Nginx(Gateway):
    name, package, binary = "nginx", "nginx-light", "nginx"
    ports = {ORIGIN: PORT, H2_ORIGIN: PORT_H2}

    def version(self):
        return run("nginx", "-v").stderr.strip()

    def command(self):
        t, d = self.place.tmp, self.dir
        temp = "".join(f"{x}_temp_path {d}; "
                       for x in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        return "nginx", "-e", d / "error.log", "-c", self.config("nginx.conf", f"""
daemon off; master_process off; user root; pid {d}/pid; error_log {d}/error.log warn;
worker_rlimit_nofile {FILES_MAX};
events {{ worker_connections 16384; multi_accept on; }}
http {{
  access_log off; {temp} keepalive_timeout 1h; keepalive_requests 1000000000;
  ssl_certificate {t}/fixed.crt; ssl_certificate_key {t}/fixed.key;
  ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:bench:16m;
  upstream origin {{
    server {ORIGIN}:443; keepalive 4000; keepalive_requests 1000000000; keepalive_timeout 1h;
  }}
  server {{
    listen {GATEWAY_C}:{PORT} ssl backlog=8192;
    listen {GATEWAY_C}:{PORT_H2} ssl http2 backlog=8192;
    proxy_http_version 1.1;
    proxy_set_header Connection ""; proxy_set_header Host $host;
    proxy_set_header Authorization "{TOKEN}";
    proxy_ssl_server_name on; proxy_ssl_name $host; proxy_ssl_verify on;
    proxy_ssl_trusted_certificate {t}/origin-ca.crt; proxy_ssl_protocols TLSv1.2 TLSv1.3;
    proxy_buffers 8 16k; proxy_buffer_size 16k; proxy_max_temp_file_size 0;
    location / {{ proxy_pass https://origin; }}
    location /events {{ proxy_pass https://origin; proxy_buffering off; }}
    location /take {{
      proxy_pass https://origin; proxy_request_buffering off; client_max_body_size 0;
    }}
  }}
}}
""")


class Mitmproxy(Gateway):
    name = package = "mitmproxy"
    slow = True
    binary = "mitmdump"

    def version(self):
        return run("mitmdump", "--version").stdout.splitlines()[0]

    def command(self):
        (self.dir / "mitmproxy-ca.pem").write_bytes(
            (self.place.tmp / "bench-ca.pem").read_bytes())
        addon = self.config("inject.py", f"""
def requestheaders(flow):
    flow.request.headers["Authorization"] = "{TOKEN}"

def responseheaders(flow):
    if flow.response.headers.get("content-type") == "text/event-stream":
        flow.response.stream = True
""")
        return ("mitmdump", "-q", "--mode", "transparent", "--listen-host", GATEWAY_C,
                "--listen-port", PORT, "-s", addon, "--set", f"confdir={self.dir}", "--set",
                "connection_strategy=lazy", "--set", "stream_large_bodies=1m", "--set",
                f"ssl_verify_upstream_trusted_ca={self.place.tmp}/origin-ca.crt")


class Squid(Gateway):
    name, package, binary = "squid", "squid-openssl", "squid"
    resumes = False
    slow = True

    def command(self):
        t, d = self.place.tmp, self.dir
        helper = "/usr/lib/squid/security_file_certgen"
        if not (d / "certs").exists():
            run(helper, "-c", "-s", d / "certs", "-M", "16MB")
        run("chown", "-R", "proxy:proxy", d)
        (t / "bench-ca.pem").chmod(0o644)
        return "squid", "-N", "-f", self.config("squid.conf", f"""
visible_hostname bench
http_port 127.0.0.1:3128
https_port {GATEWAY_C}:{PORT} intercept ssl-bump generate-host-certificates=on dynamic_cert_mem_cache_size=16MB tls-cert={t}/bench-ca.pem
sslcrtd_program {helper} -s {d}/certs -M 16MB
sslcrtd_children 4 startup=1 idle=1
acl hello at_step SslBump1
ssl_bump peek hello
ssl_bump bump all
tls_outgoing_options cafile={t}/origin-ca.crt min-version=1.2
http_access allow all
cache deny all
cache_mem 8 MB
access_log none
cache_store_log none
cache_log {d}/cache.log
pid_filename {d}/pid
coredump_dir {d}
request_header_access Authorization deny all
request_header_add Authorization "{TOKEN}" all
via off
forwarded_for delete
hosts_file /etc/netns/{self.place.gateway}/hosts
dns_nameservers 127.0.0.1
pinger_enable off
client_idle_pconn_timeout 1 hour
server_idle_pconn_timeout 1 hour
client_lifetime 1 day
shutdown_lifetime 0 seconds
max_filedescriptors {FILES_MAX}
cache_effective_user proxy
""")


GATEWAYS = {g.name: g for g in (Direct, Sallyport, Haproxy, Nginx, Squid, Mitmproxy)}
