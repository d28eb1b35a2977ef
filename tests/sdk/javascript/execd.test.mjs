// SPDX-License-Identifier: Apache-2.0
// Commands, sessions, files and metrics through the official JavaScript SDK.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { ConnectionConfig, Sandbox } from "@alibaba-group/opensandbox";

let sandbox, folder;
const texts = (messages) => messages.map((m) => m.text);

before(async () => {
	sandbox = await Sandbox.create({
		image: "tests:local", timeoutSeconds: 1200,
		connectionConfig: new ConnectionConfig({
			domain: process.env.OPEN_SANDBOX_DOMAIN, protocol: "http" }),
	});
	folder = (await sandbox.commands.run("mktemp -d")).logs.stdout[0].text;
});

after(async () => {
	await sandbox.commands.run(`rm -rf ${folder}`);
	await sandbox.kill();
	await sandbox.close();
});

test("run", async () => {
	const events = [];
	const done = await sandbox.commands.run("echo hello; pwd; echo oops >&2",
		{ workingDirectory: "/tmp" }, { onEvent: (e) => { events.push(e); } });
	assert.deepEqual(texts(done.logs.stdout), ["hello", "/tmp"]);
	assert.deepEqual(texts(done.logs.stderr), ["oops"]);
	assert.equal(events.filter((e) => e.type === "init").length, 1);
	assert.equal(events.at(-1).type, "execution_complete");
	assert.equal(done.error, undefined);
	assert.ok(done.complete);
});

test("a failing command", async () => {
	const done = await sandbox.commands.run("exit 9");
	assert.equal(done.error.name, "CommandExecError");
	assert.equal(done.error.value, "9");
	assert.equal(done.complete, undefined);
});

test("background, status and logs", async () => {
	const { id } = await sandbox.commands.run(
		"for i in 1 2 3; do echo $i; sleep 0.2; done", { background: true });
	assert.equal((await sandbox.commands.getCommandStatus(id)).running, true);
	let logs = "", cursor, status;
	for (let i = 0; i < 100; i++) {
		const part = await sandbox.commands.getBackgroundCommandLogs(id, cursor);
		logs += part.content;
		cursor = part.cursor;
		status = await sandbox.commands.getCommandStatus(id);
		if (!status.running) break;
		await new Promise((r) => setTimeout(r, 50));
	}
	logs += (await sandbox.commands.getBackgroundCommandLogs(id, cursor)).content;
	assert.equal(logs, "1\n2\n3\n");
	assert.equal(status.exitCode, 0);
});

test("interrupt", async () => {
	const begun = Date.now();
	const done = await sandbox.commands.run("sleep 60", {}, {
		onInit: ({ id }) => { setTimeout(() => sandbox.commands.interrupt(id), 300); } });
	assert.ok(Date.now() - begun < 10_000);
	assert.ok(done.error);
});

test("a session keeps its state", async () => {
	const c = sandbox.commands;
	const id = await c.createSession({ workingDirectory: folder });
	assert.deepEqual(texts((await c.runInSession(id, "pwd")).logs.stdout), [folder]);
	await c.runInSession(id, "export KEPT=yes; cd /tmp");
	assert.deepEqual(texts((await c.runInSession(id, "echo $KEPT; pwd")).logs.stdout),
		["yes", "/tmp"]);
	await c.deleteSession(id);
	await assert.rejects(c.runInSession(id, "pwd"));
});

test("files", async () => {
	const bytes = new Uint8Array(randomBytes(1_000_003));
	const f = sandbox.files, at = `${folder}/a b/bin`;
	await f.createDirectories([{ path: `${folder}/a b`, mode: 755 }]);
	await f.writeFiles([{ path: at, data: bytes, mode: 640 },
		{ path: `${folder}/t.txt`, data: "old old", mode: 644 }]);
	assert.deepEqual(new Uint8Array(await f.readBytes(at)), bytes);
	const info = (await f.getFileInfo([at]))[at];
	assert.equal(info.size, bytes.length);
	assert.equal(info.mode, 640);
	assert.equal(await f.readFile(`${folder}/t.txt`, { range: "bytes=0-2" }), "old");
	await f.replaceContents([{ path: `${folder}/t.txt`, oldContent: "old", newContent: "new" }]);
	assert.equal(await f.readFile(`${folder}/t.txt`), "new new");
	assert.deepEqual((await f.search({ path: folder, pattern: "*.txt" })).map((e) => e.path),
		[`${folder}/t.txt`]);
	await f.moveFiles([{ src: `${folder}/t.txt`, dest: `${folder}/m/t` }]);
	await f.setPermissions([{ path: `${folder}/m/t`, mode: 600 }]);
	assert.equal((await f.getFileInfo([`${folder}/m/t`]))[`${folder}/m/t`].mode, 600);
	await f.deleteFiles([`${folder}/m/t`]);
	await assert.rejects(f.getFileInfo([`${folder}/m/t`]));
	await f.deleteDirectories([`${folder}/a b`]);
	await assert.rejects(f.readBytes(at));
});

test("an upload whose length nobody knows", async () => {
	async function* pieces() {
		for (let i = 0; i < 50; i++) {
			yield new Uint8Array(10_000).fill(i);
			if (i % 10 === 0) await new Promise((r) => setTimeout(r, 5));
		}
	}
	await sandbox.files.writeFiles([{ path: `${folder}/s`, data: pieces(), mode: 644 }]);
	let got = 0;
	for await (const piece of sandbox.files.readBytesStream(`${folder}/s`)) got += piece.length;
	assert.equal(got, 500_000);
});

test("metrics and health", async () => {
	const m = await sandbox.getMetrics();
	assert.ok(m.cpuCount > 0 && m.memoryTotalMiB >= m.memoryUsedMiB && m.memoryUsedMiB > 0);
	assert.ok(Math.abs(Date.now() - m.timestamp) < 60_000);
	assert.equal(await sandbox.isHealthy(), true);
});
