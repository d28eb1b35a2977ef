# SPDX-License-Identifier: Apache-2.0
"""chaos.py - clients that remember what they were answered, and who disturbs them

A tenant makes sandboxes, uses them and removes them, one at a time, and keeps
of each what must be true of it: for every property the values that it may
have. An operation that was answered with success leaves one; one that failed,
or whose answer was lost, leaves the old one and the new one. A creation that
was refused must have made nothing, a removal that was answered has removed all.

The disturber kills roles, the supervisor and the Docker daemon at moments that
a seed decides.
"""
import contextlib
import http.client
import json
import os
import random
import signal
import threading
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

ROLES = ("gateway", "vault", "control", "queue")
TRAP4, TRAP6, MARK = "10.212.3.", "fd12:3::", "sp-escape-"
LOST = (OSError, http.client.HTTPException, json.JSONDecodeError)
ALLOWED, TOGGLED = "api.lab.test", "plain.lab.test"
FORM = {"Content-Type": "multipart/form-data; boundary=b0undary"}

# What a sandbox runs: tries to get out, twenty times a second, past everything.
ATTACKER = r"""
import itertools, socket, sys, time
mark, targets = sys.argv[1].encode(), sys.argv[2].split(",")

def udp(family, to, port):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.sendto(mark, (to, port))

def tcp(family, to, port):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(0.2)
        s.connect((to, port))
        s.sendall(b"GET /" + mark + b" HTTP/1.1\r\nHost: " + mark + b"\r\n\r\n")
        s.recv(4096)

for how, to, port in itertools.cycle(
        [(udp, t, p) for t in targets for p in (53, 443, 9999)]
        + [(tcp, t, p) for t in targets for p in (80, 443, 8080)]):
    try:
        how(socket.AF_INET6 if ":" in to else socket.AF_INET, to, port)
    except OSError:
        pass
    time.sleep(0.05)
"""


def attacker(way, targets):
    """As an entrypoint."""
    return ["python3", "-c", ATTACKER, f"{MARK}{way}", ",".join(targets)]


def upload(path, data):
    """The body of an upload, FORM its type."""
    parts = (("metadata", "metadata", "application/json", json.dumps({"path": path})),
             ("file", path, "application/octet-stream", data))
    return "".join(f'--b0undary\r\nContent-Disposition: form-data; name="{name}"; '
                   f'filename="{file}"\r\nContent-Type: {kind}\r\n\r\n{text}\r\n'
                   for name, file, kind, text in parts) + "--b0undary--\r\n"


def stamp(seconds):
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


class May:
    """A property that has one of these values."""

    def __init__(self, value):
        self.values = [value]

    def tried(self, value):
        if value not in self.values:
            self.values.append(value)

    def holds(self, value):
        self.values = [value]


class Box:
    """One sandbox as its tenant knows it."""

    def __init__(self, made, tag, secret):
        self.id, self.tag = made["id"], tag
        self.expires = May(made["expiresAt"])
        self.metadata = May("0")
        self.opened = May(False)  # TOGGLED is allowed
        self.secret = May(None)   # None: no vault
        self.secrets = {secret}   # that it ever had
        self.may_be_gone = False  # a removal was asked for
        self.tokens = None        # headers of execd and of the egress API
        self.snapshots = {}       # id -> it may be gone


class Tenant(threading.Thread):
    """A client; complaints are what must never be."""

    def __init__(self, node, number, seed, over):
        super().__init__(daemon=True)
        self.node, self.number, self.over = node, number, over
        self.random = random.Random(seed * 1000 + number)
        self.boxes, self.gone, self.refused, self.lost = [], [], [], []
        self.complaints, self.count, self.made, self.turns = [], {}, 0, 0

    # -- asking ------------------------------------------------------------
    def noted(self, what, outcome):
        key = (what, outcome)
        self.count[key] = self.count.get(key, 0) + 1

    def ask(self, what, method, path, body=None, fine=(200, 202, 204), known=(404, 409)):
        """(status, value); status 0: the answer was lost."""
        try:
            status, value = self.node.api.call(method, path, body, timeout=60)
        except LOST:
            self.noted(what, "lost")
            return 0, None
        self.noted(what, status)
        code = value.get("code", "") if isinstance(value, dict) else ""
        # on a loaded machine the program below the daemon gives up a pause
        its_own = status == 500 and code.startswith(("DOCKER::", "VOLUME::", "SNAPSHOT::")) and \
            "OCI runtime" in value["message"]
        if status not in fine and status not in known and not its_own and not (
                status in (502, 503) and code):
            self.complaints.append(f"{what}: {method} {path}: {status} {value}")
        return status, value

    def reach(self, what, box, port, path, method="GET", body=None, headers=None, fine=(200,)):
        """Through the ingress. status 0: lost."""
        at = f"127.0.0.1:8081/sandboxes/{box.id}/proxy/{port}"
        try:
            status, text = self.node.api.reach(at, path, {**box.tokens[port], **(headers or {})},
                                               method, body)
        except LOST:
            self.noted(what, "lost")
            return 0, ""
        self.noted(what, status)
        if status not in fine and status not in (404, 502, 503):
            self.complaints.append(f"{what}: {box.id}: {status} {text[:200]}")
        return status, text

    # -- operations --------------------------------------------------------
    def create(self):
        self.made += 1
        tag = f"{self.number}-{self.made}"
        secret = f"secret-of-{tag}-0"
        body = {"image": {"uri": "lab:1"}, "resourceLimits": {}, "timeout": 900,
                "metadata": {"tag": tag, "turn": "0"}, "credentialProxy": {"enabled": True},
                "networkPolicy": {"defaultAction": "deny",
                                  "egress": [{"action": "allow", "target": ALLOWED}]},
                "entrypoint": attacker(tag, self.node.targets)}
        if self.random.random() < 0.3:
            body["volumes"] = [{"name": "v", "mountPath": "/v", "pvc": {
                "claimName": f"chaos-{tag}", "deleteOnSandboxTermination": True}}]
        status, value = self.ask("create", "POST", "/v1/sandboxes", body, fine=(202,), known=())
        if status == 202:
            box = Box(value, tag, secret)
            self.boxes.append(box)
            if self.known_tokens(box):
                self.vault(box)
                self.call(box)
        elif status:
            self.refused.append(tag)
        else:
            self.lost.append(tag)
        if status != 202:
            time.sleep(0.5)  # as an SDK does

    def remove(self, box):
        box.may_be_gone = True
        status, _ = self.ask("delete", "DELETE", f"/v1/sandboxes/{box.id}", known=(404,))
        if status in (204, 404):
            self.boxes.remove(box)
            self.gone.append(box)

    def edit(self, box, what, method, path, body, may, value, fine=(200,), known=(404, 409)):
        may.tried(value)
        status, reply = self.ask(what, method, path, body, fine=fine, known=known)
        if status in fine:
            may.holds(value)
        return status, reply

    def look(self, box):
        """What is shown is what may be; one whose container has ended goes."""
        status, shown = self.ask("look", "GET", f"/v1/sandboxes/{box.id}")
        if status == 404 and not box.may_be_gone:
            self.complaints.append(f"{box.id}: is lost")
        if status != 200:
            return
        if shown["expiresAt"] not in box.expires.values:
            self.complaints.append(f"{box.id}: expires {shown['expiresAt']}, not "
                                   f"{box.expires.values}")
        if shown["status"]["state"] in ("Failed", "Terminated"):
            self.remove(box)

    def renew(self, box):
        value = stamp(self.random.randint(1200, 3000))
        self.edit(box, "renew", "POST", f"/v1/sandboxes/{box.id}/renew-expiration",
                  {"expiresAt": value}, box.expires, value)

    def relabel(self, box):
        self.turns += 1
        self.edit(box, "metadata", "PATCH", f"/v1/sandboxes/{box.id}/metadata",
                  {"turn": str(self.turns)}, box.metadata, str(self.turns))

    def pause(self, box):
        if self.ask("pause", "POST", f"/v1/sandboxes/{box.id}/pause")[0] == 202:
            time.sleep(self.random.random() * 0.3)
        self.resume(box)

    def resume(self, box):
        self.ask("resume", "POST", f"/v1/sandboxes/{box.id}/resume")

    def snapshot(self, box):
        status, value = self.ask("snapshot", "POST", f"/v1/sandboxes/{box.id}/snapshots",
                                 {"name": "chaos"})
        if status == 202:
            box.snapshots[value["id"]] = False

    def unsnapshot(self, box):
        for one in list(box.snapshots)[:1]:
            box.snapshots[one] = True
            if self.ask("unsnapshot", "DELETE", f"/v1/snapshots/{one}")[0] in (204, 404):
                del box.snapshots[one]

    # -- with the tokens of its endpoints ------------------------------------
    def known_tokens(self, box):
        """Asked for once; they must be the same for ever."""
        found = {}
        for port in (44772, 18080):
            status, value = self.ask("endpoint", "GET", f"/v1/sandboxes/{box.id}/endpoints/{port}")
            if status != 200:
                return False
            found[port] = value.get("headers", {})
        if box.tokens not in (None, found):
            self.complaints.append(f"{box.id}: its tokens have changed")
        box.tokens = found
        return True

    def command(self, box, line):
        """What it wrote, or None."""
        status, text = self.reach("command", box, 44772, "/command", "POST",
                                  json.dumps({"command": line}), {"Content-Type": "application/json"})
        if status != 200 or '"execution_complete"' not in text:
            return None
        return "".join(e.get("text", "") for e in events(text) if e.get("type") == "stdout")

    def files(self, box):
        data = f"{box.tag} {self.random.random()}"
        status, _ = self.reach("upload", box, 44772, "/files/upload", "POST",
                               upload("/tmp/kept", data), FORM)
        if status != 200:
            return
        status, text = self.reach("download", box, 44772, "/files/download?path=/tmp/kept")
        if status == 200 and text != data:
            self.complaints.append(f"{box.id}: a file came back as {text[:80]!r}")

    def shell(self, box):
        text = self.command(box, f"echo {box.tag}")
        if text is not None and text.strip() != box.tag:
            self.complaints.append(f"{box.id}: echo wrote {text!r}")

    def call(self, box):
        """An injected call; whether it carried the right credential, the origin knows."""
        if None not in box.secret.values:
            return self.command(box, f"curl -s -m 8 -o /dev/null -w '%{{http_code}}' "
                                     f"https://{ALLOWED}/inj/{box.tag}; true")
        return None

    def policy(self, box):
        opens = not box.opened.values[-1]
        method, body = ("PATCH", [{"action": "allow", "target": TOGGLED}]) if opens else (
            "DELETE", [TOGGLED])
        box.opened.tried(opens)
        if self.egress("policy", box, method, "/policy", body) == 200:
            box.opened.holds(opens)

    def vault(self, box):
        self.turns += 1
        known = box.secret.values
        value = f"secret-of-{box.tag}-{self.turns}" if known != [None] else f"secret-of-{box.tag}-0"
        credential = {"name": "token", "source": {"value": value}}
        box.secrets.add(value)
        box.secret.tried(value)
        status = 0
        if None in known:
            status = self.egress("vault", box, "POST", "/credential-vault", {
                "credentials": [credential], "bindings": [{
                    "name": "api", "match": {"hosts": [ALLOWED]},
                    "auth": {"type": "bearer", "credential": "token"}}]}, fine=(201,))
        else:
            status = self.egress("vault", box, "PATCH", "/credential-vault",
                                 {"credentials": {"replace": [credential]}})
        if status in (200, 201):
            box.secret.holds(value)
        elif status == 409 and None in box.secret.values:
            box.secret.values.remove(None)  # an earlier one was made after all

    def egress(self, what, box, method, path, body, fine=(200,)):
        status, _ = self.reach(what, box, 18080, path, method, json.dumps(body),
                               {"Content-Type": "application/json"}, fine=(*fine, 409))
        return status

    # -- life ----------------------------------------------------------------
    def turn(self):
        if len(self.boxes) < 2 or (len(self.boxes) < 4 and self.random.random() < 0.2):
            self.create()
            return
        box = self.random.choice(self.boxes)
        if box.may_be_gone:
            self.remove(box)  # until it is
            return
        work = self.random.choice((
            self.look, self.look, self.look, self.renew, self.relabel, self.pause, self.snapshot,
            self.unsnapshot, self.shell, self.files, self.call, self.call, self.policy,
            self.policy, self.vault, self.vault, self.remove))
        needs_tokens = work in (self.shell, self.files, self.call, self.policy, self.vault)
        if needs_tokens and not self.known_tokens(box):
            return
        work(box)

    def run(self):
        while not self.over.is_set():
            try:
                self.turn()
            except Exception as e:
                self.complaints.append(f"tenant {self.number}: {e!r}")
                raise
            time.sleep(0.02 + self.random.random() * 0.1)


def events(text):
    for line in text.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            found = json.loads(line.removeprefix("data: "))
            if isinstance(found, dict):
                yield found


# -- disturbing ---------------------------------------------------------------

def children(daemon, name):
    """Of our daemon, by its own account of its children."""
    with contextlib.suppress(OSError):
        for pid in Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text().split():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip() == f"sallyport-{name}"[:15]:
                    yield int(pid)


class Disturber:
    def __init__(self, node, seed):
        self.node, self.random, self.done = node, random.Random(seed), []

    def kill(self, role):
        for pid in children(self.node.lab.daemon, role):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def supervisor(self, sig):
        lab = self.node.lab
        lab.daemon.send_signal(sig)
        try:
            lab.daemon.wait(30)
        except Exception:
            lab.daemon.kill()
            lab.daemon.wait(5)
            raise AssertionError("the daemon did not stop")
        time.sleep(self.random.random())
        lab.start()

    def docker(self, sig):
        docker = self.node.docker
        docker.kill() if sig == signal.SIGKILL else docker.stop()
        time.sleep(self.random.random() * 2)
        for again in (True, True, False):  # a loaded machine may take it too long
            try:
                docker.start()
                return
            except AssertionError:
                if not again:
                    raise

    def step(self, most=1):
        roll = self.random.random() * most
        if roll < 0.74:
            what = self.random.choice(ROLES)
            act, args = self.kill, (what,)
            if self.random.random() < 0.15:
                what, act, args = "twice " + what, self.twice, (what,)
        elif roll < 0.88:
            sig = self.random.choice((signal.SIGTERM, signal.SIGKILL))
            what, act, args = f"supervisor {sig.name}", self.supervisor, (sig,)
        else:
            sig = self.random.choice((signal.SIGTERM, signal.SIGKILL))
            what, act, args = f"dockerd {sig.name}", self.docker, (sig,)
        print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)
        self.done.append(what)
        act(*args)

    def twice(self, role):
        self.kill(role)
        time.sleep(0.3)
        self.kill(role)

    def run(self, seconds):
        begun = time.monotonic()
        while time.monotonic() < begun + seconds:
            # containers end with their daemon: some are to live until all is compared
            self.step(1 if time.monotonic() < begun + seconds * 0.5 else 0.88)
            # now and then twice in a row, mostly with room for work in between
            time.sleep(self.random.random() ** 2 * 6)
