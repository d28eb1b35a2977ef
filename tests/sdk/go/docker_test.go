// SPDX-License-Identifier: Apache-2.0

// Life, network policy, credential vault and ways in of sandboxes of a whole node,
// through the official Go SDK. SALLYPORT_ORIGIN_LOG names the file in which the
// origin behind api.lab.test and plain.lab.test notes what it received.
package sdktests

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/alibaba/OpenSandbox/sdks/sandbox/go"
)

const api, plain = "api.lab.test", "plain.lab.test"

var manager = sdk.NewSandboxManager(config(nil))

func config(change func(*sdk.ConnectionConfig)) sdk.ConnectionConfig {
	c := sdk.ConnectionConfig{Domain: os.Getenv("OPEN_SANDBOX_DOMAIN"), Protocol: "http"}
	if change != nil {
		change(&c)
	}
	return c
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, expected, found any) {
	t.Helper()
	if !reflect.DeepEqual(expected, found) {
		t.Fatalf("expected %#v, found %#v", expected, found)
	}
}

// refused: an answer of the API with this status and the id of the request.
func refused(t *testing.T, err error, status int, code string) {
	t.Helper()
	var e *sdk.APIError
	if !errors.As(err, &e) || e.StatusCode != status || e.RequestID == "" ||
		(code != "" && e.Response.Code != code) {
		t.Fatalf("expected %d %s, found %+v", status, code, err)
	}
}

func makeBox(t *testing.T, o sdk.SandboxCreateOptions) *sdk.Sandbox {
	t.Helper()
	if o.Image == "" && o.SnapshotID == "" {
		o.Image = "tests:local"
	}
	if o.ResourceLimits == nil {
		o.ResourceLimits = sdk.ResourceLimits{"cpu": "500m", "memory": "256Mi"}
	}
	made := must[*sdk.Sandbox](t)(sdk.CreateSandbox(ctx, config(nil), o))
	t.Cleanup(func() {
		var e *sdk.APIError
		if err := made.Kill(ctx); err != nil && !(errors.As(err, &e) && e.StatusCode == 404) {
			t.Error(err)
		}
	})
	return made
}

func said(t *testing.T, box *sdk.Sandbox, command string) string {
	t.Helper()
	done := must[*sdk.Execution](t)(box.RunCommand(ctx, command, nil))
	if done.Error != nil {
		t.Fatalf("%s: %+v", command, done.Error)
	}
	return strings.Join(lines(done.Stdout), "\n")
}

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for i := 0; i < 300; i++ {
		if condition() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}

func state(t *testing.T, box *sdk.Sandbox) sdk.SandboxState {
	return must[*sdk.SandboxInfo](t)(box.GetInfo(ctx)).Status.State
}

// curl: the status that a client inside sees; 000 where there was no answer.
func curl(t *testing.T, box *sdk.Sandbox, url string, options ...string) string {
	t.Helper()
	return said(t, box, fmt.Sprintf("curl -s %s --max-time 10 -o /dev/null -w '%%{http_code}' '%s'"+
		" || true", strings.Join(options, " "), url))
}

// received: the headers of every request for a path that the origin got.
func received(t *testing.T, path string) (all []http.Header) {
	t.Helper()
	text := must[[]byte](t)(os.ReadFile(os.Getenv("SALLYPORT_ORIGIN_LOG")))
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var record struct {
			Path    string
			Headers [][2]string
		}
		fine(t, json.Unmarshal([]byte(line), &record))
		if record.Path != path {
			continue
		}
		headers := http.Header{}
		for _, h := range record.Headers {
			headers.Add(h[0], h[1])
		}
		all = append(all, headers)
	}
	return all
}

func allow(targets ...string) *sdk.NetworkPolicy {
	policy := &sdk.NetworkPolicy{DefaultAction: "deny"}
	for _, target := range targets {
		policy.Egress = append(policy.Egress, sdk.NetworkRule{Action: "allow", Target: target})
	}
	return policy
}

func rules(t *testing.T, box *sdk.Sandbox) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, r := range must[*sdk.PolicyStatusResponse](t)(box.GetEgressPolicy(ctx)).Policy.Egress {
		found[r.Target] = r.Action
	}
	return found
}

func TestCreatedAsWished(t *testing.T) {
	seconds := 600
	box := makeBox(t, sdk.SandboxCreateOptions{TimeoutSeconds: &seconds,
		Metadata: map[string]string{"team": "lab"}, Env: map[string]string{"GREETING": "a b'c"},
		Entrypoint: []string{"sleep", "infinity"}})
	info := must[*sdk.SandboxInfo](t)(box.GetInfo(ctx))
	equal(t, box.ID(), info.ID)
	equal(t, sdk.StateRunning, info.Status.State)
	equal(t, []string{"sleep", "infinity"}, info.Entrypoint)
	equal(t, map[string]string{"team": "lab"}, info.Metadata)
	if left := time.Until(*info.ExpiresAt); left < 9*time.Minute || left > 10*time.Minute {
		t.Fatal(left)
	}
	equal(t, "a b'c", said(t, box, `echo "$GREETING"`))
	equal(t, true, box.IsHealthy(ctx))

	renewed := must[*sdk.RenewExpirationResponse](t)(box.Renew(ctx, 30*time.Minute))
	if time.Until(renewed.ExpiresAt) < 29*time.Minute {
		t.Fatal(renewed)
	}
	other := must[*sdk.Sandbox](t)(sdk.ConnectSandbox(ctx, config(nil), box.ID(), sdk.ReadyOptions{}))
	equal(t, "found", said(t, other, "echo found"))

	manual := makeBox(t, sdk.SandboxCreateOptions{ManualCleanup: true})
	if e := must[*sdk.SandboxInfo](t)(manual.GetInfo(ctx)).ExpiresAt; e != nil {
		t.Fatal(e)
	}
}

func TestListedAndFiltered(t *testing.T) {
	all := map[string]string{"case": "go-list"}
	box := func(n string) *sdk.Sandbox {
		return makeBox(t, sdk.SandboxCreateOptions{
			Metadata: map[string]string{"case": "go-list", "n": n}})
	}
	one, two := box("1"), box("2")
	ids := func(o sdk.ListOptions) map[string]bool {
		found := map[string]bool{}
		for _, s := range must[*sdk.ListSandboxesResponse](t)(manager.ListSandboxInfos(ctx, o)).Items {
			found[s.ID] = true
		}
		return found
	}
	fine(t, manager.PauseSandbox(ctx, two.ID()))
	until(t, "the pause", func() bool { return state(t, two) == sdk.StatePaused })
	both, first, second := map[string]bool{one.ID(): true, two.ID(): true},
		map[string]bool{one.ID(): true}, map[string]bool{two.ID(): true}
	paused := []sdk.SandboxState{sdk.StatePaused}
	equal(t, both, ids(sdk.ListOptions{Metadata: all}))
	equal(t, both, ids(sdk.ListOptions{Metadata: all,
		States: append(paused, sdk.StateRunning)}))
	equal(t, second, ids(sdk.ListOptions{Metadata: all, States: paused}))
	equal(t, first, ids(sdk.ListOptions{Metadata: map[string]string{"case": "go-list", "n": "1"}}))
	page := must[*sdk.ListSandboxesResponse](t)(manager.ListSandboxInfos(ctx,
		sdk.ListOptions{Metadata: all, Page: 2, PageSize: 1}))
	equal(t, sdk.PaginationInfo{Page: 2, PageSize: 1, TotalItems: 2, TotalPages: 2},
		page.Pagination)
	fine(t, manager.ResumeSandbox(ctx, two.ID()))

	added := "yes"
	told := must[*sdk.SandboxInfo](t)(manager.PatchSandboxMetadata(ctx, one.ID(),
		sdk.MetadataPatch{"n": nil, "added": &added}))
	equal(t, map[string]string{"case": "go-list", "added": "yes"}, told.Metadata)
	equal(t, told.Metadata, must[*sdk.SandboxInfo](t)(manager.GetSandboxInfo(ctx, one.ID())).Metadata)
	renewed := must[*sdk.RenewExpirationResponse](t)(
		manager.RenewSandbox(ctx, one.ID(), time.Hour))
	if time.Until(renewed.ExpiresAt) < 59*time.Minute {
		t.Fatal(renewed)
	}
	fine(t, manager.KillSandbox(ctx, one.ID()))
	equal(t, second, ids(sdk.ListOptions{Metadata: all}))
}

func TestPausedAndResumed(t *testing.T) {
	box := makeBox(t, sdk.SandboxCreateOptions{})
	said(t, box, "echo kept > /tmp/file")
	for i := 0; i < 2; i++ {
		fine(t, box.Pause(ctx))
		until(t, "the pause", func() bool { return state(t, box) == sdk.StatePaused })
		equal(t, false, box.IsHealthy(ctx))
		box = must[*sdk.Sandbox](t)(box.Resume(ctx, sdk.ReadyOptions{}))
		equal(t, sdk.StateRunning, state(t, box))
		equal(t, "kept", said(t, box, "cat /tmp/file"))
	}
}

func TestSnapshot(t *testing.T) {
	box := makeBox(t, sdk.SandboxCreateOptions{})
	said(t, box, "echo kept > /root/file")
	kept := must[*sdk.SnapshotInfo](t)(box.CreateSnapshot(ctx, sdk.CreateSnapshotRequest{Name: "go"}))
	equal(t, box.ID(), kept.SandboxID)
	until(t, "the snapshot", func() bool {
		return must[*sdk.SnapshotInfo](t)(manager.GetSnapshot(ctx, kept.ID)).Status.State ==
			sdk.SnapshotStateReady
	})
	listed := must[*sdk.ListSnapshotsResponse](t)(manager.ListSnapshots(ctx,
		sdk.ListSnapshotsOptions{SandboxID: box.ID()}))
	if len(listed.Items) != 1 || listed.Items[0].ID != kept.ID || listed.Items[0].Name != "go" {
		t.Fatalf("%+v", listed)
	}
	fine(t, box.Kill(ctx))
	restored := makeBox(t, sdk.SandboxCreateOptions{SnapshotID: kept.ID})
	equal(t, "kept", said(t, restored, "cat /root/file"))
	fine(t, restored.Kill(ctx))
	fine(t, manager.DeleteSnapshot(ctx, kept.ID))
	_, err := manager.GetSnapshot(ctx, kept.ID)
	refused(t, err, 404, "")
}

func TestNetworkPolicy(t *testing.T) {
	box := makeBox(t, sdk.SandboxCreateOptions{NetworkPolicy: allow(api)})
	at := "/" + box.ID()
	equal(t, map[string]string{api: "allow"}, rules(t, box))
	equal(t, "200", curl(t, box, "http://"+api+at+"/a"))
	curl(t, box, "http://"+plain+at+"/b")

	must[*sdk.PolicyStatusResponse](t)(box.PatchEgressRules(ctx, []sdk.NetworkRule{
		{Action: "allow", Target: plain}, {Action: "deny", Target: api}}))
	equal(t, map[string]string{plain: "allow", api: "deny"}, rules(t, box))
	curl(t, box, "http://"+api+at+"/c")
	equal(t, "200", curl(t, box, "http://"+plain+at+"/d"))

	proxied := must[*sdk.Sandbox](t)(sdk.ConnectSandbox(ctx, config(func(c *sdk.ConnectionConfig) {
		c.UseServerProxy = true
	}), box.ID(), sdk.ReadyOptions{}))
	endpoint := must[*sdk.Endpoint](t)(proxied.GetEndpoint(ctx, sdk.DefaultEgressPort))
	if !strings.HasSuffix(endpoint.Endpoint, "/sandboxes/"+box.ID()+"/proxy/18080") {
		t.Fatal(endpoint)
	}
	must[*sdk.PolicyStatusResponse](t)(proxied.DeleteEgressRules(ctx,
		[]string{plain, "never.lab.test"}))
	equal(t, map[string]string{api: "deny"}, rules(t, proxied))
	equal(t, "through", said(t, proxied, "echo through"))
	curl(t, box, "http://"+plain+at+"/e")
	for name, times := range map[string]int{"a": 1, "b": 0, "c": 0, "d": 1, "e": 0} {
		equal(t, times, len(received(t, at+"/"+name)))
	}
	_, err := box.PatchEgressRules(ctx, []sdk.NetworkRule{{Action: "allow", Target: "not a name"}})
	if err == nil {
		t.Fatal("a name that is none was taken")
	}
}

func secret(name, value string) sdk.Credential {
	return sdk.Credential{Name: name, Source: sdk.InlineCredentialSource{
		Type: sdk.CredentialSourceInline, Value: value}}
}

func binding(name, path string, auth sdk.CredentialAuth) sdk.CredentialBinding {
	return sdk.CredentialBinding{Name: name, Auth: auth, Match: sdk.CredentialMatch{
		Schemes: []sdk.CredentialScheme{sdk.CredentialSchemeHTTP}, Ports: []int{80},
		Hosts: []string{api}, Methods: []string{"GET"}, Paths: []string{path}}}
}

func vaultBox(t *testing.T, policy *sdk.NetworkPolicy) (*sdk.Sandbox, string) {
	box := makeBox(t, sdk.SandboxCreateOptions{NetworkPolicy: policy,
		CredentialProxy: &sdk.CredentialProxyConfig{Enabled: true}})
	return box, "/" + box.ID()
}

func TestEveryKindOfCredential(t *testing.T) {
	box, at := vaultBox(t, &sdk.NetworkPolicy{DefaultAction: "allow"})
	state := must[*sdk.CredentialVaultState](t)(box.CreateCredentialVault(ctx,
		sdk.CredentialVaultCreateRequest{
			Credentials: []sdk.Credential{secret("b", "go-bearer-of-the-lab"),
				secret("u", "Z28tYmFzaWMtb2YtdGhlLWxhYg=="), secret("k", "go-key-of-the-lab"),
				secret("i", "go-client-of-the-lab"), secret("s", "go-secret-of-the-lab")},
			Bindings: []sdk.CredentialBinding{
				binding("bearer", at+"/bearer", sdk.CredentialAuth{
					Type: sdk.CredentialAuthBearer, Credential: "b"}),
				binding("basic", at+"/basic", sdk.CredentialAuth{
					Type: sdk.CredentialAuthBasic, Credential: "u"}),
				binding("key", at+"/key", sdk.CredentialAuth{
					Type: sdk.CredentialAuthAPIKey, Name: "X-Api-Key", Credential: "k"}),
				binding("custom", at+"/custom", sdk.CredentialAuth{
					Type: sdk.CredentialAuthCustomHeaders, Headers: []sdk.CustomHeaderEntry{
						{Name: "X-Client-Id", Credential: "i"},
						{Name: "X-Client-Secret", Credential: "s"}}}),
			}}))
	text := string(must[[]byte](t)(json.Marshal(state)))
	if strings.Contains(text, "-of-the-lab") || strings.Contains(text, "Z28tYmFz") {
		t.Fatal(text)
	}
	types := map[string]string{}
	for _, b := range state.Bindings {
		types[b.Name] = b.Auth.Type
	}
	equal(t, map[string]string{"bearer": "bearer", "basic": "basic", "key": "apiKey",
		"custom": "customHeaders"}, types)
	for _, row := range [][3]string{
		{"bearer", "Authorization", "Bearer go-bearer-of-the-lab"},
		{"basic", "Authorization", "Basic Z28tYmFzaWMtb2YtdGhlLWxhYg=="},
		{"key", "X-Api-Key", "go-key-of-the-lab"},
		{"custom", "X-Client-Id", "go-client-of-the-lab"},
		{"custom", "X-Client-Secret", "go-secret-of-the-lab"},
		{"none", "Authorization", ""}} {
		equal(t, "200", curl(t, box, "http://"+api+at+"/"+row[0]))
		got := received(t, at+"/"+row[0])
		equal(t, row[2], got[len(got)-1].Get(row[1]))
	}
}

func TestAVaultThatChanges(t *testing.T) {
	box, at := vaultBox(t, allow(api))
	token := func(name string) string {
		t.Helper()
		equal(t, "200", curl(t, box, "http://"+api+at+"/"+name))
		got := received(t, at+"/"+name)
		return got[len(got)-1].Get("X-Runtime-Token")
	}
	bind := func(name string) []sdk.CredentialBinding {
		return []sdk.CredentialBinding{binding(name, at+"/"+name, sdk.CredentialAuth{
			Type: sdk.CredentialAuthAPIKey, Name: "X-Runtime-Token", Credential: "token"})}
	}
	changed := func(revision int, credentials *sdk.CredentialMutationSet,
		bindings *sdk.CredentialBindingMutationSet, counts ...int) {
		t.Helper()
		before := revision - 1
		state := must[*sdk.CredentialVaultState](t)(box.PatchCredentialVault(ctx,
			sdk.CredentialVaultPatchRequest{ExpectedRevision: &before, Credentials: credentials,
				Bindings: bindings}))
		equal(t, append([]int{revision}, counts...),
			[]int{state.Revision, len(state.Credentials), len(state.Bindings)})
	}
	empty := must[*sdk.CredentialVaultState](t)(box.CreateCredentialVault(ctx,
		sdk.CredentialVaultCreateRequest{}))
	equal(t, []int{1, 0, 0}, []int{empty.Revision, len(empty.Credentials), len(empty.Bindings)})
	changed(2, &sdk.CredentialMutationSet{Add: []sdk.Credential{secret("token", "go-1-of-the-lab")}},
		&sdk.CredentialBindingMutationSet{Add: bind("added")}, 1, 1)
	equal(t, "go-1-of-the-lab", token("added"))
	changed(3, nil, &sdk.CredentialBindingMutationSet{Delete: []string{"added"}}, 1, 0)
	changed(4, &sdk.CredentialMutationSet{
		Replace: []sdk.Credential{secret("token", "go-2-of-the-lab")}},
		&sdk.CredentialBindingMutationSet{Add: bind("replaced")}, 1, 1)
	equal(t, "go-2-of-the-lab", token("replaced"))
	equal(t, "", token("added"))

	stale := 3
	_, err := box.PatchCredentialVault(ctx, sdk.CredentialVaultPatchRequest{ExpectedRevision: &stale,
		Bindings: &sdk.CredentialBindingMutationSet{Delete: []string{"replaced"}}})
	refused(t, err, 409, "")
	one := must[*sdk.CredentialBindingMetadata](t)(box.GetCredentialVaultBinding(ctx, "replaced"))
	equal(t, "apiKey", one.Auth.Type)
	equal(t, "inline", must[*sdk.CredentialMetadata](t)(
		box.GetCredentialVaultCredential(ctx, "token")).SourceType)
	equal(t, 1, len(must[*sdk.CredentialBindingListResponse](t)(
		box.ListCredentialVaultBindings(ctx)).Bindings))
	equal(t, 1, len(must[*sdk.CredentialListResponse](t)(
		box.ListCredentialVaultCredentials(ctx)).Credentials))
	equal(t, 4, must[*sdk.CredentialVaultState](t)(box.GetCredentialVault(ctx)).Revision)

	changed(5, nil, &sdk.CredentialBindingMutationSet{Delete: []string{"replaced"}}, 1, 0)
	changed(6, &sdk.CredentialMutationSet{Delete: []string{"token"}}, nil, 0, 0)
	equal(t, "", token("replaced"))
	fine(t, box.DeleteCredentialVault(ctx))
	_, err = box.GetCredentialVault(ctx)
	refused(t, err, 404, "")
}

func TestVolumes(t *testing.T) {
	shared, gone := os.Getenv("SALLYPORT_SHARED"), true
	host := &sdk.Host{Path: shared}
	box := makeBox(t, sdk.SandboxCreateOptions{Volumes: []sdk.Volume{
		{Name: "rw", Host: host, MountPath: "/rw", SubPath: "go"},
		{Name: "ro", Host: host, MountPath: "/ro", SubPath: "go", ReadOnly: true},
		{Name: "v", MountPath: "/v",
			PVC: &sdk.PVC{ClaimName: "go-volume", DeleteOnSandboxTermination: &gone}}}})
	said(t, box, "echo marker > /rw/file; touch /v/file")
	equal(t, "marker\n", string(must[[]byte](t)(os.ReadFile(shared+"/go/file"))))
	equal(t, "marker", said(t, box, "cat /ro/file; touch /ro/no || true"))
}

// A terminal, over a connection of our own: the module has no WebSocket.
func terminal(t *testing.T, endpoint *sdk.Endpoint) string {
	t.Helper()
	ask := func(method, path, body string) *http.Request {
		r := must[*http.Request](t)(http.NewRequest(method, "http://"+endpoint.Endpoint+path,
			strings.NewReader(body)))
		for name, value := range endpoint.Headers {
			r.Header.Set(name, value)
		}
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	var session struct {
		ID string `json:"session_id"`
	}
	reply := must[*http.Response](t)(http.DefaultClient.Do(ask("POST", "/pty", "{}")))
	defer reply.Body.Close()
	fine(t, json.NewDecoder(reply.Body).Decode(&session))

	host, _, _ := strings.Cut(endpoint.Endpoint, "/")
	c := must[net.Conn](t)(net.Dial("tcp", host))
	defer c.Close()
	fine(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	upgrade := ask("GET", "/pty/"+session.ID+"/ws", "")
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket",
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="} {
		upgrade.Header.Set(name, value)
	}
	fine(t, upgrade.Write(c))
	in := bufio.NewReader(c)
	answer := must[*http.Response](t)(http.ReadResponse(in, upgrade))
	equal(t, 101, answer.StatusCode)
	typed := append([]byte{0}, "echo $((6*7))@pty; exit\n"...)
	must[int](t)(c.Write(append([]byte{0x82, 0x80 | byte(len(typed)), 0, 0, 0, 0}, typed...)))
	seen := must[[]byte](t)(io.ReadAll(io.LimitReader(in, 1<<16)))
	return string(seen)
}

func TestWaysIn(t *testing.T) {
	box := makeBox(t, sdk.SandboxCreateOptions{SecureAccess: true, Entrypoint: []string{"bash", "-c",
		"mkdir -p /srv; echo hello > /srv/file; exec python3 -m http.server 8000 --directory /srv"}})
	fetch := func(endpoint *sdk.Endpoint, path string, headers bool) (int, string) {
		t.Helper()
		r := must[*http.Request](t)(http.NewRequest("GET", "http://"+endpoint.Endpoint+path, nil))
		for name, value := range endpoint.Headers {
			if headers {
				r.Header.Set(name, value)
			}
		}
		reply := must[*http.Response](t)(http.DefaultClient.Do(r))
		defer reply.Body.Close()
		return reply.StatusCode, string(must[[]byte](t)(io.ReadAll(reply.Body)))
	}
	status := func(endpoint *sdk.Endpoint, path string, headers bool) int {
		t.Helper()
		code, _ := fetch(endpoint, path, headers)
		return code
	}
	at := must[*sdk.Endpoint](t)(box.GetEndpoint(ctx, 8000))
	until(t, "the server", func() bool { return status(at, "/file", true) == 200 })
	_, text := fetch(at, "/file", true)
	equal(t, "hello\n", text)
	equal(t, 401, status(at, "/file", false))
	signed := must[*sdk.Endpoint](t)(box.GetSignedEndpoint(ctx, 8000, time.Now().Unix()+60))
	equal(t, 200, status(signed, "/file", false))
	execd := must[*sdk.Endpoint](t)(box.GetEndpoint(ctx, sdk.DefaultExecdPort))
	equal(t, []int{200, 401}, []int{status(execd, "/ping", true), status(execd, "/ping", false)})
	if seen := terminal(t, execd); !strings.Contains(seen, "42@pty") {
		t.Fatalf("%q", seen)
	}
	fine(t, box.Kill(ctx))
	equal(t, 404, status(execd, "/ping", true))
}

func TestRefused(t *testing.T) {
	other := sdk.NewSandboxManager(config(func(c *sdk.ConnectionConfig) {
		c.Headers = map[string]string{"X-Request-ID": "go-id-of-a-request"}
	}))
	_, err := other.GetSandboxInfo(ctx, "no-such-sandbox")
	refused(t, err, 404, "DOCKER::SANDBOX_NOT_FOUND")
	var e *sdk.APIError
	if !errors.As(err, &e) || e.RequestID != "go-id-of-a-request" {
		t.Fatalf("%+v", err)
	}
	refused(t, manager.KillSandbox(ctx, "no-such-sandbox"), 404, "")
	refused(t, manager.PauseSandbox(ctx, "no-such-sandbox"), 404, "")
	refused(t, manager.ResumeSandbox(ctx, "no-such-sandbox"), 404, "")
	_, err = manager.RenewSandbox(ctx, "no-such-sandbox", time.Minute)
	refused(t, err, 404, "")
	_, err = sdk.CreateSandbox(ctx, config(func(c *sdk.ConnectionConfig) { c.APIKey = "another" }),
		sdk.SandboxCreateOptions{Image: "tests:local"})
	refused(t, err, 401, "INVALID_API_KEY")
	_, err = sdk.CreateSandbox(ctx, config(nil), sdk.SandboxCreateOptions{
		Image: "no-such/image@sha256:0"})
	refused(t, err, 500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED")
}

func TestFiveAtOnce(t *testing.T) {
	var wait sync.WaitGroup
	errs := make([]error, 5)
	for i := range errs {
		wait.Add(1)
		go func(i int) {
			defer wait.Done()
			made, err := sdk.CreateSandbox(ctx, config(nil), sdk.SandboxCreateOptions{
				Image: "tests:local", ResourceLimits: sdk.ResourceLimits{"memory": "128Mi"}})
			if err != nil {
				errs[i] = err
				return
			}
			done, err := made.RunCommand(ctx, fmt.Sprintf("echo box-%d", i), nil)
			if err == nil && done.Text() != fmt.Sprintf("box-%d", i) {
				err = fmt.Errorf("box %d said %q", i, done.Text())
			}
			errs[i] = errors.Join(err, made.Kill(ctx))
		}(i)
	}
	wait.Wait()
	fine(t, errors.Join(errs...))
}
