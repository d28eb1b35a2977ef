# SPDX-License-Identifier: Apache-2.0
"""udp_echo.py - says back what it gets, from the address it was sent to

    udp_echo.py LOG ADDRESS PORT...

One line of LOG per datagram: address, port, sender, what it said.
"""
import selectors
import socket
import sys

log = open(sys.argv[1], "a", buffering=1)
select = selectors.DefaultSelector()
for port in sys.argv[3:]:
    s = socket.socket(socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET,
                      socket.SOCK_DGRAM)
    s.bind((sys.argv[2], int(port)))
    select.register(s, selectors.EVENT_READ)
print("ready", file=log)
while True:
    for key, _ in select.select():
        data, sender = key.fileobj.recvfrom(65536)
        here = key.fileobj.getsockname()
        print(here[0], here[1], sender[0], data[:40].decode(errors="replace"), file=log)
        key.fileobj.sendto(b"echo " + data, sender)
