# SPDX-License-Identifier: Apache-2.0
"""A last piece without a first.

unheard: an honest kernel waits for the first piece
unrecorded: pieces that never are a packet
"""
from attack import attempt, fragments


def way(a):
    fragments(a, 17, [(64, a.mark, False)])


attempt(way)
