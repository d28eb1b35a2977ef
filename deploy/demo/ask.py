#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ask.py - one DNS question, and the reason when it is refused

ask.py NAME prints the addresses, or the code and the Extended DNS Error.
"""
import ipaddress
import socket
import struct
import sys

CODES = {0: "NOERROR", 2: "SERVFAIL", 3: "NXDOMAIN", 5: "REFUSED"}


def resolver():
    with open("/etc/resolv.conf", encoding="ascii") as f:
        for line in f:
            words = line.split()
            if words[:1] == ["nameserver"]:
                return words[1]
    raise SystemExit("no nameserver in /etc/resolv.conf")


def question(name):
    labels = b"".join(bytes([len(p)]) + p.encode() for p in name.split("."))
    head = struct.pack(">6H", 0x5350, 0x0100, 1, 0, 0, 1)
    opt = b"\0" + struct.pack(">HHIH", 41, 1232, 0, 0)
    return head + labels + b"\0" + struct.pack(">HH", 1, 1) + opt


def name_skip(data, at):
    while data[at] and data[at] < 0xc0:
        at += data[at] + 1
    return at + (1 if not data[at] else 2)


def records(data):
    counts = struct.unpack(">4H", data[4:12])
    at = 12
    for _ in range(counts[0]):
        at = name_skip(data, at) + 4
    for _ in range(sum(counts[1:])):
        at = name_skip(data, at)
        kind, _, _, length = struct.unpack(">HHIH", data[at:at + 10])
        yield kind, data[at + 10:at + 10 + length]
        at += 10 + length


def errors(options):
    while len(options) >= 4:
        code, length = struct.unpack(">HH", options[:4])
        if code == 15:
            info = struct.unpack(">H", options[4:6])[0]
            text = options[6:4 + length].decode("utf-8", "replace")
            yield f"extended error {info}: {text}"
        options = options[4 + length:]


def main():
    at = socket.getaddrinfo(resolver(), 53, type=socket.SOCK_DGRAM)[0]
    with socket.socket(at[0], socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        s.connect(at[4])
        s.send(question(sys.argv[1]))
        data = s.recv(4096)
    code = data[3] & 15
    print(CODES.get(code, code), end="")
    for kind, value in records(data):
        if kind == 1:
            print("", ipaddress.ip_address(value), end="")
        elif kind == 41:
            print("".join(", " + e for e in errors(value)), end="")
    print()


main()
