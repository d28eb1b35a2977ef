# SPDX-License-Identifier: Apache-2.0
# driver.sh - what a shell is told before the first cell of its context
#
# The shell reads its commands from the private channel (its stdin) and answers
# on fd 3, the same socket; what a cell starts has neither: its stdin is
# /dev/null and fd 3 is closed. A cell is evaluated at top level, in this very
# shell, so that all it sets stays. It stands in a loop of one turn:
#
#     while :; do eval CELL; ...; break; done
#
# because SIGINT must leave it from wherever it is: the handler returns from
# the innermost function and lets each following command do the same (the
# DEBUG trap, which reaches into functions because of -T), until at top level
# it can break out of all loops. A shell without DEBUG traps leaves its loops
# when no function runs; otherwise it goes on, and a second interrupt ends it.
__sallyport_say() {
	printf '%s %s %s\n%s' "$1" "$__sallyport_run" "${#2}" "$2" >&3
}
__sallyport_run=0
__sallyport_status=0
__sallyport_left=0
__sallyport_leave='break 999 2>/dev/null'
__sallyport_on_int='__sallyport_status=130; eval "$__sallyport_leave"'
__sallyport_clean=:
__sallyport_before='eval "$__sallyport_clean"; __sallyport_status=0
	trap "$__sallyport_on_int" INT; __sallyport_say begin ""'
__sallyport_after='trap : INT; eval "$__sallyport_clean"
	__sallyport_say exit "$__sallyport_status"'
trap : INT
if [ -n "${BASH_VERSION-}" ]; then
	set -T
	shopt -s expand_aliases
	__sallyport_leave='case ${#FUNCNAME[@]} in
		0) break 999 2>/dev/null ;;
		*) return 130 ;;
	esac'
	__sallyport_on_int='__sallyport_status=130 __sallyport_left=1
		trap "$__sallyport_leave" DEBUG
		eval "$__sallyport_leave"'
	__sallyport_clean='case $__sallyport_left in
		1) trap - DEBUG; __sallyport_left=0 ;;
	esac'
	__sallyport_say ready "bash $BASH_VERSION"
else
	__sallyport_say ready sh
fi
