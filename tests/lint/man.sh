#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# man.sh - every man page is sound mdoc
set -u
command -v mandoc >/dev/null || { echo "man: skipped, no mandoc here"; exit 77; }
cd "$1" || exit 1
pages=$(find docs/man -name '*.[158]' | sort)
[ -n "$pages" ] || { echo "man: no pages below docs/man"; exit 1; }
# -W error: style advice such as a missing date is not a failure, errors are
# shellcheck disable=SC2086 # one word per page
mandoc -T lint -W error $pages || exit 1
echo "man: $(echo "$pages" | wc -l) pages are sound"
