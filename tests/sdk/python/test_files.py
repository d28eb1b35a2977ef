# SPDX-License-Identifier: Apache-2.0
"""Files and directories through the official Python SDK"""
import hashlib
import io
import os
from datetime import datetime, timedelta, timezone

import pytest
from conftest import newer
from opensandbox.exceptions import SandboxApiException, SandboxException
from opensandbox.models.filesystem import (ContentReplaceEntry, MoveEntry, SearchEntry,
                                           SetPermissionEntry, WriteEntry)


def test_write_and_read(sandbox, folder):
    path = folder + "/deep/er/name with blank.txt"
    sandbox.files.write_file(path, "Grüße\n", mode=640)
    assert sandbox.files.read_file(path) == "Grüße\n"
    info = sandbox.files.get_file_info([path])[path]
    assert (info.mode, info.size, info.path) == (640, 8, path)
    assert abs((datetime.now(timezone.utc) - info.modified_at).total_seconds()) < 60
    assert info.owner == "root" and info.group == "root"


def test_several_at_once(sandbox, folder):
    entries = [WriteEntry(path=f"{folder}/{n}", data=os.urandom(n), mode=644)
               for n in (0, 1, 65536, 1_000_003)]
    sandbox.files.write_files(entries)
    for e in entries:
        assert sandbox.files.read_bytes(e.path) == e.data


def test_streams(sandbox, folder):
    data = os.urandom(5_000_000)
    sandbox.files.write_file(folder + "/big", io.BytesIO(data), mode=600)
    digest = hashlib.sha256()
    for piece in sandbox.files.read_bytes_stream(folder + "/big", chunk_size=8192):
        digest.update(piece)
    assert digest.digest() == hashlib.sha256(data).digest()


def test_ranges(sandbox, folder):
    sandbox.files.write_file(folder + "/r", "0123456789abcdef", mode=644)
    assert sandbox.files.read_file(folder + "/r", range_header="bytes=0-9") == "0123456789"
    assert sandbox.files.read_file(folder + "/r", range_header="bytes=-3") == "def"
    with pytest.raises((SandboxApiException, SandboxException)):
        sandbox.files.read_file(folder + "/r", range_header="bytes=99-100")


def test_owner(sandbox, folder):
    sandbox.files.write_file(folder + "/o", "x", mode=755, owner="nobody", group="nogroup")
    info = sandbox.files.get_file_info([folder + "/o"])[folder + "/o"]
    assert (info.owner, info.group, info.mode) == ("nobody", "nogroup", 755)
    sandbox.files.set_permissions([SetPermissionEntry(path=folder + "/o", mode=600, owner="root",
                                                      group="root")])
    info = sandbox.files.get_file_info([folder + "/o"])[folder + "/o"]
    assert (info.owner, info.group, info.mode) == ("root", "root", 600)


def test_directories(sandbox, folder):
    sandbox.files.create_directories([WriteEntry(path=folder + "/a/b", mode=755),
                                      WriteEntry(path=folder + "/c", mode=700)])
    info = sandbox.files.get_file_info([folder + "/a/b", folder + "/c"])
    assert info[folder + "/a/b"].mode == 755 and info[folder + "/c"].mode == 700
    sandbox.files.write_file(folder + "/a/b/f", "x", mode=644)
    sandbox.files.delete_directories([folder + "/a"])
    with pytest.raises((SandboxApiException, SandboxException)):
        sandbox.files.get_file_info([folder + "/a/b/f"])


def test_search_replace_move_delete(sandbox, folder):
    for name in ("one.txt", "sub/two.txt", "three.md"):
        sandbox.files.write_file(f"{folder}/{name}", "old old", mode=644)
    found = sandbox.files.search(SearchEntry(path=folder, pattern="*.txt"))
    assert sorted(f.path for f in found) == [folder + "/one.txt", folder + "/sub/two.txt"]
    sandbox.files.replace_contents([ContentReplaceEntry(
        path=folder + "/one.txt", old_content="old", new_content="new")])
    assert sandbox.files.read_file(folder + "/one.txt") == "new new"
    sandbox.files.move_files([MoveEntry(src=folder + "/one.txt", dest=folder + "/x/1.txt")])
    assert sandbox.files.read_file(folder + "/x/1.txt") == "new new"
    sandbox.files.delete_files([folder + "/x/1.txt"])
    with pytest.raises((SandboxApiException, SandboxException)):
        sandbox.files.read_file(folder + "/x/1.txt")


def test_metrics(sandbox):
    m = sandbox.get_metrics()
    assert m.cpu_count > 0 and 0 <= m.cpu_used_percentage <= 100 * m.cpu_count
    assert 0 < m.memory_used_in_mib <= m.memory_total_in_mib
    now = datetime.now(timezone.utc).timestamp() * 1000
    assert abs(now - m.timestamp) < timedelta(minutes=1).total_seconds() * 1000


@newer
def test_newer_file_calls(sandbox, folder):
    from opensandbox.models.filesystem import DirectoryListEntry
    sandbox.files.write_file(folder + "/l", "".join(f"line {n}\n" for n in range(1, 11)), mode=644)
    assert sandbox.files.read_file(folder + "/l", offset=3, limit=2) == "line 3\nline 4\n"
    sandbox.files.create_directories([WriteEntry(path=folder + "/d", mode=755)])
    listed = sandbox.files.list_directory(DirectoryListEntry(path=folder, depth=1))
    assert [e.path for e in listed] == [folder + "/d", folder + "/l"]
    counted = sandbox.files.replace_contents_detailed([ContentReplaceEntry(
        path=folder + "/l", old_content="line", new_content="row")])
    assert [(c.path, c.replaced_count) for c in counted] == [(folder + "/l", 10)]


@newer
def test_files_as_another_user(sandbox, folder):
    sandbox.commands.run(f"chmod 777 {folder}")
    theirs = sandbox.files_with_identity(65534, 65534)
    theirs.write_file(folder + "/theirs", "x", mode=600)
    info = sandbox.files.get_file_info([folder + "/theirs"])[folder + "/theirs"]
    assert info.owner == "nobody"
    sandbox.files.write_file(folder + "/ours", "secret", mode=600)
    with pytest.raises((SandboxApiException, SandboxException)):
        theirs.read_file(folder + "/ours")
