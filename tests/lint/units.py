#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""units.py - systemd understands the unit, and it is no more open than it was

The unit is filled in as deploy/CMakeLists.txt does, with the programs of the
build, since systemd looks whether they are there.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tree import Lint  # noqa: E402

UNIT = "deploy/systemd/sallyport.service.in"
# what `systemd-analyze security` gives it, times ten; 0 is closed, 100 is open
EXPOSURE_MAX = 31


def main():
    lint = Lint("units")
    analyze = lint.need("systemd-analyze")
    text = lint.read(UNIT).replace("@SBIN@", os.path.join(lint.build, "bin"))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sallyport.service")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        r = subprocess.run([analyze, "verify", "--man=no", path], capture_output=True,
                           text=True, check=False, timeout=60)
        for line in (r.stdout + r.stderr).strip().splitlines():
            lint.find(UNIT, 1, line)
        r = subprocess.run([analyze, "security", "--offline=true", f"--threshold={EXPOSURE_MAX}",
                            path], capture_output=True, text=True, check=False, timeout=60)
        score = re.search(r"exposure level for \S+: ([\d.]+)", r.stdout)
        if r.returncode or not score:
            lint.find(UNIT, 1, f"found exposure {score[1] if score else r.stderr.strip()}, "
                               f"expected at most {EXPOSURE_MAX / 10}")
    lint.end()


main()
