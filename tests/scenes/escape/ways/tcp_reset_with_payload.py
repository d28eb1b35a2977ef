# SPDX-License-Identifier: Apache-2.0
"""RST and FIN may carry bytes.

unrecorded: no connection
"""
from attack import attempt, ACK, FIN, RST


def way(a):
    a.frame(a.tcp_packet(443, RST))
    a.frame(a.tcp_packet(443, FIN | ACK))


attempt(way)
