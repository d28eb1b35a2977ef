// SPDX-License-Identifier: Apache-2.0
// Life, network policy, credential vault and ways in of sandboxes of a whole node,
// through the official JavaScript SDK. SALLYPORT_ORIGIN_LOG names the file in which
// the origin behind api.lab.test and plain.lab.test notes what it received.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, afterEach, test } from "node:test";
import {
	ConnectionConfig, Sandbox, SandboxApiException, SandboxManager,
} from "@alibaba-group/opensandbox";
import { WebSocket } from "undici";

const API = "api.lab.test", PLAIN = "plain.lab.test";
const SERVER = ["bash", "-c", "mkdir -p /srv; echo hello > /srv/file; "
	+ "exec python3 -m http.server 8000 --directory /srv"];
const config = (more) => new ConnectionConfig({
	domain: process.env.OPEN_SANDBOX_DOMAIN, protocol: "http", ...more });
const manager = SandboxManager.create({ connectionConfig: config() });
const minutes = (date) => (date - Date.now()) / 60_000;
let made = [];

async function make(wishes = {}) {
	const sandbox = await Sandbox.create({
		...("snapshotId" in wishes ? {} : { image: "tests:local" }), timeoutSeconds: 600,
		resource: { cpu: "500m", memory: "256Mi" }, connectionConfig: config(), ...wishes });
	made.push(sandbox);
	return sandbox;
}

afterEach(async () => {
	const all = made;
	made = [];
	for (const sandbox of all) {
		await sandbox.kill().catch((e) => { if (e.statusCode !== 404) throw e; });
		await sandbox.close();
	}
});

after(() => manager.close());

const refused = (status, code) => (e) => {
	assert.ok(e instanceof SandboxApiException, String(e));
	assert.equal(e.statusCode, status);
	assert.ok(e.requestId);
	if (code) assert.equal(e.error.code, code);
	return true;
};

async function said(sandbox, command) {
	const done = await sandbox.commands.run(command);
	assert.equal(done.error, undefined);
	return done.logs.stdout.map((m) => m.text).join("\n");
}

async function until(condition, what) {
	for (let i = 0; i < 300; i++) {
		const found = await condition();
		if (found) return found;
		await new Promise((r) => setTimeout(r, 100));
	}
	assert.fail(`waited in vain for ${what}`);
}

// The status that a client inside sees; 000 where there was no answer.
const curl = (sandbox, url, ...options) => said(sandbox,
	`curl -s ${options.join(" ")} --max-time 10 -o /dev/null -w '%{http_code}' '${url}' || true`);

// The headers of every request for a path that the origin received.
const received = (path) => readFileSync(process.env.SALLYPORT_ORIGIN_LOG, "utf8").trim()
	.split("\n").map((line) => JSON.parse(line)).filter((r) => r.path === path)
	.map((r) => Object.fromEntries(r.headers.map(([k, v]) => [k.toLowerCase(), v])));

const allow = (...targets) => ({
	defaultAction: "deny", egress: targets.map((target) => ({ action: "allow", target })) });
const rules = (policy) => Object.fromEntries(policy.egress.map((r) => [r.target, r.action]));

test("created as wished, renewed, found again", async () => {
	const sandbox = await make({ metadata: { team: "lab" }, env: { GREETING: "a b'c" },
		entrypoint: ["sleep", "infinity"] });
	const info = await sandbox.getInfo();
	assert.equal(info.id, sandbox.id);
	assert.equal(info.status.state, "Running");
	assert.deepEqual(info.entrypoint, ["sleep", "infinity"]);
	assert.deepEqual(info.metadata, { team: "lab" });
	assert.ok(minutes(info.expiresAt) > 9 && minutes(info.expiresAt) <= 10);
	assert.equal(await said(sandbox, 'echo "$GREETING"'), "a b'c");
	assert.equal(await sandbox.isHealthy(), true);

	const renewed = await sandbox.renew(1800);
	assert.ok(minutes(renewed.expiresAt) > 29);
	assert.ok((await sandbox.getInfo()).expiresAt > info.expiresAt);

	const other = await Sandbox.connect({ sandboxId: sandbox.id, connectionConfig: config() });
	assert.equal(await said(other, "echo found"), "found");
	await other.close();
});

test("without an end", async () => {
	assert.equal((await (await make({ timeoutSeconds: null })).getInfo()).expiresAt, null);
});

test("listed, filtered, told otherwise", async () => {
	const one = await make({ metadata: { case: "js-list", n: "1" } });
	const two = await make({ metadata: { case: "js-list", n: "2" } });
	const ids = async (filter) =>
		(await manager.listSandboxInfos(filter)).items.map((s) => s.id).sort();
	const both = [one.id, two.id].sort(), all = { case: "js-list" };
	await manager.pauseSandbox(two.id);
	await until(async () => (await two.getInfo()).status.state === "Paused", "the pause");
	assert.deepEqual(await ids({ metadata: all }), both);
	assert.deepEqual(await ids({ metadata: all, states: ["Running", "Paused"] }), both);
	assert.deepEqual(await ids({ metadata: all, states: ["Paused"] }), [two.id]);
	assert.deepEqual(await ids({ metadata: { ...all, n: "1" } }), [one.id]);
	assert.deepEqual(await ids({ metadata: { ...all, n: "3" } }), []);
	const page = await manager.listSandboxInfos({ metadata: all, page: 2, pageSize: 1 });
	assert.deepEqual([page.items.length, page.pagination.totalItems, page.pagination.hasNextPage],
		[1, 2, false]);
	await manager.resumeSandbox(two.id);

	const told = await manager.patchSandboxMetadata(one.id, { n: null, added: "yes" });
	assert.deepEqual(told.metadata, { ...all, added: "yes" });
	assert.deepEqual((await manager.getSandboxInfo(one.id)).metadata, told.metadata);
	await manager.renewSandbox(one.id, 3600);
	assert.ok(minutes((await one.getInfo()).expiresAt) > 59);
	await manager.killSandbox(one.id);
	assert.deepEqual(await ids({ metadata: all }), [two.id]);
});

test("paused and resumed", async () => {
	const sandbox = await make();
	await said(sandbox, "echo kept > /tmp/file");
	await sandbox.pause();
	await until(async () => (await sandbox.getInfo()).status.state === "Paused", "the pause");
	assert.equal(await sandbox.isHealthy(), false);
	const again = await sandbox.resume();
	assert.equal((await again.getInfo()).status.state, "Running");
	assert.equal(await said(again, "cat /tmp/file"), "kept");
});

test("a snapshot and what is made of it", async () => {
	const sandbox = await make();
	await said(sandbox, "echo kept > /root/file");
	const snapshot = await manager.createSnapshot(sandbox.id, { name: "js" });
	assert.deepEqual([snapshot.sandboxId, snapshot.name], [sandbox.id, "js"]);
	await until(async () => (await manager.getSnapshot(snapshot.id)).status.state === "Ready",
		"the snapshot");
	const listed = await manager.listSnapshots({ sandboxId: sandbox.id });
	assert.deepEqual(listed.items.map((s) => s.id), [snapshot.id]);
	await sandbox.kill();
	const restored = await make({ snapshotId: snapshot.id });
	assert.equal((await restored.getInfo()).snapshotId, snapshot.id);
	assert.equal(await said(restored, "cat /root/file"), "kept");
	await restored.kill();
	await manager.deleteSnapshot(snapshot.id);
	await assert.rejects(manager.getSnapshot(snapshot.id), refused(404));
});

test("network policy, also through the server", async () => {
	const sandbox = await make({ networkPolicy: allow(API) });
	const at = `/${sandbox.id}`;
	assert.equal((await sandbox.getEgressPolicy()).defaultAction, "deny");
	assert.deepEqual(rules(await sandbox.getEgressPolicy()), { [API]: "allow" });
	assert.equal(await curl(sandbox, `http://${API}${at}/a`), "200");
	assert.notEqual(await curl(sandbox, `http://${PLAIN}${at}/b`), "200");

	await sandbox.patchEgressRules([{ action: "allow", target: PLAIN },
		{ action: "deny", target: API }]);
	assert.deepEqual(rules(await sandbox.getEgressPolicy()), { [PLAIN]: "allow", [API]: "deny" });
	assert.notEqual(await curl(sandbox, `http://${API}${at}/c`), "200");
	assert.equal(await curl(sandbox, `http://${PLAIN}${at}/d`), "200");

	const proxied = await Sandbox.connect({ sandboxId: sandbox.id,
		connectionConfig: config({ useServerProxy: true }) });
	assert.match((await proxied.getEndpoint(18080)).endpoint,
		new RegExp(`/sandboxes/${sandbox.id}/proxy/18080$`));
	await proxied.deleteEgressRules([PLAIN, "never.lab.test"]);
	assert.deepEqual(rules(await proxied.getEgressPolicy()), { [API]: "deny" });
	assert.equal(await said(proxied, "echo through"), "through");
	await proxied.close();
	assert.notEqual(await curl(sandbox, `http://${PLAIN}${at}/e`), "200");
	assert.deepEqual([..."abcde"].map((n) => received(`${at}/${n}`).length), [1, 0, 0, 1, 0]);
	await assert.rejects(sandbox.patchEgressRules([{ action: "allow", target: "not a name" }]));
});

const secret = (name, value) => ({ name, source: { type: "inline", value } });
const bind = (name, path, auth, match = {}) => ({ name, auth, match: {
	hosts: [API], schemes: ["http"], methods: ["GET"], paths: [path], ...match } });

test("every kind of credential", async () => {
	const sandbox = await make({ networkPolicy: { defaultAction: "allow", egress: [] },
		credentialProxy: { enabled: true } });
	const at = `/${sandbox.id}`, values = {
		bearer: "js-bearer-of-the-lab", basic: "dXNlcjpqcy1vZi10aGUtbGFi",
		key: "js-api-key-of-the-lab", id: "js-client-of-the-lab", secret: "js-secret-of-the-lab" };
	const state = await sandbox.credentialVault.create({
		credentials: Object.entries(values).map(([n, v]) => secret(n, v)),
		bindings: [
			bind("bearer", `${at}/bearer`, { type: "bearer", credential: "bearer" }),
			bind("basic", `${at}/basic`, { type: "basic", credential: "basic" }),
			bind("key", `${at}/key`, { type: "apiKey", name: "X-Api-Key", credential: "key" }),
			bind("custom", `${at}/custom`, { type: "customHeaders", headers: [
				{ name: "X-Client-Id", credential: "id" },
				{ name: "X-Client-Secret", credential: "secret" }] }),
			bind("tls", `${at}/tls`, { type: "bearer", credential: "bearer" },
				{ schemes: ["https"] })] });
	assert.equal(state.revision, 1);
	for (const value of Object.values(values)) assert.ok(!JSON.stringify(state).includes(value));
	assert.deepEqual(Object.fromEntries(state.bindings.map((b) => [b.name, b.auth.type])), {
		bearer: "bearer", basic: "basic", key: "apiKey", custom: "customHeaders", tls: "bearer" });
	for (const name of ["bearer", "basic", "key", "custom", "none"])
		assert.equal(await curl(sandbox, `http://${API}${at}/${name}`), "200");
	assert.equal(await curl(sandbox, `https://${API}${at}/tls`), "200");
	const got = (name, header) => received(`${at}/${name}`).map((h) => h[header]);
	assert.deepEqual(got("bearer", "authorization"), [`Bearer ${values.bearer}`]);
	assert.deepEqual(got("basic", "authorization"), [`Basic ${values.basic}`]);
	assert.deepEqual(got("key", "x-api-key"), [values.key]);
	assert.deepEqual(got("custom", "x-client-id"), [values.id]);
	assert.deepEqual(got("custom", "x-client-secret"), [values.secret]);
	assert.deepEqual(got("tls", "authorization"), [`Bearer ${values.bearer}`]);
	assert.deepEqual(got("none", "authorization"), [undefined]);
	// to the address that the client names itself
	assert.equal(await curl(sandbox, `http://${API}${at}/key`, "--resolve", `${API}:80:10.212.2.2`),
		"200");
	assert.deepEqual(got("key", "x-api-key"), [values.key, values.key]);
});

test("a vault that changes", async () => {
	const sandbox = await make({ networkPolicy: allow(API), credentialProxy: { enabled: true } });
	const vault = sandbox.credentialVault, at = `/${sandbox.id}`;
	const auth = { type: "apiKey", name: "X-Runtime-Token", credential: "token" };
	const token = async (name) => {
		assert.equal(await curl(sandbox, `http://${API}${at}/${name}`), "200");
		return received(`${at}/${name}`).at(-1)["x-runtime-token"];
	};
	const changed = async (revision, change) => {
		const state = await vault.patch({ expectedRevision: revision - 1, ...change });
		assert.equal(state.revision, revision);
		return [state.credentials.map((c) => c.name), state.bindings.map((b) => b.name)];
	};
	const empty = await vault.create({ credentials: [], bindings: [] });
	assert.deepEqual(empty, { revision: 1, credentials: [], bindings: [] });
	assert.deepEqual(await changed(2, {
		credentials: { add: [secret("token", "js-first-of-the-lab")] },
		bindings: { add: [bind("added", `${at}/added`, auth)] } }), [["token"], ["added"]]);
	assert.equal(await token("added"), "js-first-of-the-lab");
	assert.deepEqual(await changed(3, { bindings: { delete: ["added"] } }), [["token"], []]);
	assert.deepEqual(await changed(4, {
		credentials: { replace: [secret("token", "js-second-of-the-lab")] },
		bindings: { add: [bind("replaced", `${at}/replaced`, auth)] } }),
	[["token"], ["replaced"]]);
	assert.equal(await token("replaced"), "js-second-of-the-lab");
	assert.equal(await token("added"), undefined);
	await assert.rejects(vault.patch({ expectedRevision: 3, bindings: { delete: ["replaced"] } }));
	assert.equal((await vault.getBinding("replaced")).auth.type, "apiKey");
	assert.equal((await vault.getCredential("token")).sourceType, "inline");
	assert.deepEqual((await vault.listBindings()).map((b) => b.name), ["replaced"]);
	assert.deepEqual((await vault.listCredentials()).map((c) => c.name), ["token"]);
	assert.equal((await vault.get()).revision, 4);
	assert.deepEqual(await changed(5, { bindings: { delete: ["replaced"] } }), [["token"], []]);
	assert.deepEqual(await changed(6, { credentials: { delete: ["token"] } }), [[], []]);
	assert.equal(await token("replaced"), undefined);
	await vault.delete();
	await assert.rejects(vault.get());
});

test("volumes", async () => {
	const { SALLYPORT_SHARED: shared } = process.env;
	const sandbox = await make({ volumes: [
		{ name: "rw", host: { path: shared }, mountPath: "/rw", subPath: "js" },
		{ name: "ro", host: { path: shared }, mountPath: "/ro", readOnly: true, subPath: "js" },
		{ name: "v", pvc: { claimName: "js-volume", deleteOnSandboxTermination: true },
			mountPath: "/v" }] });
	await said(sandbox, "echo marker > /rw/file; mkdir /v/sub; echo deep > /v/sub/file");
	assert.equal(readFileSync(`${shared}/js/file`, "utf8"), "marker\n");
	assert.equal(await said(sandbox, "cat /ro/file"), "marker");
	assert.ok((await sandbox.commands.run("touch /ro/no")).error);
	const other = await make({ volumes: [{ name: "v", pvc: { claimName: "js-volume" },
		mountPath: "/v", readOnly: true, subPath: "sub" }] });
	assert.equal(await said(other, "cat /v/file; ls /v"), "deep\nfile");
	assert.ok((await other.commands.run("touch /v/no")).error);
	await other.kill();
	await assert.rejects(make({ volumes: [{ name: "e", host: { path: "/etc" }, mountPath: "/e" }] }),
		refused(400, "VOLUME::HOST_PATH_NOT_ALLOWED"));
});

test("ways in", async () => {
	const sandbox = await make({ entrypoint: SERVER, secureAccess: true });
	const at = await sandbox.getEndpoint(8000);
	const status = async (endpoint, headers) =>
		(await fetch(`http://${endpoint}/file`, { headers })).status;
	await until(async () => await status(at.endpoint, at.headers) === 200, "the server");
	assert.equal(await (await fetch(`http://${at.endpoint}/file`, { headers: at.headers })).text(),
		"hello\n");
	assert.equal(await status(at.endpoint, {}), 401);
	const signed = await sandbox.getSignedEndpoint(8000, Math.floor(Date.now() / 1000) + 60);
	assert.equal(await status(signed.endpoint, {}), 200);

	const execd = await sandbox.getEndpoint(44772);
	const url = `http://${execd.endpoint}`;
	assert.equal((await fetch(`${url}/ping`)).status, 401);
	const pty = await (await fetch(`${url}/pty`, { method: "POST", body: "{}", headers: {
		...execd.headers, "Content-Type": "application/json" } })).json();
	const told = await new Promise((resolve, reject) => {
		const socket = new WebSocket(`ws://${execd.endpoint}/pty/${pty.session_id}/ws`,
			{ headers: execd.headers });
		let output = "";
		socket.binaryType = "arraybuffer";
		socket.onerror = (e) => reject(e.error ?? e);
		socket.onclose = () => resolve(output);
		socket.onmessage = ({ data }) => {
			if (typeof data !== "string")
				output += Buffer.from(data).subarray(1).toString();
			else if (JSON.parse(data).type === "connected")
				socket.send(JSON.stringify({ type: "stdin", data: "echo $((6*7))@pty; exit\n" }));
		};
	});
	assert.match(told, /42@pty/);
});

test("refused, with the id of the request", async () => {
	await assert.rejects(Sandbox.connect({ sandboxId: "no-such-sandbox",
		connectionConfig: config({ headers: { "X-Request-ID": "js-id-of-a-request" } }) }), (e) => {
		assert.equal(e.requestId, "js-id-of-a-request");
		return refused(404, "DOCKER::SANDBOX_NOT_FOUND")(e);
	});
	for (const call of ["getSandboxInfo", "pauseSandbox", "resumeSandbox", "killSandbox"])
		await assert.rejects(manager[call]("no-such-sandbox"), refused(404));
	await assert.rejects(manager.renewSandbox("no-such-sandbox", 60), refused(404));
	await assert.rejects(make({ image: "no-such/image@sha256:0" }),
		refused(500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED"));
	await assert.rejects(make({ connectionConfig: config({ apiKey: "another" }) }),
		refused(401, "INVALID_API_KEY"));
});

test("killed", async () => {
	const sandbox = await make();
	const { endpoint, headers } = await sandbox.getEndpoint(44772);
	await sandbox.kill();
	await assert.rejects(sandbox.getInfo(), refused(404));
	await assert.rejects(sandbox.kill(), refused(404));
	assert.equal((await fetch(`http://${endpoint}/ping`, { headers })).status, 404);
});
