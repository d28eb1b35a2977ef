# SPDX-License-Identifier: Apache-2.0
"""frames.py DEVICE HEX... - sends frames as they are; and builders of such frames

For senders that no honest kernel would be: foreign addresses, forged discovery,
tags, options. The builders return bytes; checksums are right unless said.
"""
import ipaddress
import socket
import struct
import sys

IP4, ARP, IP6 = 0x0800, 0x0806, 0x86dd
BROADCAST = "ff:ff:ff:ff:ff:ff"


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def ip(text):
    return ipaddress.ip_address(text).packed


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return struct.pack(">H", 0xffff - total)


def ether(src, dst, kind, payload, tag=None):
    vlan = b"" if tag is None else struct.pack(">HH", 0x8100, tag)
    return mac(dst) + mac(src) + vlan + struct.pack(">H", kind) + payload


def v4(src, dst, proto, payload, options=b"", fragment=0, ident=7):
    """fragment: the field of flags and offset as it is."""
    head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, 0,
                       20 + len(options) + len(payload), ident, fragment, 64, proto, 0)
    head += ip(src) + ip(dst) + options
    return head[:10] + checksum(head) + head[12:] + payload


def v6(src, dst, proto, payload, hops=64):
    return struct.pack(">IHBB", 6 << 28, len(payload), proto, hops) + ip(src) + ip(dst) + payload


def l4(src, dst, proto, data, at):
    """Puts the checksum over the pseudo header at its place in data."""
    if ":" in src:
        pseudo = ip(src) + ip(dst) + struct.pack(">II", len(data), proto)
    else:
        pseudo = ip(src) + ip(dst) + struct.pack(">BBH", 0, proto, len(data))
    return data[:at] + checksum(pseudo + data) + data[at + 2:]


def tcp_syn(src, dst, port, sport=40000):
    data = struct.pack(">HHIIBBHHH", sport, port, 1, 0, 0x50, 2, 65535, 0, 0)
    return l4(src, dst, 6, data, 16)


def udp(src, dst, sport, port, payload):
    data = struct.pack(">HHHH", sport, port, 8 + len(payload), 0) + payload
    return l4(src, dst, 17, data, 6)


def icmp6(src, dst, kind, body, code=0):
    return l4(src, dst, 58, struct.pack(">BBH", kind, code, 0) + body, 2)


def option(kind, hardware):
    return bytes([kind, 1]) + mac(hardware)


def packet(src, dst, proto, payload, **more):
    return v6(src, dst, proto, payload, **more) if ":" in src else v4(src, dst, proto, payload, **more)


def kind_of(address):
    return IP6 if ":" in address else IP4


def discovery(src, dst, kind, body, hops=255):
    return v6(src, dst, 58, icmp6(src, dst, kind, body), hops=hops)


def solicit(src, dst, target, *options):
    return discovery(src, dst, 135, bytes(4) + ip(target) + b"".join(options))


def advertise(src, dst, target, *options, flags=0x60000000):
    return discovery(src, dst, 136, struct.pack(">I", flags) + ip(target) + b"".join(options))


def arp(operation, sender_mac, sender, target_mac, target):
    return (struct.pack(">HHBBH", 1, IP4, 6, 4, operation) + mac(sender_mac) + ip(sender)
            + mac(target_mac) + ip(target))


if __name__ == "__main__":
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((sys.argv[1], 0))
    for frame in sys.argv[2:]:
        s.send(bytes.fromhex(frame))
