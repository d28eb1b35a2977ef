# SPDX-License-Identifier: Apache-2.0
"""An image comes from a registry that asks for a password, or does not come."""
import base64
import contextlib
import json
import re
import threading
import time

import census
import pytest
from lab import run
from node import PULL_S
from registry import PASSWORD, USER, Registry, basic

RIGHT = {"username": USER, "password": PASSWORD}
FAILED = "DOCKER::SANDBOX_IMAGE_PULL_FAILED"


@pytest.fixture(params=["basic", "bearer"])
def either(request, node):
    with Registry(node.lab, request.param) as registry:
        yield registry
    forget(node, registry)


@pytest.fixture
def registry(node):
    with Registry(node.lab) as registry:
        yield registry
    forget(node, registry)


def forget(node, registry):
    """The daemon has none of its images any more."""
    all_of_it = node.docker.cli("images", "--format", "{{.Repository}}:{{.Tag}}").stdout.split()
    for uri in [u for u in all_of_it if u.startswith(registry.host)]:
        node.docker.cli("rmi", "-f", uri)


def ask(node, uri, auth=None, **more):
    image = {"uri": uri} | ({"auth": auth} if auth else {})
    return node.api.call("POST", "/v1/sandboxes", {
        "image": image, "entrypoint": ["sleep", "infinity"], "timeout": 600,
        "resourceLimits": {"cpu": "500m", "memory": "256Mi"}} | more)


def made(node, uri, auth=None, **more):
    status, value = ask(node, uri, auth, **more)
    assert status == 202, (status, value)
    return value["id"]


def refused(node, uri, auth=None, status=500):
    """The sentence, which names the image and tells no password."""
    found, value = ask(node, uri, auth)
    assert (found, value["code"]) == (status, FAILED), value
    assert uri in value["message"], value
    nowhere(node, json.dumps(value))
    return value["message"]


def forms(secret):
    """Of a secret, as it is met in texts."""
    pair = f"{USER}:{secret}"
    auth = json.dumps({"username": USER, "password": secret}, ensure_ascii=False,
                      separators=(",", ":"))
    return {secret, re.sub(r"[^ -\[\]-~]", lambda m: "".join(  # as our log has it
        f"\\x{b:02x}" for b in m[0].encode()), secret), json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1],
            base64.b64encode(pair.encode()).decode(),
            base64.urlsafe_b64encode(auth.encode()).decode().rstrip("=")}


def nowhere(node, *texts, secret=PASSWORD, docker=True):
    """Not in these texts, no log, no audit, no state and nothing that Docker keeps."""
    patterns = [w for form in forms(secret) for w in ("-e", form)]
    for form in forms(secret):
        for text in texts:
            assert form not in text, form
    files = ["dockerd.log", "data/containers", "data/image", "data/containerd"] if docker else []
    found = run("grep", "-rlaF", "--devices=skip", *patterns, node.lab.tmp,
                *[node.docker.folder / f for f in files], check=False)
    assert (found.returncode, found.stdout) == (1, ""), (found.stdout, found.stderr)


@contextlib.contextmanager
def askers(*jobs):
    """All at once, in threads of their own; the list gets what they answer, in the
    order of the jobs. At the end all have."""
    answers = [None] * len(jobs)

    def run_job(n):
        answers[n] = jobs[n]()
    threads = [threading.Thread(target=run_job, args=(n,)) for n in range(len(jobs))]
    for t in threads:
        t.start()
    try:
        yield answers
    finally:
        for t in threads:
            t.join()


def test_who_knows_the_password_gets_a_sandbox(node, either):
    uri = either.push("team/app")
    box = made(node, uri, RIGHT)
    try:
        details = node.docker.inspect(f"sandbox-{box}")
        assert details["State"]["Running"] and details["Config"]["Image"] == uri
        shown = node.api.get(box)
        assert shown["status"]["state"] == "Running"
        assert shown["image"] == {"uri": uri}
        nowhere(node, json.dumps(details), json.dumps(shown),
                node.docker.cli("image", "inspect", uri).stdout)
    finally:
        node.api.delete(box)


def test_who_does_not_is_told_so(node, either):
    before = census.take(node)
    uri = either.push("team/app")
    for auth in (None, RIGHT | {"password": "wr0ng-of-the-lab"}, {"username": USER},
                 {"password": PASSWORD}):
        message = refused(node, uri, auth)
        assert "auth" in message.lower(), message  # the daemon's own words
    nowhere(node, secret="wr0ng-of-the-lab")
    assert not either.gets
    census.settle(node, before)


def test_a_registry_that_repeats_the_password(node, registry):
    """In its refusal, which the daemon passes on."""
    registry.echoes = True
    secret = "s3cret \\\"of the\" lab"
    message = refused(node, registry.push("team/echo"), RIGHT | {"password": secret})
    assert message.endswith("the registry refuses in words that have the credentials in them")
    nowhere(node, message, secret=secret, docker=False)
    assert secret.replace("\\", "") in node.docker.log().replace("\\", "")  # it did, and the log there has it


def test_a_name_that_the_registry_does_not_have(node, registry):
    message = refused(node, f"{registry.host}/team/none:7", RIGHT)
    assert "manifest" in message, message


def test_what_is_here_is_not_pulled(node, registry):
    """Nor is anybody asked whether it is the newest, or for a password."""
    uri = registry.push("team/app")
    first = made(node, uri, RIGHT)
    given = dict(registry.gets)
    second = made(node, uri)
    assert registry.gets == given
    for box in (first, second):
        node.api.delete(box)


def test_two_at_once_pull_once(node, registry):
    uri = registry.push("team/app")
    with askers(*[lambda: made(node, uri, RIGHT)] * 2) as boxes:
        pass
    assert len(set(boxes)) == 2
    assert {registry.gets[layer] for layer in registry.layers} == {1}, registry.gets
    for box in boxes:
        node.api.delete(box)


def test_registries_that_break_off(node):
    """Amid a layer: one hangs, one gives a little now and then, one is gone each time.
    Docker tries again by itself after a pause; not for longer than it may."""
    before = census.take(node)
    ways = ("hangs", "trickles", "dies")

    def job(registry, uri):
        start = time.monotonic()
        status, value = ask(node, uri, RIGHT)
        return status, value, time.monotonic() - start

    with contextlib.ExitStack() as stack:
        all_of_them = [stack.enter_context(Registry(node.lab)) for _ in ways]
        for registry, way in zip(all_of_them, ways):
            setattr(registry, way, True)
        uris = [registry.push(f"team/{way}") for registry, way in zip(all_of_them, ways)]
        with askers(*[lambda r=r, u=u: job(r, u) for r, u in zip(all_of_them, uris)]) as answers:
            for registry in all_of_them:
                assert registry.hung.wait(PULL_S)
        for uri, way, (status, value, took) in zip(uris, ways, answers):
            assert uri in value["message"] and value["code"] == FAILED, value
            nowhere(node, json.dumps(value))
            if way == "dies":
                assert status == 500 and "EOF" in value["message"], value
            else:
                assert status == 503, value
                assert f"has not come within {PULL_S} s" in value["message"], value
                # of a layer
                assert re.search(r"said at last: [0-9a-f]{12}: Download", value["message"]), value
                assert PULL_S <= took < PULL_S + 10
        census.settle(node, before)
        # nothing of it is in the way of a later one
        all_of_them[0].hangs = False
        node.api.delete(made(node, uris[0], RIGHT))
        forget(node, all_of_them[0])


def test_pulls_that_hang_are_in_nobodys_way(node, registry):
    """More of them than sandboxes may be made at once; each is shown as on its way,
    and ends when somebody says so."""
    before = census.take(node)
    registry.hangs = True
    uris = [registry.push(f"team/app{n}") for n in range(9)]
    with askers(*[lambda u=u: ask(node, u, RIGHT) for u in uris]) as answers:
        assert registry.hung.wait(PULL_S)
        pending = node.lab.wait(lambda: len(all_ids := census.records(node)) == 9 and all_ids,
                                PULL_S, "nine that are being made")
        other = made(node, "lab:1")
        assert {node.api.get(p)["status"]["state"] for p in pending} == {"Pending"}
        node.api.delete(other)
        for p in pending:
            node.api.delete(p)
    # not that they were late
    assert {(status, value["code"]) for status, value in answers} == {
        (409, "DOCKER::SANDBOX_START_FAILED")}, answers
    census.settle(node, before)
