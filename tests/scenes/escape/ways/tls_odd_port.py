# SPDX-License-Identifier: Apache-2.0
"""TLS to a denied host at a port of its own.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.tls(4444, f'{a.label}.evil.test')


attempt(way)
