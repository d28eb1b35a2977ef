# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# run.sh - the demonstration of `sallyport run`: one command in a sandbox that
# the command line makes

origin_space=sallyport-demo
link=sallydemo0

sandbox_run() {
	"$bin/sallyport" run --config "$work/sallyport.json" --id demo \
		--policy "$demo/policy.yaml" \
		--credential "demo-token=@$work/token" \
		--binding "$demo/binding.json" \
		-- "$demo/inside" "$out"
}

nothing_found() { [ -f "$out/found" ] && ! [ -s "$out/found" ]; }

demonstrate() {
	say "An origin, a daemon, a sandbox"
	network_make
	certificates_make
	server_start
	config_make ""
	daemon_start
	secret_make
	sandbox_run

	say "1. An allowed request, made by plain curl without any credential"
	show "$out/allowed.body"
	show "$out/allowed.error"
	check "the origin answered 200" grep -q '^HTTP/1.1 200' "$out/allowed.head"
	check "the origin received the credential" note_has_secret
	check "it saw one request" test "$(wc -l <"$work/notes")" = 1

	say "2. The same sandbox, searched for the credential"
	check "not in environment, files or memory inside" nothing_found
	check "not in logs, audit, database or what came out" secret_nowhere

	say "3. What policy does not allow"
	show "$out/denied.body"
	check "DELETE was answered 403" grep -q '^HTTP/1.1 403' "$out/denied.head"
	check "with the reason in a header" \
		grep -qi '^sallyport-denied:' "$out/denied.head"
	printf '    other.demo.test: %s\n' "$(cat "$out/denied.dns")"
	check "another name does not resolve, and says why" \
		grep -q 'NXDOMAIN, extended error' "$out/denied.dns"
	show "$out/address.error"
	check "the bare address is not reached" \
		bash -c "! grep -q reached '$out/address.error'"

	say "4. The audit record"
	cat "$work/audit.jsonl"
	check "tells of the allowed request and its binding" grep -q \
		'"verdict":"allow".*"binding":"demo:demo-api".*"injected":true' \
		"$work/audit.jsonl"
	check "tells of the denied ones" test \
		"$(grep -c '"verdict":"deny"' "$work/audit.jsonl")" = 3
}

take_away() {
	daemon_stop
	stop "$server"
	network_remove
}
