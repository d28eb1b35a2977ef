# SPDX-License-Identifier: Apache-2.0
"""Bytes in the first packet of a handshake, as TCP Fast Open sends them.

unrecorded: no connection came of it
"""
from attack import attempt, SYN


def way(a):
    a.frame(a.tcp_packet(443, SYN))


attempt(way)
