# SPDX-License-Identifier: Apache-2.0
"""A segment of a connection that never was opened."""
from attack import attempt, ACK, PSH


def way(a):
    a.frame(a.tcp_packet(443, PSH | ACK))


attempt(way)
