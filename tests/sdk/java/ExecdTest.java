// SPDX-License-Identifier: Apache-2.0
// Commands, files and metrics through the official Java SDK.

import com.alibaba.opensandbox.sandbox.Sandbox;
import com.alibaba.opensandbox.sandbox.config.ConnectionConfig;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.Execution;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.ExecutionHandlers;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.OutputMessage;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.RunCommandRequest;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.ContentReplaceEntry;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.EntryInfo;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.MoveEntry;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.SearchEntry;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.WriteEntry;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.SandboxMetrics;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;

public final class ExecdTest extends Tests {
	private static Sandbox sandbox;
	private static String folder;

	private static List<String> texts(List<OutputMessage> messages) {
		List<String> all = new ArrayList<>();
		for (OutputMessage m : messages) all.add(m.getText());
		return all;
	}

	private static Execution run(String command) {
		return sandbox.commands().run(RunCommandRequest.builder().command(command).build());
	}

	private static WriteEntry entry(String path, Object data, int mode) {
		WriteEntry.Builder b = WriteEntry.builder().path(path).mode(mode);
		return (data == null ? b : b.data(data)).build();
	}

	private static void commands() {
		test("run", () -> {
			Execution done = sandbox.commands().run(RunCommandRequest.builder()
				.command("echo hello; pwd; echo oops >&2").workingDirectory("/tmp").build());
			same(List.of("hello", "/tmp"), texts(done.getLogs().getStdout()));
			same(List.of("oops"), texts(done.getLogs().getStderr()));
			holds(done.getError() == null && done.getId() != null, "no error, an id");
		});
		test("a failing command", () -> {
			Execution done = run("exit 9");
			same("CommandExecError", done.getError().getName());
			same("9", done.getError().getValue());
		});
		test("background", () -> holds(sandbox.commands().run(RunCommandRequest.builder()
			.command("sleep 5").background(true).build()).getId() != null, "an id"));
		test("interrupt", () -> {
			long begun = System.nanoTime();
			ExecutionHandlers h = ExecutionHandlers.builder().onInit(e ->
				CompletableFuture.runAsync(() -> sandbox.commands().interrupt(e.getId()),
					CompletableFuture.delayedExecutor(300,
						java.util.concurrent.TimeUnit.MILLISECONDS))).build();
			Execution done = sandbox.commands().run(RunCommandRequest.builder()
				.command("sleep 60").handlers(h).build());
			holds(System.nanoTime() - begun < 10_000_000_000L, "it ended soon");
			holds(done.getError() != null, "it failed");
		});
	}

	private static void files() {
		byte[] bytes = new byte[1_000_003];
		new Random(7).nextBytes(bytes);
		String bin = folder + "/a b/bin", text = folder + "/t.txt";
		test("write and read", () -> {
			sandbox.files().createDirectories(List.of(entry(folder + "/a b", null, 755)));
			sandbox.files().write(List.of(entry(bin, bytes, 640), entry(text, "old old", 644)));
			holds(Arrays.equals(bytes, sandbox.files().readByteArray(bin)), "the same bytes");
			Map<String, EntryInfo> info = sandbox.files().readFileInfo(List.of(bin));
			same(640, info.get(bin).getMode());
			same((long) bytes.length, info.get(bin).getSize());
		});
		test("range", () -> same("old", sandbox.files().readFile(text, "UTF-8", "bytes=0-2")));
		test("replace, search, move, delete", () -> {
			sandbox.files().replaceContents(List.of(ContentReplaceEntry.builder().path(text)
				.oldContent("old").newContent("new").build()));
			same("new new", sandbox.files().readFile(text));
			List<EntryInfo> found = sandbox.files().search(
				SearchEntry.builder().path(folder).pattern("*.txt").build());
			same(1, found.size());
			same(text, found.get(0).getPath());
			sandbox.files().moveFiles(List.of(
				MoveEntry.builder().src(text).dest(folder + "/m/t").build()));
			sandbox.files().deleteFiles(List.of(folder + "/m/t"));
			fails("info of a deleted file",
				() -> sandbox.files().readFileInfo(List.of(folder + "/m/t")));
			sandbox.files().deleteDirectories(List.of(folder + "/a b"));
			fails("reading below a deleted folder", () -> sandbox.files().readByteArray(bin));
		});
	}

	public static void main(String[] args) {
		ConnectionConfig config = ConnectionConfig.builder().protocol("http")
			.domain(System.getenv("OPEN_SANDBOX_DOMAIN")).build();
		sandbox = Sandbox.builder().image("tests:local").timeout(Duration.ofMinutes(20))
			.metadata("token", "none")
			.connectionConfig(config).build();
		folder = run("mktemp -d").getLogs().getStdout().get(0).getText();
		commands();
		files();
		test("metrics", () -> {
			SandboxMetrics m = sandbox.getMetrics();
			holds(m.getCpuCount() > 0, "a cpu");
			holds(m.getMemoryUsedInMiB() > 0
				&& m.getMemoryUsedInMiB() <= m.getMemoryTotalInMiB(), "0 < used <= total");
		});
		run("rm -rf " + folder);
		sandbox.kill();
		sandbox.close();
		end();
	}
}
