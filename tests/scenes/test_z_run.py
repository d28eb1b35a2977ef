# SPDX-License-Identifier: Apache-2.0
"""test_z_run.py - sallyport run with a standalone daemon, and the quick start

Each in a network namespace of its own, so that neither meets a daemon of this
machine.
"""
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from lab import BIN, SOURCE

NAMESPACE = f"sprun{os.getpid() % 100000}"
STANDALONE = Path("/run/sallyport-standalone/node")
SALLYPORT = str(BIN / "sallyport")


@pytest.fixture(scope="module")
def inside():
    """Prefix of a command that shall run in the namespace."""
    if STANDALONE.exists():
        pytest.skip("a standalone daemon of somebody else is here")
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    subprocess.run(["ip", "-n", NAMESPACE, "link", "set", "lo", "up"], check=True)
    yield ["ip", "netns", "exec", NAMESPACE]
    subprocess.run(["ip", "netns", "del", NAMESPACE], check=True)


def start(inside, *words, env=None):
    # a shell's background job would ignore INT for good
    return subprocess.Popen([*inside, SALLYPORT, "run", *words], text=True, cwd=SOURCE,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env={**os.environ, **(env or {})})


def run(inside, *words, env=None):
    p = start(inside, *words, env=env)
    out, err = p.communicate(timeout=60)
    return p.returncode, out, err


def assert_nothing_left(inside):
    assert not STANDALONE.exists()
    tables = subprocess.run([*inside, "nft", "list", "tables"], capture_output=True, text=True,
                            check=True).stdout
    assert tables == ""
    links = subprocess.run([*inside, "ip", "-br", "link"], capture_output=True, text=True,
                           check=True).stdout
    assert "sp-" not in links
    rules = subprocess.run([*inside, "ip", "rule"], capture_output=True, text=True,
                           check=True).stdout
    assert "fwmark" not in rules


@pytest.mark.parametrize("words,status", [
    (["true"], 0),
    (["sh", "-c", "exit 7"], 7),
    (["sh", "-c", "kill -9 $$"], 137),
    (["/no/such/program"], 127),
    (["/etc/passwd"], 126),
])
def test_exit_status_is_the_commands(inside, words, status):
    code, _, err = run(inside, "--", *words)
    assert code == status, err
    assert_nothing_left(inside)


def test_what_is_inside(inside, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("run-secret-0123456789\n")
    code, out, err = run(
        inside, "--credential", f"s=@{secret}", "--", "sh", "-c",
        f"""cat {secret}; echo secret=$?; env | grep -c 0123456789
        grep -ac 0123456789 /proc/1/environ
        echo $(ls /run) $(ls -d /dev/sd* /dev/vd* /dev/mem 2>/dev/null)
        ip -br link | awk '{{print $1}}' | tr '\\n' ' '; echo
        ls /proc | grep -c '^[0-9]*$' | xargs test 12 -gt && echo own-processes
        grep CapBnd /proc/self/status; grep NoNewPrivs /proc/self/status
        (echo x > /proc/sys/kernel/core_pattern) 2>/dev/null || echo read-only
        umount {secret} 2>/dev/null || echo masked-for-good
        grep -c BEGIN $NODE_EXTRA_CA_CERTS
        cmp $SSL_CERT_FILE /etc/ssl/certs/ca-certificates.crt && echo bundle""",
        env={"LEAK": "Bearer run-secret-0123456789"})
    assert code == 0, err
    lines = out.split("\n")
    assert lines[0] == "secret=0"  # /dev/null reads as nothing
    assert lines[1:3] == ["0", "0"]
    assert lines[3].split() == ["lock", "sandbox"]
    assert [w.split("@")[0] for w in lines[4].split()] == ["lo", "eth0"]
    assert lines[5] == "own-processes"
    assert lines[6].split()[1] == "00000000a00405fb"
    assert lines[7].split()[1] == "1"
    assert lines[8:12] == ["read-only", "masked-for-good", "1", "bundle"]
    assert "LEAK holds credential s" in err
    assert "0123456789" not in err


def test_case_23_what_the_caller_trusts_is_kept(inside, tmp_path):
    """Variables that named files before name ones that hold those roots too."""
    for name in ("one", "two"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/null", "-days", "3",
                        "-out", str(tmp_path / name), "-subj", f"/CN=caller {name}"], check=True,
                       capture_output=True)
    code, out, err = run(
        inside, "-q", "--", "sh", "-c",
        """for f in $SSL_CERT_FILE $REQUESTS_CA_BUNDLE $NODE_EXTRA_CA_CERTS \
                /etc/ssl/certs/ca-certificates.crt; do
            openssl storeutl -noout -text -certs $f | grep -E 'Subject: CN *= *caller' | tr -d '\n'
            grep -c BEGIN $f
        done""",
        env={"SSL_CERT_FILE": str(tmp_path / "one"), "NODE_EXTRA_CA_CERTS": str(tmp_path / "two")})
    assert code == 0, err
    lines = out.splitlines()
    system = Path("/etc/ssl/certs/ca-certificates.crt").read_text().count("BEGIN CERT")
    assert len(lines) == 4
    for line, least in zip(lines, (system + 3, system + 3, 3, system + 3)):
        assert "caller one" in line and "caller two" in line, out
        assert int(line.split()[-1].removeprefix("two")) >= least, out


def test_refusals_are_told(inside):
    code, _, err = run(inside, "--", "sh", "-c",
                       "! timeout 20 curl -sS http://denied.test/ 2>&1")
    assert code == 0, err
    assert "denied.test" in err and "0 allowed" in err


def test_runs_share_a_daemon(inside):
    runs = [start(inside, "-q", "--", "sh", "-c", f"sleep 1; exit {n}") for n in range(4)]
    for n, p in enumerate(runs):
        _, err = p.communicate(timeout=60)
        assert p.returncode == n, err
    assert_nothing_left(inside)


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
def test_signals_are_passed_on(inside, name):
    p = start(inside, "-q", "--", "sh", "-c",
              f"trap 'echo got {name}; exit 9' {name}; echo ready; while :; do sleep 0.1; done")
    assert p.stdout.readline() == "ready\n"
    p.send_signal(getattr(signal, f"SIG{name}"))
    out, err = p.communicate(timeout=60)
    assert p.returncode == 9, err
    assert out == f"got {name}\n"
    assert_nothing_left(inside)


def test_a_killed_run_leaves_no_sandbox_and_is_joined(inside):
    p = start(inside, "-q", "--", "sh", "-c", "echo ready; sleep 60")
    assert p.stdout.readline() == "ready\n"
    p.kill()
    p.communicate(timeout=60)
    for _ in range(50):
        links = subprocess.run([*inside, "ip", "-br", "link"], capture_output=True, text=True,
                               check=True).stdout
        if "sp-" not in links:
            break
        time.sleep(0.1)
    assert "sp-" not in links  # CMD died with it
    code, _, err = run(inside, "-q", "--", "true")
    assert code == 0, err
    assert_nothing_left(inside)


def test_mistakes_begin_nothing(inside, tmp_path):
    bad = tmp_path / "policy.yaml"
    bad.write_text("policies:\n  - name: p\n    egres: []\n")
    code, _, err = run(inside, "--policy", str(bad), "--", "true")
    assert code == 1
    assert "policy.yaml:3" in err and "egress" in err
    code, _, err = run(inside, "--credential", "a=value", "--", "true")
    assert code == 1 and "never from the command line" in err
    code, _, err = run(inside, "--socket", "/nonexistent", "--", "true")
    assert code == 3
    code, _, err = run(inside, "--nonsense", "--", "true")
    assert code == 2
    assert_nothing_left(inside)


def test_quickstart(inside):
    p = subprocess.run([*inside, str(SOURCE / "deploy" / "quickstart"), "--no-build"], text=True,
                       capture_output=True, timeout=120, cwd=SOURCE, check=False,
                       env={**os.environ, "SALLYPORT_BUILD": str(BIN.parent)})
    assert p.returncode == 0, p.stdout + p.stderr
    assert "WRONG" not in p.stdout
