# SPDX-License-Identifier: Apache-2.0
"""Port 0 is a port too.

recorded: 4=malformed 6=malformed
"""
from attack import attempt


def way(a):
    a.frame(a.udp_packet(0))


attempt(way)
