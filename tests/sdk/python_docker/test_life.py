# SPDX-License-Identifier: Apache-2.0
"""The life of a sandbox through the official Python SDK"""
import time
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone

import pytest
from conftest import IMAGE, VERSION
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import SandboxFilter, SnapshotFilter
from opensandbox.sync.sandbox import SandboxSync

SERVER = ["bash", "-c", "mkdir -p /srv; echo hello > /srv/file; echo begun; "
          "exec python3 -m http.server 8000 --directory /srv"]


def said(execution):
    return "\n".join(m.text for m in execution.logs.stdout)


def fetch(endpoint, path, headers=True, seconds=15):
    """What a port answers, as soon as somebody listens there."""
    request = urllib.request.Request(f"http://{endpoint.endpoint}{path}",
                                     headers=endpoint.headers if headers else {})
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(request, timeout=20) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as e:
            if e.code not in (502, 503) or time.monotonic() > end:
                return e.code, e.read().decode()
        time.sleep(0.1)


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def ids(page):
    return [s.id for s in page.sandbox_infos]


def test_created_as_wished(make):
    sandbox = make(metadata={"team": "lab"}, env={"GREETING": "a b'c"},
                   entrypoint=["sleep", "infinity"])
    info = sandbox.get_info()
    assert info.id == sandbox.id and info.status.state == "Running"
    assert info.image.image == IMAGE and info.entrypoint == ["sleep", "infinity"]
    assert info.metadata == {"team": "lab"}
    left = info.expires_at - datetime.now(timezone.utc)
    assert timedelta(minutes=9) < left <= timedelta(minutes=10)
    assert abs(datetime.now(timezone.utc) - info.created_at) < timedelta(minutes=1)
    assert said(sandbox.commands.run('echo "$GREETING"')) == "a b'c"
    assert sandbox.is_healthy()


def test_renewed(make):
    sandbox = make(timeout=timedelta(minutes=2))
    renewed = sandbox.renew(timedelta(minutes=30)).expires_at
    assert timedelta(minutes=29) < renewed - datetime.now(timezone.utc)
    assert abs(sandbox.get_info().expires_at - renewed) < timedelta(seconds=1)


def test_without_an_end(make):
    assert make(timeout=None).get_info().expires_at is None


def test_listed_and_filtered(make, manager):
    one, two = make(metadata={"case": "list", "n": "1"}), make(metadata={"case": "list", "n": "2"})
    both = manager.list_sandbox_infos(SandboxFilter(metadata={"case": "list"}))
    assert set(ids(both)) == {one.id, two.id} and both.pagination.total_items == 2
    assert ids(manager.list_sandbox_infos(SandboxFilter(
        metadata={"case": "list", "n": "2"}, states=["Running"]))) == [two.id]
    assert ids(manager.list_sandbox_infos(SandboxFilter(
        metadata={"case": "list"}, states=["Paused"]))) == []
    pages = [manager.list_sandbox_infos(SandboxFilter(metadata={"case": "list"}, page=n,
                                                      page_size=1)) for n in (1, 2)]
    assert {i for p in pages for i in ids(p)} == {one.id, two.id}
    assert [p.pagination.has_next_page for p in pages] == [True, False]


def test_metadata(make, manager):
    sandbox = make(metadata={"kept": "yes", "gone": "soon", "changed": "from"})
    wanted = {"kept": "yes", "changed": "to", "added": "now"}
    patched = sandbox.patch_metadata({"gone": None, "changed": "to", "added": "now"})
    assert patched.metadata == wanted == sandbox.get_info().metadata
    assert ids(manager.list_sandbox_infos(SandboxFilter(metadata={"added": "now"}))) == [sandbox.id]


def test_paused_and_resumed(make, config):
    sandbox = make()
    assert said(sandbox.commands.run("echo kept > /tmp/file; echo done")) == "done"
    sandbox.pause()
    until(lambda: sandbox.get_info().status.state == "Paused")
    assert not sandbox.is_healthy()
    again = SandboxSync.resume(sandbox.id, connection_config=config)
    assert again.get_info().status.state == "Running"
    assert said(again.commands.run("cat /tmp/file")) == "kept"
    again.close()
    other = SandboxSync.connect(sandbox.id, connection_config=config)
    assert said(other.commands.run("cat /tmp/file")) == "kept"
    other.close()


def test_endpoints(make):
    sandbox = make(entrypoint=SERVER)
    assert fetch(sandbox.get_endpoint(8000), "/file") == (200, "hello\n")
    execd = sandbox.get_endpoint(44772)
    assert fetch(execd, "/ping")[0] == 200 and fetch(execd, "/ping", headers=False)[0] == 401


def test_through_the_servers_proxy(make, config):
    sandbox = make()
    proxied = config.model_copy(update={"use_server_proxy": True})
    other = SandboxSync.connect(sandbox.id, connection_config=proxied)
    assert said(other.commands.run("echo through")) == "through"
    other.close()


def test_secured_endpoints(make):
    sandbox = make(entrypoint=SERVER, secure_access=True)
    secured = sandbox.get_endpoint(8000)
    assert fetch(secured, "/file") == (200, "hello\n")
    assert fetch(secured, "/file", headers=False)[0] == 401
    signed = sandbox.get_signed_endpoint(8000, int(time.time()) + 60)
    assert fetch(signed, "/file", headers=False) == (200, "hello\n")


def test_what_it_says_of_itself(make):
    sandbox = make(entrypoint=SERVER)
    logs = until(lambda: "begun" in (found := sandbox.get_diagnostic_logs("container")).content
                 and found)
    assert logs.sandbox_id == sandbox.id and logs.delivery == "inline"
    assert sandbox.get_diagnostic_events("lifecycle").kind == "events"
    assert 0 < sandbox.get_metrics().memory_total_in_mib


def test_snapshot(make, manager, config):
    sandbox = make()
    sandbox.commands.run("echo kept > /root/file")
    snapshot = sandbox.create_snapshot("one")
    assert (snapshot.sandbox_id, snapshot.name) == (sandbox.id, "one")
    until(lambda: manager.get_snapshot(snapshot.id).status.state == "Ready", 60)
    listed = manager.list_snapshots(SnapshotFilter(sandbox_id=sandbox.id))
    assert [s.id for s in listed.snapshot_infos] == [snapshot.id]
    sandbox.kill()
    made = make(image=None, snapshot_id=snapshot.id)
    assert made.get_info().snapshot_id == snapshot.id
    assert said(made.commands.run("cat /root/file")) == "kept"
    made.kill()
    manager.delete_snapshot(snapshot.id)
    with pytest.raises(SandboxApiException) as gone:
        manager.get_snapshot(snapshot.id)
    assert gone.value.status_code == 404


def test_killed(make, manager):
    sandbox = make(metadata={"case": "kill"})
    endpoint = sandbox.get_endpoint(44772)
    sandbox.kill()
    for ask in (sandbox.get_info, sandbox.kill, sandbox.pause,
                lambda: manager.kill_sandbox(sandbox.id)):
        with pytest.raises(SandboxApiException) as gone:
            ask()
        assert gone.value.status_code == 404 and gone.value.error.code == \
            "DOCKER::SANDBOX_NOT_FOUND"
    assert fetch(endpoint, "/ping")[0] == 404
    assert ids(manager.list_sandbox_infos(SandboxFilter(metadata={"case": "kill"}))) == []


def test_refused(make):
    """What the API says against a request is what the caller reads."""
    with pytest.raises(SandboxApiException) as refused:
        make(image="no-such/image@sha256:0")
    assert refused.value.error.code == "DOCKER::SANDBOX_IMAGE_PULL_FAILED"
    with pytest.raises(SandboxApiException) as refused:
        make(timeout=timedelta(seconds=1))
    assert refused.value.status_code == 400 and refused.value.request_id
    assert VERSION < (1, 1) or "timeout" in str(refused.value)
