#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cppcheck.sh - cppcheck's warnings, performance and portability: none
set -u
command -v cppcheck >/dev/null || { echo "cppcheck: skipped"; exit 77; }
cd "$1" || exit 1
cache="$2/lint-cppcheck"
mkdir -p "$cache" || exit 1
# Suppressed, each with its reason:
#  missingIncludeSystem  system headers are not read, on purpose (speed)
#  unknownMacro          name tables by X-macro are opaque to it
#  autoVariables         a flag on the stack tells whether a callback freed us
#  internalAstError      it cannot parse compound literals behind a '?'
#  uninitStructMember    it does not follow results that come by pointer
#  normalCheckLevelMaxBranches  says only that it looked less deep
cppcheck --quiet --std=c11 --platform=unix64 -j "$(nproc)" -D_GNU_SOURCE \
	-DSALLYPORT_VERSION='"x"' -I . --cppcheck-build-dir="$cache" \
	--enable=warning,performance,portability --inline-suppr \
	--suppress=missingIncludeSystem --suppress=unknownMacro \
	--suppress=autoVariables --suppress=internalAstError \
	--suppress=uninitStructMember \
	--suppress=normalCheckLevelMaxBranches --error-exitcode=1 \
	src policy vault certs gateway || exit 1
echo "cppcheck: clean"
