# SPDX-License-Identifier: Apache-2.0
"""An IPv4 address behind the prefixes of NAT64 and 6to4.

unheard: no translator
recorded: 6=~policy
"""
import contextlib
import socket

from attack import attempt, packed


def way(a):
    v4 = packed(a.other_target)
    for to in (b'\0\x64\xff\x9b' + bytes(8) + v4, b'\x20\x02' + v4 + bytes(9) + b'\1'):
        to = socket.inet_ntop(socket.AF_INET6, to)
        with contextlib.suppress(OSError):
            a.tcp(8081, to=to)


attempt(way, (6,))
