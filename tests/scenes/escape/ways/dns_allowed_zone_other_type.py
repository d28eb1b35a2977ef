# SPDX-License-Identifier: Apache-2.0
"""An exotic type for an allowed zone.

unheard: no server answers behind a plain node
unrecorded: the name is allowed; nobody is asked for the type
"""
import contextlib

from attack import attempt


def way(a):
    for kind in (10, 65280, 99):
        with contextlib.suppress(OSError):
            a.dns(f'{a.label}.sub.lab.test', kind, to=a.gateway)


attempt(way)
