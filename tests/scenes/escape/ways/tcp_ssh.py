# SPDX-License-Identifier: Apache-2.0
"""The port of ssh, whose server would speak first."""
from attack import attempt


def way(a):
    a.tcp(22)


attempt(way)
