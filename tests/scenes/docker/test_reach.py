# SPDX-License-Identifier: Apache-2.0
"""What the lifecycle API tells a client holds: ports, links, snapshots, texts."""
import time

from client import socket_in

SERVER = ["python3", "-m", "http.server", "8000", "--directory", "/srv"]
WRITER = ["bash", "-c", "mkdir -p /srv; echo kept > /srv/file; echo written; exec sleep infinity"]
READER = ["bash", "-c", "mkdir -p /srv; echo hello > /srv/file; exec " + " ".join(SERVER)]


def served(node, endpoint, path, headers=None, seconds=15):
    """Until the server inside has begun to listen."""
    end = time.monotonic() + seconds
    while True:
        status, text = node.api.reach(endpoint, path, headers)
        if status not in (502, 503) or time.monotonic() > end:
            return status, text
        time.sleep(0.1)


def test_execd_behind_its_token(node):
    box = node.api.create()["id"]
    endpoint = node.api.endpoint(box, 44772)
    assert endpoint["endpoint"] == f"127.0.0.1:8081/sandboxes/{box}/proxy/44772"
    assert list(endpoint["headers"]) == ["X-EXECD-ACCESS-TOKEN"]
    assert node.api.reach(endpoint["endpoint"], "/ping", endpoint["headers"])[0] == 200
    assert node.api.reach(endpoint["endpoint"], "/ping")[0] == 401
    assert node.api.reach(endpoint["endpoint"], "/ping",
                          {"X-EXECD-ACCESS-TOKEN": "x" * 43})[0] == 401
    node.api.delete(box)
    assert node.api.reach(endpoint["endpoint"], "/ping", endpoint["headers"])[0] == 404


def test_by_hand_through_execd(node):
    """Who takes "{execd}/proxy/{port}" for the way to every port arrives."""
    box = node.api.create(entrypoint=READER)["id"]
    execd, egress = (node.api.endpoint(box, port) for port in (44772, 18080))

    def ask(path, *of, **more):
        headers = {k: v for e in of for k, v in e["headers"].items()}
        return served(node, execd["endpoint"], path, headers, **more)
    assert ask("/proxy/8000/file", execd) == (200, "hello\n")
    assert ask("/proxy/44772/ping", execd)[0] == 200
    assert ask("/proxy/44772/proxy/8000/file", execd) == (200, "hello\n")
    status, text = ask("/proxy/18080/policy", execd, egress)
    assert (status, '"defaultAction":"deny"' in text) == (200, True), text
    # each asks for its own token
    assert [ask(path)[0] for path in ("/proxy/8000/file", "/proxy/44772/ping")] == [401, 401]
    assert ask("/proxy/18080/policy", execd)[0] == 401
    assert ask("/proxy/18080/policy", egress)[0] == 200
    node.api.delete(box)


def test_a_port_by_both_ways(node):
    box = node.api.create(entrypoint=READER)["id"]
    at = node.api.endpoint(box, 8000)
    assert "headers" not in at
    assert served(node, at["endpoint"], "/file") == (200, "hello\n")
    # the lifecycle listener passes it on
    by_hand = f"127.0.0.1:8080/v1/sandboxes/{box}/proxy/8000"
    assert node.api.reach(by_hand, "/file") == (200, "hello\n")
    assert node.api.reach(by_hand, "/none")[0] == 404
    node.api.delete(box)


def test_an_answer_is_in_force_at_the_ingress(node):
    """Once the API has said that a sandbox stands still, goes on or is gone, the
    gateway says the same: it was told before."""
    box = node.api.create(entrypoint=READER)["id"]
    at = node.api.endpoint(box, 8000)
    assert served(node, at["endpoint"], "/file") == (200, "hello\n")
    for _ in range(5):
        assert node.api.call("POST", f"/v1/sandboxes/{box}/pause")[0] == 202
        assert node.api.reach(at["endpoint"], "/file") == (
            503, "OpenSandbox Ingress: the sandbox is paused\n")
        assert node.api.call("POST", f"/v1/sandboxes/{box}/resume")[0] == 202
        assert node.api.reach(at["endpoint"], "/file") == (200, "hello\n")
    node.api.delete(box)
    assert node.api.reach(at["endpoint"], "/file")[0] == 404


LOCAL = """
import http.server

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.headers.get("Upgrade"):
            self.send_response(101)
            self.send_header("Connection", "Upgrade")
            self.send_header("Upgrade", "echo")
            self.end_headers()
            self.wfile.write(b"hello")
            self.wfile.write(self.rfile.read(4).upper())
            self.close_connection = True
            return
        text = (self.command + " " + self.path + "\\n" + str(self.headers)).encode()
        if self.headers.get("Content-Length"):
            text += self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    do_POST = do_GET
    def log_message(self, *args): pass

http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""


def test_a_server_on_loopback(node):
    """A server of a developer listens on localhost: it is reached as any other,
    and is told as much."""
    box = node.api.create(entrypoint=["python3", "-c", LOCAL])["id"]
    at = node.api.endpoint(box, 8000)
    status, text = served(node, at["endpoint"], "/a%2Fb?c=1",
                          {"X-Sallyport-Proxy-Token": "mine", "X-Forwarded-For": "6.6.6.6"})
    assert status == 200, text
    assert text.startswith("GET /a%2Fb?c=1\n"), text
    assert "X-Forwarded-For: 127.0.0.1\n" in text and "6.6.6.6" not in text
    assert f"X-Forwarded-Prefix: /sandboxes/{box}/proxy/8000\n" in text
    assert "token" not in text.lower()
    body = "x" * 300_000
    status, text = node.api.reach(at["endpoint"], "/up", {}, "POST", body)
    assert status == 200 and text.startswith("POST /up\n") and text.endswith("\n" + body)
    s = upgrade(node, at["endpoint"])
    s.sendall(b"abcd")
    assert received(s).endswith(b"\r\n\r\nhelloABCD")
    # it may have been asked for before it listened
    record = node.lab.record(kind="ingress", sandbox=box, path="/a%2Fb", status=200)
    assert record["port"] == 8000
    # no token of a client opens the daemon's other doors, nor does the gateway's
    execd = node.api.endpoint(box, 44772)
    status, text = node.api.reach(execd["endpoint"], "/proxy/8000/x",
                                  {"X-Sallyport-Proxy-Token": "mine"})
    assert status == 401, text
    # where nobody listens at all
    status, text = node.api.reach(at["endpoint"].replace("/8000", "/8001"), "/")
    assert (status, "Bad Gateway" in text) == (502, True)
    node.api.delete(box)


def upgrade(node, endpoint):
    at, _, prefix = endpoint.partition("/")
    host, port = at.rsplit(":", 1)
    s = socket_in(node.lab.gw, (host, int(port)))
    s.sendall(f"GET /{prefix}/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
              "Upgrade: echo\r\n\r\n".encode())
    return s


def received(s):
    s.settimeout(10)
    out = b""
    while piece := s.recv(4096):
        out += piece
    return out


def test_a_secured_server_on_loopback(node):
    box = node.api.create(entrypoint=["python3", "-c", LOCAL], secureAccess=True)["id"]
    at = node.api.endpoint(box, 8000)
    assert served(node, at["endpoint"], "/x", at["headers"])[0] == 200
    assert node.api.reach(at["endpoint"], "/x")[0] == 401
    node.api.delete(box)


def test_what_has_ended_says_so(node):
    box = node.api.create(entrypoint=["bash", "-c", "sleep 1; exit 3"])["id"]
    at = node.api.endpoint(box, 8000)
    node.lab.wait(lambda: node.api.get(box)["status"]["state"] == "Failed", 10, "its end")
    node.lab.wait(lambda: node.api.reach(at["endpoint"], "/") == (
        503, "OpenSandbox Ingress: the sandbox has ended\n"), 5, "the ingress to know")
    node.api.delete(box)


def test_a_secured_port_and_a_link_to_it(node):
    box = node.api.create(entrypoint=READER, secureAccess=True)["id"]
    at = node.api.endpoint(box, 8000)
    assert served(node, at["endpoint"], "/file", at["headers"]) == (200, "hello\n")
    assert node.api.reach(at["endpoint"], "/file")[0] == 401
    link = node.api.endpoint(box, 8000, f"?expires={int(time.time()) + 60}")
    assert "headers" not in link
    assert node.api.reach(link["endpoint"], "/file") == (200, "hello\n")
    other = link["endpoint"].replace("/8000/", "/8001/")
    assert node.api.reach(other, "/file")[0] == 401
    node.api.delete(box)


def test_a_snapshot_and_what_is_made_of_it(node):
    box = node.api.create(entrypoint=WRITER)["id"]
    node.lab.wait(lambda: "written" in logs(node, box), 10, "the file to be written")
    status, kept = node.api.call("POST", f"/v1/sandboxes/{box}/snapshots", {"name": "one"})
    assert (status, kept["status"]["state"]) == (202, "Creating")
    snapshot = f"/v1/snapshots/{kept['id']}"
    ready = node.lab.wait(
        lambda: (s := node.api.call("GET", snapshot)[1])["status"]["state"] == "Ready" and s,
        60, "the snapshot")
    assert "reason" not in ready["status"] and ready["createdAt"] == kept["createdAt"]
    node.api.delete(box)
    made = node.api.create(image=None, snapshotId=kept["id"], entrypoint=SERVER)
    assert made["snapshotId"] == kept["id"]
    at = node.api.endpoint(made["id"], 8000)
    assert served(node, at["endpoint"], "/file") == (200, "kept\n")
    assert node.api.call("DELETE", snapshot)[0] == 409
    node.api.delete(made["id"])
    assert node.api.call("DELETE", snapshot) == (204, None)
    assert kept["id"] not in node.docker.cli("images").stdout
    assert node.api.call("GET", snapshot)[0] == 404


def logs(node, box):
    return node.api.call("GET", f"/v1/sandboxes/{box}/diagnostics/logs?scope=container")[1][
        "content"]


def test_renewed_by_use(node):
    box = node.api.create(timeout=60, extensions={"access.renew.extend.seconds": "300"})
    at = node.api.endpoint(box["id"], 44772)
    assert node.api.reach(at["endpoint"], "/ping", at["headers"])[0] == 200
    node.lab.wait(lambda: node.api.get(box["id"])["expiresAt"] > box["expiresAt"], 10,
                  "the expiry to move")
    node.api.delete(box["id"])
