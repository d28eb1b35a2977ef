# SPDX-License-Identifier: Apache-2.0
"""Programs replaced under a daemon that runs, and the restart that takes them up
(docs/upgrade.md). "Another build" is a copy whose version says something else."""
import json
import os
import shutil
import signal

import lab as ground
import pytest
from conftest import SECRET, open_lab
from lab import ORIGIN4

API = "https://api.lab.test"
PROGRAMS = ("sallyportd", "sallyport-gateway", "sallyport-vault", "sallyport-control",
            "sallyport-queue")


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A folder of programs that the scenes may replace."""
    folder, before = tmp_path_factory.mktemp("bin"), ground.BIN
    for name in PROGRAMS:
        shutil.copy2(before / name, folder)
    ground.BIN = folder
    yield folder
    ground.BIN = before


@pytest.fixture(scope="module")
def own(programs):
    with open_lab("u") as made:
        yield made


def install(folder, name, source, other):
    """As installers do: a new file in the place of the old one, which goes on."""
    data = (source / name).read_bytes()
    changed = data.replace(b"0.1.", b"0.9.") if other else data
    assert (changed != data) == other
    new = folder / f".{name}"
    new.write_bytes(changed)
    new.chmod(0o755)
    os.replace(new, folder / name)


def injected(own, path):
    """A request of a sandbox got to the origin, with the credential."""
    if own.sandboxes[0].curl("--connect-timeout", "2", f"{API}/{path}")[0] != 200:
        return False
    seen = [json.loads(line) for line in own.origin_log.read_text().splitlines()]
    heads = [dict(r["headers"]) for r in seen if r["path"] == f"/{path}"]
    return heads[-1]["Authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("role", ["gateway", "vault"])
def test_a_role_of_another_build_is_not_taken(own, programs, role):
    source = ground.BUILD / "bin"
    sandbox = own.sandboxes[0]
    install(programs, f"sallyport-{role}", source, True)
    mark = len(own.log())
    os.kill(own.role_pid(role), signal.SIGKILL)
    own.wait(lambda: f"{role} error is of another build" in own.log()[mark:], 10,
             "the role to look at who started it")
    if role == "gateway":
        r = sandbox.run("curl", "-sS", "--max-time", "1", "--resolve",
                        f"plain.lab.test:80:{ORIGIN4}", "http://plain.lab.test/between")
        assert r.returncode != 0
        assert sandbox.run("ping", "-c", "1", "-W", "1", ORIGIN4).returncode != 0
    install(programs, f"sallyport-{role}", source, False)
    own.wait(lambda: injected(own, f"back-{role}"), 15, "service again")


def test_a_restart_takes_the_new_programs_and_keeps_everything(own, programs):
    before = (own.admin.get("/v1/sandboxes")["sandboxes"], own.admin.get("/v1/vault"),
              {p["name"] for p in own.admin.get("/v1/policies")["policies"]})
    for name in PROGRAMS:
        install(programs, name, ground.BUILD / "bin", True)
    assert own.stop() == 0
    own.start()
    assert (own.admin.get("/v1/sandboxes")["sandboxes"], own.admin.get("/v1/vault"),
            {p["name"] for p in own.admin.get("/v1/policies")["policies"]}) == before
    assert own.admin.get("/v1/status")["version"].startswith("0.9.")
    assert injected(own, "after")
