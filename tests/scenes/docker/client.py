# SPDX-License-Identifier: Apache-2.0
"""client.py - the lifecycle API, asked from the node"""
import ctypes
import http.client
import json
import os
import socket
import threading
import time

KEY = "a-key-of-the-lab-0123456789"
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def made_in(namespace, make):
    """What make() makes in a network namespace, a socket: a thread enters it, makes,
    and is gone."""
    made = {}

    def enter():
        fd = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
        try:
            if LIBC.setns(fd, CLONE_NEWNET):
                made["error"] = OSError(ctypes.get_errno(), "setns")
                return
            made["socket"] = make()
        except OSError as e:
            made["error"] = e
        finally:
            os.close(fd)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if "error" in made:
        raise made["error"]
    return made["socket"]


def socket_in(namespace, address, timeout=60):
    """A connected TCP socket of a network namespace."""
    return made_in(namespace, lambda: socket.create_connection(address, timeout))


class Api:
    def __init__(self, lab, port, key=KEY):
        self.lab, self.port, self.key = lab, port, key

    def call(self, method, path, body=None, timeout=120):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.sock = socket_in(self.lab.gw, ("127.0.0.1", self.port), timeout)
        connection.sock.settimeout(timeout)
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json",
                                                "OPEN-SANDBOX-API-KEY": self.key})
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply.status, json.loads(text) if text else None

    def endpoint(self, sandbox, port, query=""):
        status, value = self.call("GET", f"/v1/sandboxes/{sandbox}/endpoints/{port}{query}")
        assert status == 200, (status, value)
        return value

    def reach(self, endpoint, path="", headers=None, method="GET", body=None):
        """A request to what an endpoint says, without a scheme as it is."""
        at, _, prefix = endpoint.partition("/")
        host, port = at.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port))
        connection.sock = socket_in(self.lab.gw, (host, int(port)))
        connection.request(method, f"/{prefix}{path}", body, headers or {})
        reply = connection.getresponse()
        text = reply.read().decode(errors="replace")
        connection.close()
        return reply.status, text

    def create(self, expect=202, **more):
        body = {"image": {"uri": "lab:1"}, "entrypoint": ["sleep", "infinity"],
                "resourceLimits": {"cpu": "500m", "memory": "256Mi"}, "timeout": 600,
                "networkPolicy": {"defaultAction": "deny", "egress": []}} | more
        end = time.monotonic() + 30
        while True:
            status, value = self.call("POST", "/v1/sandboxes", body)
            if status != 503 or time.monotonic() > end:
                break
            time.sleep(0.1)  # control has just begun
        assert status == expect, (status, value, self.lab.log()[-3000:])
        return value

    def get(self, sandbox, expect=200):
        status, value = self.call("GET", f"/v1/sandboxes/{sandbox}")
        assert status == expect, (status, value)
        return value

    def delete(self, sandbox, expect=204):
        status, value = self.call("DELETE", f"/v1/sandboxes/{sandbox}")
        assert status == expect, (status, value, self.lab.log()[-3000:])
