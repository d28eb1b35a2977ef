# SPDX-License-Identifier: Apache-2.0
"""A sandbox comes to be, is fenced from its first moment on, and goes."""
import hashlib
import json
from pathlib import Path

import pytest

ALLOW = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "api.lab.test"}]}


@pytest.fixture(scope="module")
def box(node):
    made = node.api.create(networkPolicy=ALLOW, metadata={"team": "lab"})
    yield made["id"]
    node.api.delete(made["id"])


def curl(node, box, *args):
    r = node.docker.inside(box, "curl", "-sS", "--max-time", "10", "-o", "/dev/stderr", "-w",
                           "%{http_code}", *args)
    return int(r.stdout or 0), r.stderr


def test_it_runs(node, box):
    shown = node.api.get(box)
    assert shown["status"]["state"] == "Running"
    assert shown["status"]["reason"] == "CONTAINER_RUNNING"
    assert shown["metadata"] == {"team": "lab"}
    details = node.docker.inspect(f"sandbox-{box}")
    host = details["HostConfig"]
    assert details["State"]["Running"]
    assert {"NET_ADMIN", "NET_RAW", "SYS_ADMIN", "MKNOD"} <= set(host["CapDrop"])
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert (host["PidsLimit"], host["NanoCpus"]) == (4096, 500_000_000)
    assert host["Memory"] == host["MemorySwap"] == 256 << 20
    assert not host["PortBindings"] and not host["Privileged"]


def test_it_is_locked_to_its_port(node, box):
    entry = node.registry()[box]
    assert entry["interface"] == "sp-docker0"
    assert entry["lockedAt"] == entry["port"] and entry["port"].startswith("veth")
    network = node.docker.inspect(f"sandbox-{box}")["NetworkSettings"]["Networks"]["sallyport"]
    assert entry["addresses"] == [network["IPAddress"], network["GlobalIPv6Address"]]
    assert entry["mac"] == network["MacAddress"]


def test_tokens_are_nowhere(node, box):
    """execd demands one; neither Docker nor the file system knows it, and what execd
    checks it by opens nothing."""
    status, text = curl(node, box, "http://127.0.0.1:44772/ping")
    assert status == 401, text
    token = node.api.endpoint(box, 44772)["headers"]["X-EXECD-ACCESS-TOKEN"]
    status, text = curl(node, box, "-H", f"X-EXECD-ACCESS-TOKEN: {token}",
                        "http://127.0.0.1:44772/ping")
    assert status == 200, text
    details = json.dumps(node.docker.inspect(f"sandbox-{box}"))
    assert token not in details
    check = hashlib.sha256(token.encode()).hexdigest()
    assert check in details
    status, text = curl(node, box, "-H", f"X-EXECD-ACCESS-TOKEN: {check}",
                        "http://127.0.0.1:44772/ping")
    assert status == 401, text
    words = node.docker.inspect(f"sandbox-{box}")["Config"]["Entrypoint"]
    of_gateway = words[words.index("--proxy-token-sha256") + 1]
    assert len(of_gateway) == 64 and of_gateway != check
    status, text = curl(node, box, "-H", f"X-Sallyport-Proxy-Token: {of_gateway}",
                        "http://127.0.0.1:44772/proxy/1/")
    assert status == 401, text
    assert node.docker.inside(box, "grep", "-rlF", "-e", token, "/opt", "/run", "/tmp", "/etc",
                              "/proc/1/cmdline").stdout == ""
    assert list(node.docker.inspect(f"sandbox-{box}")["Config"]["Labels"]) == [
        "opensandbox.io/id"]


def test_policy_holds(node, box):
    status, text = curl(node, box, "http://api.lab.test/hello")
    assert status == 200, text
    status, text = curl(node, box, "http://plain.lab.test/")
    assert status != 200, text
    status, text = curl(node, box, "-k", "--resolve", "git.lab.test:443:10.212.2.2",
                        "https://git.lab.test/")
    assert status != 200, text
    record = node.lab.record(sandbox=box, host="api.lab.test")
    assert record["policy"] == f"sandbox.{box}"


def test_the_kit_is_not_its_to_change(node, box):
    """As root, by every way to a file: what other sandboxes run stays as it is."""
    for path in ("/opt/opensandbox/execd", "/opt/opensandbox/mitmproxy-ca-cert.pem"):
        for command in (f"echo x >> {path}", f"rm -f {path}", f"chmod 0777 {path}",
                        f"touch {path}", f"ln {path} /opt/link"):
            r = node.docker.inside(box, "bash", "-c", command)
            assert r.returncode == 1 and path in r.stderr, (command, r.stderr)
        for call in (f"umount2(b'{path}', 2)", f"mount(0, b'{path}', 0, 4128, 0)"):
            r = node.docker.inside(box, "python3", "-c", "import ctypes; c = ctypes.CDLL(None, "
                                   f"use_errno=True); print(c.{call}, ctypes.get_errno())")
            assert r.stdout.split() == ["-1", "1"], (call, r.stdout, r.stderr)  # EPERM
    volume = json.loads(node.docker.cli("volume", "inspect", "sallyport-kit").stdout)[0]
    laid = Path(volume["Mountpoint"]) / "execd"
    assert laid.read_bytes() == Path(
        node.lab.extra_config["lifecycle"]["execd"]).read_bytes()
    assert (laid.stat().st_uid, laid.stat().st_mode & 0o7777) == (0, 0o755)


def test_a_kit_that_was_pruned_is_laid_again(node):
    """As Docker's prune does it: the volume goes, though sandboxes use its files."""
    before = node.api.create()["id"]
    node.docker.cli("volume", "rm", "sallyport-kit")
    after = node.api.create()["id"]
    for one in (before, after):
        assert node.docker.inside(one, "stat", "-c", "%s", "/opt/opensandbox/execd").stdout \
            .strip() != "0"
        node.api.delete(one)
    assert "sallyport-kit" not in node.docker.containers()


def test_the_gateways_ca_is_trusted(node, box):
    """The image's own roots have it, before the first program starts."""
    ours = (node.lab.run_dir / "ca.pem").read_text().split("-----")[2].strip()
    roots = node.docker.inside(box, "cat", "/etc/ssl/certs/ca-certificates.crt").stdout
    assert ours in roots


def test_the_operators_cas_are_trusted(node):
    """A connection that the gateway does not look into shows the origin's own
    certificate, of an authority of upstream.trustFiles."""
    made = node.api.create(networkPolicy=ALLOW)["id"]
    inside = node.docker.inside(made, "cat", "/opt/opensandbox/mitmproxy-ca-cert.pem").stdout
    assert inside.count("BEGIN CERTIFICATE") == 2
    assert inside.startswith((node.lab.run_dir / "ca.pem").read_text().strip())
    r = node.docker.inside(made, "curl", "-sS", "--max-time", "10", "-w", "%{http_code}",
                           "-o", "/dev/null", "https://api.lab.test/hello")
    assert r.stdout == "200", (r.stdout, r.stderr)
    assert "inspected" not in node.lab.record(sandbox=made, host="api.lab.test", port=443)
    node.api.delete(made)


def test_names_are_asked_through_the_fence(node, box):
    """Docker's own resolver is in /etc/resolv.conf and must not ask from the
    node, where nobody decides."""
    zone_log = node.lab.tmp / "zone.json.log"
    before = zone_log.read_text() if zone_log.exists() else ""
    r = node.docker.inside(box, "cat", "/etc/resolv.conf")
    assert "127.0.0.11" in r.stdout
    assert node.docker.inside(box, "getent", "ahosts", "api.lab.test").returncode == 0
    assert node.docker.inside(box, "getent", "ahosts", "secret-data.evil.test").returncode
    after = zone_log.read_text() if zone_log.exists() else ""
    assert "secret-data" not in after[len(before):]
    assert node.lab.record(sandbox=box, kind="dns", host="secret-data.evil.test")


def test_neither_neighbours_nor_forged_sources(node, box):
    other = node.api.create()["id"]
    try:
        address = node.registry()[other]["addresses"][0]
        status, _ = curl(node, box, f"http://{address}:44772/ping")
        assert status != 401  # the other's daemon did not hear of it
        # as root of its namespace from the node: more than any workload can
        pid = node.docker.inspect(f"sandbox-{box}")["State"]["Pid"]
        run = ["nsenter", "-t", str(pid), "-n"]
        from lab import run as sh
        sh(*run, "ip", "addr", "add", f"{address}/16", "dev", "eth0")
        r = sh(*run, "curl", "-sS", "--max-time", "3", "--interface", address, "-o", "/dev/null",
               "-w", "%{http_code}", "--resolve", "api.lab.test:80:10.212.2.2",
               "http://api.lab.test/", check=False)
        assert r.stdout == "000"
        sh(*run, "ip", "addr", "del", f"{address}/16", "dev", "eth0")
    finally:
        node.api.delete(other)


def test_without_a_network_policy_the_operator_decides(node):
    """Denied, unless a policy of his chooses it, or is the default of all such;
    and that one opens no private network."""
    made = node.api.create(networkPolicy=None)["id"]
    with_policy = node.api.create(networkPolicy=ALLOW)["id"]
    try:
        assert curl(node, made, "http://plain.lab.test/")[0] != 200
        node.lab.put_policy("lab-default", {"defaultAction": "allow"})
        assert node.registry()[made]["policy"] == "lab-default"
        assert curl(node, made, "http://plain.lab.test/")[0] == 200
        status, text = curl(node, made, "http://10.212.2.2/")
        assert status == 403, text
        assert curl(node, with_policy, "http://plain.lab.test/")[0] != 200
        node.lab.put_policy("lab-chosen", {"sandboxes": {"ids": [made]}, "egress": [
            {"action": "allow", "target": "api.lab.test"}]})
        assert node.registry()[made]["policy"] == "lab-chosen"
        assert curl(node, made, "http://plain.lab.test/")[0] != 200
        assert curl(node, made, "http://api.lab.test/hello")[0] == 200
        # it has no policy of its own, so its egress API has none to show
        at = node.api.endpoint(made, 18080)
        assert node.api.reach(at["endpoint"], "/policy", at.get("headers"))[0] == 404
    finally:
        for name in ("lab-default", "lab-chosen"):
            node.lab.admin.call("DELETE", f"/v1/policies/{name}")
        node.api.delete(made)
        node.api.delete(with_policy)


def test_rules_with_ports(node):
    """As the contract has them since 1.2.0, and for names too."""
    made = node.api.create(networkPolicy={"egress": [
        {"action": "allow", "target": "plain.lab.test", "ports": [80]},
        {"action": "allow", "target": "10.212.2.2", "ports": [443]},
        {"action": "deny", "ports": [8080]}]})["id"]
    try:
        at = node.api.endpoint(made, 18080)

        def policy(method, body=None):
            status, text = node.api.reach(at["endpoint"], "/policy", at["headers"], method,
                                          body and json.dumps(body))
            assert status == 200, text
            return json.loads(text)
        assert policy("GET")["policy"]["egress"] == [
            {"action": "allow", "target": "plain.lab.test", "ports": [80]},
            {"action": "allow", "target": "10.212.2.2", "ports": [443]},
            {"action": "deny", "ports": [8080]}]
        assert curl(node, made, "http://plain.lab.test/")[0] == 200
        assert curl(node, made, "-k", "https://plain.lab.test/")[0] != 200
        assert curl(node, made, "-k", "https://10.212.2.2/")[0] == 200
        assert curl(node, made, "http://10.212.2.2/")[0] != 200
        policy("PATCH", [{"action": "deny", "target": "PLAIN.lab.test", "ports": [80]}])
        status, text = curl(node, made, "--resolve", "plain.lab.test:80:11.22.33.44",
                            "http://plain.lab.test/")
        assert status == 403 and "plain.lab.test ports 80" in text, text
        policy("DELETE", ["plain.lab.test", "10.212.2.2"])
        assert policy("GET")["policy"]["egress"] == [{"action": "deny", "ports": [8080]}]
    finally:
        node.api.delete(made)


def test_nothing_remains(node):
    made = node.api.create(networkPolicy=ALLOW)["id"]
    assert len(node.remains(made)) == 3  # container, registration, policy
    node.api.delete(made)
    assert node.remains(made) == []
    node.api.get(made, expect=404)
    node.api.delete(made, expect=404)


def test_a_program_that_is_not_there(node):
    """The daemon inside serves before it starts the program: the client may be
    answered, and then finds the sandbox failed; or is told at once."""
    status, value = node.api.call("POST", "/v1/sandboxes", {
        "image": {"uri": "lab:1"}, "entrypoint": ["/no/such/program"], "resourceLimits": {}})
    if status == 202:
        node.lab.wait(lambda: node.api.get(value["id"])["status"]["state"] == "Failed", 10,
                      "the sandbox to fail")
        assert "127" in node.api.get(value["id"])["status"]["message"]
        node.api.delete(value["id"])
    else:
        assert (status, value["code"]) == (500, "DOCKER::SANDBOX_START_FAILED"), value


@pytest.mark.parametrize("wrong, status, code", [
    ({"image": {"uri": "127.0.0.1:9/no/such:1"}}, 500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED"),
    ({"volumes": [{"name": "v", "mountPath": "/opt/opensandbox",
                   "pvc": {"claimName": "lab-v"}}]}, 400, "VOLUME::INVALID_MOUNT_PATH"),
    ({"volumes": [{"name": "v", "mountPath": "/data", "pvc": {
        "claimName": "lab-none", "createIfNotExists": False}}]}, 400, "VOLUME::PVC_NOT_FOUND"),
])
def test_what_fails_leaves_nothing(node, wrong, status, code):
    before = (sorted(node.docker.containers()), sorted(node.registry()), node.policies())
    refused = node.api.create(expect=status, networkPolicy=ALLOW, **wrong)
    assert refused["code"] == code, refused
    assert (sorted(node.docker.containers()), sorted(node.registry()),
            node.policies()) == before


@pytest.mark.parametrize("user", ["root", "user"])
def test_variables_for_the_commands_after(node, user):
    """The file to which clients append is that of the image's user; who is another
    one may not write it, nor anything beside it."""
    node.docker.cli("import", "--change", f"USER {user}", node.docker.folder / "image.tar",
                    f"lab:{user}")
    made = node.api.create(image={"uri": f"lab:{user}"}, networkPolicy=ALLOW)["id"]
    at = node.api.endpoint(made, 44772)

    def command(text, **more):
        status, events = node.api.reach(at["endpoint"], "/command", at["headers"] | {
            "Content-Type": "application/json"}, "POST", json.dumps({"command": text} | more))
        assert status == 200, events
        return [e["text"] for e in map(json.loads, events.split("\n\n")[:-1])
                if e["type"] in ("stdout", "stderr")]

    assert command("echo 'KEPT=\"a b\"' >> /opt/opensandbox/.env; echo $?") == ["0"]
    assert command('echo "$KEPT as $(id -un)"') == [f"a b as {user}"]
    folder = command("stat -c '%U %a' /opt/opensandbox /opt/opensandbox/.env "
                     "/opt/opensandbox/execd")
    assert folder == (["root 755", "root 644", "root 755"] if user == "root" else
                      ["root 1777", "user 644", "root 755"])
    if user == "root":
        tried = command("echo X=1 >> /opt/opensandbox/.env; touch /opt/opensandbox/x", uid=1000)
        assert len(tried) == 2 and all("Permission denied" in t for t in tried), tried
    else:
        tried = command("rm -f /opt/opensandbox/execd; mv /opt/opensandbox/mitmproxy-ca-cert.pem "
                        "/tmp/x; ls /opt/opensandbox/execd")
        assert len(tried) == 3 and tried[2] == "/opt/opensandbox/execd", tried
    node.api.delete(made)
