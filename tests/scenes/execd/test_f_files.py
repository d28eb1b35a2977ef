# SPDX-License-Identifier: Apache-2.0
"""test_f_files.py - info, delete, mv, permissions, search, replace, directories"""
import json
import os
import pwd
import stat
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from form import PATIENCE, Pinger, assert_flat, many_files, pair, upload

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def q(*paths):
    return "&".join("path=" + quote(os.fsencode(p)) for p in paths)


def code(reply):
    return reply.status, reply.json()["code"]


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("alpha")
    (root / "sub" / "b.py").write_text("print()")
    (root / "sub" / "deep" / "c.txt").write_text("c")
    os.symlink("a.txt", root / "link")
    os.mkfifo(root / "pipe")
    return root


@pytest.fixture
def quick():
    """A folder for many files: in memory, where there is some."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="sallyport-scene-", dir=base))
    yield folder
    subprocess.run(["rm", "-rf", str(folder)], check=True)


# -- info ---------------------------------------------------------------------

def test_info_says_what_lstat_says(execd, tree):
    os.chmod(tree / "a.txt", 0o4750)
    reply = execd.request("GET", f"/files/info?{q(tree / 'a.txt', tree / 'link', tree, tree / 'pipe')}")
    assert reply.status == 200
    found = reply.json()
    assert list(found) == [str(tree / "a.txt"), str(tree / "link"), str(tree), str(tree / "pipe")]
    st = os.lstat(tree / "a.txt")
    info = found[str(tree / "a.txt")]
    assert info["type"] == "file" and info["size"] == 5 and info["mode"] == 4750
    assert info["owner"] == pwd.getpwuid(st.st_uid).pw_name
    assert info["modified_at"][:19] == time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(st.st_mtime))
    assert info["created_at"] <= time.strftime("%Y-%m-%dT%H:%M:%S.999Z", time.gmtime())
    assert [found[str(p)]["type"] for p in (tree / "link", tree, tree / "pipe")] == [
        "symlink", "directory", "other"]


def test_info_of_what_is_not_there(execd, tree):
    for path in (tree / "none", tree / "a.txt" / "x"):
        assert code(execd.request("GET", f"/files/info?{q(tree, path)}")) == (404, "FILE_NOT_FOUND")
    assert execd.request("GET", "/files/info").json() == {}
    assert code(execd.request("GET", "/files/info?path=")) == (400, "INVALID_REQUEST_BODY")
    assert code(execd.request("GET", "/files/info?path=%2")) == (400, "INVALID_REQUEST_BODY")
    assert code(execd.request("GET", "/files/info?path=a%00b")) == (400, "INVALID_REQUEST_BODY")
    assert code(execd.request("GET", f"/files/info?path=/{'x' * 5000}")) == (400, "INVALID_REQUEST_BODY")


def test_paths_are_expanded(start_execd, tree):
    execd = start_execd(env={"HOME": str(tree), "SUB": "sub"}, cwd=tree)
    for text in ("~/sub/b.py", "$SUB/b.py", "${SUB}/b.py", "sub/./deep/../b.py", "$HOME/$SUB/b.py"):
        found = execd.request("GET", f"/files/info?path={quote(text)}").json()
        assert found[text]["path"] == str(tree / "sub" / "b.py")
    home = pwd.getpwuid(0).pw_dir
    assert execd.request("GET", f"/files/info?path={quote('~root')}").json()["~root"]["path"] == home
    (tree / "$x").write_text("")
    assert execd.request("GET", f"/files/info?path={quote('$$x')}").status == 200
    for text in ("$NOT_SET/x", "~nobody-here/x", "$EXECD_ACCESS_TOKEN"):
        reply = execd.request("GET", f"/files/info?path={quote(text)}")
        assert code(reply) == (400, "INVALID_REQUEST_BODY"), reply


def test_a_working_directory_that_is_gone(start_execd, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    execd = start_execd(cwd=here)
    here.rmdir()
    reply = execd.request("GET", "/files/info?path=x")
    assert reply.status == 400 and "working directory is gone" in reply.json()["message"]
    assert execd.request("GET", "/files/info?path=/").status == 200


NAMES = [b"new\nline", b'quo"te', b"back\\slash", b"\xff\xfe.bin", "ü\u2028".encode(), b"\x01\x7f",
         b"a b+c&d", b"..x"]


def test_names_of_any_bytes(execd, tmp_path):
    folder = os.fsencode(tmp_path / "names")
    os.mkdir(folder)
    for name in NAMES:
        with open(os.path.join(folder, name), "wb") as f:
            f.write(name)
    listed = execd.request("GET", f"/directories/list?{q(folder)}")
    items = listed.json()
    assert len(items) == len(NAMES)
    assert len(listed.text.splitlines()) == 1
    # every one of them can be asked for, by its path or by what stands in for it
    got = set()
    for item in items:
        path = item.get("path_escaped") or quote(item["path"])
        reply = execd.request("GET", f"/files/download?path={path}")
        assert reply.status == 200
        got.add(reply.body)
        assert ("path_escaped" in item) == ("\ufffd" in item["path"])
    assert got == set(NAMES)
    assert len(execd.request("GET", f"/files/search?{q(folder)}").json()) == len(NAMES)
    assert execd.request("DELETE", f"/files?{q(*(os.path.join(folder, n) for n in NAMES))}").status == 200
    assert os.listdir(folder) == []


# -- delete -------------------------------------------------------------------

def test_delete_files(execd, tree):
    reply = execd.request("DELETE", f"/files?{q(tree / 'a.txt', tree / 'none', tree / 'link')}")
    assert (reply.status, reply.body, reply.headers["content-length"]) == (200, b"", "0")
    assert sorted(os.listdir(tree)) == ["pipe", "sub"]
    assert code(execd.request("DELETE", f"/files?{q(tree / 'sub')}")) == (500, "RUNTIME_ERROR")
    assert execd.request("DELETE", "/files").status == 200


def test_delete_directories(execd, tree, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x")
    os.symlink(outside, tree / "sub" / "out")
    reply = execd.request("DELETE", f"/directories?{q(tree / 'sub', tree / 'none', tree / 'link')}")
    assert (reply.status, reply.body) == (200, b"")
    assert sorted(os.listdir(tree)) == ["a.txt", "pipe"]
    assert (outside / "keep").exists()
    # a link to a directory is a link
    os.symlink(outside, tree / "out")
    assert execd.request("DELETE", f"/directories?{q(tree / 'out')}").status == 200
    assert (outside / "keep").exists() and not (tree / "out").is_symlink()
    assert code(execd.request("DELETE", "/directories?path=/")) == (400, "INVALID_REQUEST_BODY")
    assert code(execd.request("DELETE", "/directories?path=/tmp/..")) == (400, "INVALID_REQUEST_BODY")


def test_delete_a_tree_deeper_than_any_path(execd, quick):
    top = quick / "deep"
    top.mkdir()
    at = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("level-of-a-tree", dir_fd=at)
        below = os.open("level-of-a-tree", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)
    # readers do not go where no client could point
    listed = execd.request("GET", f"/directories/list?{q(top)}&depth=100000")
    assert listed.status == 200 and 200 < len(listed.json()) < 300
    before = execd.fd_count()
    assert execd.request("DELETE", f"/directories?{q(top)}").status == 200
    assert not top.exists()
    assert execd.fd_count() <= before + 1


# -- mv -----------------------------------------------------------------------

def test_move(execd, tree):
    pairs = [{"src": str(tree / "a.txt"), "dest": str(tree / "new" / "dir" / "z.txt")},
             {"src": str(tree / "sub"), "dest": str(tree / "sub2")}]
    reply = execd.request("POST", "/files/mv", pairs)
    assert (reply.status, reply.body) == (200, b"")
    assert (tree / "new/dir/z.txt").read_text() == "alpha" and (tree / "sub2/deep/c.txt").exists()
    (tree / "b").write_text("b")
    (tree / "c").write_text("c")
    for dest in (tree / "c", tree / "sub2", tree / "link", tree / "b"):
        reply = execd.request("POST", "/files/mv", [{"src": str(tree / "b"), "dest": str(dest)}])
        assert code(reply) == (500, "RUNTIME_ERROR"), reply
    assert (tree / "c").read_text() == "c"
    reply = execd.request("POST", "/files/mv", [{"src": str(tree / "x"), "dest": str(tree / "y")}])
    assert code(reply) == (404, "FILE_NOT_FOUND")
    reply = execd.request("POST", "/files/mv", [{"src": str(tree / "b"), "dest": str(tree / "c/d/e")}])
    assert code(reply) == (500, "RUNTIME_ERROR")
    reply = execd.request("POST", "/files/mv", [{"src": str(tree / "sub2"), "dest": str(tree / "sub2/in")}])
    assert code(reply) == (500, "RUNTIME_ERROR")


@pytest.mark.parametrize("body", [{}, [1], [{"src": "/a"}], [{"src": 1, "dest": "/b"}], [{"dest": "/b"}],
                                  b"", b"[", b"null"])
def test_move_bodies_that_are_none(execd, body):
    assert code(execd.request("POST", "/files/mv", body)) == (400, "INVALID_REQUEST_BODY")


@pytest.mark.skipif(not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == os.stat("/tmp").st_dev,
                    reason="needs a second file system")
def test_move_to_another_file_system(execd, tree):
    there = f"/dev/shm/sallyport-scene-{os.getpid()}"
    os.mkdir(there)
    try:
        os.chmod(tree / "a.txt", 0o640)
        os.utime(tree / "a.txt", (1e9, 1e9))
        reply = execd.request("POST", "/files/mv", [{"src": str(tree / "a.txt"), "dest": f"{there}/n/a"}])
        assert reply.status == 200, reply
        st = os.stat(f"{there}/n/a")
        assert (stat.S_IMODE(st.st_mode), st.st_mtime, st.st_size) == (0o640, 1e9, 5)
        assert not (tree / "a.txt").exists() and os.listdir(f"{there}/n") == ["a"]
        (tree / "a.txt").write_text("2")
        reply = execd.request("POST", "/files/mv", [{"src": str(tree / "a.txt"), "dest": f"{there}/n/a"}])
        assert code(reply) == (500, "RUNTIME_ERROR")
        reply = execd.request("POST", "/files/mv", [{"src": str(tree / "sub"), "dest": f"{there}/sub"}])
        assert code(reply) == (500, "RUNTIME_ERROR") and "another file system" in reply.json()["message"]
        assert (tree / "sub/b.py").exists() and os.listdir(there) == ["n"]
    finally:
        subprocess.run(["rm", "-rf", there], check=True)


# -- permissions --------------------------------------------------------------

def test_permissions(execd, tree):
    body = {str(tree / "a.txt"): {"mode": 600}, str(tree / "sub"): {"mode": 1777, "owner": "", "group": None}}
    reply = execd.request("POST", "/files/permissions", body)
    assert (reply.status, reply.body) == (200, b"")
    assert stat.S_IMODE(os.stat(tree / "a.txt").st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tree / "sub").st_mode) == 0o1777
    reply = execd.request("POST", "/files/permissions", {str(tree / "none"): {"mode": 600}})
    assert code(reply) == (404, "FILE_NOT_FOUND")


@ROOT_ONLY
def test_owners(execd, tree):
    user = pwd.getpwnam("daemon")
    body = {str(tree / "a.txt"): {"owner": "daemon", "group": str(user.pw_gid)}}
    assert execd.request("POST", "/files/permissions", body).status == 200
    st = os.stat(tree / "a.txt")
    assert (st.st_uid, st.st_gid) == (user.pw_uid, user.pw_gid)
    info = execd.request("GET", f"/files/info?{q(tree / 'a.txt')}").json()[str(tree / "a.txt")]
    assert info["owner"] == "daemon"
    os.chown(tree / "a.txt", 54321, 54322)
    info = execd.request("GET", f"/files/info?{q(tree / 'a.txt')}").json()[str(tree / "a.txt")]
    assert (info["owner"], info["group"]) == ("54321", "54322")


@pytest.mark.parametrize("bad", [{"mode": 800}, {"mode": -1}, {"mode": "644"}, {"mode": 77777}, {"mode": 6.5},
                                 {"owner": "nobody-here"}, {"group": "nobody-here"}, {"owner": 1}, 5])
def test_a_mistake_changes_nothing(execd, tree, bad):
    body = {str(tree / "a.txt"): {"mode": 600}, str(tree / "sub"): bad}
    for path in ("/files/permissions", "/directories"):
        assert code(execd.request("POST", path, body)) == (400, "INVALID_REQUEST_BODY")
    assert stat.S_IMODE(os.stat(tree / "a.txt").st_mode) == 0o644


# -- directories --------------------------------------------------------------

def test_make_directories(execd, tmp_path):
    body = {str(tmp_path / "x/y/z"): {"mode": 700}, str(tmp_path / "w"): {}}
    reply = execd.request("POST", "/directories", body)
    assert (reply.status, reply.body) == (200, b"")
    assert stat.S_IMODE(os.stat(tmp_path / "x/y/z").st_mode) == 0o700
    assert stat.S_IMODE(os.stat(tmp_path / "x/y").st_mode) == 0o755
    # one that is there is left as it is
    assert execd.request("POST", "/directories", {str(tmp_path / "x/y"): {"mode": 711}}).status == 200
    assert stat.S_IMODE(os.stat(tmp_path / "x/y").st_mode) == 0o755
    (tmp_path / "file").write_text("")
    for path in ("file", "file/below"):
        reply = execd.request("POST", "/directories", {str(tmp_path / path): {"mode": 755}})
        assert code(reply) == (500, "RUNTIME_ERROR") and "no directory" in reply.json()["message"]


@ROOT_ONLY
def test_new_directories_have_the_owner(execd, tmp_path):
    os.symlink("/etc", tmp_path / "link")
    body = {str(tmp_path / "p/q"): {"mode": 750, "owner": "daemon"}}
    assert execd.request("POST", "/directories", body).status == 200
    uid = pwd.getpwnam("daemon").pw_uid
    assert os.stat(tmp_path / "p").st_uid == uid and os.stat(tmp_path / "p/q").st_uid == uid
    assert os.stat(tmp_path).st_uid == 0


def test_list(execd, tree):
    def names(depth):
        return [item["path"][len(str(tree)) + 1:] for item in
                execd.request("GET", f"/directories/list?{q(tree)}{depth}").json()]

    assert names("") == ["a.txt", "link", "pipe", "sub"]
    assert names("&depth=0") == []
    assert names("&depth=2") == ["a.txt", "link", "pipe", "sub", "sub/b.py", "sub/deep"]
    assert names("&depth=99999999") == names("&depth=3") == [
        "a.txt", "link", "pipe", "sub", "sub/b.py", "sub/deep", "sub/deep/c.txt"]
    os.symlink("sub", tree / "dirlink")
    assert code(execd.request("GET", f"/directories/list?{q(tree / 'dirlink')}")) == (400, "INVALID_REQUEST_BODY")
    assert code(execd.request("GET", f"/directories/list?{q(tree / 'dirlink')}&depth=0")) == (
        400, "INVALID_REQUEST_BODY")
    assert names("&depth=2").count("dirlink/b.py") == 0
    assert code(execd.request("GET", f"/directories/list?{q(tree / 'a.txt')}")) == (400, "INVALID_REQUEST_BODY")
    assert code(execd.request("GET", f"/directories/list?{q(tree / 'no')}")) == (404, "FILE_NOT_FOUND")
    assert code(execd.request("GET", "/directories/list")) == (400, "MISSING_QUERY")
    for depth in ("-1", "x", "1.5"):
        assert code(execd.request("GET", f"/directories/list?{q(tree)}&depth={depth}")) == (
            400, "INVALID_REQUEST_BODY")
    empty = tree / "empty"
    empty.mkdir()
    reply = execd.request("GET", f"/directories/list?{q(empty)}")
    assert reply.body == b"[]" and reply.headers["content-length"] == "2"


# -- search -------------------------------------------------------------------

def test_search(execd, tree):
    def names(pattern):
        reply = execd.request("GET", f"/files/search?{q(tree)}&pattern={quote(pattern)}")
        assert reply.status == 200, reply
        return [item["path"][len(str(tree)) + 1:] for item in reply.json()]

    every = ["a.txt", "link", "pipe", "sub/b.py", "sub/deep/c.txt"]
    assert names("**") == names("") == names("*") == every
    assert names("*.txt") == names("**/*.txt") == names("[a-c].t?t") == ["a.txt", "sub/deep/c.txt"]
    assert names("*.{py,js}") == ["sub/b.py"]
    assert names("sub") == names("sub/*") == []
    for bad in ("[", "{a", "a\\"):
        assert code(execd.request("GET", f"/files/search?{q(tree)}&pattern={quote(bad)}")) == (
            400, "INVALID_REQUEST_BODY")
    assert code(execd.request("GET", "/files/search")) == (400, "MISSING_QUERY")
    assert code(execd.request("GET", f"/files/search?{q(tree / 'no')}")) == (404, "FILE_NOT_FOUND")
    assert [i["path"] for i in execd.request("GET", f"/files/search?{q(tree / 'a.txt')}").json()] == [
        str(tree / "a.txt")]
    # the root may be a link, what is below is not followed
    os.symlink(tree, tree.parent / "to-tree")
    os.symlink(tree, tree / "sub" / "loop")
    assert len(execd.request("GET", f"/files/search?{q(tree.parent / 'to-tree')}").json()) == len(every) + 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_search_goes_past_what_opens_and_cannot_be_read(start_execd, tmp_path):
    """As the whole of a container is searched by a daemon that may not look
    into others: /proc/PID/map_files opens and lists nothing."""
    other = start_execd()  # nobody may look into it
    execd = start_execd(prefix=("setpriv", "--bounding-set", "-sys_ptrace,-sys_admin,"
                                "-checkpoint_restore,-perfmon"))
    maps = f"/proc/{other.pid}/map_files"
    reply = execd.request("GET", f"/directories/list?{q(maps)}")
    assert (reply.status, "Permission denied" in reply.text) == (500, True), reply
    found = execd.request("GET", f"/files/search?{q(f'/proc/{other.pid}')}&pattern=stat*")
    assert found.status == 200, found
    assert f"/proc/{other.pid}/status" in [i["path"] for i in found.json()]
    (tmp_path / "needle-a5").write_text("")
    found = execd.request("GET", "/files/search?path=/&pattern=needle-a5")
    assert found.status == 200, found
    assert str(tmp_path / "needle-a5") in [i["path"] for i in found.json()]


# -- replace ------------------------------------------------------------------

def test_replace(execd, tree):
    path = tree / "sub" / "b.py"
    os.chmod(path, 0o751)
    reply = execd.request("POST", "/files/replace?verbose=true",
                          {str(path): {"old": "p", "new": "pp"}, str(tree / "a.txt"): {"old": "zz", "new": "y"}})
    assert reply.json() == {str(path): {"replacedCount": 1}, str(tree / "a.txt"): {"replacedCount": 0}}
    assert path.read_text() == "pprint()" and stat.S_IMODE(os.stat(path).st_mode) == 0o751
    reply = execd.request("POST", "/files/replace", {str(path): {"old": "p", "new": ""}})
    assert (reply.status, reply.body, reply.headers["content-length"]) == (200, b"", "0")
    assert path.read_text() == "rint()"
    # who says false outright, as Java's SDK does, reads an object
    reply = execd.request("POST", "/files/replace?verbose=false", {str(path): {"old": "r", "new": "R"}})
    assert reply.json() == {} and path.read_text() == "Rint()"
    # through a link: the link stays
    reply = execd.request("POST", "/files/replace", {str(tree / "link"): {"old": "alpha", "new": "beta"}})
    assert reply.status == 200
    assert (tree / "link").is_symlink() and (tree / "a.txt").read_text() == "beta"
    # another name of the file sees it too
    os.link(tree / "a.txt", tree / "hard")
    assert execd.request("POST", "/files/replace", {str(tree / "hard"): {"old": "beta", "new": "be"}}).status == 200
    assert (tree / "a.txt").read_text() == "be"
    # nothing found: not even its time changes
    before = os.stat(path)
    assert execd.request("POST", "/files/replace", {str(path): {"old": "none", "new": "x"}}).status == 200
    assert os.stat(path) == before
    assert not [n for n in os.listdir(tree) + os.listdir(tree / "sub") if n.startswith(".")]


def test_replace_errors(execd, tree):
    path = str(tree / "a.txt")
    for bad in ({"old": "", "new": "x"}, {"new": "x"}, {"old": "a"}, {"old": 1, "new": "x"}, "x"):
        reply = execd.request("POST", "/files/replace", {str(tree / "sub/b.py"): {"old": "p", "new": "q"}, path: bad})
        assert code(reply) == (400, "INVALID_REQUEST_BODY")
    assert (tree / "sub/b.py").read_text() == "print()"
    reply = execd.request("POST", "/files/replace", {str(tree / "no"): {"old": "a", "new": "b"}})
    assert code(reply) == (404, "FILE_NOT_FOUND")
    for other in ("sub", "pipe"):
        reply = execd.request("POST", "/files/replace", {str(tree / other): {"old": "a", "new": "b"}})
        assert code(reply) == (400, "INVALID_FILE")
    assert code(execd.request("POST", "/files/replace", b"[]")) == (400, "INVALID_REQUEST_BODY")


def test_replace_across_pieces(execd, tmp_path):
    """Finds that lie on the borders of what is read at once; and overlaps."""
    path, needle = tmp_path / "big", b"<needle>"
    content = bytearray(os.urandom(3 << 20).replace(b"<", b"_"))
    for border in range(256 << 10, len(content), 256 << 10):
        for shift in range(0, 9):
            at = border - shift + shift * 4096
            if at + 8 < len(content):
                content[at:at + 8] = needle
    path.write_bytes(content)
    want, count = bytes(content).replace(needle, b"[longer needle]"), bytes(content).count(needle)
    reply = execd.request("POST", "/files/replace?verbose=true",
                          {str(path): {"old": "<needle>", "new": "[longer needle]"}})
    assert reply.json()[str(path)]["replacedCount"] == count > 80
    assert path.read_bytes() == want
    path.write_bytes(b"a" * 1000001)
    reply = execd.request("POST", "/files/replace?verbose=true", {str(path): {"old": "aaa", "new": "ab"}})
    assert reply.json()[str(path)]["replacedCount"] == 333333
    assert path.read_bytes() == b"ab" * 333333 + b"aa"


def test_replace_in_a_large_file_costs_no_memory(execd, tmp_path):
    path = tmp_path / "large"
    with open(path, "wb") as f:
        for _ in range(128):
            f.write(b"x" * (1 << 20) + b"here")
    before = execd.rss_kib()
    with Pinger(execd) as ping:
        reply = execd.request("POST", "/files/replace?verbose=true", {str(path): {"old": "here", "new": "there"}})
    assert reply.json()[str(path)]["replacedCount"] == 128
    assert path.stat().st_size == 128 * ((1 << 20) + 5)
    assert_flat(execd.rss_kib() - before, 8 * 1024)
    assert ping.longest < PATIENCE


# -- who may not --------------------------------------------------------------

def demote():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


@ROOT_ONLY
def test_what_may_not_be_written(start_execd, tmp_path):
    os.chmod(tmp_path, 0o755)
    for up in tmp_path.parents:
        if up != up.parent and not os.stat(up).st_mode & 1:
            os.chmod(up, 0o711)
    shut = tmp_path / "shut"
    shut.mkdir()
    (shut / "file").write_text("old")
    (shut / "secret").write_text("old")
    os.chmod(shut / "secret", 0o600)
    (shut / "in").mkdir()
    execd = start_execd(preexec=demote, env={"TMPDIR": "/tmp"})
    path = str(shut / "file")
    asked = [
        ("POST", "/files/permissions", {path: {"mode": 600}}),
        ("POST", "/files/mv", [{"src": path, "dest": str(shut / "x")}]),
        ("POST", "/files/replace", {path: {"old": "old", "new": "new"}}),
        ("POST", "/directories", {str(shut / "d"): {"mode": 755}}),
        ("DELETE", f"/files?{q(path)}", None),
        ("DELETE", f"/directories?{q(shut / 'in')}", None),
        ("GET", f"/files/download?{q(shut / 'secret')}", None),
    ]
    for method, route, body in asked:
        reply = execd.request(method, route, body)
        assert code(reply) == (500, "RUNTIME_ERROR"), (route, reply)
        assert "denied" in reply.json()["message"] or "permitted" in reply.json()["message"]
    for name in ("new", "file", "in/new"):
        reply = upload(execd, pair(shut / name, b"x"))
        assert code(reply) == (500, "RUNTIME_ERROR") and "denied" in reply.json()["message"]
    assert sorted(os.listdir(shut)) == ["file", "in", "secret"] and (shut / "file").read_text() == "old"
    # what cannot be read is left out of a search
    os.chmod(shut / "in", 0o700)
    found = execd.request("GET", f"/files/search?{q(shut)}")
    assert [i["path"] for i in found.json()] == [path, str(shut / "secret")]
    assert code(execd.request("GET", f"/directories/list?{q(shut / 'in')}")) == (500, "RUNTIME_ERROR")


@ROOT_ONLY
def test_a_writable_file_in_a_directory_that_is_not(start_execd, tmp_path):
    """No new file can be put beside it: its content is written into it."""
    for up in (tmp_path, *tmp_path.parents):
        if up != up.parent and not os.stat(up).st_mode & 1:
            os.chmod(up, 0o711)
    (tmp_path / "d").mkdir()
    path = tmp_path / "d" / "file"
    path.write_text("old text that is longer")
    os.chmod(path, 0o666)
    inode = path.stat().st_ino
    execd = start_execd(preexec=demote, env={"TMPDIR": "/tmp"})
    reply = execd.request("POST", "/files/replace", {str(path): {"old": "old text that is longer", "new": "new"}})
    assert reply.status == 200, reply
    assert path.read_text() == "new"
    assert upload(execd, pair(path, b"uploaded")).status == 200
    assert path.read_text() == "uploaded"
    st = path.stat()
    assert (st.st_ino, st.st_uid, stat.S_IMODE(st.st_mode)) == (inode, os.getuid(), 0o666)


# -- large trees --------------------------------------------------------------

def test_a_hundred_thousand_files_hold_up_nobody(execd, quick):
    folder = quick / "many"
    many_files(folder, 100_000)
    idle = execd.rss_kib()
    with Pinger(execd) as ping:
        listed = execd.request("GET", f"/directories/list?{q(folder)}").json()
        found = execd.request("GET", f"/files/search?{q(folder)}&pattern=*9.txt").json()
        grown = execd.rss_kib() - idle
        assert execd.request("DELETE", f"/directories?{q(folder)}").status == 200
    assert [i["path"] for i in listed] == [f"{folder}/f{i:06d}.txt" for i in range(100_000)]
    assert len(found) == 10_000
    assert not folder.exists()
    print(f"longest ping {ping.longest * 1000:.1f} ms of {ping.count}, grown by {grown} KiB")
    assert ping.longest < PATIENCE and ping.count > 20
    assert_flat(grown, 24 * 1024)


def test_a_listing_that_nobody_reads_holds_up_nobody(execd, quick):
    folder = quick / "many"
    many_files(folder, 30_000)
    stuck = []
    for _ in range(20):
        connection = execd.connect(rcvbuf=4096)
        connection.send("GET", f"/files/search?{q(folder)}")
        stuck.append(connection)
    time.sleep(0.3)
    start = time.monotonic()
    assert len(execd.request("GET", f"/files/search?{q(folder)}&pattern=f00001?.txt").json()) == 10
    assert time.monotonic() - start < 30
    before = execd.fd_count()
    # one of them reads on and gets everything
    status, headers = stuck[0].head()
    body = stuck[0].body("GET", status, headers)
    assert status == 200 and len(json.loads(body)) == 30_000
    for connection in stuck:
        connection.close()
    end = time.monotonic() + 30
    while execd.fd_count() > before - 30 and time.monotonic() < end:
        time.sleep(0.05)
    assert execd.fd_count() <= before - 30, "walks of clients that left are open"


def test_ends_while_it_works(start_execd, quick):
    folder = quick / "many"
    many_files(folder, 20_000)
    execd = start_execd()
    connections = []
    for _ in range(8):
        connection = execd.connect(rcvbuf=4096)
        connection.send("GET", f"/directories/list?{q(folder)}")
        connections.append(connection)
    time.sleep(0.05)
    start = time.monotonic()
    assert execd.stop() == 0
    assert time.monotonic() - start < 5
