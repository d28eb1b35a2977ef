# SPDX-License-Identifier: Apache-2.0
# bash completion for sallyport: subcommands, their options, and the names of
# sandboxes and credentials that a running daemon knows. Install as
# /usr/share/bash-completion/completions/sallyport

# Words of the first column of a list, without its title.
_sallyport_names() {
	sallyport "$@" 2>/dev/null | awk 'NR > 1 { print $1 }'
}

_sallyport_options() {
	sallyport "$@" --help 2>/dev/null | grep -oE -- '--[a-z]+' | sort -u
}

# Subcommands of "" or of a group.
_sallyport_commands() {
	sallyport "$@" --help 2>/dev/null |
		awk '/^  [a-z]/ { print $1 }'
}

_sallyport() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local first=${COMP_WORDS[1]:-} second=${COMP_WORDS[2]:-}
	local path=("$first") words

	COMPREPLY=()
	case $first in
	audit | binding | ca | policy | sandbox | token | vault)
		[ "$COMP_CWORD" -ge 3 ] && path=("$first" "$second")
		;;
	esac
	case $prev in
	--config | -c | --policy | -p | --binding | -b | --file | -f | \
		--socket | -s)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--sandbox | -S)
		words=$(_sallyport_names sandbox list)
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
		return
		;;
	esac
	if [ "$COMP_CWORD" = 1 ]; then
		words=$(_sallyport_commands)
	elif [ "$COMP_CWORD" = 2 ] && [[ $cur != -* ]]; then
		words=$(_sallyport_commands "$first")
	elif [[ $cur == -* ]]; then
		words=$(_sallyport_options "${path[@]}")
	else
		case "$first $second" in
		"vault rm" | "vault put") words=$(_sallyport_names vault list) ;;
		"binding rm") words=$(_sallyport_names binding list) ;;
		"sandbox rm" | "sandbox show")
			words=$(_sallyport_names sandbox list) ;;
		"policy rm") words=$(_sallyport_names policy list) ;;
		"token rm") words=$(_sallyport_names token list) ;;
		*)
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			return
			;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -o default -F _sallyport sallyport
