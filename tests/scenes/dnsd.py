# SPDX-License-Identifier: Apache-2.0
"""dnsd.py ADDRESS FILE - a DNS server for the lab, UDP and TCP

FILE is JSON {"name": {"A": [..], "AAAA": [..], "CNAME": name, "TXT": text,
"MX": name, "HTTPS": [hex of data, ..], "ttl": n, "rotate": n, "truncate": bool,
"rcode": n, "silent": bool}}, read again for every question; every question is
appended to FILE.log. rotate gives the next n addresses with each answer. An MX
comes with the addresses of its name in the additional section.
"""
import json
import socket
import struct
import sys
import threading

ADDRESS, FILE = sys.argv[1], sys.argv[2]
TURNS = {}  # of rotating names


def question(data):
    at, labels = 12, []
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode("latin1"))
        at += 1 + data[at]
    qtype = struct.unpack(">H", data[at + 1:at + 3])[0]
    return ".".join(labels).lower(), qtype, data[12:at + 5]


def wire_name(name):
    return b"".join(bytes([len(x)]) + x.encode() for x in name.split(".")) + b"\0"


def record(owner, kind, ttl, data):
    return owner + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


def turn(name, entry, addresses):
    """The addresses of this answer."""
    if "rotate" not in entry or not addresses:
        return addresses
    at = TURNS.get(name, 0)
    TURNS[name] = (at + entry["rotate"]) % len(addresses)
    return addresses[at:at + entry["rotate"]]


def glue(zone, name, qtype):
    """Addresses nobody asked for."""
    host = (zone.get(name) or {}).get("MX") if qtype == 15 else None
    return [record(wire_name(host), 1, 60, socket.inet_pton(socket.AF_INET, a))
            for a in (zone.get(host) or {}).get("A", [])]


def records_of(zone, name, qtype):
    """CNAMEs on the way are followed as far as this zone goes."""
    found, owner = [], b"\xc0\x0c"
    for _ in range(16):
        entry = zone.get(name) or {}
        ttl = entry.get("ttl", 60)
        if "CNAME" in entry:
            found.append(record(owner, 5, ttl, wire_name(entry["CNAME"])))
            name, owner = entry["CNAME"], wire_name(entry["CNAME"])
            continue
        for kind, number, family in (("A", 1, socket.AF_INET), ("AAAA", 28, socket.AF_INET6)):
            if qtype == number:
                found += [record(owner, number, ttl, socket.inet_pton(family, a))
                          for a in turn(name, entry, entry.get(kind, []))]
        if qtype == 65:
            found += [record(owner, 65, ttl, bytes.fromhex(h)) for h in entry.get("HTTPS", [])]
        if qtype == 15 and "MX" in entry:
            found.append(record(owner, 15, ttl, b"\0\x0a" + wire_name(entry["MX"])))
        if qtype == 16 and "TXT" in entry:
            text = entry["TXT"].encode()
            found.append(record(owner, 16, ttl, bytes([len(text)]) + text))
        break
    return found


def answer(data, tcp):
    name, qtype, raw = question(data)
    zone = json.load(open(FILE))
    with open(FILE + ".log", "a") as log:
        log.write(f"{name} {qtype} {'tcp' if tcp else 'udp'}\n")
    entry = zone.get(name)
    if entry and entry.get("silent"):
        raise TimeoutError
    rcode = 3 if entry is None else entry.get("rcode", 0)
    records, more = records_of(zone, name, qtype), glue(zone, name, qtype)
    flags = 0x8180 | rcode
    if entry and entry.get("truncate") and not tcp:
        flags, records = flags | 0x0200, []
    return (data[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, len(more)) + raw
            + b"".join(records + more))


def serve_udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((ADDRESS, 53))
    while True:
        data, peer = s.recvfrom(4096)
        try:
            s.sendto(answer(data, False), peer)
        except Exception:
            pass


def serve_tcp():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((ADDRESS, 53))
    s.listen(16)
    while True:
        c, _ = s.accept()
        with c:
            c.settimeout(5)
            try:
                size = struct.unpack(">H", c.recv(2))[0]
                data = b""
                while len(data) < size:
                    data += c.recv(size - len(data))
                reply = answer(data, True)
                c.sendall(struct.pack(">H", len(reply)) + reply)
            except Exception:
                pass


threading.Thread(target=serve_tcp, daemon=True).start()
serve_udp()
