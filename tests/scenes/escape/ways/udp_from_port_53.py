# SPDX-License-Identifier: Apache-2.0
"""A datagram that looks like an answer of DNS.

recorded: 4=policy 6=policy
"""
import socket

from attack import attempt, sockaddr


def way(a):
    with socket.socket(a.af, socket.SOCK_DGRAM) as s:
        s.bind(sockaddr(a.own, 53))
        s.sendto(a.mark, sockaddr(a.target, 5353))


attempt(way)
