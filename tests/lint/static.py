#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""static.py - sallyport-execd needs nothing of the image it is brought into

The program that was built has no interpreter and no shared objects, holds
neither OpenSSL nor NSS (whose users load shared objects of the machine's libc
at run time), is under 2 MB stripped, and runs with an empty environment.
Skipped where sanitizers make it a dynamic program.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tree import Lint, run  # noqa: E402

STRIPPED_MAX = 2 * 1000 * 1000
# beginnings of names -> why not
FORBIDDEN = {
    "SSL_": "OpenSSL", "EVP_": "OpenSSL", "X509_": "OpenSSL",
    "CRYPTO_": "OpenSSL",
    "__nss_": "NSS", "getpwnam": "NSS", "getpwuid": "NSS", "getgrnam": "NSS",
    "getgrgid": "NSS", "getgrouplist": "NSS", "initgroups": "NSS",
    "gethostby": "the resolver", "__res_context_": "the resolver",
    "_nss_": "NSS", "yaml_": "YAML", "nghttp2_": "HTTP/2",
    "iconv_open": "conversions that load modules",
}


def sanitized(lint):
    cache = os.path.join(lint.build, "CMakeCache.txt")
    with open(cache, encoding="utf-8") as f:
        return re.search(r"^SALLYPORT_SANITIZE:\w+=.", f.read(), re.M)


def headers_check(lint, program):
    if "INTERP" in run("readelf", "-lW", program).stdout:
        lint.find(program, 0, "asks for an interpreter")
    for name in re.findall(r"\(NEEDED\).*\[(\S+?)\]",
                           run("readelf", "-dW", program).stdout):
        lint.find(program, 0, f"needs the shared object {name}")
    if "DYN" not in run("readelf", "-hW", program).stdout:
        lint.find(program, 0, "is not position-independent")


def symbols_check(lint, program):
    names = re.findall(r"^[0-9a-f]*\s+[A-Za-z]\s+(\S+)$",
                       run("nm", program).stdout, re.M)
    if not names:
        lint.find(program, 0, "has no symbols to look at")
    for beginning, what in FORBIDDEN.items():
        found = next((n for n in names if n.startswith(beginning)), None)
        if found:
            lint.find(program, 0, f"holds {found}: {what}")


def size_check(lint, program):
    with tempfile.TemporaryDirectory() as folder:
        stripped = os.path.join(folder, "execd")
        run("strip", "-o", stripped, program)
        size = os.path.getsize(stripped)
        if size >= STRIPPED_MAX:
            lint.find(program, 0, f"has {size} bytes stripped, expected less "
                                  f"than {STRIPPED_MAX}")
        ran = subprocess.run([stripped, "--version"], env={}, cwd="/",
                             capture_output=True, text=True, check=False)
        if ran.returncode or not ran.stdout.startswith("sallyport-execd "):
            lint.find(program, 0, f"does not run: {ran.stderr}")
        print(f"static: {size} bytes stripped")


def main():
    lint = Lint("static")
    for tool in ("readelf", "nm", "strip"):
        lint.need(tool)
    if sanitized(lint):
        print("static: skipped, sanitizers are shared objects")
        sys.exit(77)
    program = os.path.join(lint.build, "bin", "sallyport-execd")
    if os.path.exists(program):
        lint.looked += 1
        headers_check(lint, program)
        symbols_check(lint, program)
        size_check(lint, program)
    else:
        lint.find(program, 0, "is not built")
    lint.end()


main()
