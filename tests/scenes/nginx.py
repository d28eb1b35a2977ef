# SPDX-License-Identifier: Apache-2.0
"""nginx.py - real web servers for the lab's origin; one of them has git behind it

launch() starts one with servers of the caller's. class Nginx is one on addresses
of its own, TLS and plain, v4 and v6, under the names web.lab.test (open, and
/auth/ for who brings the token) and repo.lab.test (smart HTTP for git, open to
who brings the password). What it received is one JSON line per request in its
access log.
"""
import json
import os
import random
import socket
import time

from lab import run

NGINX4, NGINX6 = "10.212.2.4", "fd12:2::4"
NAMES = ("web.lab.test", "repo.lab.test", "free.lab.test", "shut.lab.test")
TOKEN = "tok-5e0c1f7a93d84b26-for-nginx"
USER, PASSWORD = "builder", "pw-71bd3e6690ac42f8-for-git"

MAIN = """
daemon off; master_process on; worker_processes 1; user root;
pid {dir}/nginx.pid; error_log {dir}/error.log warn;
events {{ worker_connections 2048; }}
http {{
  log_format lab escape=json '{{"host":"$host","method":"$request_method",'
    '"path":"$request_uri","auth":"$http_authorization","user":"$remote_user",'
    '"status":$status,"scheme":"$scheme","addr":"$server_addr","protocol":"$server_protocol",'
    '"conn":$connection,"nth":$connection_requests,"length":"$http_content_length",'
    '"encoding":"$http_transfer_encoding","range":"$http_range","agent":"$http_user_agent"}}';
  access_log {dir}/access.log lab;
  client_body_temp_path {dir}/tmp; proxy_temp_path {dir}/tmp; fastcgi_temp_path {dir}/tmp;
  uwsgi_temp_path {dir}/tmp; scgi_temp_path {dir}/tmp;
  client_max_body_size 0; root {dir}/www;
  server {{ listen unix:{dir}/settled; return 204; }}
  {http}
}}
"""
WEB = """
  types { text/plain txt; text/html html; }
  default_type application/octet-stream;
  keepalive_requests 10000; sendfile on;
  gzip on; gzip_min_length 100; gzip_types text/plain; gzip_proxied any;
"""
SERVER = """
server {{
  listen {v4}:443 ssl; listen [{v6}]:443 ssl; listen {v4}:80; listen [{v6}]:80;
  server_name {name};
  ssl_certificate {crt}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;
  root {dir}/www;
  location / {{ }}
  location /auth/ {{
    if ($http_authorization != "Bearer {token}") {{ return 401 "no token\\n"; }}
    alias {dir}/www/;
  }}
  location = /503 {{ return 503 "busy\\n"; }}
  location = /500 {{ return 500 "broken\\n"; }}
  location = /hang-up {{ return 444; }}
  location = /chunked {{ ssi on; ssi_types *; alias {dir}/www/ssi.txt; }}
  location = /tls12 {{ return 200 "$ssl_protocol\\n"; }}
  location /sum {{
    include {dir}/fcgi; fastcgi_param SCRIPT_FILENAME {dir}/sum; fastcgi_pass unix:{dir}/fcgi.sock;
  }}
  location /git/ {{
    auth_basic "repositories"; auth_basic_user_file {dir}/users;
    include {dir}/fcgi; fastcgi_pass unix:{dir}/fcgi.sock;
    fastcgi_param SCRIPT_FILENAME /usr/lib/git-core/git-http-backend;
    fastcgi_param GIT_PROJECT_ROOT {dir}; fastcgi_param GIT_HTTP_EXPORT_ALL 1;
    fastcgi_param PATH_INFO $uri; fastcgi_param REMOTE_USER $remote_user;
  }}
}}
"""
FCGI = """
fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD $request_method;
fastcgi_param CONTENT_TYPE $content_type; fastcgi_param CONTENT_LENGTH $content_length;
fastcgi_param HTTP_CONTENT_ENCODING $http_content_encoding;
fastcgi_param REQUEST_URI $request_uri; fastcgi_param SERVER_PROTOCOL $server_protocol;
fastcgi_param GATEWAY_INTERFACE CGI/1.1; fastcgi_read_timeout 60; fastcgi_request_buffering on;
"""
SUM = """#!/bin/sh
printf 'Content-Type: text/x-sum\\r\\n\\r\\n'
exec sha256sum
"""


def launch(lab, folder, http):
    """Serves what stands in http, a part of its configuration, out of folder/www."""
    for d in (folder / "www", folder / "tmp"):
        d.mkdir(parents=True, exist_ok=True)
    config = folder / "nginx.conf"
    config.write_text(MAIN.format(dir=folder, http=http))
    lab.in_origin("nginx", "-e", folder / "error.log", "-c", config)
    lab.wait(lambda: (folder / "nginx.pid").exists(), 10, "nginx")


def settle(folder):
    """A request is in the log after its client has the answer; of a server with one
    worker it is there when that of a later request is."""
    log = folder / "access.log"
    before = log.stat().st_size if log.exists() else 0
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(folder / "settled"))
        s.sendall(b"GET /settled HTTP/1.0\r\n\r\n")
        while s.recv(4096):
            pass
    deadline = time.monotonic() + 10
    while b'"path":"/settled"' not in log.read_bytes()[before:]:
        assert time.monotonic() < deadline, "nginx writes no log"
        time.sleep(0.005)


def requests(folder, mark=0, **match):
    """What that one received, from this place of its log on."""
    settle(folder)
    with open(folder / "access.log") as lines:
        lines.seek(mark)
        seen = [json.loads(line) for line in lines]
    return [r for r in seen if r["path"] != "/settled" and all(r.get(k) == v for k, v in match.items())]


class Nginx:
    """The files in dir, and what the server saw."""

    def __init__(self, lab):
        self.lab, self.dir = lab, lab.tmp / "nginx"
        self.www, self.log = self.dir / "www", self.dir / "access.log"

    def start(self):
        lab = self.lab
        for d in (self.www, self.dir / "git"):
            d.mkdir(parents=True)
        self._content()
        self._repository()
        (self.dir / "fcgi").write_text(FCGI)
        (self.dir / "sum").write_text(SUM)
        (self.dir / "sum").chmod(0o755)
        hashed = run("openssl", "passwd", "-apr1", "-stdin", input=PASSWORD).stdout.strip()
        (self.dir / "users").write_text(f"{USER}:{hashed}\n")
        servers = []
        for name in NAMES:
            crt, key = lab.leaf("nginx-" + name, name)
            servers.append(SERVER.format(v4=NGINX4, v6=NGINX6, name=name, crt=crt, key=key,
                                         dir=self.dir, token=TOKEN))
        run("ip", "-n", lab.org, "addr", "add", f"{NGINX4}/24", "dev", "o0")
        run("ip", "-n", lab.org, "addr", "add", f"{NGINX6}/64", "dev", "o0", "nodad")
        lab.in_origin("fcgiwrap", "-s", f"unix:{self.dir}/fcgi.sock",
                      env={"PATH": os.environ["PATH"], "HOME": str(self.dir)})
        launch(lab, self.dir, WEB + "\n".join(servers))
        lab.wait(lambda: (self.dir / "fcgi.sock").exists(), 10, "fcgiwrap")

    def _content(self):
        noise = random.Random(4)
        (self.www / "index.html").write_text("<p>hello from nginx</p>\n")
        (self.www / "text.txt").write_text("the same line again and again\n" * 4000)
        (self.www / "ssi.txt").write_text("begin\n" + "x" * 50000 + "\nend\n")
        (self.www / "large").write_bytes(noise.randbytes(24 << 20))

    def _repository(self):
        """git/seed.git with a commit, git/empty.git to be pushed to."""
        work = self.dir / "work"
        git = ("git", "-c", "user.name=lab", "-c", "user.email=lab@lab.test")
        run("git", "init", "-q", "-b", "main", work)
        (work / "README").write_text("seed\n")
        (work / "blob").write_bytes(random.Random(5).randbytes(6 << 20))
        run(*git, "-C", work, "add", "-A")
        run(*git, "-C", work, "commit", "-q", "-m", "seed")
        run("git", "clone", "-q", "--bare", work, self.dir / "git" / "seed.git")
        run("git", "init", "-q", "--bare", "-b", "main", self.dir / "git" / "empty.git")

    def repository(self, name):
        return self.dir / "git" / name

    def mark(self):
        """Where the log ends now, for requests()."""
        settle(self.dir)
        return self.log.stat().st_size

    def requests(self, mark=0, **match):
        return requests(self.dir, mark, **match)
