# SPDX-License-Identifier: Apache-2.0
"""Port 0 is a port too."""
from attack import attempt


def way(a):
    a.frame(a.udp_packet(0))


attempt(way)
