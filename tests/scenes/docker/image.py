# SPDX-License-Identifier: Apache-2.0
"""image.py - a small image for sandboxes, out of this machine's own programs

    image.py OUT      deploy/quickstart --docker calls it as a program

Nothing is downloaded: a tree of bash, coreutils, curl, python3 and what they
need, as a tar archive for `docker import`. Made once per run, in a second or two.
"""
import io
import re
import subprocess
import sys
import tarfile
from pathlib import Path

PROGRAMS = ("bash", "cat", "ls", "sleep", "tail", "id", "env", "mkdir", "rm", "touch", "mv", "true",
            "false", "chmod", "grep", "curl", "getent", "ip", "stat", "head", "wc", "mktemp", "ln",
            "printf", "printenv")
PYTHON = "/usr/bin/python3"
SKIPPED = {"test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3", "__pycache__",
           "dist-packages", "site-packages", "turtledemo"}
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n"
                  "nobody:x:65534:65534::/:/bin/false\n",
    "etc/group": "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "etc/os-release": "ID=debian\nVERSION_ID=12\n",
}
FOLDERS = ("tmp", "root", "home/user", "dev", "proc", "sys", "run", "var/tmp", "etc/ssl/certs",
           "usr/local/share/ca-certificates")


def which(name):
    for folder in ("/bin", "/usr/bin", "/sbin", "/usr/sbin"):
        path = Path(folder) / name
        if path.exists():
            return path.resolve()
    raise AssertionError(f"this machine has no {name}")


def libraries(path):
    text = subprocess.run(["ldd", str(path)], capture_output=True, text=True).stdout
    return {m for m in re.findall(r"(/\S+)", text) if Path(m).exists()}


class Tree:
    def __init__(self):
        self.files, self.links = {}, {}

    def add(self, path, at=None):
        path = Path(path)
        self.files[str(at or path).lstrip("/")] = path.resolve()

    def add_python(self):
        python = Path(PYTHON).resolve()
        self.add(python, "usr/bin/python3")
        lib = Path("/usr/lib") / python.name
        for file in lib.rglob("*"):
            if file.is_file() and not SKIPPED & set(file.relative_to(lib).parts):
                self.add(file)
                if file.suffix == ".so":
                    self.need(file)

    def need(self, path):
        for lib in libraries(path):
            self.add(lib)

    def write(self, out):
        with tarfile.open(out, "w") as tar:
            for name in FOLDERS:
                info = tarfile.TarInfo(name)
                info.type, info.mode = tarfile.DIRTYPE, 0o1777 if name.endswith("tmp") else 0o755
                tar.addfile(info)
            for name, text in FILES.items():
                info = tarfile.TarInfo(name)
                info.size, info.mode = len(text), 0o644
                tar.addfile(info, io.BytesIO(text.encode()))
            for name, target in self.links.items():
                info = tarfile.TarInfo(name)
                info.type, info.linkname = tarfile.SYMTYPE, target
                tar.addfile(info)
            for name, path in sorted(self.files.items()):
                info = tar.gettarinfo(str(path), arcname=name)
                info.uid = info.gid = 0
                info.uname = info.gname = "root"
                info.type, info.linkname = tarfile.REGTYPE, ""
                info.size = path.stat().st_size
                with open(path, "rb") as file:
                    tar.addfile(info, file)


def machine(programs=PROGRAMS):
    """A tree of these programs, python3 and what they need to speak TLS and DNS."""
    tree = Tree()
    for name in programs:
        path = which(name)
        tree.add(path, f"usr/bin/{name}")
        tree.need(path)
    tree.add_python()
    tree.add("/etc/ssl/certs/ca-certificates.crt")
    for pattern in ("libnss_dns.so.2", "libnss_files.so.2", "libresolv.so.2"):
        for path in Path("/lib/x86_64-linux-gnu").glob(pattern):
            tree.add(path, f"lib/x86_64-linux-gnu/{path.name}")
    return tree


def make(out, tree=None):
    tree = tree or machine()
    # one place for programs and libraries, as the distribution has it
    tree.files = {re.sub(r"^(usr/)?(bin|sbin|lib|lib64)/", lambda m: f"usr/{m[2]}/", k): v
                  for k, v in tree.files.items()}
    tree.links |= {n: f"usr/{n}" for n in ("bin", "sbin", "lib", "lib64")}
    tree.links["usr/bin/sh"] = "bash"
    tree.write(out)


if __name__ == "__main__":
    make(sys.argv[1])
