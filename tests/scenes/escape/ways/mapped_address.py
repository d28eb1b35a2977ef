# SPDX-License-Identifier: Apache-2.0
"""An IPv4 address written as IPv6.

unheard: no route
recorded: 6=~group
"""
import contextlib

from attack import attempt, SYN


def way(a):
    for to in ('::ffff:' + a.other_target, '::' + a.other_target):
        with contextlib.suppress(OSError):
            a.frame(a.udp_packet(9999, to=to))
            a.frame(a.tcp_packet(8081, SYN, to=to))


attempt(way, (6,))
