# SPDX-License-Identifier: Apache-2.0
"""Network policy and credential vault through the official Python SDK

SALLYPORT_ORIGIN_LOG names the file in which the origin behind api.lab.test and
plain.lab.test notes every request that it received, a JSON object a line.
"""
import json
import os

import pytest
from conftest import newer
from opensandbox.exceptions import SandboxException
from opensandbox.models.sandboxes import NetworkPolicy, NetworkRule

API, PLAIN = "api.lab.test", "plain.lab.test"


def allow(*targets):
    return NetworkPolicy(default_action="deny", egress=[
        NetworkRule(action="allow", target=t) for t in targets])


def curl(sandbox, url, *options):
    """The status that a client inside sees; 000 where there was no answer. Of the
    lab's CAs a sandbox trusts the gateway's alone, so without -k this proves who
    answered."""
    done = sandbox.commands.run(
        f"curl -s {' '.join(options)} --max-time 10 -o /dev/null -w '%{{http_code}}' '{url}'; true")
    return "".join(m.text for m in done.logs.stdout)


def received(path):
    """The headers, as a dict of lower-case names, of every request for a path."""
    with open(os.environ["SALLYPORT_ORIGIN_LOG"], encoding="utf-8") as log:
        records = [json.loads(line) for line in log]
    return [{k.lower(): v for k, v in r["headers"]} for r in records if r["path"] == path]


def targets(policy):
    return {r.target: r.action for r in policy.egress or []}


def test_policy(make):
    sandbox = make(network_policy=allow(API))
    path = f"/{sandbox.id}"
    policy = sandbox.get_egress_policy()
    assert policy.default_action == "deny" and targets(policy) == {API: "allow"}
    assert curl(sandbox, f"http://{API}{path}/a") == "200"
    assert curl(sandbox, f"http://{PLAIN}{path}/b") != "200"

    sandbox.patch_egress_rules([NetworkRule(action="allow", target=PLAIN),
                                NetworkRule(action="deny", target=API)])
    policy = sandbox.get_egress_policy()
    assert policy.default_action == "deny"
    assert targets(policy) == {PLAIN: "allow", API: "deny"}
    assert curl(sandbox, f"http://{API}{path}/c") != "200"
    assert curl(sandbox, f"http://{PLAIN}{path}/d") == "200"

    sandbox.delete_egress_rules([PLAIN, "never.lab.test"])
    assert targets(sandbox.get_egress_policy()) == {API: "deny"}
    assert curl(sandbox, f"http://{PLAIN}{path}/e") != "200"
    assert [len(received(f"{path}/{n}")) for n in "abcde"] == [1, 0, 0, 1, 0]


def test_policies_are_apart(make):
    one, two = make(network_policy=allow(API)), make(network_policy=allow(API))
    one.patch_egress_rules([NetworkRule(action="allow", target=PLAIN)])
    assert targets(two.get_egress_policy()) == {API: "allow"}
    assert curl(one, f"http://{PLAIN}/") == "200"
    assert curl(two, f"http://{PLAIN}/") != "200"


def test_policy_survives_a_pause(make, config):
    sandbox = make(network_policy=allow(API))
    sandbox.patch_egress_rules([NetworkRule(action="allow", target=PLAIN)])
    sandbox.pause()
    again = type(sandbox).resume(sandbox.id, connection_config=config)
    assert targets(again.get_egress_policy()) == {PLAIN: "allow", API: "allow"}
    assert curl(again, f"http://{PLAIN}/") == "200"
    again.close()


def test_refused(make):
    sandbox = make(network_policy=allow(API))
    with pytest.raises(SandboxException):
        sandbox.patch_egress_rules([NetworkRule(action="allow", target="not a name")])
    assert targets(sandbox.get_egress_policy()) == {API: "allow"}


@newer
def test_credential_vault(make):
    from opensandbox.models.sandboxes import CredentialProxyConfig
    sandbox = make(network_policy=allow(API, PLAIN),
                   credential_proxy=CredentialProxyConfig(enabled=True))
    vault, path = sandbox.credential_vault, f"/{sandbox.id}"

    def token(name, *options):
        assert curl(sandbox, f"https://{API}{path}/{name}", *options) == "200"
        return [h.get("authorization") for h in received(f"{path}/{name}")]

    assert token("before", "-k") == [None]
    state = vault.create(
        credentials=[{"name": "key", "source": {"value": "first-secret-of-the-lab"}}],
        bindings=[{"name": "api", "match": {"hosts": [API], "schemes": ["https"]},
                   "auth": {"type": "bearer", "credential": "key"}}])
    assert [c.name for c in state.credentials] == ["key"]
    assert [b.name for b in state.bindings] == ["api"]
    assert token("created") == ["Bearer first-secret-of-the-lab"]
    assert curl(sandbox, f"https://{PLAIN}{path}/other", "-k") == "200"
    assert [h.get("authorization") for h in received(f"{path}/other")] == [None]

    patched = vault.patch(
        expected_revision=state.revision,
        credentials={"replace": [{"name": "key", "source": {"value": "second-secret-of-lab"}}]})
    assert patched.revision > state.revision
    assert token("patched") == ["Bearer second-secret-of-lab"]
    with pytest.raises(SandboxException):
        vault.patch(expected_revision=state.revision, bindings={"delete": ["api"]})
    assert token("stale") == ["Bearer second-secret-of-lab"]

    assert vault.get() == patched
    assert vault.get_credential("key").source_type == "inline"
    assert vault.list_credentials() == patched.credentials
    assert vault.get_binding("api").auth.type == "bearer"
    assert vault.list_bindings() == patched.bindings
    vault.delete()
    assert token("deleted", "-k") == [None]
    with pytest.raises(SandboxException):
        vault.get()


@newer
def test_vaults_are_apart_and_end_with_their_sandbox(make):
    from opensandbox.models.sandboxes import CredentialProxyConfig
    wishes = {"network_policy": allow(API), "credential_proxy": CredentialProxyConfig(enabled=True)}
    one, two = make(**wishes), make(**wishes)
    one.credential_vault.create(
        credentials=[{"name": "key", "source": {"value": "only-of-the-first"}}],
        bindings=[{"name": "api", "match": {"hosts": [API]},
                   "auth": {"type": "bearer", "credential": "key"}}])
    assert curl(one, f"https://{API}/{one.id}") == "200"
    assert curl(two, f"https://{API}/{two.id}", "-k") == "200"
    assert received(f"/{one.id}")[0]["authorization"] == "Bearer only-of-the-first"
    assert "authorization" not in received(f"/{two.id}")[0]
    with pytest.raises(SandboxException):
        two.credential_vault.get()
