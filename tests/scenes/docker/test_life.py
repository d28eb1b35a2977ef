# SPDX-License-Identifier: Apache-2.0
"""What happens to sandboxes afterwards: they end, expire, outlive their makers."""
import os
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest


def state(node, box):
    return node.api.get(box)["status"]


def wait_for(node, box, name, seconds=10):
    node.lab.wait(lambda: state(node, box)["state"] == name, seconds, f"{box} to be {name}")
    return state(node, box)


@pytest.mark.parametrize("script, name, reason", [
    ("sleep 1; exit 0", "Terminated", "CONTAINER_EXITED"),
    ("sleep 1; exit 3", "Failed", "CONTAINER_EXITED_ERROR"),
])
def test_one_that_ends_by_itself(node, script, name, reason):
    box = node.api.create(entrypoint=["bash", "-c", script])["id"]
    status = wait_for(node, box, name)
    assert status["reason"] == reason
    assert ("status 3" in status["message"]) == (name == "Failed")
    node.api.delete(box)
    assert node.remains(box) == []


def test_one_that_is_killed_from_outside(node):
    box = node.api.create()["id"]
    node.docker.cli("kill", f"sandbox-{box}")
    assert "137" in wait_for(node, box, "Failed")["message"]
    node.api.delete(box)


def test_expiry(node):
    """Sixty seconds are the least that the API takes; the node's clock is the
    test's too, so this one waits."""
    begun = time.monotonic()
    box = node.api.create(timeout=60)["id"]
    node.lab.wait(lambda: node.api.call("GET", f"/v1/sandboxes/{box}")[0] == 404, 75,
                  "the sandbox to expire")
    assert time.monotonic() - begun > 58
    assert node.remains(box) == []


def test_deleted_while_it_is_made(node):
    """A client that deletes what another is still waiting for."""
    answer = {}

    def create():
        answer["create"] = node.api.call("POST", "/v1/sandboxes", {
            "image": {"uri": "lab:1"}, "entrypoint": ["sleep", "9"],
            "resourceLimits": {}, "metadata": {"case": "early"}})

    before = set(node.registry())
    thread = threading.Thread(target=create)
    thread.start()
    found = node.lab.wait(lambda: set(node.registry()) - before, 10, "a registration")
    box = found.pop()
    node.api.delete(box)
    thread.join(60)
    assert answer["create"][0] in (409, 202), answer
    node.lab.wait(lambda: node.remains(box) == [], 10, "nothing to remain")


def create_until(node, stop, made):
    while not stop.is_set():
        try:
            status, value = node.api.call("POST", "/v1/sandboxes", {
                "image": {"uri": "lab:1"}, "entrypoint": ["sleep", "infinity"],
                "resourceLimits": {}, "timeout": 600,
                "networkPolicy": {"egress": []}}, timeout=30)
            if status == 202:
                made.append(value["id"])
        except OSError:
            time.sleep(0.05)
        except Exception:  # a reply that was cut
            time.sleep(0.05)


def test_control_dies_amid_creations(node):
    """Whatever it was at: the next one removes what nobody was answered for,
    and keeps what somebody was."""
    stop, made, before_all = threading.Event(), [], node.registry()
    threads = [threading.Thread(target=create_until, args=(node, stop, made)) for _ in range(4)]
    for t in threads:
        t.start()
    for turn in range(3):
        # as soon as one was answered for, while others are amid their steps
        before = len(made)
        node.lab.wait(lambda: len(made) > before, 60, "a sandbox")
        time.sleep(0.15 * turn)
        pid = node.lab.role_pid("control")
        os.kill(pid, signal.SIGKILL)
        node.lab.wait(lambda: _role(node) not in (None, pid), 20, "another control")
        node.lab.wait(lambda: node.lab.ready(), 20, "the daemon to serve")
    stop.set()
    for t in threads:
        t.join(60)
    assert made

    def runs(box):  # it may be removed while it is asked for
        status, value = node.api.call("GET", f"/v1/sandboxes/{box}")
        return status == 200 and value["status"]["state"] == "Running"

    def settled():
        """Both lists agree, and who was not answered for either is gone or was
        made to the end: its answer was lost on its way."""
        names = {c.removeprefix("sandbox-") for c in node.docker.containers()}
        known = set(node.registry())
        return (names == known and set(made) <= known and all(
            runs(x) for x in known - set(before_all)))
    try:
        node.lab.wait(settled, 40, "no orphans")
    except AssertionError:
        raise AssertionError(f"made {sorted(made)}\ncontainers {sorted(node.docker.containers())}"
                             f"\nregistry {sorted(node.registry())}\n{node.lab.log()[-3000:]}")
    for box in set(node.registry()) - set(before_all):
        node.api.delete(box)
        assert node.remains(box) == []


def _role(node):
    try:
        return node.lab.role_pid("control")
    except (KeyError, OSError, AssertionError):
        return None


def test_the_whole_daemon_is_started_anew(node):
    box = node.api.create()["id"]
    before = node.registry()[box]
    assert node.lab.stop() == 0
    node.lab.start()
    node.connected()
    assert state(node, box)["state"] == "Running"
    assert node.registry()[box] == before
    other = node.api.create()["id"]  # with another address
    assert not set(node.registry()[other]["addresses"]) & set(before["addresses"])
    for one in (box, other):
        node.api.delete(one)
        assert node.remains(one) == []


def test_docker_is_started_anew(node):
    """Containers end with their daemon; nothing is made without one; all goes on
    afterwards."""
    box = node.api.create()["id"]
    node.docker.stop()
    status, refused = node.api.call("POST", "/v1/sandboxes", {
        "image": {"uri": "lab:1"}, "entrypoint": ["true"], "resourceLimits": {}})
    assert status == 503 and refused["code"] == "DOCKER::INITIALIZATION_ERROR", refused
    status, refused = node.api.call("DELETE", f"/v1/sandboxes/{box}")
    assert status == 503 and refused["code"] == "DOCKER::SANDBOX_DELETE_FAILED"
    node.docker.start()
    # what was to be removed is, now that it can be
    node.lab.wait(lambda: node.remains(box) == [], 50, "the sandbox to go")
    node.lab.wait(lambda: node.api.call("POST", "/v1/sandboxes", {
        "image": {"uri": "lab:1"}, "entrypoint": ["sleep", "9"], "resourceLimits": {},
        "metadata": {"case": "after"}})[0] == 202, 20, "sandboxes to be made again")
    for one in node.registry():
        node.api.delete(one)


def test_orphans_are_swept(node):
    """A container with our label that no record knows."""
    node.docker.cli("create", "--name", "sandbox-orphan", "--network", "none",
                    "--label", "opensandbox.io/id=orphan", "lab:1", "true")
    node.docker.cli("create", "--name", "bystander", "--network", "none", "lab:1", "true")
    os.kill(node.lab.role_pid("control"), signal.SIGKILL)
    node.lab.wait(lambda: "sandbox-orphan" not in node.docker.containers(), 20, "the sweep")
    assert "bystander" in node.docker.containers()
    node.docker.cli("rm", "bystander")
    node.lab.wait(lambda: node.lab.ready(), 20, "the daemon to serve")


def test_images_of_no_snapshot_are_swept(node):
    """What Docker made for a control that had ended, and for nobody else."""
    def images():
        return node.docker.cli("images", "--format", "{{.Repository}}:{{.Tag}}").stdout.split()

    def commit(container, name, label):
        node.docker.cli("commit", "--change", f"LABEL opensandbox.io/id={label}", container,
                        f"opensandbox-snapshots:{name}")
    node.docker.cli("create", "--name", "bystander", "--network", "none", "lab:1", "true")
    commit("bystander", "ours", '""')
    commit("bystander", "theirs", "x")
    os.kill(node.lab.role_pid("control"), signal.SIGKILL)
    node.lab.wait(lambda: "opensandbox-snapshots:ours" not in images(), 20, "the sweep")
    node.lab.wait(lambda: node.lab.ready(), 20, "the daemon to serve")
    box = node.api.create()["id"]
    commit(f"sandbox-{box}", "late", '""')
    node.lab.wait(lambda: "opensandbox-snapshots:late" not in images(), 20, "the event")
    assert "opensandbox-snapshots:theirs" in images()
    node.docker.cli("rm", "bystander")
    node.docker.cli("rmi", "opensandbox-snapshots:theirs")
    node.api.delete(box)


def test_volumes(node):
    shared = node.docker.folder / "shared"
    (shared / "in").mkdir(exist_ok=True)
    (shared / "out").symlink_to("/etc") if not (shared / "out").exists() else None
    box = node.api.create(volumes=[
        {"name": "h", "mountPath": "/h", "host": {"path": str(shared / "in")}},
        {"name": "r", "mountPath": "/r", "readOnly": True, "host": {"path": str(shared)},
         "subPath": "made"},
        {"name": "p", "mountPath": "/p", "pvc": {"claimName": "lab-kept"}},
        {"name": "q", "mountPath": "/q",
         "pvc": {"claimName": "lab-gone", "deleteOnSandboxTermination": True}}])["id"]
    assert node.docker.inside(box, "touch", "/h/x", "/p/x", "/q/x").returncode == 0
    assert node.docker.inside(box, "touch", "/r/x").returncode != 0
    assert (shared / "in" / "x").exists() and (shared / "made").is_dir()
    node.api.delete(box)
    volumes = node.docker.cli("volume", "ls", "-q").stdout.split()
    assert "lab-kept" in volumes and "lab-gone" not in volumes
    refused = node.api.create(expect=400, volumes=[
        {"name": "h", "mountPath": "/h", "host": {"path": str(shared)}, "subPath": "out"}])
    assert refused["code"] == "VOLUME::HOST_PATH_NOT_ALLOWED"
    node.docker.cli("volume", "rm", "lab-kept")


def test_a_folder_of_a_volume(node):
    """subPath of a named volume: that folder alone, and no link out of it,
    whoever put it there."""
    other = node.api.create(volumes=[
        {"name": "p", "mountPath": "/p", "pvc": {"claimName": "lab-parts"}}])["id"]
    made = node.docker.inside(other, "bash", "-c", "mkdir -p /p/in/deep && echo 1 > /p/in/deep/x "
                              "&& ln -s / /p/out && ln -s in /p/over")
    assert made.returncode == 0, made.stderr

    def part(path, expect=202, name="lab-parts", **more):
        return node.api.create(expect=expect, volumes=[
            {"name": "s", "mountPath": "/s", "subPath": path, "pvc": {"claimName": name}} | more])

    box = part("in/deep")["id"]
    seen = node.docker.inside(box, "bash", "-c", "ls -A /s; echo 2 > /s/y; cat /s/../s/x")
    assert seen.stdout == "x\n1\n", seen
    assert node.docker.inside(other, "cat", "/p/in/deep/y").stdout == "2\n"
    read = part("in/deep", readOnly=True)["id"]
    assert node.docker.inside(read, "touch", "/s/z").returncode != 0
    before = node.docker.containers()
    is_old = node.docker.api_version() < (1, 45)
    # a newer daemon follows a link that stays inside, as it opens what it mounts
    for path in ("out", "out/etc", "none", "in/none", *(["over"] if is_old else [])):
        refused = part(path, expect=400)
        assert refused["code"] == "VOLUME::INVALID_SUB_PATH", refused
    assert node.docker.containers() == before
    if is_old:
        only_without_detours(node)
    else:
        over = part("over")["id"]
        assert node.docker.inside(over, "ls", "/s").stdout == "deep\n"
        node.api.delete(over)
    for one in (box, read, other):
        node.api.delete(one)
        assert node.remains(one) == []
    node.docker.cli("volume", "rm", "lab-parts")


def only_without_detours(node):
    """With a daemon that follows links nobody may lead to where execd is: neither
    the image nor who has an outer volume."""
    two = [{"name": "o", "mountPath": "/s", "pvc": {"claimName": "lab-parts"}},
           {"name": "s", "mountPath": "/s/in", "subPath": "in",
            "pvc": {"claimName": "lab-parts"}}]
    refused = node.api.create(expect=400, volumes=two)
    assert "below another one" in refused["message"], refused
    two[0]["mountPath"], two[1]["mountPath"] = "/bin/x", "/s"  # /bin is a link
    refused = node.api.create(expect=400, volumes=two)
    assert (refused["code"], "a link in the image" in refused["message"]) == (
        "VOLUME::INVALID_MOUNT_PATH", True), refused
    node.docker.cli("volume", "create", "-o", "type=tmpfs", "-o", "device=tmpfs", "lab-memory")
    refused = node.api.create(expect=400, volumes=[
        {"name": "s", "mountPath": "/s", "subPath": "in", "pvc": {"claimName": "lab-memory"}}])
    assert refused["code"] == "VOLUME::PVC_SUBPATH_UNSUPPORTED_DRIVER", refused
    node.docker.cli("volume", "rm", "lab-memory")


def test_what_was_pruned_is_made_anew(node):
    """The network and the kit are nobody's while there is no sandbox."""
    node.api.delete(node.api.create()["id"])
    node.clear()
    node.docker.cli("network", "prune", "-f")
    node.docker.cli("volume", "rm", "sallyport-kit")
    assert "sallyport" not in node.docker.cli("network", "ls", "--format", "{{.Name}}").stdout
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: node.api.create()["id"], range(4)))
    for box in made:
        at = node.api.endpoint(box, 44772)
        assert node.api.reach(at["endpoint"], "/ping", at["headers"])[0] == 200
        # the new bridge is behind the same fence
        asked = node.docker.inside(box, "curl", "-sS", "--max-time", "10", "--resolve",
                                   "plain.lab.test:80:10.212.2.2", "-o", "/dev/null",
                                   "-w", "%{http_code}", "http://plain.lab.test/")
        assert asked.stdout == "403", asked
        node.api.delete(box)
        assert node.remains(box) == []


def test_many_at_once(node):
    made, errors = [], []

    def one():
        try:
            made.append(node.api.create(timeout=None)["id"])
        except AssertionError as e:
            errors.append(str(e)[:500])
    begun = time.monotonic()
    threads = [threading.Thread(target=one) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(180)
    assert not errors and len(set(made)) == 16, errors
    print(f"16 sandboxes in {time.monotonic() - begun:.1f} s")
    entries = node.registry()
    ports = {entries[m]["port"] for m in made}
    addresses = {a for m in made for a in entries[m]["addresses"]}
    assert len(ports) == 16 and len(addresses) == 32
    for box in made:
        node.api.delete(box)
    assert [m for m in made if node.remains(m)] == []


def test_no_privileges_but_the_socket(node):
    """What control has: the group of Docker's socket, and no capability."""
    pid = node.lab.role_pid("control")
    status = dict(line.split(":\t", 1) for line in
                  open(f"/proc/{pid}/status").read().splitlines() if ":\t" in line)
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    assert status["Seccomp"] in ("2", "0")
    group = str(os.stat(node.docker.socket).st_gid)
    assert group in status["Groups"].split()
    assert subprocess.run(["ls", f"/proc/{pid}/fd"], capture_output=True).returncode == 0
