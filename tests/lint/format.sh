#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# format.sh - where clang-format would differ; a report, never a failure
#
# Tables and X-macros are aligned by hand in places, so a difference is a hint
# to look, not an error.
set -u
command -v clang-format >/dev/null || { echo "format: skipped"; exit 77; }
cd "$1" || exit 1
find src policy vault certs gateway tests -name '*.[ch]' |
	xargs -P "$(nproc)" -n 32 clang-format -n 2>&1 |
	sed -n 's/^\([^:]*\):.*\[-Wclang-format-violations\]$/\1/p' |
	sort | uniq -c | sed 's/^ *\([0-9]*\) \(.*\)/\2: \1 places differ/'
exit 0
