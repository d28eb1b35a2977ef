#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tidy.sh - clang-tidy over every source
#
# Which checks run, and why the others do not, is in .clang-tidy; those that
# walk paths are off, which keeps this under a minute.
set -u
command -v clang-tidy >/dev/null || { echo "tidy: skipped"; exit 77; }
cd "$1" || exit 1
[ -f "$2/compile_commands.json" ] || { echo "tidy: no $2 yet"; exit 1; }
files=$(find src policy vault certs gateway -name '*.c' | sort)
# 2: words about suppressed warnings in system headers. A release is compiled
# with an option of gcc for link-time optimisation that clang does not know.
echo "$files" | xargs -P "$(nproc)" -n 8 clang-tidy --quiet -p "$2" \
	--extra-arg=-Wno-ignored-optimization-argument \
	--warnings-as-errors='*' 2>/dev/null || exit 1
echo "tidy: $(echo "$files" | wc -l) files clean"
