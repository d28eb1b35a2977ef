# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# docker.sh - the demonstration of the lifecycle API: a sandbox that the
# official Python SDK of OpenSandbox makes
#
# How it works: the node is a network namespace with a Docker daemon of our own
# in it, which has folders, socket, cgroup and mounts of its own too. So a
# Docker daemon that this machine may have is not used, asked or disturbed, and
# what is left to take away is one process, two namespaces and a folder. The
# image is made of this machine's own programs; no registry of images is asked.

node_space=sallyport-demo-node
# not `ip netns exec`, which mounts another /sys, without the cgroups
node=(nsenter "--net=/run/netns/$node_space" --)
origin_space=sallyport-demo-net
link=sallydemo0
image=sallyport-demo:1
sdk_wanted="opensandbox==1.1.1"
api=127.0.0.1:8080
ingress=127.0.0.1:8081
disk=
dockerd=

demo_docker() { docker -H "unix://$disk/docker.sock" "$@"; }

# An interpreter that has the SDK: SALLYPORT_SDK, or an environment that is made
# once, beside the build.
sdk_make() {
	local place=${bin%/bin}/demo-sdk
	if [ -n "${SALLYPORT_SDK:-}" ]; then
		python=$SALLYPORT_SDK/bin/python
		return
	fi
	python=$place/bin/python
	[ "$(cat "$place/made" 2>/dev/null)" != "$sdk_wanted" ] || return 0
	say "The SDK: $sdk_wanted"
	rm -rf "$place"
	/usr/bin/python3 -m venv "$place"
	"$place/bin/pip" install -q --disable-pip-version-check "$sdk_wanted"
	printf '%s\n' "$sdk_wanted" >"$place/made"
}

# Mounts of its own, which are gone with it. A containerd of this machine, which
# it would use, is out of its sight: it starts one itself.
dockerd_start() {
	# shellcheck disable=SC2016 # expanded inside
	"${node[@]}" unshare --mount -- sh -c '
		[ ! -d /run/containerd ] ||
			mount -t tmpfs tmpfs /run/containerd || exit 1
		exec "$@"' sh \
		dockerd --data-root "$disk/data" --exec-root "$disk/exec" \
		--pidfile "$disk/dockerd.pid" --host "unix://$disk/docker.sock" \
		--exec-opt native.cgroupdriver=cgroupfs \
		--cgroup-parent "/${disk##*/}" \
		--bridge=none --iptables=false --ip6tables=false \
		>"$disk/dockerd.log" 2>&1 &
	dockerd=$!
	for _ in $(seq 600); do
		demo_docker version >/dev/null 2>&1 && return 0
		kill -0 "$dockerd" 2>/dev/null || break
		sleep 0.1
	done
	tail -n 20 "$disk/dockerd.log" >&2
	echo "quickstart: the Docker daemon did not start" >&2
	return 1
}

image_make() {
	/usr/bin/python3 tests/scenes/docker/image.py "$disk/image.tar"
	demo_docker import "$disk/image.tar" "$image" >/dev/null
	rm "$disk/image.tar"
}

docker_met() {
	for _ in $(seq 300); do
		grep -q "sandboxes are made of" "$work/daemon.log" && return 0
		kill -0 "$daemon" 2>/dev/null || break
		sleep 0.1
	done
	cat "$work/daemon.log" >&2
	echo "quickstart: the daemon did not find the Docker daemon" >&2
	return 1
}

# The key of the API and the secret go by files, never on a command line.
sdk_run() {
	"${node[@]}" timeout 300 "$python" "$demo/sdk.py" "$api" "$work/api.key" \
		"$image" "$work/token" "$demo" "unix://$disk/docker.sock" "$out"
}

# The decoy was found there, the secret was not.
only_decoy() {
	grep -q demo-decoy- "$out/found.$1" && ! grep -q demo-secret- "$out/found.$1"
}
key_nowhere() {
	! grep -rqaF "$(cat "$work/api.key")" "$out" "$work/audit.jsonl" \
		"$work/daemon.log" "$disk/dockerd.log"
}
containers_gone() { [ -z "$(demo_docker ps -aq)" ]; }
sandboxes_gone() {
	"$bin/sallyport" sandbox list --socket "$work/run/admin.sock" |
		awk 'NR > 1 { exit 1 }'
}

demonstrate() {
	sdk_make
	say "An origin, a Docker daemon, an image, a node"
	disk=$(mktemp -d /var/tmp/sallyport-demo.XXXXXX)
	ip netns del "$node_space" 2>/dev/null || true
	ip netns add "$node_space"
	"${node[@]}" ip link set lo up
	network_make
	certificates_make
	server_start
	dockerd_start
	image_make
	openssl rand -hex 24 >"$work/api.key"
	chmod 600 "$work/api.key"
	config_make "
	  \"lifecycle\": {\"listen\": \"$api\", \"apiKeyFile\": \"$work/api.key\",
	    \"dockerSocket\": \"$disk/docker.sock\"},
	  \"ingress\": {\"listen\": \"$ingress\"},"
	daemon_start
	docker_met
	secret_make
	sdk_run

	say "1. A sandbox made by the SDK; before policy and vault allow anything"
	show "$out/before"
	check "the API is not reached" grep -q '^000' "$out/before"

	say "2. With policy and credential set by the SDK: plain curl inside"
	show "$out/allowed"
	check "the origin answered 200" grep -q ' 200$' "$out/allowed"
	check "the origin received the credential" note_has_secret
	check "it saw one request" test "$(wc -l <"$work/notes")" = 1

	say "3. The sandbox, searched for the credential"
	check "a decoy is in the environment, the secret is not" \
		only_decoy environment
	check "the same for files" only_decoy files
	check "the same for memory" only_decoy memory
	check "not in what Docker knows of the container, or its disk" \
		secret_nowhere "$disk"
	check "not in logs, audit, database or what came out" secret_nowhere
	check "the key of the API is in no log either" key_nowhere

	say "4. What policy does not allow"
	printf '    other.demo.test: %s\n' "$(cat "$out/denied.dns")"
	check "another name does not resolve, and says why" \
		grep -q 'NXDOMAIN, extended error' "$out/denied.dns"
	show "$out/denied.http"
	check "asked for all the same, it is answered 403" \
		grep -q '^HTTP/1.1 403' "$out/denied.http"
	check "with the reason in plain words" \
		grep -q '"message":' "$out/denied.http"
	show "$out/address"
	check "the bare address is not reached" grep -q '^000' "$out/address"

	say "5. The audit record"
	grep -E '"kind":"(http|dns|connect)"' "$work/audit.jsonl"
	check "tells of the allowed request and its binding" grep -q \
		'"verdict":"allow".*"binding":"demo-api".*"injected":true' \
		"$work/audit.jsonl"
	check "tells of the denied host" grep -q \
		'"host":"other.demo.test".*"verdict":"deny"' "$work/audit.jsonl"

	say "6. The sandbox was killed by the SDK"
	check "no container is left" containers_gone
	check "no sandbox is registered" sandboxes_gone
}

take_away() {
	local container
	if [ -n "$dockerd" ]; then
		for container in $(demo_docker ps -aq 2>/dev/null); do
			demo_docker rm -f "$container" >/dev/null 2>&1
		done
	fi
	daemon_stop
	stop "$dockerd"
	dockerd=
	stop "$server"
	server=
	network_remove
	ip netns del "$node_space" 2>/dev/null
	[ -n "$disk" ] || return 0
	# cgroups are folders that only rmdir removes, one tree per controller
	rmdir "/sys/fs/cgroup/${disk##*/}" /sys/fs/cgroup/*/"${disk##*/}" \
		2>/dev/null
	rm -rf "$disk"
}
