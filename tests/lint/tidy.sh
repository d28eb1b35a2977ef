#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tidy.sh - clang-tidy over what changed, or with LINT_ALL=1 over everything
#
# Which checks run, and why the others do not, is in .clang-tidy. Changed means
# against LINT_BASE (default: the parent commit) and in the work tree.
set -u
command -v clang-tidy >/dev/null || { echo "tidy: skipped"; exit 77; }
cd "$1" || exit 1
[ -f "$2/compile_commands.json" ] || { echo "tidy: no $2 yet"; exit 77; }
if [ -n "${LINT_ALL:-}" ]; then
	files=$(find src policy vault certs gateway -name '*.c' | sort)
else
	base=${LINT_BASE:-HEAD^}
	files=$(git diff --name-only --diff-filter=d "$base" -- \
		'src/*.c' 'policy/*.c' 'vault/*.c' 'certs/*.c' 'gateway/*.c' \
		2>/dev/null | sort)
fi
[ -n "$files" ] || { echo "tidy: nothing changed"; exit 0; }
count=$(echo "$files" | wc -l)
echo "$files" | xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p "$2" \
	--warnings-as-errors='*' 2>/dev/null || exit 1
echo "tidy: $count files clean"
