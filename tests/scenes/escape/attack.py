# SPDX-License-Identifier: Apache-2.0
"""attack.py - what the scripts in ways/ share

A script is run inside a sandbox as `way.py FACTS`, FACTS being JSON: one
object per family of addresses with the fields of class Attack. It tries one
way out once for each family, puts its mark into whatever it sends, and is
through within seconds, whatever happens. Whether somebody heard the mark is
for the listeners to say (ear.py), so a script that fails says nothing.
"""
import contextlib
import json
import os
import socket
import ssl
import struct
import subprocess
import sys

PATIENCE = 0.7  # seconds for one socket call
ETH_IP4, ETH_IP6, ETH_ARP = 0x0800, 0x86DD, 0x0806
BROADCAST = b"\xff" * 6
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


class Attack:
    """family 4 or 6; addresses are text, MACs are bytes.

    target, other_target: a listener that must never hear us; the address is
        this way's own, and the other one is of the other family
    own, gateway, neighbour: us, the node on our link, another sandbox
    node: an address of the node on its far side
    origin: what allowed names resolve to; proxy: the courtesy proxy
    allowed, inspected: names that policy allows, and that it opens
    link_local, gateway_link_local: addresses of our link
    """

    def __init__(self, facts):
        self.__dict__.update(facts)
        self.mark = facts["mark"].encode()
        self.mac = bytes.fromhex(facts["mac"])
        self.gateway_mac = bytes.fromhex(facts["gateway_mac"])
        self.af = socket.AF_INET6 if self.family == 6 else socket.AF_INET

    # -- sockets -----------------------------------------------------------
    def udp(self, port, data=b"", to=None):
        with socket.socket(self.af, socket.SOCK_DGRAM) as s:
            s.settimeout(PATIENCE)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            for _ in range(2):
                s.sendto(data + self.mark, sockaddr(to or self.target, port))

    def connect(self, port, to=None):
        s = socket.socket(self.af, socket.SOCK_STREAM)
        s.settimeout(PATIENCE)
        s.connect(sockaddr(to or self.target, port))
        return s

    def tcp(self, port, data=b"", to=None, end=b""):
        """Sends, and gives back what was answered."""
        with self.connect(port, to) as s:
            s.sendall(data + self.mark + end)
            return answer(s)

    def http(self, port, to, *lines):
        return self.tcp(port, "\r\n".join([*lines, "X-Mark: "]).encode(), to, b"\r\n\r\n")

    def tls(self, port, name, to=None, data=None, alpn=None):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if alpn:
            context.set_alpn_protocols(alpn)
        with context.wrap_socket(self.connect(port, to), server_hostname=name) as s:
            s.sendall(data or b"GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n" % (
                self.mark, (name or self.target).encode()))
            return answer(s)

    def ip(self, protocol, payload=b"", to=None):
        """An IP packet of any protocol, whose header the kernel writes."""
        with socket.socket(self.af, socket.SOCK_RAW, protocol) as s:
            s.settimeout(PATIENCE)
            for _ in range(2):
                s.sendto(payload + self.mark, sockaddr(to or self.target, 0))

    # -- packets and frames of our own making --------------------------------
    def packet(self, protocol, payload, source=None, to=None, **how):
        make = ip6 if self.family == 6 else ip4
        return make(protocol, payload, source or self.own, to or self.target, **how)

    def frame(self, body, kind=None, to=None, source=None):
        """Sends one Ethernet frame, to the node unless said otherwise."""
        kind = kind or (ETH_IP6 if self.family == 6 else ETH_IP4)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
            s.bind((self.interface, 0))
            for _ in range(2):
                s.send((to or self.gateway_mac) + (source or self.mac)
                       + struct.pack(">H", kind) + body)

    def udp_packet(self, port, data=None, source=None, to=None, **how):
        """An IP packet with a UDP datagram, checksum and all."""
        data = self.mark if data is None else data
        body = struct.pack(">HHHH", 40000, port, 8 + len(data), 0) + data
        return self.packet(17, with_checksum(body, 6, 17, source or self.own, to or self.target),
                           source, to, **how)

    def tcp_packet(self, port, flags, data=None, source=None, to=None, own_port=40000, **how):
        data = self.mark if data is None else data
        body = struct.pack(">HHIIBBHHH", own_port, port, 1000, 1000, 5 << 4, flags, 64000, 0, 0) + data
        return self.packet(6, with_checksum(body, 16, 6, source or self.own, to or self.target),
                           source, to, **how)

    def echo(self, data=None):
        """An echo request without checksum of IPv6."""
        kind = 128 if self.family == 6 else 8
        return icmp(kind, 0, struct.pack(">HH", 7, 7) + (self.mark if data is None else data))

    def dns(self, name, kind=1, to=None, tcp=False, port=53):
        question = dns_question(name, kind)
        if tcp:
            with self.connect(port, to) as s:
                s.sendall(struct.pack(">H", len(question)) + question)
                return answer(s)
        with socket.socket(self.af, socket.SOCK_DGRAM) as s:
            s.settimeout(PATIENCE)
            s.sendto(question, sockaddr(to or self.target, port))
            return s.recv(4096)

    @property
    def label(self):
        """The mark as a label of a name."""
        return self.mark.decode()


def sockaddr(address, port):
    return socket.getaddrinfo(address, port, type=socket.SOCK_DGRAM,
                              flags=socket.AI_NUMERICHOST)[0][4]


def answer(s):
    with contextlib.suppress(OSError):
        return s.recv(4096)
    return b""


def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", 0xFFFF - total)


def with_checksum(body, at, protocol, source, to):
    """body with the checksum of its pseudo-header put at `at`."""
    pseudo = packed(source) + packed(to) + struct.pack(">II", len(body), protocol)
    return body[:at] + checksum(pseudo + body) + body[at + 2:]


def ip4(protocol, payload, source, to, options=b"", fragment=0, more=False, number=0x5350):
    options += b"\0" * (-len(options) % 4)
    head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, 0, 20 + len(options) + len(payload),
                       number, (0x2000 if more else 0) | fragment // 8, 64, protocol, 0)
    head += packed(source) + packed(to) + options
    return head[:10] + checksum(head) + head[12:] + payload


def ip6(protocol, payload, source, to, hops=64):
    return (struct.pack(">IHBB", 6 << 28, len(payload), protocol, hops)
            + packed(source) + packed(to) + payload)


def fragment6(protocol, payload, offset, more, number=0x5350):
    """Payload of an IPv6 packet of next header 44."""
    return struct.pack(">BBHI", protocol, 0, offset | more, number) + payload


def icmp(kind, code, rest):
    body = struct.pack(">BBH", kind, code, 0) + rest
    return body[:2] + checksum(body) + body[4:]


def icmp6(kind, code, rest, source, to):
    return with_checksum(struct.pack(">BBH", kind, code, 0) + rest, 2, 58, source, to)


def arp(kind, mac, address, to_mac, to_address):
    return (struct.pack(">HHBBH", 1, ETH_IP4, 6, 4, kind) + mac + packed(address)
            + to_mac + packed(to_address))


def dns_question(name, kind):
    return (struct.pack(">HHHHHH", 0x5350, 0x0100, 1, 0, 0, 0)
            + b"".join(bytes([len(x)]) + x.encode() for x in name.split(".")) + b"\0"
            + struct.pack(">HH", kind, 1))


def bracketed(address):
    return f"[{address}]" if ":" in address else address


def fragments(a, protocol, pieces):
    """pieces: (offset, bytes, more)."""
    for offset, data, more in pieces:
        if a.family == 6:
            a.frame(a.packet(44, fragment6(protocol, data, offset, more)))
        else:
            a.frame(a.packet(protocol, data, fragment=offset, more=more))


def nested(a):
    """The way out of a namespace that the sandbox made for itself."""
    name, wide = f"n{os.getpid()}-{a.family}", 120 if a.family == 6 else 24
    net = "fd77:7::" if a.family == 6 else "172.30.7."
    sender = ("import socket, sys; s = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else"
              " socket.AF_INET, socket.SOCK_DGRAM); s.sendto(sys.argv[2].encode(), (sys.argv[1], 9999))")
    forward = "net.ipv6.conf.all.forwarding=1" if a.family == 6 else "net.ipv4.ip_forward=1"
    run = lambda *cmd: subprocess.run(cmd, check=True, timeout=5)  # noqa: E731
    run("ip", "netns", "add", name)
    try:
        run("sysctl", "-qw", forward)
        run("ip", "link", "add", f"u{a.family}", "type", "veth", "peer", "name", "i0", "netns", name)
        run("ip", "addr", "add", f"{net}1/{wide}", "dev", f"u{a.family}")
        run("ip", "link", "set", f"u{a.family}", "up")
        nodad = ["nodad"] if a.family == 6 else []
        run("ip", "-n", name, "addr", "add", f"{net}2/{wide}", "dev", "i0", *nodad)
        run("ip", "-n", name, "link", "set", "i0", "up")
        run("ip", "-n", name, "route", "add", "default", "via", f"{net}1")
        run("ip", "netns", "exec", name, "/usr/bin/python3", "-c", sender, a.target, a.mark.decode())
    finally:
        subprocess.run(["ip", "netns", "del", name], timeout=5)


def attempt(way, families=(4, 6)):
    """Runs way(Attack) for each family; a way that fails has failed."""
    for facts in json.loads(sys.argv[1]):
        if facts["family"] not in families:
            continue
        try:
            way(Attack(facts))
        except (OSError, ValueError) as e:
            print(f"IPv{facts['family']}: {type(e).__name__}: {e}", file=sys.stderr)
    os._exit(0)  # no thread or socket keeps us
