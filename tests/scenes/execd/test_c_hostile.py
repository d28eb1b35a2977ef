# SPDX-License-Identifier: Apache-2.0
"""test_c_hostile.py - commands that kill, fork, fill, hide and never end"""
import contextlib
import ctypes
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from box import EXECD, Box
from execd import Run, pid_lives, wait_for
from root import cgroup_of_64_mib

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def pid_from(path):
    return int(wait_for(lambda: path.exists() and path.read_text().strip(), 10))


# -- killed -------------------------------------------------------------------

def test_kill_of_the_command_from_outside(execd, tmp_path):
    stream = execd.command(f"echo $$ > {tmp_path}/pid; sleep 60 | cat")
    os.kill(pid_from(tmp_path / "pid"), signal.SIGKILL)
    begin = time.monotonic()
    run = Run(stream)
    assert time.monotonic() - begin < 1
    assert run.error["evalue"] == "137"
    assert execd.children() == []


def test_what_a_command_kills_is_its_own(execd):
    # its group, its parent: not the daemon's group; the daemon is not killed by its word
    run = execd.run("kill -9 0")
    assert run.error["evalue"] == "137"
    assert execd.alive()


def test_stopped_commands_can_be_ended(execd, tmp_path):
    stream = execd.command(f"echo $$ > {tmp_path}/pid; kill -STOP $$; echo on")
    pid_from(tmp_path / "pid")
    command = stream.until("init")[0]["text"]
    assert execd.request("DELETE", f"/command?id={command}").status == 200
    assert Run(stream).error["evalue"] == "137"


# -- what stays behind --------------------------------------------------------

def test_a_background_process_does_not_hold_the_stream(execd, tmp_path):
    begin = time.monotonic()
    run = execd.run(f"(sleep 1; echo late; echo late >&2; sleep 0.5; touch {tmp_path}/done) & "
                    f"echo $! > {tmp_path}/pid; echo now")
    assert time.monotonic() - begin < 0.9
    assert run.stdout == ["now"] and run.error is None
    # its writes to the pipe nobody reads do not kill it
    wait_for((tmp_path / "done").exists, 10, "it died of its output")


def test_a_background_process_that_writes_for_ever(execd, tmp_path):
    run = execd.run(f"yes & echo $! > {tmp_path}/pid")
    assert run.error is None
    writer = pid_from(tmp_path / "pid")
    before = execd.rss_kib()
    time.sleep(1)
    assert pid_lives(writer)
    assert execd.rss_kib() - before < 1024
    begin = time.monotonic()
    assert execd.run("echo x").stdout == ["x"]
    assert time.monotonic() - begin < 0.5
    fds = execd.fd_count()
    os.kill(writer, signal.SIGKILL)
    wait_for(lambda: execd.fd_count() < fds, 5, "the pipe of the dead is kept")


def test_no_zombies_and_no_descriptors_stay(execd):
    execd.run("true")
    before = execd.fd_count()
    for _ in range(50):
        execd.run("(true &) ; (false &) ; true | cat")
        execd.run("exit 1", background=True)
        execd.run("true", cwd="/nowhere") if False else execd.stream(
            "/command", {"command": "true", "cwd": "/nowhere"}).close()
    wait_for(lambda: execd.children() == [], 5, "zombies")
    # 50 logs are kept
    assert execd.fd_count() - before <= 50 + 2


def test_orphans_are_reaped_by_an_init(start_execd, tmp_path):
    """As a subreaper the daemon is given the orphans of its commands."""
    libc = ctypes.CDLL(None, use_errno=True)
    execd = start_execd(preexec=lambda: libc.prctl(36, 1, 0, 0, 0))
    for _ in range(20):
        execd.run("for i in 1 2 3 4 5; do (sleep 0.1 & ) ; done")
    wait_for(lambda: execd.children() == [], 10, "orphans were not reaped")


# -- a bomb -------------------------------------------------------------------

@needs_root
def test_a_fork_bomb_in_its_own_user(execd):
    """Bounded by the number of processes of a user that nobody else is."""
    stream = execd.command("ulimit -u 60; bomb() { bomb | bomb & }; bomb; wait; sleep 60",
                           uid=61007, timeout=2500)
    stream.until("ping")
    worst = 0
    for _ in range(10):
        begin = time.monotonic()
        assert execd.run("echo alive").stdout == ["alive"]
        worst = max(worst, time.monotonic() - begin)
    assert worst < 2
    assert Run(stream).error["traceback"] == ["timed out after 2500 ms"]

    def left():
        return subprocess.run(["pgrep", "-u", "61007"], capture_output=True).stdout

    wait_for(lambda: not left(), 10, "the bomb lives")
    wait_for(lambda: execd.children() == [], 5, "zombies")


@needs_root
def test_no_room_for_a_process(start_execd):
    """The daemon's own user has all it may have: an error, and later it works again."""
    def become():
        resource.setrlimit(resource.RLIMIT_NPROC, (2, 2))
        os.setresgid(61008, 61008, 61008)
        os.setresuid(61008, 61008, 61008)

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        other = subprocess.Popen(["sleep", "60"], user=61008, group=61008)
        try:
            execd = start_execd(preexec=become, env={"TMPDIR": folder})
            stream = execd.command("echo x")
            assert stream.status == 500 and stream.error["code"] == "RUNTIME_ERROR"
            assert "no process could be made" in stream.error["message"]
            assert execd.alive()
        finally:
            other.kill()
            other.wait()
        assert execd.run("echo x").stdout == ["x"]
        execd.stop()


def test_no_descriptors_left(start_execd):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))

    execd = start_execd(preexec=few)
    streams = []
    refused = None
    for _ in range(24):
        try:
            stream = execd.command("sleep 60")
        except ConnectionError:
            break
        if stream.status != 200:
            refused = stream
            break
        streams.append(stream)
    assert streams
    if refused:
        assert refused.status == 500 and "Too many open files" in refused.error["message"]
        refused.close()
    for stream in streams:
        stream.close()
    wait_for(lambda: execd.request("GET", "/ping").status == 200, 5)


# -- places -------------------------------------------------------------------

def in_namespace(mounts):
    """Words before a program: a mount namespace of its own with these done."""
    return ["unshare", "-m", "--propagation", "private", "/bin/bash", "-c",
            f"set -e; {mounts}; exec \"$@\"", "mounts"]


@needs_root
def test_a_full_disk(start_execd, tmp_path):
    """The command meets the full disk; the daemon says how it ended."""
    full = tmp_path / "full"
    full.mkdir()
    execd = start_execd(prefix=in_namespace(f"mount -t tmpfs -o size=256k none {full}"),
                        env={"TMPDIR": str(full)})
    run = execd.run("head -c 1000000 /dev/zero || exit 28", background=True)
    assert execd.wait_finished(run.id)["exit_code"] == 28
    size = int(execd.request("GET", f"/command/{run.id}/logs").headers["content-length"])
    assert 100_000 < size <= 256 << 10
    # foreground commands need no disk
    assert execd.run("echo x").stdout == ["x"]
    assert execd.in_session(execd.session(), "echo y").stdout == ["y"]


# -- no memory ----------------------------------------------------------------

def oom_score(pid):
    with open(f"/proc/{pid}/oom_score_adj") as f:
        return int(f.read())


@needs_root
def test_programs_go_before_the_daemon(execd):
    ours = oom_score(execd.pid)
    assert execd.run("cat /proc/self/oom_score_adj").stdout == [str(min(ours + 500, 1000))]
    assert oom_score(execd.pid) == ours
    # a score that is as high as can be is one
    high = execd.run("echo 1000 > /proc/self/oom_score_adj; cat /proc/self/oom_score_adj")
    assert high.stdout == ["1000"]


@needs_root
def test_many_small_programs_fill_the_memory():
    """Each is smaller than the daemon, which is the init of its container: as
    the kernel sees it, the daemon would be the first to go."""
    folder = cgroup_of_64_mib(f"execd-memory-{os.getpid()}")
    if not folder:
        pytest.skip("no memory cgroup can be made here")
    inside = ("sh", "-c", f'echo 0 > {folder}/cgroup.procs; exec {EXECD} "$@"', "sh")
    many = "for i in $(seq 400); do sh -c 'sleep 2; :' & done; wait"
    try:
        with Box("--init", unshare=("--pid", "--kill-child"), prefix=inside) as box:
            for _ in range(4):  # kept as long as their terminals
                assert box.ask("POST", "/pty", {"command": "x" * (2 << 20)})[0] == 201
            for _ in range(3):
                box.events("POST", "/command", {"command": many})
                assert box.get("/ping")[0] == 200
            wait_for(lambda: box.events("POST", "/command", {"command": "exit 3"})[-1][
                "error"]["evalue"] == "3")  # once the last of them are gone
    finally:
        wait_for(lambda: not (folder / "cgroup.procs").read_text(), 20)
        folder.rmdir()


@needs_root
def test_nowhere_to_write(start_execd, tmp_path):
    execd = start_execd(prefix=in_namespace(
        "for d in /tmp /var/tmp; do mount --bind $d $d; mount -o remount,bind,ro $d; done"),
        env={"TMPDIR": "/proc"})
    stream = execd.command("echo x", background=True)
    assert stream.status == 500 and stream.error["code"] == "RUNTIME_ERROR"
    for place in ("/proc: ", "/tmp: Read-only file system", "/var/tmp: Read-only file system"):
        assert place in stream.error["message"]
    # everything else needs no place to write
    assert execd.run("echo x").stdout == ["x"]
    session = execd.session()
    execd.in_session(session, "export A=1")
    assert execd.in_session(session, "echo $A").stdout == ["1"]
    assert execd.run("x='" + "y" * 400_000 + "'; echo ${#x}").stdout == ["400000"]


@needs_root
@pytest.mark.skipif("asan" in os.environ.get("SALLYPORT_BUILD", ""),
                    reason="sanitizers cannot do without /proc")
def test_an_image_without_proc(start_execd):
    execd = start_execd(prefix=in_namespace("umount -l /proc"), env={"EXECD_SHELL": "/bin/dash"})
    session = execd.session({"cwd": "/var"})
    execd.in_session(session, "export A=1; cd /usr")
    assert execd.in_session(session, "echo $A; pwd").stdout == ["1", "/usr"]


def test_an_image_without_a_shell(start_execd):
    execd = start_execd(env={"EXECD_SHELL": "/no/such/shell"})
    for path in ("/command", f"/session/{execd.session()}/run"):
        stream = execd.stream(path, {"command": "true"})
        assert stream.status == 500 and stream.error["code"] == "RUNTIME_ERROR"
        assert "no shell" in stream.error["message"]


def test_the_log_has_no_name(execd, tmp_path):
    run = execd.run("echo secret; sleep 60", background=True)
    wait_for(lambda: execd.request("GET", f"/command/{run.id}/logs").body == b"secret\n")
    assert [p for p in tmp_path.iterdir() if not p.name.startswith("execd-")] == []


def test_who_cuts_the_log_cuts_the_reply(execd):
    """A command may truncate its own log: later calls tell what is there then."""
    run = execd.run("head -c 100000 /dev/zero; : > /proc/self/fd/1; echo after", background=True)
    execd.wait_finished(run.id)
    reply = execd.request("GET", f"/command/{run.id}/logs")
    assert (reply.body, reply.headers["execd-commands-tail-cursor"]) == (b"after\n", "6")
    assert execd.request("GET", f"/command/{run.id}/logs?cursor=100000").body == b""


# -- the end of the daemon ----------------------------------------------------

def test_the_end_of_the_daemon_ends_what_runs(start_execd, tmp_path):
    execd = start_execd()
    streams = [execd.command(f"echo $$ > {tmp_path}/{i}; sleep 60") for i in range(3)]
    execd.run(f"echo $$ > {tmp_path}/3; sleep 60", background=True)
    session = execd.session()
    streams.append(execd.stream(f"/session/{session}/run",
                                {"command": f"echo $$ > {tmp_path}/4; sleep 60"}))
    pids = [pid_from(tmp_path / str(i)) for i in range(5)]
    assert execd.stop() == 0
    for pid in pids:
        wait_for(lambda pid=pid: not pid_lives(pid), 5, "it lives on")
    for stream in streams:
        stream.close()


# -- a file system that does not answer ---------------------------------------

@pytest.fixture
def silent(tmp_path):
    """A FUSE mount whose server never answers; fd and folder."""
    folder = tmp_path / "silent"
    folder.mkdir()
    try:
        fd = os.open("/dev/fuse", os.O_RDWR)
    except OSError:
        pytest.skip("there is no FUSE here")
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"silent", str(folder).encode(), b"fuse.silent", 6, options):
        os.close(fd)
        pytest.skip("FUSE may not be mounted here")
    yield fd, folder
    with contextlib.suppress(OSError):
        os.close(fd)
    libc.umount2(str(folder).encode(), 2)


@needs_root
def test_a_directory_that_does_not_answer(execd, silent):
    fd, folder = silent
    begin = time.monotonic()
    stream = execd.command("echo never", cwd=str(folder))
    command = stream.until("ping")[0]["text"]
    assert time.monotonic() - begin < 1
    # nobody waits for it
    for _ in range(5):
        begin = time.monotonic()
        assert execd.run("echo x").stdout == ["x"]
        assert time.monotonic() - begin < 1
    assert execd.status(command)["running"]
    timed = execd.run("echo never", cwd=str(folder), timeout=300)
    assert timed.error["evalue"] == "124"
    # its server goes away: it cannot be entered after all
    os.close(fd)
    run = Run(stream)
    assert run.stdout == []
    assert run.error == {"ename": "CommandExecError", "evalue": "127", "traceback": [
        "cwd could not be entered: Transport endpoint is not connected"]}, run.error
    assert execd.status(command)["exit_code"] == 127
