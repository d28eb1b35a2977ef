# SPDX-License-Identifier: Apache-2.0
"""root.py - the daemon in a root folder that imitates a distribution, or a cgroup

RootBox lays an overlay over this machine's root in a mount namespace of its own,
changes it by a shell script (with $M as the new root), and starts the daemon there
behind chroot. Nothing is left of it afterwards. Clients run inside by POST /command.
"""
import shlex
from pathlib import Path

from box import EXECD, Box

SETUP = """
set -e
mount -t tmpfs tmpfs {tmp}
mkdir {tmp}/upper {tmp}/work {tmp}/root
mount -t overlay overlay -o lowerdir=/,upperdir={tmp}/upper,workdir={tmp}/work {tmp}/root
M={tmp}/root
mount --rbind /dev $M/dev
mount -t proc proc $M/proc
mount -t tmpfs -o mode=755 tmpfs $M/run
mount -t tmpfs -o mode=1777 tmpfs $M/tmp
rm -rf $M/opt/opensandbox
mkdir -p $M/opt/opensandbox $M/opt/probe
cp {execd} $M/opt/opensandbox/execd
"""


class RootBox(Box):
    def __init__(self, *words, tmp, files=None, script="", user=None, **more):
        """files: path in the root -> bytes; script: shell, as root, before the start."""
        place = tmp / "mnt"
        place.mkdir(exist_ok=True)
        text = SETUP.format(tmp=shlex.quote(str(place)), execd=shlex.quote(str(EXECD)))
        for n, (path, data) in enumerate((files or {}).items()):
            source = tmp / f"file{n}"
            source.write_bytes(data)
            # from before the mounts: through an open descriptor of the shell
            text = f"exec {10 + n}<{shlex.quote(str(source))}\n" + text + \
                f"mkdir -p $(dirname $M{path})\ncat <&{10 + n} >$M{path}\n"
        text += script + "\n"
        into = "chroot " + (f"--userspec={user} " if user else "") + "$M "
        start = f'exec {into} /opt/opensandbox/execd "$@"\n'
        super().__init__(*words, tmp=tmp, unshare=("--mount", "--pid", "--kill-child"),
                         prefix=("bash", "-c", text + start, "bash"), **more)

    def run(self, command, clean=False):
        """(status, output) of a client inside; clean: without our variables."""
        if clean:
            command = "env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/root sh -c " + \
                shlex.quote(command)
        frames = self.events("POST", "/command", {"command": command + " 2>&1"})
        out = "\n".join(f["text"] for f in frames if f["type"] in ("stdout", "stderr"))
        last = frames[-1]
        return (0 if last["type"] == "execution_complete" else int(last["error"]["evalue"])), out


V1 = Path("/sys/fs/cgroup/memory")
V2 = Path("/sys/fs/cgroup")


def cgroup_of_64_mib(name):
    """A fresh memory cgroup with a limit, or None where none can be made."""
    for base, limit in ((V1, "memory.limit_in_bytes"), (V2, "memory.max")):
        folder = base / name
        try:
            folder.mkdir()
        except OSError:
            continue
        if (folder / limit).exists():
            (folder / limit).write_text(str(64 << 20))
            return folder
        folder.rmdir()
    return None
