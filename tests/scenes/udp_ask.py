# SPDX-License-Identifier: Apache-2.0
"""udp_ask.py - a client of UDP inside a sandbox

    udp_ask.py ADDRESS PORT [TEXT [SECONDS]]

Prints what came of one datagram: "echo ...", or the name of the error that the
socket got, or "timeout"; and after how many milliseconds.

    udp_ask.py -i ADDRESS PORT

Sends each line of its input and prints the same for each; one flow.
"""
import errno
import socket
import sys
import time


def ask(s, text, seconds):
    began = time.monotonic()
    s.settimeout(seconds)
    try:
        s.send(text)
        said = s.recv(65536).decode(errors="replace")
    except socket.timeout:
        said = "timeout"
    except OSError as e:
        said = errno.errorcode[e.errno]
    print(said, int((time.monotonic() - began) * 1000), flush=True)


args = sys.argv[1:]
live = args[0] == "-i"
if live:
    args.pop(0)
sock = socket.socket(socket.AF_INET6 if ":" in args[0] else socket.AF_INET, socket.SOCK_DGRAM)
sock.connect((args[0], int(args[1])))
if live:
    for line in sys.stdin:
        ask(sock, line.strip().encode(), 1.0)
else:
    ask(sock, (args[2] if len(args) > 2 else "hello").encode(),
        float(args[3]) if len(args) > 3 else 2.0)
