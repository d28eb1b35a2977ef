# SPDX-License-Identifier: Apache-2.0
"""Mail out, by its own port.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.tcp(25, b'EHLO sandbox\r\n')


attempt(way)
