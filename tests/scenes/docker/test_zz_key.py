# SPDX-License-Identifier: Apache-2.0
"""The API behind TLS, as behind its key everywhere else: the files are read while
control may, and a node that has neither a key nor the word for it does not start.
Last of all, since the node is another one meanwhile."""
import http.client
import json
import ssl
import subprocess

import pytest

from client import KEY, socket_in
from lab import BIN
from node import PORT


@pytest.fixture
def tls(node):
    lab, before = node.lab, dict(node.lab.extra_config["lifecycle"])
    certificate, key = lab.leaf("lifecycle", "node.lab.test", "127.0.0.1")
    lab.extra_config["lifecycle"] = before | {"certificate": str(certificate), "key": str(key)}
    assert lab.stop() == 0
    lab.configure()
    lab.start()
    node.connected()
    yield node
    assert lab.stop() == 0
    lab.extra_config["lifecycle"] = before
    lab.configure()
    lab.start()
    node.connected()


def ask(node, headers, method="GET", path="/v1/sandboxes", body=None):
    context = ssl.create_default_context(cafile=node.lab.origin_ca)
    connection = http.client.HTTPSConnection("127.0.0.1", PORT)
    connection.sock = context.wrap_socket(socket_in(node.lab.gw, ("127.0.0.1", PORT)),
                                          server_hostname="127.0.0.1")
    connection.request(method, path, body, headers)
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    assert reply.headers["X-Request-ID"]
    return reply.status, text


def test_a_key_over_tls(tls):
    assert ask(tls, {}) == (401, ask(tls, {})[1])
    assert json.loads(ask(tls, {})[1])["code"] == "MISSING_API_KEY"
    wrong = ask(tls, {"OPEN-SANDBOX-API-KEY": KEY + "0"})
    assert (wrong[0], json.loads(wrong[1])["code"]) == (401, "INVALID_API_KEY")
    right = {"OPEN-SANDBOX-API-KEY": KEY}
    assert ask(tls, right)[0] == 200
    assert ask(tls, {}, path="/health")[0] == 200
    status, text = ask(tls, right | {"Content-Type": "application/json"}, "POST",
                       "/v1/sandboxes", json.dumps({
                           "image": {"uri": "lab:1"}, "entrypoint": ["sleep", "infinity"],
                           "resourceLimits": {}, "timeout": 60}))
    assert status == 202, text
    box = json.loads(text)["id"]
    # its ports ask for what they demand, not for the key; TLS is moved as well
    token = json.loads(ask(tls, right, path=f"/v1/sandboxes/{box}/endpoints/44772")[1])["headers"]
    ping = f"/sandboxes/{box}/proxy/44772/ping"
    assert ask(tls, token, path=ping)[0] == 200
    assert ask(tls, right, path=ping)[0] == 401
    assert ask(tls, right, "DELETE", f"/v1/sandboxes/{box}")[0] == 204
    assert KEY not in tls.lab.log()


def test_no_key_and_no_word_for_it(node):
    config = json.loads(node.lab.config_path.read_text())
    config["lifecycle"].pop("apiKeyFile")
    path = node.lab.tmp / "open.json"
    path.write_text(json.dumps(config))
    done = subprocess.run([BIN / "sallyportd", "--config", path], capture_output=True, text=True,
                          timeout=20)
    assert done.returncode != 0
    assert "apiKeyFile" in done.stderr
