# SPDX-License-Identifier: Apache-2.0
"""Proxy variables are a courtesy: a socket need not read them (case 55).

recorded: 4=policy 6=policy
"""
import os

from attack import attempt


def way(a):
    os.environ['NO_PROXY'] = '*'
    a.tcp(8080)


attempt(way)
