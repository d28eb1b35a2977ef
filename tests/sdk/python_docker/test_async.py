# SPDX-License-Identifier: Apache-2.0
"""The asynchronous half of the official Python SDK, one story after the other"""
import asyncio
import contextlib
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from conftest import IMAGE, newer
from opensandbox.config.connection import ConnectionConfig
from opensandbox.exceptions import SandboxApiException, SandboxException
from opensandbox.manager import SandboxManager
from opensandbox.models.filesystem import WriteEntry
from opensandbox.models.sandboxes import (
    PVC,
    Host,
    NetworkPolicy,
    NetworkRule,
    SandboxFilter,
    SnapshotFilter,
    Volume,
)
from opensandbox.sandbox import Sandbox
from test_egress import API, PLAIN, allow, received, targets

SECONDS = 240


def config(**more):
    return ConnectionConfig(protocol="http", **more)


@contextlib.asynccontextmanager
async def box(image=IMAGE, **wishes):
    made = await Sandbox.create(image, connection_config=config(),
                                resource={"cpu": "500m", "memory": "256Mi"},
                                **{"timeout": timedelta(minutes=10), **wishes})
    try:
        yield made
    finally:
        try:
            await made.kill()
        except SandboxApiException as e:
            if e.status_code != 404:
                raise
        await made.close()


def story(test):
    """A coroutine as a test, with an end."""
    def run():
        asyncio.run(asyncio.wait_for(test(), SECONDS))
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def said(sandbox, command):
    done = await sandbox.commands.run(command)
    assert done.error is None, done.error
    return "\n".join(m.text for m in done.logs.stdout)


async def curl(sandbox, url):
    return await said(sandbox, "curl -s --max-time 10 -o /dev/null -w '%{http_code}' "
                      f"'{url}' || true")


async def until(condition, seconds=30):
    async with asyncio.timeout(seconds):
        while not (found := await condition()):
            await asyncio.sleep(0.1)
        return found


async def paused(sandbox):
    return (await sandbox.get_info()).status.state == "Paused"


def soon(minutes):
    return datetime.now(timezone.utc) + timedelta(minutes=minutes)


@story
async def test_a_life():
    async with box(metadata={"case": "async"}, env={"GREETING": "a b'c"}) as sandbox:
        info = await sandbox.get_info()
        assert (info.id, info.status.state) == (sandbox.id, "Running")
        assert info.metadata == {"case": "async"} and soon(9) < info.expires_at < soon(10)
        assert await said(sandbox, 'echo "$GREETING"') == "a b'c"
        await sandbox.files.write_files([WriteEntry(path="/tmp/f", data="kept", mode=644)])
        assert soon(29) < (await sandbox.renew(timedelta(minutes=30))).expires_at

        await sandbox.pause()
        await until(lambda: paused(sandbox))
        assert not await sandbox.is_healthy()
        again = await Sandbox.resume(sandbox.id, connection_config=config())
        assert await again.files.read_file("/tmp/f") == "kept"
        await again.close()
        other = await Sandbox.connect(sandbox.id, connection_config=config())
        assert await other.is_healthy() and (await other.get_metrics()).memory_total_in_mib > 0
        await other.close()
        await sandbox.kill()
        with pytest.raises(SandboxApiException) as gone:
            await sandbox.get_info()
        assert gone.value.status_code == 404 and gone.value.error.code == \
            "DOCKER::SANDBOX_NOT_FOUND"


@story
async def test_many_commands_at_once():
    async with box() as sandbox:
        got = await asyncio.gather(*(said(sandbox, f"sleep 0.2; echo {n}") for n in range(20)))
        assert got == [str(n) for n in range(20)]


@story
async def test_a_manager():
    async with await SandboxManager.create(config()) as manager, \
            box(metadata={"case": "am", "n": "1"}) as one, \
            box(metadata={"case": "am", "n": "2"}) as two:
        async def ids(metadata, *states):
            page = await manager.list_sandbox_infos(SandboxFilter(
                metadata=metadata, **({"states": list(states)} if states else {})))
            return {s.id for s in page.sandbox_infos}
        both = {one.id, two.id}
        await manager.pause_sandbox(two.id)
        await until(lambda: paused(two))
        assert await ids({"case": "am"}) == await ids({"case": "am"}, "Running", "Paused") == both
        assert await ids({"case": "am"}, "Paused") == {two.id}
        assert await ids({"case": "am", "n": "1"}) == {one.id}
        await manager.resume_sandbox(two.id)
        told = await manager.patch_sandbox_metadata(one.id, {"n": None, "added": "yes"})
        assert told.metadata == (await one.get_info()).metadata == {"case": "am", "added": "yes"}
        await manager.renew_sandbox(one.id, timedelta(hours=1))
        assert soon(59) < (await one.get_info()).expires_at
        await manager.kill_sandbox(one.id)
        assert await ids({"case": "am"}) == {two.id}


@story
async def test_a_snapshot():
    async with await SandboxManager.create(config()) as manager, box() as sandbox:
        await said(sandbox, "echo kept > /root/file")
        kept = await sandbox.create_snapshot("async")

        async def ready():
            return (await manager.get_snapshot(kept.id)).status.state == "Ready"
        await until(ready, 60)
        listed = await manager.list_snapshots(SnapshotFilter(sandbox_id=sandbox.id))
        assert [s.id for s in listed.snapshot_infos] == [kept.id]
        async with box(image=None, snapshot_id=kept.id) as restored:
            assert await said(restored, "cat /root/file") == "kept"
        await manager.delete_snapshot(kept.id)
        with pytest.raises(SandboxApiException) as gone:
            await manager.get_snapshot(kept.id)
        assert gone.value.status_code == 404


@story
async def test_policy_through_the_server_renews():
    """What upstream's own test asserts of access renewal and the path."""
    async with box(network_policy=allow(API), timeout=timedelta(minutes=4),
                   extensions={"access.renew.extend.seconds": "300"}) as sandbox:
        proxied = await Sandbox.connect(sandbox.id, connection_config=config(use_server_proxy=True))
        at = f"/{sandbox.id}"
        assert f"/sandboxes/{sandbox.id}/proxy/18080" in (await proxied.get_endpoint(18080)).endpoint
        assert targets(await proxied.get_egress_policy()) == {API: "allow"}
        assert await curl(proxied, f"http://{API}{at}/a") == "200"
        assert await curl(proxied, f"http://{PLAIN}{at}/b") != "200"
        await proxied.patch_egress_rules([NetworkRule(action="allow", target=PLAIN),
                                          NetworkRule(action="deny", target=API)])
        assert targets(await proxied.get_egress_policy()) == {PLAIN: "allow", API: "deny"}
        assert await curl(proxied, f"http://{API}{at}/c") != "200"
        await proxied.delete_egress_rules([PLAIN, "never.lab.test"])
        assert targets(await proxied.get_egress_policy()) == {API: "deny"}
        assert [len(received(f"{at}/{n}")) for n in "abc"] == [1, 0, 0]

        async def renewed():
            info = await proxied.get_info()
            return info.expires_at > info.created_at + timedelta(minutes=4, seconds=30)
        await until(renewed)
        await proxied.close()


@newer
@story
async def test_every_kind_of_credential():
    """Over plain HTTP, whose bindings name no port, as this SDK cannot."""
    from opensandbox.models.sandboxes import CredentialProxyConfig
    values = {"bearer": "async-bearer-of-the-lab", "basic": "YXN5bmMtb2YtdGhlLWxhYg==",
              "key": "async-key-of-the-lab", "id": "async-client-of-the-lab",
              "secret": "async-secret-of-the-lab"}
    async with box(network_policy=NetworkPolicy(default_action="allow", egress=[]),
                   credential_proxy=CredentialProxyConfig(enabled=True)) as sandbox:
        vault, at = sandbox.credential_vault, f"/{sandbox.id}"

        def bind(name, auth):
            return {"name": name, "auth": auth, "match": {
                "hosts": [API], "schemes": ["http"], "methods": ["GET"], "paths": [f"{at}/{name}"]}}
        state = await vault.create(
            credentials=[{"name": n, "source": {"value": v}} for n, v in values.items()],
            bindings=[
                bind("bearer", {"type": "bearer", "credential": "bearer"}),
                bind("basic", {"type": "basic", "credential": "basic"}),
                bind("key", {"type": "apiKey", "name": "X-Api-Key", "credential": "key"}),
                bind("custom", {"type": "customHeaders", "headers": [
                    {"name": "X-Client-Id", "credential": "id"},
                    {"name": "X-Client-Secret", "credential": "secret"}]})])
        assert not [v for v in values.values() if v in str(state)]
        assert {b.name: b.auth.type for b in state.bindings} == {
            "bearer": "bearer", "basic": "basic", "key": "apiKey", "custom": "customHeaders"}
        for name, header, value in (
                ("bearer", "authorization", "Bearer " + values["bearer"]),
                ("basic", "authorization", "Basic " + values["basic"]),
                ("key", "x-api-key", values["key"]), ("custom", "x-client-id", values["id"]),
                ("custom", "x-client-secret", values["secret"]), ("none", "authorization", None)):
            assert await curl(sandbox, f"http://{API}{at}/{name}") == "200"
            assert received(f"{at}/{name}")[-1].get(header) == value, name


@newer
@story
async def test_a_vault_that_changes():
    from opensandbox.models.sandboxes import CredentialProxyConfig
    async with box(network_policy=allow(API),
                   credential_proxy=CredentialProxyConfig(enabled=True)) as sandbox:
        vault, at = sandbox.credential_vault, f"/{sandbox.id}"

        async def changed(revision, credentials=None, bindings=None):
            state = await vault.patch(expected_revision=revision - 1, credentials=credentials,
                                      bindings=bindings)
            assert state.revision == revision
            return [c.name for c in state.credentials], [b.name for b in state.bindings]

        async def token(name):
            assert await curl(sandbox, f"http://{API}{at}/{name}") == "200"
            return received(f"{at}/{name}")[-1].get("x-runtime-token")

        def bind(name):
            return {"add": [{"name": name, "match": {
                "hosts": [API], "schemes": ["http"], "paths": [f"{at}/{name}"]}, "auth": {
                "type": "apiKey", "name": "X-Runtime-Token", "credential": "token"}}]}

        def secret(value):
            return [{"name": "token", "source": {"value": value}}]
        assert (await vault.create(credentials=[], bindings=[])).revision == 1
        assert await changed(2, {"add": secret("async-1-of-the-lab")}, bind("one")) == \
            (["token"], ["one"])
        assert await token("one") == "async-1-of-the-lab"
        assert await changed(3, None, {"delete": ["one"]}) == (["token"], [])
        assert await changed(4, {"replace": secret("async-2-of-the-lab")}, bind("two")) == \
            (["token"], ["two"])
        assert (await token("two"), await token("one")) == ("async-2-of-the-lab", None)
        with pytest.raises(SandboxException):
            await changed(4, None, {"delete": ["two"]})
        assert await changed(5, None, {"delete": ["two"]}) == (["token"], [])
        assert await changed(6, {"delete": ["token"]}) == ([], [])
        assert await token("two") is None
        await vault.delete()


@story
async def test_volumes():
    shared = os.environ["SALLYPORT_SHARED"]
    named = PVC(claim_name="async-volume", delete_on_sandbox_termination=True)
    async with box(volumes=[
            Volume(name="rw", host=Host(path=shared), mount_path="/rw", sub_path="async"),
            Volume(name="ro", host=Host(path=shared), mount_path="/ro", sub_path="async",
                   read_only=True),
            Volume(name="v", pvc=named, mount_path="/v")]) as sandbox:
        await said(sandbox, "echo marker > /rw/file; echo deep > /v/file")
        assert Path(shared, "async/file").read_text() == "marker\n"
        assert await said(sandbox, "cat /ro/file; touch /ro/no || echo refused") == \
            "marker\nrefused"
        async with box(volumes=[Volume(name="v", pvc=PVC(claim_name="async-volume"),
                                       mount_path="/v", read_only=True)]) as other:
            assert await said(other, "cat /v/file; touch /v/no || echo refused") == "deep\nrefused"


@story
async def test_refused():
    named = config(headers={"X-Request-ID": "async-id-of-a-request"})
    with pytest.raises(SandboxApiException) as refused:
        await Sandbox.connect("no-such-sandbox", connection_config=named)
    assert refused.value.request_id == "async-id-of-a-request"
    assert refused.value.status_code == 404
    with pytest.raises(SandboxApiException) as refused:
        await Sandbox.create(IMAGE, connection_config=config(api_key="another"))
    assert refused.value.status_code == 401
    assert refused.value.error.code == "INVALID_API_KEY"
