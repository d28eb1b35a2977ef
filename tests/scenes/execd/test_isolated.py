# SPDX-License-Identifier: Apache-2.0
"""/v1/isolated: sessions in a world of their own, and what does not leave it"""
import os
import signal
import time
from pathlib import Path

import pytest

from box import EXECD, Box, wait_for
from root import RootBox

V1 = "/v1/isolated"


class Iso(Box):
    """A daemon whose sessions may be given what lies below `place`."""

    def __init__(self, place, **more):
        env = {"EXECD_ISOLATED_WRITABLE": str(place), **more.pop("env", {})}
        super().__init__(env=env, **more)
        self.place = place
        (place / "ws").mkdir(exist_ok=True)

    def make(self, mode="rw", path=None, status=201, **more):
        body = {"workspace": {"path": str(path or self.place / "ws"), "mode": mode}, **more}
        got, answer, _ = self.ask("POST", V1 + "/session", body)
        assert got == status, answer
        return answer["session_id"] if status == 201 else answer

    def run(self, sid, code, **more):
        """(status, output)"""
        frames = self.events("POST", f"{V1}/session/{sid}/run", {"code": code, **more})
        out = "\n".join(f["text"] for f in frames if f["type"] == "stdout")
        last = frames[-1]
        return (0 if last["type"] == "execution_complete" else int(last["error"]["evalue"])), out

    def drop(self, sid):
        status, body, headers = self.ask("DELETE", f"{V1}/session/{sid}")
        assert (status, body, headers["Content-Length"]) == (200, b"", "0")


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    place = tmp_path_factory.mktemp("place")
    place.chmod(0o755)
    with Iso(place, env={"PLAIN": "seen", "MY_API_KEY": "hidden", "AWS_REGION": "hidden"}) as b:
        yield b


def test_capabilities_are_those_of_the_kernel(box):
    status, c, _ = box.get(V1 + "/capabilities")
    assert status == 200
    assert c["available"] and c["setpriv_available"]
    assert c["isolator"] == "namespaces" and c["version"]
    assert c["commit_supported"] is False and c["diff_supported"] is False


def test_what_was_asked_for_is_told_again(box):
    sid = box.make("ro", profile="balanced", uid=1234, gid=55, idle_timeout_seconds=300,
                   env_passthrough={"mode": "allow", "keys": ["PATH"]}, share_net=False,
                   binds=[{"source": str(box.place), "dest": "/mnt", "readonly": True}])
    status, s, _ = box.get(f"{V1}/session/{sid}")
    assert status == 200 and s["status"] == "active"
    assert s["created_at"].endswith("Z") and s["last_run_at"] >= s["created_at"]
    assert s["workspace"] == {"path": str(box.place / "ws"), "mode": "ro"}
    assert s["profile"] == "balanced" and s["uid_mode"] == "setpriv"
    assert (s["uid"], s["gid"], s["share_net"]) == (1234, 55, False)
    assert s["env_passthrough"] == {"mode": "allow", "keys": ["PATH"]}
    assert s["binds"] == [{"source": str(box.place), "dest": "/mnt", "readonly": True}]
    assert s["idle_timeout_seconds"] == 300 and 290 <= s["idle_remaining_seconds"] <= 300
    listed = box.get(V1 + "/sessions")[1]["sessions"]
    assert [x["status"] for x in listed if x["session_id"] == sid] == ["active"]
    box.drop(sid)
    assert box.get(f"{V1}/session/{sid}")[:1] == (404,)


def test_its_processes_see_only_each_other(box):
    sid = box.make()
    status, out = box.run(sid, "echo $$; hostname; cd /proc; echo [0-9]*")
    assert (status, out.split()) == (0, ["2", "sandbox", "1", "2"])
    box.drop(sid)


def test_the_container_is_read_only(box):
    sid = box.make()
    status, out = box.run(sid, "for d in / /etc /usr /var /opt /root /sys; do "
                          "touch $d/x 2>/dev/null && echo $d; done; "
                          "for d in /tmp /run /dev/shm .; do touch $d/x || echo no $d; done")
    assert (status, out) == (0, "")
    assert (box.place / "ws" / "x").exists() and not Path("/run/x").exists()
    box.drop(sid)


@pytest.mark.parametrize("mode", ["rw", "ro", "overlay"])
def test_workspaces(mode, box):
    ws = box.place / f"ws-{mode}"
    ws.mkdir()
    (ws / "f").write_text("before")
    sid = box.make(mode, path=ws)
    assert box.run(sid, "pwd; cat f")[1] == f"{ws}\nbefore"
    status, _ = box.run(sid, "echo after > f && echo new > g && rm f")
    assert (status == 0) == (mode != "ro")
    if mode == "overlay":
        assert box.run(sid, "ls")[1] == "g"
    box.drop(sid)
    assert sorted(p.name for p in ws.iterdir()) == (["g"] if mode == "rw" else ["f"])


def test_a_workspace_that_is_missing_is_made(box):
    sid = box.make(path=box.place / "deep" / "er")
    assert box.run(sid, "touch here")[0] == 0
    assert (box.place / "deep" / "er" / "here").exists()
    box.drop(sid)


def test_profiles_differ_in_tmp(box):
    name = f"/tmp/isolated-{os.getpid()}"
    Path(name).write_text("outside")
    try:
        for profile, text in (("strict", ""), ("balanced", "outside")):
            sid = box.make(profile=profile)
            assert box.run(sid, f"cat {name} 2>/dev/null")[1] == text
            box.drop(sid)
    finally:
        os.unlink(name)


def test_the_network_is_shared_unless_it_is_not(box):
    sid = box.make(share_net=False)
    assert box.run(sid, "cut -d: -f1 -s /proc/net/dev | tr -d ' '")[1] == "lo"
    status, out = box.run(sid, f"exec 3<>/dev/tcp/127.0.0.1/{box.port}")
    assert status and "refused" in out
    box.drop(sid)
    sid = box.make()
    assert box.run(sid, f"exec 3<>/dev/tcp/127.0.0.1/{box.port} && echo in")[1] == "in"
    box.drop(sid)


def test_the_environment_lacks_what_is_secret(box):
    sid = box.make()
    names = box.run(sid, "env | cut -d= -f1")[1].split()
    assert "PLAIN" in names and "MY_API_KEY" not in names and "AWS_REGION" not in names
    assert box.run(sid, "cat /proc/1/environ /proc/1/maps")[0] == 1
    box.drop(sid)
    sid = box.make(env_passthrough={"mode": "allow", "keys": ["MY_API_KEY"]})
    names = box.run(sid, "env | cut -d= -f1")[1].split()
    assert "MY_API_KEY" in names and "PLAIN" not in names
    box.drop(sid)
    sid = box.make(env_passthrough={"mode": "deny", "keys": ["PLAIN"]})
    names = box.run(sid, "env | cut -d= -f1")[1].split()
    assert "MY_API_KEY" in names and "PLAIN" not in names
    box.drop(sid)


def test_users_are_the_containers_by_setpriv(box):
    ws = box.place / "ws-user"
    ws.mkdir()
    os.chown(ws, 1234, 55)
    sid = box.make(path=ws, uid=1234, gid=55)
    assert box.run(sid, "id -u; id -g; id -G; touch f")[1] == "1234\n55\n55"
    assert ((ws / "f").stat().st_uid, (ws / "f").stat().st_gid) == (1234, 55)
    assert box.run(sid, "grep -c '^Cap.*0000000000000000' /proc/self/status")[1] == "4"
    assert box.run(sid, "cat /etc/shadow")[0] == 1
    box.drop(sid)


def test_users_are_mapped_by_userns(box):
    if not box.get(V1 + "/capabilities")[1]["userns_available"]:
        pytest.skip("no user namespaces here")
    ws = box.place / "ws-userns"
    ws.mkdir()
    sid = box.make(path=ws, uid=1234, gid=55, uid_mode="userns")
    assert box.run(sid, "id -u; id -g; touch f")[1] == "1234\n55"
    assert (ws / "f").stat().st_uid == os.geteuid()
    box.drop(sid)


def test_binds_and_what_may_be_bound(box):
    data = box.place / "data"
    data.mkdir()
    (data / "f").write_text("content")
    sid = box.make("ro", extra_writable=[str(data)],
                   binds=[{"source": str(data), "dest": "/mnt", "readonly": True},
                          {"source": str(data), "dest": "/tmp/deep/er"}])
    assert box.run(sid, f"cat /mnt/f; touch {data}/a /tmp/deep/er/b")[1] == "content"
    assert box.run(sid, "touch /mnt/c")[0] == 1
    box.drop(sid)
    assert sorted(p.name for p in data.iterdir()) == ["a", "b", "f"]


def test_what_may_not_be_bound(box):
    (box.place / "link").symlink_to("/etc")
    for what in ({"extra_writable": ["/etc"]},
                 {"extra_writable": [str(box.place / "link")]},
                 {"extra_writable": [str(box.place / ".." / "..")]},
                 {"extra_writable": [str(box.place) + "-not"]},
                 {"binds": [{"source": "/"}]},
                 {"binds": [{"source": str(box.place / "missing")}]},
                 {"binds": [{"source": "relative"}]},
                 {"binds": [{"dest": "/mnt"}]}):
        answer = box.make(status=400, **what)
        assert answer["code"] == "INVALID_REQUEST_BODY" and answer["message"]


@pytest.mark.parametrize("body,word", [
    ({}, "workspace"),
    ({"workspace": {}}, "workspace.path is required"),
    ({"workspace": {"path": "x"}}, "absolute"),
    ({"workspace": {"path": "/proc/version"}}, "is no folder"),
    ({"workspace": {"path": "/tmp", "mode": "rx"}}, "expected overlay, rw or ro"),
    ({"workspace": {"path": "/tmp"}, "profile": "lax"}, "expected strict, balanced"),
    ({"workspace": {"path": "/tmp"}, "uid_mode": "sudo"}, "expected setpriv, userns"),
    ({"workspace": {"path": "/tmp"}, "uid": -1}, "uid is no number"),
    ({"workspace": {"path": "/tmp"}, "env_passthrough": {"mode": "x"}}, "expected deny, allow"),
    ({"workspace": {"path": "/tmp"}, "binds": 3}, "binds is a number"),
    ({"workspace": {"path": "/tmp"}, "share_net": "no"}, "true or false"),
])
def test_bad_requests_are_named(body, word, box):
    status, answer, _ = box.ask("POST", V1 + "/session", body)
    assert status == 400 and word in answer["message"], answer


def test_a_session_remembers(box):
    sid = box.make()
    assert box.run(sid, "export A='b c'; f() { echo called; }; export -f f; cd /usr; exit 7")[0] == 7
    assert box.run(sid, 'echo "$A $PWD"; f')[1] == "b c /usr\ncalled"
    quoted = "it's \"$HOME\" `x`\nsecond"
    assert box.run(sid, 'printf %s "$B"', envs={"B": quoted, "A": "other"})[1] == quoted
    assert box.run(sid, 'echo "$A[$B]"')[1] == "b c[]"
    box.drop(sid)


def test_runs_end_as_they_should(box):
    sid = box.make()
    assert box.run(sid, "kill -TERM $$")[0] == 143
    begin = time.monotonic()
    assert box.run(sid, "sleep 60", timeout_seconds=1)[0] == 124
    assert time.monotonic() - begin < 5
    assert box.run(sid, "echo out; echo err >&2")[1] == "out\nerr"
    path = f"{V1}/session/{sid}/run"
    for body in ({}, {"code": ""}, {"code": "a\0b"}, {"code": "x", "envs": []},
                 {"code": "x", "envs": {"no name": "x"}}, {"code": "x", "timeout_seconds": -1}):
        assert box.ask("POST", path, body)[0] == 400, body
    assert box.ask("POST", f"{V1}/session/none/run", {"code": "x"})[0] == 404
    box.drop(sid)


def test_runs_in_the_background(box):
    sid = box.make()
    status, answer, _ = box.ask("POST", f"{V1}/session/{sid}/run",
                                {"code": "echo begun; sleep 0.5; echo done; exit 4",
                                 "background": True})
    assert status == 202 and answer["session_id"] == sid
    path = f"{V1}/session/{sid}/runs/{answer['run_id']}"
    assert box.get(path)[1]["running"] is True
    wait_for(lambda: b"begun" in box.get(path + "/logs")[1])
    wait_for(lambda: not box.get(path)[1]["running"])
    state = box.get(path)[1]
    assert state["exit_code"] == 4 and state["finished_at"] > state["started_at"]
    status, text, headers = box.get(path + "/logs")
    assert text == b"begun\ndone\n" and headers["EXECD-ISOLATED-TAIL-CURSOR"] == "11"
    assert box.get(path + "/logs?cursor=6")[1] == b"done\n"
    assert box.get(path + "/logs?cursor=x")[0] == 400
    assert box.get(f"{V1}/session/{sid}/runs/none")[0] == 404
    other = box.make()
    assert box.get(f"{V1}/session/{other}/runs/{answer['run_id']}")[0] == 404
    box.drop(sid)
    box.drop(other)


def sleepers(seconds):
    return [p for p in Path("/proc").iterdir() if p.name.isdigit() and
            cmdline(p).startswith(b"sleep\0" + seconds)]


def cmdline(p):
    try:
        return (p / "cmdline").read_bytes()
    except OSError:
        return b""


def test_deleting_ends_everybody(box):
    sid = box.make()
    box.run(sid, "setsid sleep 71.3 & for i in 1 2 3; do (setsid nohup sleep 71.3 &); done")
    box.ask("POST", f"{V1}/session/{sid}/run", {"code": "sleep 71.3", "background": True})
    wait_for(lambda: len(sleepers(b"71.3")) == 5)
    box.drop(sid)
    wait_for(lambda: not sleepers(b"71.3"), 5)


def keeper_of(box, sid):
    """Its first process, from outside: the parent of what a run started."""
    box.run(sid, "setsid sleep 72.4 >/dev/null 2>&1 & sleep 0.1")
    p = wait_for(lambda: sleepers(b"72.4"))[0]
    return int((p / "stat").read_text().rpartition(")")[2].split()[1])


def test_a_session_whose_first_process_is_killed_is_dead(box):
    sid = box.make()
    os.kill(keeper_of(box, sid), signal.SIGKILL)
    wait_for(lambda: box.get(f"{V1}/session/{sid}")[1]["status"] == "dead")
    assert not sleepers(b"72.4")
    status, answer, _ = box.ask("POST", f"{V1}/session/{sid}/run", {"code": "true"})
    assert status == 400 and "ended" in answer["message"]
    box.drop(sid)


def test_idle_sessions_go(box):
    sid = box.make(idle_timeout_seconds=1)
    assert box.run(sid, "sleep 1.5")[0] == 0
    time.sleep(0.5)
    assert box.get(f"{V1}/session/{sid}")[0] == 200
    wait_for(lambda: box.get(f"{V1}/session/{sid}")[0] == 404, 5, 0.1)


def test_two_sessions_do_not_meet(box):
    a, b = box.make(), box.make()
    box.run(a, "echo secret > /tmp/f; setsid sleep 73.5 >/dev/null 2>&1 & ipcmk -M 100 >/dev/null")
    status, out = box.run(b, "ls /tmp/f 2>&- | wc -l; ps ax | grep -c '[7]3.5'; ipcs -m | grep -c ' 100 '")
    assert out.split() == ["0", "0", "0"]
    box.drop(a)
    box.drop(b)


ESCAPES = {
    "mount": "mount -t tmpfs tmpfs /mnt",
    "remount": "mount -o remount,rw,bind /",
    "umount": "umount /proc",
    "a user namespace": "unshare -U true",
    "a mount namespace": "unshare -m true",
    "the daemon's namespaces": "nsenter -t 1 -m true",
    "chroot": "chroot / true",
    "ptrace of the first process": "cat /proc/1/mem /proc/1/environ",
    "its descriptors": "ls -l /proc/1/fd | grep -q socket",
    "the kernel's settings": "echo 1 > /proc/sys/kernel/printk",
    "the kernel's keys": "echo h > /proc/sysrq-trigger",
    "the kernel's memory": "head -c 1 /proc/kcore | grep -q .",
    "the kernel's settings by remounting": "mount -o remount,rw /proc/sys",
    "cgroups": "mkdir /sys/fs/cgroup/memory/x || mkdir /sys/fs/cgroup/x",
    "devices": "mknod /tmp/d b 8 0 && cat /tmp/d",
    "the host name": "hostname other",
    "its first process": "kill -9 1; sleep 0.2; kill -0 1 && exit 1",
}


@pytest.mark.parametrize("what", ESCAPES)
@pytest.mark.parametrize("user", ["setpriv", "userns"])
def test_nothing_leads_out(what, user, box):
    if not box.get(V1 + "/capabilities")[1][user + "_available"]:
        pytest.skip(f"no {user} here")
    sid = box.make(uid_mode=user)
    status, out = box.run(sid, ESCAPES[what])
    assert status, out
    assert box.get(f"{V1}/session/{sid}")[1]["status"] == "active"
    box.drop(sid)


def test_many_sessions_and_no_descriptor_stays(box):
    fds = Path(f"/proc/{box.pid}/fd")
    before = len(list(fds.iterdir()))
    begin = time.monotonic()
    made = [box.make() for _ in range(50)]
    took = (time.monotonic() - begin) / 50
    assert box.run(made[-1], "echo here")[1] == "here"
    for sid in made:
        box.drop(sid)
    wait_for(lambda: len(list(fds.iterdir())) <= before + 1)
    print(f"a session: {1000 * took:.1f} ms")
    assert took < 0.3


def test_a_daemon_without_privileges_says_so_and_uses_user_namespaces(tmp_path):
    tmp_path.chmod(0o777)
    for folder in tmp_path.parents:
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    binary = Path("/tmp") / f"execd-{os.getpid()}"
    try:
        binary.write_bytes(EXECD.read_bytes())
        binary.chmod(0o755)
        with Iso(tmp_path, prefix=["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups",
                                   str(binary)]) as b:
            c = b.get(V1 + "/capabilities")[1]
            assert c["setpriv_available"] is False
            assert "Operation not permitted" in c["message"]
            assert b.make(status=503)["code"] == "NOT_SUPPORTED"
            if c["userns_available"]:
                (tmp_path / "ws").chmod(0o777)
                sid = b.make("ro", uid_mode="userns", uid=0)
                assert b.run(sid, "id -u; hostname")[1] == "0\nsandbox"
                b.drop(sid)
            else:
                assert b.ask("POST", V1 + "/session", {})[0] == 503
    finally:
        binary.unlink(missing_ok=True)


def test_in_a_chroot_sessions_are_in_it_too(tmp_path):
    with RootBox("--init", tmp=tmp_path, script="echo inside > $M/marker") as b:
        status, answer, _ = b.ask("POST", V1 + "/session",
                                  {"workspace": {"path": "/work", "mode": "rw"}})
        assert status == 201, answer
        frames = b.events("POST", f"{V1}/session/{answer['session_id']}/run",
                          {"code": "cat /marker; ls /opt/opensandbox"})
        assert [f["text"] for f in frames if f["type"] == "stdout"] == ["inside", "execd"]


def test_where_nothing_is_possible_it_is_told(tmp_path):
    """A root that is no mount: nothing can be laid over it. There is nothing in it
    but the daemon."""
    if b"/lib64/ld-linux" in EXECD.read_bytes()[:4096]:
        pytest.skip("this build is not static")
    root = tmp_path / "root"
    (root / "tmp").mkdir(parents=True)
    (root / "proc").mkdir()
    (root / "execd").write_bytes(EXECD.read_bytes())
    (root / "execd").chmod(0o755)
    with Box(prefix=["chroot", str(root), "/execd"]) as b:
        status, c, _ = b.get(V1 + "/capabilities")
        assert status == 200 and c["available"] is False
        assert "was not possible" in c["message"]
        status, answer, _ = b.ask("POST", V1 + "/session", {"workspace": {"path": "/tmp"}})
        assert status == 503 and answer["code"] == "SERVICE_UNAVAILABLE"
        assert b.get(V1 + "/sessions")[0] == 503


def test_files_of_a_workspace(box):
    ws = box.place / "ws-files"
    ws.mkdir()
    (ws / "f").write_text("content")
    path = f"{V1}/session/{{}}/files/download?path={ws}/f"
    for mode in ("rw", "ro"):
        sid = box.make(mode, path=ws)
        assert box.get(path.format(sid))[1] == b"content"
        info = box.get(f"{V1}/session/{sid}/files/info?path={ws}/f")[1]
        assert info[f"{ws}/f"]["size"] == 7
        found = box.get(f"{V1}/session/{sid}/files/search?path={ws}&pattern=f")[1]
        assert [x["path"] for x in found] == [f"{ws}/f"]
        status, answer, _ = box.ask("POST", f"{V1}/session/{sid}/files/mv",
                                    [{"src": f"{ws}/f", "dest": f"{ws}/g"}])
        assert status == (200 if mode == "rw" else 403), answer
        if mode == "rw":
            assert box.run(sid, "cat g; mv g f")[1] == "content"
        box.drop(sid)
    sid = box.make("overlay", path=ws)
    assert box.get(path.format(sid))[0] == 503
    box.drop(sid)
    assert box.get(path.format("none"))[0] == 404


def test_diff_and_commit_are_told_to_be_missing(box):
    sid = box.make()
    assert box.get(f"{V1}/session/{sid}/diff")[0] == 503
    assert box.ask("POST", f"{V1}/session/{sid}/commit")[1]["code"] == "NOT_SUPPORTED"
    box.drop(sid)
