# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: what runs may finish, nothing new begins, and everybody stays fenced."""
import signal
import subprocess
import time

import pytest
from conftest import open_lab
from lab import ORIGIN4

API = "https://api.lab.test"


@pytest.fixture(scope="module")
def own():
    """A daemon of our own to stop, with time to drain."""
    with open_lab("t", config={"timeouts": {"drainMs": 30000}}) as lab:
        yield lab


def test_what_runs_finishes_and_nothing_new_begins(own):
    sandbox = own.sandboxes[0]
    download = sandbox.popen("curl", "-sS", "--limit-rate", "2M", "-o", "/dev/null", "-w",
                             "%{size_download}", f"{API}/big/{6 << 20}", stdout=subprocess.PIPE)
    slow = sandbox.popen("curl", "-sS", "-w", "%{http_code}", "-o", "/dev/null", f"{API}/slow/2",
                         stdout=subprocess.PIPE)
    own.wait(lambda: own.admin.get("/v1/status")["gateway"]["counters"]["connections_open"] >= 2,
             5, "both to run")
    time.sleep(0.5)
    start = time.monotonic()
    own.daemon.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    r = sandbox.run("curl", "-sS", "--connect-timeout", "1", "--max-time", "2", "--resolve",
                    f"plain.lab.test:80:{ORIGIN4}", "http://plain.lab.test/late")
    assert r.returncode != 0
    assert slow.communicate(timeout=20)[0] == b"200"
    assert download.communicate(timeout=25)[0] == str(6 << 20).encode()
    assert own.daemon.wait(15) == 0, own.log()
    assert time.monotonic() - start < 28  # when they had ended, not when it had to
    ping = sandbox.run("ping", "-c", "1", "-W", "1", ORIGIN4)
    assert ping.returncode == 1  # it ran, and nothing came back
    own.start()
    assert own.wait(lambda: sandbox.curl(f"{API}/again")[0] == 200, 5, "service after a restart")
