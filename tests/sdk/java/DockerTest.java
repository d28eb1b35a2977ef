// SPDX-License-Identifier: Apache-2.0
// Life, network policy, credential vault and ways in of sandboxes of a whole node,
// through the official Java SDK. SALLYPORT_ORIGIN_LOG names the file in which the
// origin behind api.lab.test and plain.lab.test notes what it received.

import com.alibaba.opensandbox.sandbox.Sandbox;
import com.alibaba.opensandbox.sandbox.SandboxManager;
import com.alibaba.opensandbox.sandbox.config.ConnectionConfig;
import com.alibaba.opensandbox.sandbox.domain.exceptions.SandboxApiException;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.Execution;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.OutputMessage;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.RunCommandRequest;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.Credential;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.CredentialAuth;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.CredentialBinding;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.CredentialBindingMutationSet;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.CredentialMatch;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.CredentialMutationSet;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.CredentialVaultState;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.CustomHeaderEntry;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.Host;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.NetworkPolicy;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.NetworkRule;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.PagedSandboxInfos;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.PVC;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.SandboxEndpoint;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.SandboxFilter;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.SandboxInfo;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.SnapshotFilter;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.SnapshotInfo;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.Volume;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.WebSocket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

public final class DockerTest extends Tests {
	private static final String API = "api.lab.test", PLAIN = "plain.lab.test";
	private static final List<Sandbox> made = new ArrayList<>();
	private static final HttpClient http = HttpClient.newBuilder()
		.version(HttpClient.Version.HTTP_1_1).build();
	private static SandboxManager manager;

	private static ConnectionConfig.Builder config() {
		return ConnectionConfig.builder().protocol("http")
			.domain(System.getenv("OPEN_SANDBOX_DOMAIN"));
	}

	private static Sandbox make(Consumer<Sandbox.Builder> wishes) {
		Sandbox.Builder b = Sandbox.builder().timeout(Duration.ofMinutes(10))
			.resource(Map.of("cpu", "500m", "memory", "256Mi"))
			.connectionConfig(config().build());
		wishes.accept(b);
		Sandbox sandbox = b.build();
		made.add(sandbox);
		return sandbox;
	}

	private static Sandbox boxWith(Consumer<Sandbox.Builder> wishes) {
		return make(b -> wishes.accept(b.image("tests:local")));
	}

	/* A test, and the end of every sandbox that it made. */
	private static void story(String name, Body body) {
		test(name, () -> {
			try {
				body.run();
			} finally {
				for (Sandbox s : made) {
					try {
						s.kill();
					} catch (SandboxApiException e) {
						same(404, e.getStatusCode());
					}
					s.close();
				}
				made.clear();
			}
		});
	}

	private static void refused(int status, String code, Body body) {
		SandboxApiException e = (SandboxApiException) fails("what is refused", body);
		same(status, e.getStatusCode());
		holds(e.getRequestId() != null, "it has the id of the request");
		if (code != null) same(code, e.getError().getCode());
	}

	private static String said(Sandbox sandbox, String command) {
		Execution done = sandbox.commands().run(
			RunCommandRequest.builder().command(command).build());
		same(null, done.getError());
		return done.getLogs().getStdout().stream().map(OutputMessage::getText)
			.collect(Collectors.joining("\n"));
	}

	private static void until(String what, Callable<Boolean> condition) throws Exception {
		for (int i = 0; i < 300; i++) {
			if (condition.call()) return;
			Thread.sleep(100);
		}
		throw new AssertionError("waited in vain for " + what);
	}

	private static boolean is(Sandbox sandbox, String state) {
		return sandbox.getInfo().getStatus().getState().equals(state);
	}

	private static boolean ends(SandboxInfo info, int after, int before) {
		OffsetDateTime now = OffsetDateTime.now();
		return info.getExpiresAt().isAfter(now.plusMinutes(after))
			&& info.getExpiresAt().isBefore(now.plusMinutes(before).plusSeconds(1));
	}

	/* The status that a client inside sees; 000 where there was no answer. */
	private static String curl(Sandbox sandbox, String url) {
		return said(sandbox, "curl -s --max-time 10 -o /dev/null -w '%{http_code}' '" + url
			+ "' || true");
	}

	/* The values of a header in every request for a path that the origin got; null
	 * where it had none. Its log is one JSON object a line, of plain strings. */
	private static List<String> received(String path, String header) throws Exception {
		Pattern value = Pattern.compile("\\[\"" + header + "\", \"([^\"]*)\"\\]",
			Pattern.CASE_INSENSITIVE);
		List<String> all = new ArrayList<>();
		for (String line : Files.readAllLines(Path.of(System.getenv("SALLYPORT_ORIGIN_LOG")))) {
			if (!line.contains("\"path\": \"" + path + "\"")) continue;
			Matcher m = value.matcher(line);
			all.add(m.find() ? m.group(1) : null);
		}
		return all;
	}

	private static NetworkRule rule(NetworkRule.Action action, String target) {
		return NetworkRule.builder().action(action).target(target).build();
	}

	private static NetworkPolicy allow(String... targets) {
		NetworkPolicy.Builder b = NetworkPolicy.builder()
			.defaultAction(NetworkPolicy.DefaultAction.DENY);
		for (String t : targets) b.addEgress(rule(NetworkRule.Action.ALLOW, t));
		return b.build();
	}

	private static Map<String, String> rules(Sandbox sandbox) {
		Map<String, String> all = new HashMap<>();
		for (NetworkRule r : sandbox.getEgressPolicy().getEgress())
			all.put(r.getTarget(), r.getAction().name());
		return all;
	}

	private static void life() {
		story("created as wished, renewed, found again", () -> {
			Sandbox box = boxWith(b -> b.metadata("team", "lab").env("GREETING", "a b'c")
				.entrypoint("sleep", "infinity"));
			SandboxInfo info = box.getInfo();
			same(box.getId(), info.getId());
			same("Running", info.getStatus().getState());
			same(List.of("sleep", "infinity"), info.getEntrypoint());
			same(Map.of("team", "lab"), info.getMetadata());
			holds(ends(info, 9, 10), "it ends in ten minutes");
			same("a b'c", said(box, "echo \"$GREETING\""));
			holds(box.isHealthy(), "it is healthy");
			box.renew(Duration.ofMinutes(30));
			holds(ends(box.getInfo(), 29, 30), "it ends in thirty minutes");
			try (Sandbox other = Sandbox.connector().sandboxId(box.getId())
				.connectionConfig(config().build()).connect()) {
				same("found", said(other, "echo found"));
			}
			same(null, boxWith(b -> b.manualCleanup()).getInfo().getExpiresAt());
		});
		story("listed, filtered, told otherwise", () -> {
			Sandbox one = boxWith(b -> b.metadata("case", "java-list").metadata("n", "1"));
			Sandbox two = boxWith(b -> b.metadata("case", "java-list").metadata("n", "2"));
			Map<String, String> all = Map.of("case", "java-list");
			manager.pauseSandbox(two.getId());
			until("the pause", () -> is(two, "Paused"));
			same(Set.of(one.getId(), two.getId()), ids(all));
			same(Set.of(one.getId(), two.getId()), ids(all, "Running", "Paused"));
			same(Set.of(two.getId()), ids(all, "Paused"));
			same(Set.of(one.getId()), ids(Map.of("case", "java-list", "n", "1")));
			PagedSandboxInfos page = manager.listSandboxInfos(SandboxFilter.builder()
				.metadata(all).page(2).pageSize(1).build());
			same(List.of(1, 2, false), List.of(page.getSandboxInfos().size(),
				page.getPagination().getTotalItems(), page.getPagination().getHasNextPage()));
			manager.resumeSandbox(two.getId());
			Map<String, String> patch = new HashMap<>();
			patch.put("n", null);
			patch.put("added", "yes");
			same(Map.of("case", "java-list", "added", "yes"),
				manager.patchSandboxMetadata(one.getId(), patch).getMetadata());
			same(Map.of("case", "java-list", "added", "yes"),
				manager.getSandboxInfo(one.getId()).getMetadata());
			manager.renewSandbox(one.getId(), Duration.ofHours(1));
			holds(ends(one.getInfo(), 59, 60), "it ends in an hour");
			manager.killSandbox(one.getId());
			same(Set.of(two.getId()), ids(all));
		});
		story("paused and resumed", () -> {
			Sandbox box = boxWith(b -> { });
			said(box, "echo kept > /tmp/file");
			box.pause();
			until("the pause", () -> is(box, "Paused"));
			holds(!box.isHealthy(), "who sleeps is not healthy");
			try (Sandbox again = Sandbox.resumer().sandboxId(box.getId())
				.connectionConfig(config().build()).resume()) {
				holds(is(again, "Running"), "it runs again");
				same("kept", said(again, "cat /tmp/file"));
			}
		});
		story("a snapshot and what is made of it", () -> {
			Sandbox box = boxWith(b -> { });
			said(box, "echo kept > /root/file");
			SnapshotInfo kept = box.createSnapshot("java");
			same(box.getId(), kept.getSandboxId());
			until("the snapshot", () ->
				manager.getSnapshot(kept.getId()).getStatus().getState().equals("Ready"));
			same(List.of(kept.getId()), manager.listSnapshots(
				SnapshotFilter.builder().sandboxId(box.getId()).build()).getSnapshotInfos()
				.stream().map(SnapshotInfo::getId).collect(Collectors.toList()));
			box.kill();
			Sandbox restored = make(b -> b.snapshotId(kept.getId()));
			same("kept", said(restored, "cat /root/file"));
			restored.kill();
			manager.deleteSnapshot(kept.getId());
			refused(404, null, () -> manager.getSnapshot(kept.getId()));
		});
		story("volumes", () -> {
			String shared = System.getenv("SALLYPORT_SHARED");
			Volume.Builder host = Volume.builder().host(Host.of(shared)).subPath("java");
			Sandbox box = boxWith(b -> b
				.volume(host.name("rw").mountPath("/rw").build())
				.volume(host.name("ro").mountPath("/ro").readOnly(true).build())
				.volume(Volume.builder().name("v").mountPath("/v").pvc(PVC.builder()
					.claimName("java-volume").deleteOnSandboxTermination(true).build())
					.build()));
			said(box, "echo marker > /rw/file; touch /v/file");
			same("marker\n", Files.readString(Path.of(shared, "java/file")));
			same("marker\nrefused", said(box, "cat /ro/file; touch /ro/no || echo refused"));
		});
	}

	private static Set<String> ids(Map<String, String> metadata, String... states) {
		SandboxFilter.Builder b = SandboxFilter.builder().metadata(metadata);
		if (states.length > 0) b.states(states);
		return manager.listSandboxInfos(b.build()).getSandboxInfos().stream()
			.map(SandboxInfo::getId).collect(Collectors.toCollection(HashSet::new));
	}

	private static void egress() {
		story("network policy, also through the server", () -> {
			Sandbox box = boxWith(b -> b.networkPolicy(allow(API)));
			String at = "/" + box.getId();
			same(NetworkPolicy.DefaultAction.DENY, box.getEgressPolicy().getDefaultAction());
			same(Map.of(API, "ALLOW"), rules(box));
			same("200", curl(box, "http://" + API + at + "/a"));
			curl(box, "http://" + PLAIN + at + "/b");
			box.patchEgressRules(List.of(rule(NetworkRule.Action.ALLOW, PLAIN),
				rule(NetworkRule.Action.DENY, API)));
			same(Map.of(PLAIN, "ALLOW", API, "DENY"), rules(box));
			curl(box, "http://" + API + at + "/c");
			same("200", curl(box, "http://" + PLAIN + at + "/d"));
			try (Sandbox proxied = Sandbox.connector().sandboxId(box.getId())
				.connectionConfig(config().useServerProxy(true).build()).connect()) {
				holds(proxied.getEndpoint(18080).getEndpoint()
					.endsWith("/sandboxes/" + box.getId() + "/proxy/18080"), "the way");
				proxied.deleteEgressRules(List.of(PLAIN, "never.lab.test"));
				same(Map.of(API, "DENY"), rules(proxied));
				same("through", said(proxied, "echo through"));
			}
			curl(box, "http://" + PLAIN + at + "/e");
			List<Integer> counts = new ArrayList<>();
			for (String name : List.of("a", "b", "c", "d", "e"))
				counts.add(received(at + "/" + name, "Host").size());
			same(List.of(1, 0, 0, 1, 0), counts);
			fails("a name that is none", () -> box.patchEgressRules(
				List.of(rule(NetworkRule.Action.ALLOW, "not a name"))));
		});
		story("every kind of credential", DockerTest::everyKind);
		story("a vault that changes", DockerTest::changingVault);
	}

	private static CredentialBinding bind(String name, String path, CredentialAuth auth) {
		return CredentialBinding.builder().name(name).auth(auth).match(CredentialMatch.builder()
			.schemes(CredentialMatch.Scheme.HTTP).ports(80).hosts(API).methods("GET")
			.paths(path).build()).build();
	}

	private static Credential secret(String name, String value) {
		return Credential.builder().name(name).inlineSource(value).build();
	}

	private static void everyKind() throws Exception {
		Sandbox box = boxWith(b -> b.credentialProxyEnabled(true).networkPolicy(
			NetworkPolicy.builder().defaultAction(NetworkPolicy.DefaultAction.ALLOW).build()));
		String at = "/" + box.getId();
		CredentialVaultState state = box.credentialVault().create(
			List.of(secret("b", "java-bearer-of-the-lab"), secret("u", "amF2YS1vZi10aGUtbGFi"),
				secret("k", "java-key-of-the-lab"), secret("i", "java-client-of-the-lab"),
				secret("s", "java-secret-of-the-lab")),
			List.of(bind("bearer", at + "/bearer", CredentialAuth.bearer("b")),
				bind("basic", at + "/basic", CredentialAuth.basic("u")),
				bind("key", at + "/key", CredentialAuth.apiKey("X-Api-Key", "k")),
				bind("custom", at + "/custom", CredentialAuth.customHeaders(List.of(
					CustomHeaderEntry.builder().name("X-Client-Id").credential("i").build(),
					CustomHeaderEntry.builder().name("X-Client-Secret").credential("s")
						.build())))));
		same(Set.of("bearer", "basic", "apiKey", "customHeaders"), state.getBindings().stream()
			.map(b -> b.getAuth().getType()).collect(Collectors.toSet()));
		for (String name : List.of("bearer", "basic", "key", "custom", "none"))
			same("200", curl(box, "http://" + API + at + "/" + name));
		same(List.of("Bearer java-bearer-of-the-lab"), received(at + "/bearer", "Authorization"));
		same(List.of("Basic amF2YS1vZi10aGUtbGFi"), received(at + "/basic", "Authorization"));
		same(List.of("java-key-of-the-lab"), received(at + "/key", "X-Api-Key"));
		same(List.of("java-client-of-the-lab"), received(at + "/custom", "X-Client-Id"));
		same(List.of("java-secret-of-the-lab"), received(at + "/custom", "X-Client-Secret"));
		List<String> none = new ArrayList<>();
		none.add(null);
		same(none, received(at + "/none", "Authorization"));
	}

	private static void changed(Sandbox box, int revision, CredentialMutationSet credentials,
			CredentialBindingMutationSet bindings, int... counts) {
		CredentialVaultState state = box.credentialVault().patch(revision - 1, credentials, bindings);
		same(List.of(revision, counts[0], counts[1]), List.of(state.getRevision(),
			state.getCredentials().size(), state.getBindings().size()));
	}

	private static void changingVault() throws Exception {
		Sandbox box = boxWith(b -> b.credentialProxyEnabled(true).networkPolicy(allow(API)));
		String at = "/" + box.getId(), header = "X-Runtime-Token";
		CredentialAuth auth = CredentialAuth.apiKey(header, "token");
		CredentialVaultState empty = box.credentialVault().create(List.of(), List.of());
		same(List.of(1, 0, 0), List.of(empty.getRevision(), empty.getCredentials().size(),
			empty.getBindings().size()));
		changed(box, 2, CredentialMutationSet.builder()
			.add(List.of(secret("token", "java-1-of-the-lab"))).build(),
			CredentialBindingMutationSet.builder()
			.add(List.of(bind("added", at + "/added", auth))).build(), 1, 1);
		same("200", curl(box, "http://" + API + at + "/added"));
		changed(box, 3, null, CredentialBindingMutationSet.builder().delete("added").build(), 1, 0);
		changed(box, 4, CredentialMutationSet.builder()
			.replace(List.of(secret("token", "java-2-of-the-lab"))).build(),
			CredentialBindingMutationSet.builder()
			.add(List.of(bind("replaced", at + "/replaced", auth))).build(), 1, 1);
		same("200", curl(box, "http://" + API + at + "/replaced"));
		same("200", curl(box, "http://" + API + at + "/added"));
		List<String> added = new ArrayList<>(List.of("java-1-of-the-lab"));
		added.add(null);
		same(added, received(at + "/added", header));
		same(List.of("java-2-of-the-lab"), received(at + "/replaced", header));
		refused(409, null, () -> box.credentialVault().patch(3, null,
			CredentialBindingMutationSet.builder().delete("replaced").build()));
		same("apiKey", box.credentialVault().getBinding("replaced").getAuth().getType());
		same("inline", box.credentialVault().getCredential("token").getSourceType());
		same(1, box.credentialVault().listBindings().size());
		same(1, box.credentialVault().listCredentials().size());
		same(4, box.credentialVault().get().getRevision());
		changed(box, 5, null, CredentialBindingMutationSet.builder().delete("replaced").build(),
			1, 0);
		changed(box, 6, CredentialMutationSet.builder().delete("token").build(), null, 0, 0);
		box.credentialVault().delete();
		refused(404, null, () -> box.credentialVault().get());
	}

	private static HttpResponse<String> fetch(SandboxEndpoint at, String path, boolean headers)
			throws Exception {
		HttpRequest.Builder b = HttpRequest.newBuilder(
			URI.create("http://" + at.getEndpoint() + path));
		if (headers) at.getHeaders().forEach(b::header);
		if (path.equals("/pty")) b.header("Content-Type", "application/json")
			.POST(HttpRequest.BodyPublishers.ofString("{}"));
		return http.send(b.build(), HttpResponse.BodyHandlers.ofString());
	}

	/* What a terminal shows, over a WebSocket through the ingress. */
	private static String terminal(SandboxEndpoint at) throws Exception {
		Matcher id = Pattern.compile("\"session_id\": ?\"([^\"]+)\"")
			.matcher(fetch(at, "/pty", true).body());
		holds(id.find(), "a session");
		StringBuilder seen = new StringBuilder();
		CompletableFuture<String> end = new CompletableFuture<>();
		WebSocket.Builder b = http.newWebSocketBuilder();
		at.getHeaders().forEach(b::header);
		WebSocket socket = b.buildAsync(
			URI.create("ws://" + at.getEndpoint() + "/pty/" + id.group(1) + "/ws"),
			new WebSocket.Listener() {
				@Override
				public CompletionStage<?> onBinary(WebSocket w, ByteBuffer data, boolean last) {
					seen.append(StandardCharsets.UTF_8.decode(data));
					w.request(1);
					return null;
				}

				@Override
				public CompletionStage<?> onClose(WebSocket w, int status, String reason) {
					end.complete(seen.toString());
					return null;
				}

				@Override
				public void onError(WebSocket w, Throwable error) {
					end.completeExceptionally(error);
				}
			}).get(20, TimeUnit.SECONDS);
		socket.sendText("{\"type\":\"stdin\",\"data\":\"echo $((6*7))@pty; exit\\n\"}", true);
		return end.get(20, TimeUnit.SECONDS);
	}

	private static void ways() {
		story("ways in", () -> {
			Sandbox box = boxWith(b -> b.secureAccess(true).entrypoint("bash", "-c",
				"mkdir -p /srv; echo hello > /srv/file; "
				+ "exec python3 -m http.server 8000 --directory /srv"));
			SandboxEndpoint at = box.getEndpoint(8000), execd = box.getEndpoint(44772);
			until("the server", () -> fetch(at, "/file", true).statusCode() == 200);
			same("hello\n", fetch(at, "/file", true).body());
			same(401, fetch(at, "/file", false).statusCode());
			same(200, fetch(box.getSignedEndpoint(8000, System.currentTimeMillis() / 1000 + 60),
				"/file", false).statusCode());
			same(200, fetch(execd, "/ping", true).statusCode());
			same(401, fetch(execd, "/ping", false).statusCode());
			holds(terminal(execd).contains("42@pty"), "the terminal shows it");
			box.kill();
			same(404, fetch(execd, "/ping", true).statusCode());
			refused(404, "DOCKER::SANDBOX_NOT_FOUND", box::getInfo);
		});
		story("what it says of itself", () -> {
			Sandbox box = boxWith(b -> b.entrypoint("bash", "-c", "echo begun; sleep infinity"));
			until("the log", () ->
				box.getDiagnosticLogs("container").getContent().contains("begun"));
			same(box.getId(), box.getDiagnosticEvents("lifecycle").getSandboxId());
			holds(box.getMetrics().getMemoryTotalInMiB() > 0, "it has memory");
		});
		story("refused, with the id of the request", () -> {
			SandboxManager other = SandboxManager.builder().connectionConfig(
				config().addHeader("X-Request-ID", "java-id-of-a-request").build()).build();
			SandboxApiException e = (SandboxApiException) fails("an unknown one",
				() -> other.getSandboxInfo("no-such-sandbox"));
			same("java-id-of-a-request", e.getRequestId());
			refused(404, "DOCKER::SANDBOX_NOT_FOUND",
				() -> manager.killSandbox("no-such-sandbox"));
			refused(404, null, () -> manager.pauseSandbox("no-such-sandbox"));
			refused(404, null, () -> manager.resumeSandbox("no-such-sandbox"));
			refused(404, null, () -> manager.renewSandbox("no-such-sandbox", Duration.ofMinutes(1)));
			refused(500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
				() -> make(b -> b.image("no-such/image@sha256:0")));
			refused(401, "INVALID_API_KEY", () -> boxWith(b -> b.connectionConfig(
				config().apiKey("another").build())));
		});
	}

	public static void main(String[] args) {
		manager = SandboxManager.builder().connectionConfig(config().build()).build();
		life();
		egress();
		ways();
		manager.close();
		end();
	}
}
