# SPDX-License-Identifier: Apache-2.0
"""ANY and AXFR questions.

unheard: no server answers behind a plain node
recorded: 4=~malformed 6=~malformed
"""
import contextlib

from attack import attempt


def way(a):
    for kind in (255, 252):
        with contextlib.suppress(OSError):
            a.dns(f'{a.label}.evil.test', kind, to=a.gateway)


attempt(way)
