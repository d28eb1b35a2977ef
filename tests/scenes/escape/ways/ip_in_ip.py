# SPDX-License-Identifier: Apache-2.0
"""The same family of IP inside (IPIP).

recorded: 4=protocol 6=protocol
"""
from attack import attempt


def way(a):
    a.ip(41 if a.family == 6 else 4, a.udp_packet(9999))


attempt(way)
