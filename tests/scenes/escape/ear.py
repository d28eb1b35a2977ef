# SPDX-License-Identifier: Apache-2.0
"""ear.py FILE MARK NET... [--serve] - writes down all that was heard of a sandbox

Every frame that arrives by any interface of this namespace is heard when MARK
is in it, or when it is for an address in one of the NETs: then "?" stands for
a mark that it does not carry. A line of FILE is JSON: where, mark, to, bytes.

With --serve also what the node itself would take in: TCP connections and
datagrams to some ports, and raw sockets, so that not the wire is asked (where
a packet arrives all the same) but those who would have got it.
"""
import ipaddress
import json
import re
import socket
import sys
import threading

TCP_PORTS = (22, 2375, 2376, 3128, 8080)
UDP_PORTS = (9999, 3128)
RAW = {socket.AF_INET: (1, 47, 253), socket.AF_INET6: (58, 47, 253)}
LOCK = threading.Lock()


class Ear:
    def __init__(self, file, mark, nets):
        self.file = file
        self.mark = re.compile(re.escape(mark.encode()) + rb"[a-z0-9_-]*")
        self.nets = [ipaddress.ip_network(n) for n in nets]

    def heard(self, where, data, to=None):
        found = self.mark.search(data)
        if not found and not (to and any(to in n for n in self.nets)):
            return
        with LOCK, open(self.file, "a") as out:
            out.write(json.dumps({"where": where, "mark": found.group().decode() if found else "?",
                                  "to": str(to or ""), "bytes": data[:96].hex()}) + "\n")

    def listen(self):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        print("ready", flush=True)
        while True:
            data, where = s.recvfrom(65536)
            if where[2] != socket.PACKET_OUTGOING and where[0] != "lo":
                self.heard(where[0], data, destination(data))

    # -- the node's own ----------------------------------------------------
    def serve(self):
        for family in RAW:
            for port in TCP_PORTS:
                self.start(self.tcp, family, port)
            for port in UDP_PORTS:
                self.start(self.datagrams, socket.SOCK_DGRAM, family, port, 0)
            for protocol in RAW[family]:
                self.start(self.datagrams, socket.SOCK_RAW, family, 0, protocol)
        print("ready", flush=True)
        threading.Event().wait()

    @staticmethod
    def start(what, *args):
        threading.Thread(target=what, args=args, daemon=True).start()

    def tcp(self, family, port):
        s = socket.socket(family, socket.SOCK_STREAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            s.bind(("", port))
        except OSError:  # the node's own server has it, and is no ear
            return
        s.listen(64)
        while True:
            c, _ = s.accept()
            self.start(self.conversation, c, port)

    def conversation(self, c, port):
        c.settimeout(2)
        try:
            self.heard(f"tcp {port} of the node", c.recv(4096))
        except OSError:
            pass
        c.close()

    def datagrams(self, kind, family, port, protocol):
        s = socket.socket(family, kind, protocol)
        if kind == socket.SOCK_DGRAM:
            if family == socket.AF_INET6:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            s.bind(("", port))
        while True:
            data = s.recv(65536)
            self.heard(f"protocol {protocol or 'udp'} of the node", data)


def destination(frame):
    if frame[12:14] == b"\x08\x00" and len(frame) >= 34:
        return ipaddress.ip_address(frame[30:34])
    if frame[12:14] == b"\x86\xdd" and len(frame) >= 54:
        return ipaddress.ip_address(frame[38:54])
    return None


words = [w for w in sys.argv[1:] if w != "--serve"]
ear = Ear(words[0], words[1], words[2:])
ear.serve() if "--serve" in sys.argv else ear.listen()
