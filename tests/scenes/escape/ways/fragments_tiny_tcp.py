# SPDX-License-Identifier: Apache-2.0
"""A TCP header cut so that its flags are in the second piece (RFC 1858).

recorded: 6=fragment
"""
from attack import attempt, SYN, fragments


def way(a):
    body = a.tcp_packet(8081, SYN)[40 if a.family == 6 else 20:]
    fragments(a, 6, [(0, body[:8], True), (8, body[8:], False)])


attempt(way)
