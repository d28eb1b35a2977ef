# SPDX-License-Identifier: Apache-2.0
"""test_f_identity.py - /v1/filesystem/{uid}/{gid}: files as another user"""
import contextlib
import os
import shutil
import stat
import tempfile
import threading
from pathlib import Path
from urllib.parse import quote

import pytest
from form import CLOSING, TYPE, Slow, pair
from root import RootBox

UID, GID = 23456, 34567
AS = f"/v1/filesystem/{UID}/{GID}"
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
pytestmark = ROOT_ONLY


def q(path):
    return "path=" + quote(os.fsencode(path))


def upload_as(execd, prefix, *parts):
    return execd.request("POST", prefix + "/files/upload", b"".join(parts) + CLOSING, TYPE)


def owner(path):
    st = os.lstat(path)
    return st.st_uid, st.st_gid


def refused(reply):
    assert reply.status == 403, reply
    assert reply.json()["code"] == "RUNTIME_ERROR"
    assert "denied" in reply.json()["message"] or "permitted" in reply.json()["message"], reply
    return True


@pytest.fixture
def place():
    """A folder of the user below one that he may pass; beside it, files of root."""
    above = Path(tempfile.mkdtemp(prefix="sallyport-scene-"))
    os.chmod(above, 0o755)
    (above / "secret").write_text("for root")
    os.chmod(above / "secret", 0o600)
    (above / "closed").mkdir(mode=0o700)
    (above / "closed" / "in").write_text("for root")
    (above / "mine").mkdir()
    os.chown(above / "mine", UID, GID)
    yield above / "mine"
    shutil.rmtree(above)


def as_root(execd):
    """Every thread, and the loop, is the daemon again."""
    for task in Path(f"/proc/{execd.pid}/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        assert "Uid:\t0\t0\t0\t0" in lines and "Gid:\t0\t0\t0\t0" in lines
        assert any(line.startswith("CapEff:") and int(line.split()[1], 16) for line in lines)
    return True


# -- what is made is the user's -----------------------------------------------

def test_uploads_belong_to_the_user(execd, place):
    reply = upload_as(execd, AS, pair(place / "a" / "b" / "new", b"bytes"))
    assert reply.status == 200, reply
    assert (place / "a" / "b" / "new").read_bytes() == b"bytes"
    assert owner(place / "a") == owner(place / "a" / "b") == (UID, GID)
    assert owner(place / "a" / "b" / "new") == (UID, GID)
    again = upload_as(execd, AS, pair(place / "a" / "b" / "new", b"other"))
    assert again.status == 200 and (place / "a" / "b" / "new").read_bytes() == b"other"
    assert owner(place / "a" / "b" / "new") == (UID, GID)
    # the same daemon, for itself
    assert upload_as(execd, "", pair(place / "root", b"")).status == 200
    assert owner(place / "root") == (0, 0) and as_root(execd)


def test_every_route(execd, place):
    made = execd.request("POST", AS + "/directories", {str(place / "d"): {"mode": 750}})
    assert made.status == 200, made
    assert owner(place / "d") == (UID, GID) and stat.S_IMODE(os.stat(place / "d").st_mode) == 0o750
    assert upload_as(execd, AS, pair(place / "d" / "f", b"old text")).status == 200
    info = execd.request("GET", f"{AS}/files/info?{q(place / 'd' / 'f')}")
    assert info.json()[str(place / "d" / "f")]["size"] == 8
    replaced = execd.request("POST", AS + "/files/replace",
                             {str(place / "d" / "f"): {"old": "old", "new": "new"}})
    assert replaced.status == 200
    read = execd.request("GET", f"{AS}/files/download?{q(place / 'd' / 'f')}")
    assert read.status == 200 and read.body == b"new text"
    ranged = execd.request("GET", f"{AS}/files/download?{q(place / 'd' / 'f')}",
                           headers={"Range": "bytes=0-2"})
    assert ranged.status == 206 and ranged.body == b"new"
    found = execd.request("GET", f"{AS}/files/search?{q(place)}&pattern=f")
    assert [f["path"] for f in found.json()] == [str(place / "d" / "f")]
    listed = execd.request("GET", f"{AS}/directories/list?{q(place)}")
    assert [f["path"] for f in listed.json()] == [str(place / "d")]
    moved = execd.request("POST", AS + "/files/mv",
                          [{"src": str(place / "d" / "f"), "dest": str(place / "g")}])
    assert moved.status == 200 and owner(place / "g") == (UID, GID)
    mode = execd.request("POST", AS + "/files/permissions", {str(place / "g"): {"mode": 600}})
    assert mode.status == 200 and stat.S_IMODE(os.stat(place / "g").st_mode) == 0o600
    assert execd.request("DELETE", f"{AS}/files?{q(place / 'g')}").status == 200
    assert execd.request("DELETE", f"{AS}/directories?{q(place / 'd')}").status == 200
    assert not list(place.iterdir()) and as_root(execd)


# -- what is not the user's is refused ----------------------------------------

def test_files_of_others_are_refused(execd, place):
    secret, inside = place.parent / "secret", place.parent / "closed" / "in"
    assert refused(execd.request("GET", f"{AS}/files/download?{q(secret)}"))
    assert refused(execd.request("GET", f"{AS}/files/info?{q(inside)}"))
    assert refused(execd.request("GET", f"{AS}/directories/list?{q(place.parent / 'closed')}"))
    assert refused(execd.request("GET", f"{AS}/files/search?{q(place.parent / 'closed')}"))
    assert refused(execd.request("DELETE", f"{AS}/files?{q(secret)}"))
    assert refused(execd.request("DELETE", f"{AS}/directories?{q(place.parent / 'closed')}"))
    assert refused(execd.request("POST", AS + "/files/mv",
                                 [{"src": str(secret), "dest": str(place / "got")}]))
    for wish in ({"mode": 666}, {"owner": str(UID)}, {"group": str(GID)}):
        assert refused(execd.request("POST", AS + "/files/permissions", {str(secret): wish}))
    # not even whether it is there
    for path in (inside, place.parent / "closed" / "none"):
        assert refused(execd.request("POST", AS + "/files/permissions", {str(path): {}}))
    assert refused(execd.request("POST", AS + "/files/replace",
                                 {str(secret): {"old": "for", "new": "of"}}))
    assert refused(execd.request("POST", AS + "/directories", {str(place.parent / "x"): {}}))
    for path in (secret, inside, place.parent / "new"):
        assert refused(upload_as(execd, AS, pair(path, b"mine now")))
    assert secret.read_text() == inside.read_text() == "for root"
    assert as_root(execd)


def test_a_file_cannot_be_given_away(execd, place):
    assert refused(upload_as(execd, AS, pair(place / "f", b"", owner="root", group="root")))
    assert not (place / "f").exists()
    assert upload_as(execd, AS, pair(place / "f", b"", mode=4755)).status == 200
    assert refused(execd.request("POST", AS + "/files/permissions",
                                 {str(place / "f"): {"owner": "root"}}))
    assert owner(place / "f") == (UID, GID)


def test_links_lead_where_the_user_may_go(execd, place):
    secret = place.parent / "secret"
    os.symlink(secret, place / "link")
    os.symlink(place.parent / "closed", place / "way")
    assert refused(execd.request("GET", f"{AS}/files/download?{q(place / 'link')}"))
    assert refused(upload_as(execd, AS, pair(place / "link", b"mine now")))
    assert refused(execd.request("GET", f"{AS}/files/download?{q(place / 'way' / 'in')}"))
    assert refused(upload_as(execd, AS, pair(place / "way" / "new", b"")))
    assert refused(execd.request("POST", AS + "/files/permissions",
                                 {str(place / "link"): {"mode": 666}}))
    assert secret.read_text() == "for root" and stat.S_IMODE(os.stat(secret).st_mode) == 0o600
    assert os.listdir(place.parent / "closed") == ["in"]


def test_a_link_put_in_place_meanwhile(execd, place):
    """A workload swaps a folder of its own for a link into root's all the time."""
    closed, way, ended = place.parent / "closed", place / "way", threading.Event()

    def swap():
        while not ended.is_set():
            with contextlib.suppress(OSError):  # an upload has made it anew
                os.mkdir(way)
                os.chown(way, UID, GID)
            shutil.rmtree(way, ignore_errors=True)
            with contextlib.suppress(OSError):
                os.symlink(closed, way)
                os.unlink(way)

    other = threading.Thread(target=swap)
    other.start()
    try:
        seen = [upload_as(execd, AS, pair(way / f"n{n}", b"x")).status for n in range(150)]
    finally:
        ended.set()
        other.join()
    assert os.listdir(closed) == ["in"] and set(seen) <= {200, 403, 500}
    assert as_root(execd)


def test_the_daemon_s_own_is_closed(execd, place):
    for path in ("/proc/self/environ", "/proc/self/mem", "/proc/1/environ",
                 f"/proc/{execd.pid}/environ"):
        assert refused(execd.request("GET", f"{AS}/files/download?{q(path)}"))
    assert refused(upload_as(execd, AS, pair("/proc/sys/kernel/domainname", b"x")))


def test_an_upload_that_is_cut_leaves_nothing(start_execd, place):
    # seventy files: those behind the sixty-fourth have a name before they are placed
    execd = start_execd()
    parts = b"".join(pair(place / f"f{n}", b"x" * 10) for n in range(70))
    slow = Slow(execd, len(parts) + 1000, path=AS + "/files/upload")
    slow.send(parts)
    end = threading.Event()
    for _ in range(200):
        if len(list(place.iterdir())) >= 5:
            break
        end.wait(0.02)
    assert list(place.iterdir()) and {owner(p) for p in place.iterdir()} == {(UID, GID)}
    slow.cut()
    for _ in range(200):
        if not list(place.iterdir()):
            break
        end.wait(0.02)
    assert not list(place.iterdir()) and as_root(execd)


def test_many_users_at_once(execd, place):
    """Requests of several users and of the daemon itself share the threads."""
    wrong = []

    def user(uid):
        prefix = f"/v1/filesystem/{uid}/{uid}" if uid else ""
        folder = place / f"u{uid}"
        folder.mkdir()
        os.chown(folder, uid, uid)
        for n in range(40):
            reply = upload_as(execd, prefix, pair(folder / f"f{n}", b"x"))
            if reply.status != 200 or owner(folder / f"f{n}") != (uid, uid):
                wrong.append((uid, n, reply))

    users = [threading.Thread(target=user, args=(uid,)) for uid in (0, 1001, 1002, 1003, 70000)]
    for thread in users:
        thread.start()
    for thread in users:
        thread.join()
    assert not wrong and as_root(execd)


# -- who may be whom ----------------------------------------------------------

def test_ids_that_are_none(execd):
    for uid in ("4294967295", "-1", "ann", "99999999999999999999", "0x10", "%20"):
        for prefix in (f"/v1/filesystem/{uid}/0", f"/v1/filesystem/0/{uid}"):
            reply = execd.request("GET", f"{prefix}/files/info?path=/")
            assert reply.status == 400 and "expected a number from 0 to" in reply.text, reply
    most = execd.request("GET", "/v1/filesystem/4294967294/4294967294/files/info?path=/")
    assert most.status == 200


def test_the_token_guards_it(start_execd):
    execd = start_execd(token="right")
    assert execd.request("GET", AS + "/files/info?path=/", token=None).status == 401
    assert execd.request("GET", AS + "/files/info?path=/").status == 200


def test_a_daemon_that_is_not_root(start_execd, place):
    def drop():
        os.setgroups([])
        os.setresgid(GID, GID, GID)
        os.setresuid(UID, UID, UID)

    execd = start_execd(preexec=drop)
    assert upload_as(execd, AS, pair(place / "own", b"")).status == 200
    assert refused(upload_as(execd, AS, pair(place.parent / "secret", b"")))
    for other in (f"/v1/filesystem/0/{GID}", f"/v1/filesystem/{UID}/0", "/v1/filesystem/0/0"):
        reply = upload_as(execd, other, pair(place / "other", b""))
        assert reply.status == 403 and reply.json()["code"] == "NOT_SUPPORTED", reply
        assert f"the daemon is the user {UID}" in reply.json()["message"]
    assert not (place / "other").exists()


def test_root_without_the_capability(start_execd, place):
    execd = start_execd(prefix=("setpriv", "--bounding-set", "-setuid,-setgid"))
    reply = upload_as(execd, AS, pair(place / "f", b""))
    assert reply.status == 403 and "may not work as another" in reply.text, reply
    assert upload_as(execd, "/v1/filesystem/0/0", pair(place / "f", b"")).status == 200


def test_groups_and_homes_of_the_image(tmp_path):
    files = {"/etc/passwd": b"root:x:0:0::/root:\nann:x:1500:1500::/srv/ann:\n",
             "/etc/group": b"root:x:0:\nstaff:x:1600:bob,ann\nothers:x:1700:bob\n",
             "/srv/staff": b"for staff", "/srv/others": b"for others",
             "/srv/ann/note": b"at home"}
    script = """chmod 711 $M $M/srv $M/srv/ann; chmod 640 $M/srv/staff $M/srv/others
chmod 644 $M/srv/ann/note; chmod 600 $M/etc/group
chown 0:1600 $M/srv/staff; chown 0:1700 $M/srv/others"""
    with RootBox(tmp=tmp_path, files=files, script=script) as box:
        def read(path, uid=1500, gid=1500):
            return box.get(f"/v1/filesystem/{uid}/{gid}/files/download?path={quote(path)}")[:2]
        assert read("/srv/staff") == (200, b"for staff")
        assert read("/srv/others")[0] == 403
        assert read("/srv/others", gid=1700) == (200, b"for others")
        assert read("/srv/staff", uid=1501)[0] == 403
        assert read("~/note") == (200, b"at home")
        assert read("~/note", uid=1501)[0] == 400
        # a file of names that the user may not read stays known to the daemon
        told = box.get("/v1/filesystem/1500/1500/files/info?path=/srv/staff")[1]
        assert told["/srv/staff"]["owner"] == "root"
        assert box.get("/files/info?path=/srv/staff")[1]["/srv/staff"]["group"] == "staff"
