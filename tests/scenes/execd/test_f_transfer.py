# SPDX-License-Identifier: Apache-2.0
"""test_f_transfer.py - uploads and downloads, whole, cut, slow, large, and on full disks"""
import os
import pwd
import re
import socket
import stat
import subprocess
import threading
import time
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from execd import wait_for
from form import CLOSING, PATIENCE, SANITIZED, TYPE, Pinger, Slow, assert_flat, metadata, pair, part, upload

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def code(reply):
    return reply.status, reply.json()["code"]


def get(execd, path, more="", **headers):
    return execd.request("GET", f"/files/download?path={quote(os.fsencode(path))}{more}",
                         headers={k.replace("_", "-"): v for k, v in headers.items()})


def leftovers(folder):
    return [n for n in os.listdir(folder) if "sallyport" in n]


# -- uploads ------------------------------------------------------------------

def test_one_file(execd, tmp_path):
    path = tmp_path / "new" / "dir" / "f.bin"
    reply = upload(execd, pair(path, b"\r\n--x\r\n" * 100 + b"\0\xff", mode=640))
    assert (reply.status, reply.body, reply.headers["content-length"]) == (200, b"", "0")
    assert path.read_bytes() == b"\r\n--x\r\n" * 100 + b"\0\xff"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(path.parent) == ["f.bin"]


def test_many_pairs_in_any_shape(execd, tmp_path):
    pairs = [(tmp_path / f"d{i % 7}" / f"f{i}", os.urandom(i * 37)) for i in range(300)]
    assert upload(execd, *(pair(p, b) for p, b in pairs)).status == 200
    assert all(p.read_bytes() == b for p, b in pairs)
    # all metadata first, parts of other names between, a preamble
    reply = upload(execd, b"preamble\r\n", metadata(tmp_path / "x"), metadata(tmp_path / "y"),
                   part("other", b"ignored"), part("field", b"ignored", None),
                   part("file", b"for x"), part("file", b"for y"))
    assert reply.status == 200, reply
    assert (tmp_path / "x").read_bytes() == b"for x" and (tmp_path / "y").read_bytes() == b"for y"


def test_an_upload_as_it_is_produced(execd, tmp_path):
    """JavaScript sends a stream: chunks of any size, with pauses."""
    data = os.urandom(200_000)
    whole = pair(tmp_path / "s", data) + CLOSING
    slow = Slow(execd)
    at = 0
    for size in (1, 2, 3, 5, 70, 10_000, 1, 50_000, 100_000, len(whole)):
        slow.send(whole[at:at + size])
        at += size
        time.sleep(0.01)
        if at >= len(whole):
            break
    assert slow.end().status == 200
    assert (tmp_path / "s").read_bytes() == data


def test_expect_continue(execd, tmp_path):
    body = pair(tmp_path / "f", b"x") + CLOSING
    connection = execd.connect()
    connection.sock.sendall(
        (f"POST /files/upload HTTP/1.1\r\nHost: x\r\nContent-Type: {TYPE['Content-Type']}\r\n"
         f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n").encode())
    assert connection.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue"
    connection.sock.sendall(body)
    assert connection.head()[0] == 200


def test_an_existing_file_keeps_what_it_has(execd, tmp_path):
    path = tmp_path / "f"
    path.write_text("old")
    os.chmod(path, 0o751)
    if os.geteuid() == 0:
        os.chown(path, 1234, 2345)
    before = path.stat()
    assert upload(execd, pair(path, b"new")).status == 200
    now = path.stat()
    assert path.read_text() == "new"
    assert (now.st_mode, now.st_uid, now.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert upload(execd, pair(path, b"new", mode=600)).status == 200
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # a new one: what the umask leaves of everything
    assert upload(execd, pair(tmp_path / "n", b"")).status == 200
    assert stat.S_IMODE((tmp_path / "n").stat().st_mode) == 0o777 & ~umask_of(execd)


def umask_of(execd):
    text = Path(f"/proc/{execd.pid}/status").read_text()
    return int(re.search(r"Umask:\s*(\d+)", text).group(1), 8)


@ROOT_ONLY
def test_owner_and_group(execd, tmp_path):
    path = tmp_path / "d" / "f"
    assert upload(execd, pair(path, b"x", owner="daemon", group="12", mode=4711)).status == 200
    st = path.stat()
    assert (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)) == (pwd.getpwnam("daemon").pw_uid, 12, 0o4711)
    assert path.parent.stat().st_uid == st.st_uid
    assert code(upload(execd, pair(tmp_path / "g", b"x", owner="nobody-here"))) == (400, "INVALID_FILE_METADATA")
    assert not (tmp_path / "g").exists()


def test_links(execd, tmp_path):
    (tmp_path / "real").write_text("old")
    os.symlink("real", tmp_path / "link")
    os.symlink("later", tmp_path / "dangling")
    os.link(tmp_path / "real", tmp_path / "hard")
    assert upload(execd, pair(tmp_path / "link", b"1"), pair(tmp_path / "dangling", b"2")).status == 200
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "1"
    assert (tmp_path / "hard").read_text() == "1", "another name of the file lost it"
    assert (tmp_path / "later").read_text() == "2"
    os.symlink("loop", tmp_path / "loop")
    assert code(upload(execd, pair(tmp_path / "loop", b"3"))) == (500, "RUNTIME_ERROR")


BAD = [
    ([part("file", b"x")], "INVALID_FILE"),
    ([metadata("/tmp/never")], "INVALID_FILE_CONTENT"),
    ([], "INVALID_FILE_METADATA"),
    ([metadata("/tmp/never"), metadata("/tmp/never2"), part("file", b"x")], "INVALID_FILE"),
    ([metadata("/tmp/never"), part("file", b"x"), part("file", b"y")], "INVALID_FILE"),
    ([part("metadata", b'{"path":"/tmp/never"}', None), part("file", b"x")], "INVALID_FILE_METADATA"),
    ([part("metadata", b'{"path":"/tmp/never"}', ""), part("file", b"x")], "INVALID_FILE_METADATA"),
    ([metadata("/tmp/never"), part("file", b"x", None)], "INVALID_FILE_CONTENT"),
    ([part("metadata", b"{"), part("file", b"x")], "INVALID_FILE_METADATA"),
    ([part("metadata", b"[]"), part("file", b"x")], "INVALID_FILE_METADATA"),
    ([part("metadata", b"{}"), part("file", b"x")], "INVALID_FILE_METADATA"),
    ([part("metadata", b'{"path":1}'), part("file", b"x")], "INVALID_FILE_METADATA"),
    ([part("metadata", b'{"path":"/tmp/never","mode":9}'), part("file", b"x")], "INVALID_FILE_METADATA"),
    ([part("metadata", b'{"path":"/tmp/never"' + b" " * 70000 + b"}"), part("file", b"x")], "INVALID_FILE_METADATA"),
    ([b"------b0undary\r\nno colon\r\n\r\n"], "INVALID_FILE"),
]


@pytest.mark.parametrize("parts, want", BAD)
def test_forms_that_are_none(execd, parts, want):
    assert code(upload(execd, *parts)) == (400, want)
    assert not os.path.exists("/tmp/never")
    assert execd.alive()


def test_bodies_that_are_no_form(execd, tmp_path):
    for kind in ("application/json", "multipart/form-data", "multipart/form-data; boundary="):
        reply = execd.request("POST", "/files/upload", b"x", {"Content-Type": kind})
        assert code(reply) == (400, "INVALID_FILE")
    reply = execd.request("POST", "/files/upload", pair(tmp_path / "f", b"x"), TYPE)  # never closed
    assert code(reply) == (400, "INVALID_FILE")
    assert os.listdir(tmp_path) == [execd.log_path.name]


def test_targets_that_are_none(execd, tmp_path):
    (tmp_path / "dir").mkdir()
    (tmp_path / "file").write_text("")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "sock"))
    for name in ("dir", "file/x", "sock", "x" * 300):
        reply = upload(execd, pair(tmp_path / name, b"x"))
        assert code(reply) == (500, "RUNTIME_ERROR"), (name, reply)
    assert code(upload(execd, pair("/proc/no/such", b"x"))) == (500, "RUNTIME_ERROR")


def test_a_mistake_late_in_a_long_body_is_still_told(execd, tmp_path):
    """The rest is read, so that the client can stop writing and see why."""
    reply = upload(execd, part("metadata", b"nonsense"), part("file", b"x" * (40 << 20)))
    assert code(reply) == (400, "INVALID_FILE_METADATA")


def test_a_client_that_is_cut_off_loses_nothing(execd, tmp_path):
    path = tmp_path / "f"
    path.write_text("old")
    fds = execd.fd_count()
    for length in (None, 10 << 20):
        slow = Slow(execd, length)
        slow.send(pair(path, b"n" * 3_000_000)[:2_500_000])
        time.sleep(0.1)
        assert path.read_text() == "old"
        slow.cut()
    wait_for(lambda: execd.fd_count() <= fds, 30, why="an upload that was cut is still open")
    assert path.read_text() == "old" and leftovers(tmp_path) == []


def test_a_daemon_that_is_killed_loses_nothing(execd, tmp_path):
    path = tmp_path / "f"
    path.write_text("old")
    slow = Slow(execd)
    slow.send(pair(path, b"whole") + pair(tmp_path / "g", b"whole"))
    slow.send(pair(path, b"n" * 3_000_000)[:2_500_000])
    time.sleep(0.1)
    execd.process.kill()
    execd.process.wait()
    assert path.read_text() == "old"
    if subprocess.run(["stat", "-f", "-c", "%T", str(tmp_path)], capture_output=True,
                      text=True).stdout.strip() in ("ext2/ext3", "tmpfs", "xfs", "btrfs"):
        assert leftovers(tmp_path) == []


def test_a_directory_that_vanishes(execd, tmp_path):
    folder = tmp_path / "d"
    slow = Slow(execd)
    slow.send(pair(folder / "f", b"x" * 1_000_000)[:900_000])
    wait_for(folder.is_dir)
    time.sleep(0.1)
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    slow.send(b"x" * 100 + b"\r\n" + CLOSING)
    assert code(slow.end()) == (500, "RUNTIME_ERROR")
    assert not folder.exists() and execd.alive()


def test_fifos_and_devices(execd, tmp_path):
    assert upload(execd, pair("/dev/null", b"x" * 100_000)).status == 200
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reply = upload(execd, pair(fifo, b"x"))
    assert code(reply) == (500, "RUNTIME_ERROR") and "nobody reads" in reply.json()["message"]
    got = []
    data = os.urandom(1_500_000)

    def read():
        with open(fifo, "rb") as f:
            while True:
                piece = f.read(10_000)
                if not piece:
                    return
                got.append(piece)
                time.sleep(0.001)

    reader = threading.Thread(target=read)
    reader.start()
    end = time.monotonic() + 20
    while True:
        reply = upload(execd, pair(fifo, data))
        if reply.status == 200 or time.monotonic() > end:
            break
        time.sleep(0.01)  # the reader has not opened it yet
    reader.join()
    assert reply.status == 200 and b"".join(got) == data
    assert stat.S_ISFIFO(os.stat(fifo).st_mode)


# -- in a mount namespace of its own ------------------------------------------

def can_mount():
    return subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"],
                          capture_output=True).returncode == 0


MOUNTS = pytest.mark.skipif(not can_mount(), reason="may not mount")


def inside(execd, path):
    """The path as the daemon sees it."""
    return Path(f"/proc/{execd.pid}/root{path}")


@MOUNTS
def test_a_full_disk(start_execd, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    execd = start_execd(prefix=["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size=4m none {small} && "
                                'exec "$@"', "sh"])
    at = inside(execd, small)
    (at / "f").write_text("old content")
    reply = upload(execd, pair(small / "f", b"n" * (20 << 20)))
    assert code(reply) == (500, "RUNTIME_ERROR") and "disk is full" in reply.json()["message"]
    assert (at / "f").read_text() == "old content" and os.listdir(at) == ["f"]
    # a second file that does not fit leaves the first unwritten too: all or an error before any
    reply = upload(execd, pair(small / "a", b"a"), pair(small / "b", b"n" * (20 << 20)))
    assert reply.status == 500 and os.listdir(at) == ["f"]
    # into a file with a second name, which cannot be replaced by a new one
    os.link(at / "f", at / "f2")
    (at / "fill").write_bytes(b"x" * (2 << 20))
    reply = upload(execd, pair(small / "f", b"n" * (1500 << 10)))
    assert reply.status == 500 and "disk is full" in reply.json()["message"]
    assert (at / "f").read_text() == "old content" and sorted(os.listdir(at)) == ["f", "f2", "fill"]
    reply = execd.request("POST", "/files/replace",
                          {str(small / "fill"): {"old": "x" * 1024, "new": "x" * 4096}})
    assert reply.status == 500 and "disk is full" in reply.json()["message"]
    assert (at / "fill").stat().st_size == 2 << 20
    assert execd.request("DELETE", f"/files?path={small}/fill").status == 200
    assert upload(execd, pair(small / "f", b"fits")).status == 200
    assert (at / "f2").read_text() == "fits"


@MOUNTS
def test_a_file_that_is_mounted(start_execd, tmp_path):
    """/etc/hosts of a container is one: nothing can be renamed over it."""
    (tmp_path / "outside").write_text("from outside, and longer than what comes")
    (tmp_path / "hosts").write_text("")
    execd = start_execd(prefix=["unshare", "-m", "sh", "-c",
                                f"mount --bind {tmp_path}/outside {tmp_path}/hosts && " 'exec "$@"', "sh"])
    assert upload(execd, pair(tmp_path / "hosts", b"new", mode=640)).status == 200
    assert (tmp_path / "outside").read_text() == "new" and (tmp_path / "hosts").read_text() == ""
    assert stat.S_IMODE((tmp_path / "outside").stat().st_mode) == 0o640
    reply = execd.request("POST", "/files/replace", {str(tmp_path / "hosts"): {"old": "new", "new": "n" * 9}})
    assert reply.status == 200 and (tmp_path / "outside").read_text() == "n" * 9
    reply = execd.request("DELETE", f"/files?path={tmp_path}/hosts")
    assert code(reply) == (500, "RUNTIME_ERROR")
    assert leftovers(tmp_path) == []


@MOUNTS
@pytest.mark.skipif(SANITIZED, reason="sanitizers cannot do without /proc")
def test_without_proc(start_execd, tmp_path):
    """A file without a name could not be given one: it has a hidden name from the beginning."""
    execd = start_execd(prefix=["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"])
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "f").write_text("old")
    os.chmod(folder / "f", 0o604)
    slow = Slow(execd)
    slow.send(pair(folder / "f", b"n" * 900_000)[:800_000])
    hidden = wait_for(lambda: leftovers(folder))
    assert hidden[0].startswith(".") and stat.S_IMODE((folder / hidden[0]).stat().st_mode) == 0o600
    slow.cut()
    wait_for(lambda: not leftovers(folder), why="what was cut left something behind")
    assert (folder / "f").read_text() == "old"
    assert upload(execd, pair(folder / "f", b"new"), pair(folder / "g", b"g", mode=640)).status == 200
    assert (folder / "f").read_text() == "new" and sorted(os.listdir(folder)) == ["f", "g"]
    assert [stat.S_IMODE((folder / n).stat().st_mode) for n in "fg"] == [0o604, 0o640]


# -- downloads ----------------------------------------------------------------

def test_download(execd, tmp_path):
    path = tmp_path / "f.bin"
    data = os.urandom(700_001)
    path.write_bytes(data)
    reply = get(execd, path)
    assert reply.status == 200 and reply.body == data
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["content-length"] == str(len(data))
    assert reply.headers["content-disposition"] == 'attachment; filename="f.bin"'
    assert reply.headers["accept-ranges"] == "bytes"
    connection = execd.connect()
    head = connection.request("HEAD", f"/files/download?path={path}")
    assert head.headers["content-length"] == str(len(data))
    assert connection.request("GET", f"/files/download?path={path}").body == data
    path.write_bytes(b"")
    reply = get(execd, path)
    assert (reply.status, reply.body, reply.headers["content-length"]) == (200, b"", "0")
    assert get(execd, path, Range="bytes=0-").status == 416


def test_download_errors(execd, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    assert code(get(execd, tmp_path / "none")) == (404, "FILE_NOT_FOUND")
    assert code(get(execd, tmp_path)) == (400, "INVALID_FILE")
    assert code(get(execd, tmp_path / "fifo")) == (400, "INVALID_FILE")
    assert code(get(execd, "/dev/zero")) == (400, "INVALID_FILE")
    assert code(execd.request("GET", "/files/download")) == (400, "MISSING_QUERY")
    assert code(execd.request("GET", "/files/download?path=")) == (400, "MISSING_QUERY")


@pytest.mark.parametrize("text, want", [
    ("bytes=0-0", (0, 0)), ("bytes=10-19", (10, 19)), ("bytes=299990-", (299990, 299999)),
    ("bytes=-5", (299995, 299999)), ("bytes=5-99999999", (5, 299999)), ("bytes=1-2,5-6", (1, 2)),
    ("bytes=0-299999", (0, 299999)), ("bytes=100000-299999", (100000, 299999))])
def test_ranges(execd, tmp_path, text, want):
    data = bytes(range(250)) * 1200
    (tmp_path / "f").write_bytes(data)
    reply = get(execd, tmp_path / "f", Range=text)
    first, last = want
    assert reply.status == 206 and reply.body == data[first:last + 1]
    assert reply.headers["content-range"] == f"bytes {first}-{last}/300000"
    assert reply.headers["content-length"] == str(last - first + 1)


def test_ranges_that_are_none(execd, tmp_path):
    (tmp_path / "f").write_bytes(b"0123456789")
    for text in ("bytes=10-", "bytes=5-4", "bytes=x", "bytes=-0", "bytes="):
        reply = get(execd, tmp_path / "f", Range=text)
        assert reply.status == 416 and reply.headers["content-range"] == "bytes */10"
        assert reply.json()["message"]
    assert get(execd, tmp_path / "f", Range="lines=1-2").status == 200


def test_lines(execd, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"one\r\ntwo\n\nfour\nlast without end")

    def window(more):
        reply = get(execd, path, more)
        assert reply.status == 200, reply
        assert reply.headers["content-type"].startswith("text/plain")
        return reply.body

    assert window("&offset=1&limit=1") == b"one\r\n"
    assert window("&offset=2&limit=2") == b"two\n\n"
    assert window("&offset=4&limit=100") == b"four\nlast without end"
    assert window("&offset=5&limit=1") == b"last without end"
    assert window("&offset=6&limit=1") == b""
    assert window("&offset=3") == b"\nfour\nlast without end"
    assert window("&limit=2") == b"one\r\ntwo\n"
    for more in ("&offset=0&limit=1", "&offset=1&limit=0", "&offset=-1&limit=1", "&offset=x&limit=1",
                 "&offset=1&limit=1.5"):
        assert code(get(execd, path, more)) == (400, "INVALID_REQUEST_BODY")
    assert code(get(execd, path, "&offset=1&limit=1", Range="bytes=0-1")) == (400, "INVALID_REQUEST_BODY")
    assert get(execd, path, "&offset=&limit=").headers["content-type"] == "application/octet-stream"


def test_lines_of_a_large_file(execd, tmp_path):
    path = tmp_path / "f"
    with open(path, "wb") as f:
        for i in range(300_000):
            f.write(b"line %d %s\n" % (i + 1, b"x" * (i % 90)))
    whole = path.read_bytes().split(b"\n")
    reply = get(execd, path, "&offset=150000&limit=100000")
    assert reply.body == b"\n".join(whole[149_999:249_999]) + b"\n"
    assert get(execd, path, "&offset=299999&limit=9").body == b"\n".join(whole[299_998:])
    path.write_bytes(b"no line end" * 100_000)
    assert get(execd, path, "&offset=1&limit=1").body == b"no line end" * 100_000
    assert get(execd, path, "&offset=2&limit=1").body == b""


@pytest.mark.parametrize("name", ["plain.txt", "sp ace.txt", 'qu"ote', "back\\slash", "ünïcode.txt", "日本" * 40,
                                  "100%.txt", "new\nline", b"\xff\xfe", "semi;colon", "'apos"])
def test_names_in_heads(execd, tmp_path, name):
    path = os.path.join(os.fsencode(tmp_path), os.fsencode(name))
    with open(path, "wb") as f:
        f.write(b"x")
    reply = get(execd, path)
    assert reply.status == 200 and reply.body == b"x"
    value = reply.headers["content-disposition"]
    plain = re.match(r'attachment; filename="([ !#-\[\]-~]*)"', value)
    assert plain and value.isascii(), value
    exact = re.search(r"filename\*=UTF-8''([A-Za-z0-9%._~-]+)$", value)
    if exact:
        assert unquote(exact.group(1)) == name
    else:
        assert plain.group(1) == name or isinstance(name, bytes)


def test_files_of_the_kernel(execd):
    """They say a size of 0, or a page, and are as long as they read."""
    for path in ("/proc/self/mountinfo", "/sys/kernel/mm/transparent_hugepage/enabled"):
        if os.path.exists(path):
            reply = get(execd, path)
            assert reply.status == 200 and reply.body and reply.body.endswith(b"\n")
    if os.access("/proc/kallsyms", os.R_OK) and len(Path("/proc/kallsyms").read_bytes()) > 400_000:
        assert abs(len(get(execd, "/proc/kallsyms").body) - len(Path("/proc/kallsyms").read_bytes())) < 100_000


def test_a_file_that_grows_or_shrinks(execd, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"a" * (30 << 20))
    connection = execd.connect(rcvbuf=16384)
    connection.send("GET", f"/files/download?path={path}")
    status, headers = connection.head()
    assert headers["content-length"] == str(30 << 20)
    with open(path, "ab") as f:
        f.write(b"b" * (1 << 20))
    assert connection.exactly(30 << 20) == b"a" * (30 << 20)
    assert connection.request("GET", "/ping").status == 200
    connection.send("GET", f"/files/download?path={path}")
    connection.head()
    os.truncate(path, 1 << 20)
    with pytest.raises((ConnectionError, OSError)):
        connection.exactly(31 << 20)
    assert execd.alive()


def test_slow_readers_hold_up_nobody(execd, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(os.urandom(16 << 20))
    fds, idle = execd.fd_count(), execd.rss_kib()
    slow = [execd.connect(rcvbuf=4096) for _ in range(30)]
    for connection in slow:
        connection.send("GET", f"/files/download?path={path}")
    time.sleep(0.5)
    with Pinger(execd) as ping:
        assert get(execd, path).body == path.read_bytes()
    assert ping.longest < PATIENCE
    assert_flat(execd.rss_kib() - idle, 30 * 1100 + 8192)
    slow[0].head()
    assert slow[0].exactly(16 << 20) == path.read_bytes()
    for connection in slow:
        connection.close()
    wait_for(lambda: execd.fd_count() <= fds, 30, why="downloads of clients that left are open")


# -- large --------------------------------------------------------------------

GIB = 1 << 30


class Watch:
    """The most memory the daemon has while something goes on."""

    def __init__(self, execd):
        self.execd, self.most, self.over = execd, 0, False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over:
            self.most = max(self.most, self.execd.rss_kib())
            time.sleep(0.02)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()


@pytest.fixture
def memory_folder():
    folder = f"/dev/shm/sallyport-scene-{os.getpid()}"
    if not os.access("/dev/shm", os.W_OK) or os.statvfs("/dev/shm").f_bavail * 4096 < 3 * GIB:
        pytest.skip("needs 3 GiB in /dev/shm")
    os.mkdir(folder)
    yield Path(folder)
    subprocess.run(["rm", "-rf", folder], check=True)


def test_a_gibibyte_up_and_down(execd, memory_folder):
    piece = os.urandom(1 << 20)
    head, tail = pair(memory_folder / "f", b"")[:-2], b"\r\n" + CLOSING
    idle = execd.rss_kib()
    connection = execd.connect()
    with Watch(execd) as watch, Pinger(execd) as ping:
        start = time.monotonic()
        connection.sock.sendall(
            (f"POST /files/upload HTTP/1.1\r\nHost: x\r\nContent-Type: {TYPE['Content-Type']}\r\n"
             f"Content-Length: {len(head) + GIB + len(tail)}\r\n\r\n").encode() + head)
        for _ in range(1024):
            connection.sock.sendall(piece)
        connection.sock.sendall(tail)
        assert connection.head()[0] == 200
        up = time.monotonic() - start
    grown_up = watch.most - idle
    assert (memory_folder / "f").stat().st_size == GIB
    with open(memory_folder / "f", "rb") as f:
        assert all(f.read(1 << 20) == piece for _ in range(1024))

    buffer = memoryview(bytearray(1 << 20))
    with Watch(execd) as watch:
        start = time.monotonic()
        connection.send("GET", f"/files/download?path={memory_folder}/f")
        status, headers = connection.head()
        assert headers["content-length"] == str(GIB)
        left = GIB - len(connection.held)
        want, at = memoryview(piece * 2), len(connection.held)
        assert connection.held == piece[:at]
        while left:
            n = connection.sock.recv_into(buffer[:min(left, 1 << 20)])
            assert n and buffer[:n] == want[at:at + n]
            at, left = (at + n) % (1 << 20), left - n
        down = time.monotonic() - start
    grown_down = watch.most - idle
    print(f"up {GIB / 1e6 / up:.0f} MB/s, {grown_up} KiB more; down {GIB / 1e6 / down:.0f} MB/s, "
          f"{grown_down} KiB more; longest ping {ping.longest * 1000:.0f} ms")
    assert_flat(grown_up, 16 * 1024)
    assert_flat(grown_down, 16 * 1024)
    assert ping.longest < PATIENCE
