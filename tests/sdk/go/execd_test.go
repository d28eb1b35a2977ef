// SPDX-License-Identifier: Apache-2.0

// Commands, sessions, files, metrics and code through the official Go SDK.
package sdktests

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/alibaba/OpenSandbox/sdks/sandbox/go"
)

var (
	box    *sdk.Sandbox
	folder string
	ctx    = context.Background()
)

func TestMain(m *testing.M) {
	config := sdk.ConnectionConfig{
		Domain: os.Getenv("OPEN_SANDBOX_DOMAIN"), Protocol: "http"}
	seconds := 1200
	var err error
	box, err = sdk.CreateSandbox(ctx, config,
		sdk.SandboxCreateOptions{Image: "tests:local", TimeoutSeconds: &seconds})
	if err != nil {
		panic(err)
	}
	done, err := box.RunCommand(ctx, "mktemp -d", nil)
	if err != nil {
		panic(err)
	}
	folder = strings.TrimSpace(done.Text())
	code := m.Run()
	_, _ = box.RunCommand(ctx, "rm -rf "+folder, nil)
	_ = box.Kill(ctx)
	os.Exit(code)
}

func lines(messages []sdk.OutputMessage) []string {
	var all []string
	for _, m := range messages {
		all = append(all, m.Text)
	}
	return all
}

func same(t *testing.T, expected, found []string) {
	t.Helper()
	if strings.Join(expected, "|") != strings.Join(found, "|") {
		t.Fatalf("expected %q, found %q", expected, found)
	}
}

func run(t *testing.T, command string) *sdk.Execution {
	t.Helper()
	done, err := box.RunCommand(ctx, command, nil)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestRun(t *testing.T) {
	done, err := box.RunCommandWithOpts(ctx, sdk.RunCommandRequest{
		Command: "echo hello; pwd; echo oops >&2; echo $A", Cwd: "/tmp",
		Envs: map[string]string{"A": "b c"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []string{"hello", "/tmp", "b c"}, lines(done.Stdout))
	same(t, []string{"oops"}, lines(done.Stderr))
	if done.Complete == nil || done.Error != nil || done.ID == "" {
		t.Fatalf("%+v", done)
	}
}

func TestFailing(t *testing.T) {
	done := run(t, "exit 7")
	if done.Error == nil || done.Error.Value != "7" || done.ExitCode == nil || *done.ExitCode != 7 {
		t.Fatalf("%+v", done)
	}
}

func TestInterruptedByItsTimeout(t *testing.T) {
	begun := time.Now()
	done, err := box.RunCommandWithOpts(ctx,
		sdk.RunCommandRequest{Command: "sleep 30", Timeout: 500}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if done.Error == nil || time.Since(begun) > 10*time.Second {
		t.Fatalf("%+v", done)
	}
}

func TestSession(t *testing.T) {
	session, err := box.CreateSession(ctx)
	if err != nil {
		t.Fatal(err)
	}
	in := func(command string) *sdk.Execution {
		done, err := box.RunInSession(ctx, session.ID,
			sdk.RunInSessionRequest{Command: command}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	in("export KEPT=yes; cd /tmp")
	same(t, []string{"yes", "/tmp"}, lines(in("echo $KEPT; pwd").Stdout))
	if err := box.DeleteSession(ctx, session.ID); err != nil {
		t.Fatal(err)
	}
}

func TestFiles(t *testing.T) {
	data := make([]byte, 1_000_003)
	_, _ = rand.Read(data)
	at, text := folder+"/a b/bin", folder+"/t.txt"
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(box.CreateDirectory(ctx, folder+"/a b", 755))
	check(box.UploadFile(ctx, bytes.NewReader(data), sdk.UploadFileOptions{
		FileName: "bin", Metadata: sdk.FileMetadata{Path: at, Mode: 640}}))
	check(box.UploadFile(ctx, strings.NewReader("old old"), sdk.UploadFileOptions{
		FileName: "t", Metadata: sdk.FileMetadata{Path: text, Mode: 644}}))
	r, err := box.DownloadFile(ctx, at, "")
	check(err)
	got, err := io.ReadAll(r)
	check(err)
	check(r.Close())
	if !bytes.Equal(got, data) {
		t.Fatal("other bytes came back")
	}
	r, err = box.DownloadFile(ctx, text, "bytes=0-2")
	check(err)
	got, _ = io.ReadAll(r)
	check(r.Close())
	same(t, []string{"old"}, []string{string(got)})
	info, err := box.GetFileInfo(ctx, at)
	check(err)
	if info[at].Mode != 640 || info[at].Size != int64(len(data)) {
		t.Fatalf("%+v", info)
	}
	counted, err := box.ReplaceInFilesDetailed(ctx,
		sdk.ReplaceRequest{text: {Old: "old", New: "new"}})
	check(err)
	if counted[text].ReplacedCount != 2 {
		t.Fatalf("%+v", counted)
	}
	check(box.SetPermissions(ctx, sdk.PermissionsRequest{text: {Mode: 600}}))
	found, err := box.SearchFiles(ctx, folder, "*.txt")
	check(err)
	if len(found) != 1 || found[0].Path != text || found[0].Mode != 600 {
		t.Fatalf("%+v", found)
	}
	check(box.MoveFiles(ctx, sdk.MoveRequest{{Src: text, Dest: folder + "/m/t"}}))
	listed, err := box.ListDirectory(ctx, folder)
	check(err)
	if len(listed) != 2 {
		t.Fatalf("%+v", listed)
	}
	check(box.DeleteFiles(ctx, []string{folder + "/m/t"}))
	check(box.DeleteDirectory(ctx, folder+"/a b"))
	if _, err := box.GetFileInfo(ctx, at); err == nil {
		t.Fatal("a deleted file has an info")
	}
}

func TestMetrics(t *testing.T) {
	m, err := box.GetMetrics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if m.CPUCount <= 0 || m.MemUsedMB <= 0 || m.MemUsedMB > m.MemTotalMB {
		t.Fatalf("%+v", m)
	}
}

func TestCode(t *testing.T) {
	context, err := box.CreateContext(ctx, sdk.CreateContextRequest{Language: "python"})
	if err != nil {
		t.Fatal(err)
	}
	in := func(code string) *sdk.Execution {
		done, err := box.ExecuteCode(ctx, sdk.RunCodeRequest{Code: code, Context: context}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	in("x = 20 + 1")
	done := in("print('seen'); x * 2")
	same(t, []string{"seen"}, lines(done.Stdout))
	if len(done.Results) != 1 || done.Results[0].Results["text"] != "42" {
		t.Fatalf("%+v", done.Results)
	}
	if e := in("1 / 0").Error; e == nil || e.Name != "ZeroDivisionError" {
		t.Fatalf("%+v", e)
	}
}
