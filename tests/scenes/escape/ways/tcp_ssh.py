# SPDX-License-Identifier: Apache-2.0
"""The port of ssh, whose server would speak first.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.tcp(22)


attempt(way)
