# SPDX-License-Identifier: Apache-2.0
"""sniff.py FILE MARK - writes a line to FILE for each packet that arrives with MARK

Listens on all interfaces of its namespace, whatever the protocol.
"""
import socket
import sys

s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
print("ready", flush=True)
while True:
    data, where = s.recvfrom(65536)
    if where[2] != 4 and sys.argv[2].encode() in data:  # not what we sent ourselves
        with open(sys.argv[1], "a") as out:
            out.write(f"{where[0]} {data[14:54].hex()}\n")
