# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# common.sh - what both demonstrations of the quick start need: checks, an
# origin in a namespace of its own, a daemon
#
# deploy/quickstart sets bin and demo. A demonstration sets, before it calls
# anything here:
#   origin_space  name of the namespace that the origin is in
#   link          name of the device that leads there
#   node          command in front of what the node runs; () is this machine

origin=203.0.113.10
origin_space=
link=
node=()
work=
out=
daemon=
server=
checks=0
wrong=0

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

# check TEXT COMMAND...: one line, ok or WRONG
check() {
	local text=$1
	shift
	checks=$((checks + 1))
	if "$@" >/dev/null 2>&1; then
		printf '  ok     %s\n' "$text"
	else
		printf '  WRONG  %s\n' "$text"
		wrong=$((wrong + 1))
	fi
}

show() { sed 's/^/    /' "$1" | tr -d '\r'; }

# stop PID: told to end, and ended by force if it does not within half a minute
stop() {
	[ -n "$1" ] || return 0
	kill "$1" 2>/dev/null || return 0
	for _ in $(seq 300); do
		kill -0 "$1" 2>/dev/null || break
		sleep 0.1
	done
	kill -9 "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}

# The network of the node is there already.
network_remove() {
	"${node[@]}" ip link del "$link" 2>/dev/null || true
	ip netns del "$origin_space" 2>/dev/null || true
}

network_make() {
	network_remove
	ip netns add "$origin_space"
	"${node[@]}" ip link add "$link" type veth peer name eth0 \
		netns "/run/netns/$origin_space"
	"${node[@]}" ip addr add 203.0.113.1/24 dev "$link"
	"${node[@]}" ip link set "$link" up
	ip -n "$origin_space" link set lo up
	ip -n "$origin_space" addr add "$origin/24" dev eth0
	ip -n "$origin_space" link set eth0 up
}

# A CA for the demonstration's origin, and the origin's certificate.
certificates_make() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
		-days 2 -subj "/CN=Demo origin CA" \
		-keyout "$work/ca.key" -out "$work/ca.crt" 2>/dev/null
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
		-subj "/CN=api.demo.test" \
		-keyout "$work/origin.key" -out "$work/origin.csr" 2>/dev/null
	printf 'subjectAltName=DNS:api.demo.test,DNS:other.demo.test\n' \
		>"$work/origin.ext"
	openssl x509 -req -in "$work/origin.csr" -CA "$work/ca.crt" \
		-CAkey "$work/ca.key" -CAcreateserial -days 2 \
		-extfile "$work/origin.ext" -out "$work/origin.crt" 2>/dev/null
}

server_start() {
	: >"$work/notes"
	ip netns exec "$origin_space" /usr/bin/python3 "$demo/origin.py" \
		"$origin" 443 "$work/origin.crt" "$work/origin.key" \
		"$work/notes" 2>"$work/origin.log" &
	server=$!
}

# The value that must be seen at the origin and nowhere else.
secret_make() {
	printf 'demo-secret-%s\n' "$(openssl rand -hex 16)" >"$work/token"
	chmod 600 "$work/token"
}

# config_make MEMBERS: the configuration; MEMBERS is more of it, or ""
config_make() {
	mkdir -m 700 "$work/state"
	mkdir "$work/run" "$work/policies"
	head -c 32 /dev/urandom >"$work/vault.key"
	chmod 600 "$work/vault.key"
	cat >"$work/sallyport.json" <<-END
	{
	  "stateDir": "$work/state", "runDir": "$work/run",
	  "policyDir": "$work/policies", "auditFile": "$work/audit.jsonl",
	  "user": "",
	  "pins": {"api.demo.test": ["$origin"], "other.demo.test": ["$origin"]},
	  "upstream": {"trustFiles": ["$work/ca.crt"]},$1
	  "vault": {"keyFile": "$work/vault.key"}
	}
	END
	"$bin/sallyportd" --config "$work/sallyport.json" --check >/dev/null
}

daemon_start() {
	"${node[@]}" "$bin/sallyportd" --config "$work/sallyport.json" \
		2>"$work/daemon.log" &
	daemon=$!
	for _ in $(seq 150); do
		"$bin/sallyport" status --socket "$work/run/admin.sock" \
			>/dev/null 2>&1 && return 0
		kill -0 "$daemon" 2>/dev/null || break
		sleep 0.1
	done
	cat "$work/daemon.log" >&2
	echo "quickstart: the daemon did not start" >&2
	return 1
}

daemon_stop() {
	stop "$daemon"
	[ -z "$daemon" ] || "${node[@]}" "$bin/sallyportd" --config \
		"$work/sallyport.json" --remove-rules >/dev/null 2>&1
	daemon=
}

note_has_secret() { grep -qF "Bearer $(cat "$work/token")" "$work/notes"; }
# secret_nowhere FILE_OR_FOLDER...
secret_nowhere() {
	! grep -rqaF "$(cat "$work/token")" "$out" "$work/state" \
		"$work/run" "$work/audit.jsonl" "$work/daemon.log" "$@"
}
