# SPDX-License-Identifier: Apache-2.0
"""A segment of a connection that never was opened.

unrecorded: no connection; answered by a reset
"""
from attack import attempt, ACK, PSH


def way(a):
    a.frame(a.tcp_packet(443, PSH | ACK))


attempt(way)
