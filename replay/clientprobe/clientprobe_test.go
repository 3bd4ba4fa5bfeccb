package clientprobe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/typepb"

	"unwire/captures/profile"
	"unwire/captures/store"
	"unwire/mitm"
	"unwire/mitm/ca"
	"unwire/replay/mock"
)

// clientURL makes the test's program the client of a server.
const clientURL = "UNWIRE_TEST_CLIENT_URL"

const service = "/unwire.test.v1.Catalog/"

// TestMain runs the client if the environment asks for it.
func TestMain(m *testing.M) {
	if base := os.Getenv(clientURL); base != "" {
		os.Exit(client(base, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// client is a real client: it requires some fields of an answer, reads others, and ignores the rest.
func client(base string, args []string) int {
	var o []connect.ClientOption
	if args[0] == "json" {
		o = append(o, connect.WithProtoJSON())
	}
	ctx := context.Background()
	get := connect.NewClient[structpb.Value, typepb.Field](http.DefaultClient, base+service+"Get", o...)
	fmt.Printf("process %d at %s\n", os.Getpid(), time.Now())
	res, err := get.CallUnary(ctx, connect.NewRequest(structpb.NewStringValue("first")))
	if err != nil {
		fmt.Fprintln(os.Stderr, "get:", err)
		return 1
	}
	f := res.Msg
	if f.Name == "" {
		fmt.Fprintln(os.Stderr, "the answer has no name")
		return 2
	}
	if f.Cardinality != 1 {
		select {} // it waits for ever
	}
	fmt.Println("label", f.JsonName)
	if f.Packed {
		fmt.Println("packed")
	}
	next := connect.NewClient[structpb.Value, structpb.Value](http.DefaultClient, base+service+"Next", o...)
	if _, err := next.CallUnary(ctx, connect.NewRequest(structpb.NewNumberValue(float64(f.Number)))); err != nil {
		fmt.Fprintln(os.Stderr, "next:", err)
		return 3
	}
	return 0
}

// catalog is the server that is recorded.
func catalog() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(service+"Get", connect.NewUnaryHandler(service+"Get", func(context.Context, *connect.Request[structpb.Value]) (*connect.Response[typepb.Field], error) {
		return connect.NewResponse(&typepb.Field{
			Name: "oolong", Number: 42, Cardinality: 1, Packed: true, JsonName: "Oolong tea", TypeUrl: "type.example/ignored", DefaultValue: "ignored too",
			Options: []*typepb.Option{{Name: "first"}, {Name: "second"}}, OneofIndex: 7,
		}), nil
	}))
	mux.Handle(service+"Next", connect.NewUnaryHandler(service+"Next", func(_ context.Context, r *connect.Request[structpb.Value]) (*connect.Response[structpb.Value], error) {
		return connect.NewResponse(r.Msg), nil
	}))
	return mux
}

// record records a session of the client, and returns a mock of it.
func record(t *testing.T, args ...string) (*mock.Server, *store.Store) {
	t.Helper()
	origin := httptest.NewServer(catalog())
	defer origin.Close()
	dir := t.TempDir()
	authority, err := ca.Load(filepath.Join(dir, "ca"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := store.Create(filepath.Join(dir, "session.uwc"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	to, _ := url.Parse(origin.URL)
	proxy, err := mitm.New(mitm.Options{CA: authority, Store: out, Reverse: to})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = proxy.Serve(ln) }()
	if exit, err := start(t.Context(), "http://"+ln.Addr().String(), args, Run{Stdout: os.Stderr, Stderr: os.Stderr}); exit != 0 || err != nil {
		t.Fatal(exit, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := errors.Join(proxy.Shutdown(ctx), out.Close()); err != nil {
		t.Fatal(err)
	}
	src, err := store.Open(out.Path, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close() })
	server, err := mock.New(t.Context(), src, mock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return server, src
}

// start runs the client as a process of its own.
func start(ctx context.Context, base string, args []string, r Run) (int, error) {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), clientURL+"="+base)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = r.Stdout, r.Stderr, time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return cmd.ProcessState.ExitCode(), err
}

// newProbe returns a probe of the client.
func newProbe(t *testing.T, args ...string) (*Probe, *store.Store) {
	server, src := record(t, args...)
	return &Probe{Mock: server, Argv: args, Timeout: 3 * time.Second, Client: func(ctx context.Context, r Run) (int, error) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		go func() { _ = r.Server.Serve(ln) }()
		return start(ctx, "http://"+ln.Addr().String(), args, r)
	}}, src
}

// TestVerdicts probes a real client that requires, reads and ignores fields, in both codecs.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	for codec, want := range map[string]map[string]Verdict{
		"proto": {
			"2": Required, "3": Read, "4": Required, "6": NotRead, "7": NotRead, "8": Read, "9": NotRead, "9.1": NotRead, "10": Read, "11": NotRead,
		},
		"json": {
			"cardinality": Required, "number": Read, "name": Required, "typeUrl": NotRead, "oneofIndex": NotRead, "packed": Read,
			"options": NotRead, "options.name": NotRead, "jsonName": Read, "defaultValue": NotRead,
		},
	} {
		t.Run(codec, func(t *testing.T) {
			t.Parallel()
			p, _ := newProbe(t, codec)
			p.Methods = []string{"Catalog/Get"}
			b, err := p.Learn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if b.Exit() != 0 || b.Runs() != 3 || b.Answered != 6 || len(b.Volatile) != 1 || !strings.HasPrefix(b.Volatile[0], "stdout process # at ") {
				t.Errorf("%+v", b)
			}
			plan, err := p.Plan(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			r, err := p.Run(t.Context(), b, plan)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]Verdict{}
			for _, f := range r.Fields {
				got[f.Path] = f.Verdict
				if w := want[f.Path]; w != f.Verdict {
					t.Errorf("%s: %s, want %s: %+v", f.Path, f.Verdict, w, f.Evidence)
				}
				if f.Method != service+"Get" || f.Messages != 1 {
					t.Errorf("%+v", f)
				}
				// The parser of JSON rejects a value of another type also of a field that nobody reads.
				if f.Verdict == NotRead && f.Typed != (codec == "json") {
					t.Errorf("%s: typed %t: %+v", f.Path, f.Typed, f.Evidence)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%v", got)
			}

			// The control: what no client knows has no effect.
			if codec == "proto" && len(r.Control) != 0 || !r.Complete || r.Stopped != "" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestPlanOfNothing: a selection of which a method or path matches nothing is an error that says what there is.
func TestPlanOfNothing(t *testing.T) {
	t.Parallel()
	p, _ := newProbe(t, "json")
	for _, c := range []struct {
		methods, paths []string
		want           string
	}{
		{[]string{"Get", "Nope"}, nil, "the method Nope has no answers; the methods with answers are " + service + "Get"},
		{[]string{"Get"}, []string{"name", "options.nothing"}, "no answer has a field at the path options.nothing"},
		{nil, []string{"options"}, ""},
	} {
		p.Methods, p.Paths = c.methods, c.paths
		_, err := p.Plan(t.Context(), nil)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrNoField) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q, %q: %v; want %q", c.methods, c.paths, err, c.want)
		}
	}
}

// TestEvidence checks which effects are reported for a field that a later request carries on.
func TestEvidence(t *testing.T) {
	t.Parallel()
	p, _ := newProbe(t, "proto")
	p.Methods, p.Paths = []string{"Get"}, []string{"3"}
	r := probe(t, p)
	if len(r.Fields) != 1 || len(r.Fields[0].Evidence) != 3 {
		t.Fatalf("%+v", r.Fields)
	}
	change := r.Fields[0].Evidence[1]
	if change.Change != opChange || change.Fails || len(change.Effects) != 1 || change.Effects[0].What != "request" || !strings.HasPrefix(change.Effects[0].Where, service+"Next 2") || change.Effects[0].Text != "43 instead of 42" {
		t.Errorf("%+v", change)
	}
}

func probe(t *testing.T, p *Probe) *Result {
	t.Helper()
	b, err := p.Learn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := p.Plan(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Run(t.Context(), b, plan)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestResume ends a probe by its budget, and goes on from the journal.
func TestResume(t *testing.T) {
	t.Parallel()
	p, src := newProbe(t, "proto")
	p.Methods, p.Paths = []string{"Get"}, []string{"6", "11", "4"}
	id, err := src.ID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "journal")
	open := func() func() {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if p.Journal, err = NewJournal(f, string(id)); err != nil {
			t.Fatal(err)
		}
		return func() { _ = f.Close() }
	}
	closeJournal := open()
	p.Budget = 7
	r := probe(t, p)
	closeJournal()
	if r.Complete || !strings.Contains(r.Stopped, "the limit is reached after 7 runs (--budget)") || r.Runs != 7 {
		t.Errorf("%+v", r)
	}

	// A line that a kill has truncated does not count.
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	known := bytes.Count(data, []byte("\n"))
	if err := os.WriteFile(path, append(data, `{"v":1,"event":"ans`...), 0o600); err != nil {
		t.Fatal(err)
	}
	closeJournal = open()
	p.Budget = 100
	r = probe(t, p)
	closeJournal()
	if !r.Complete || r.Reused != known || known == 0 || len(r.Fields) != 3 {
		t.Errorf("%d known: %+v", known, r)
	}
	for _, f := range r.Fields {
		if want := map[string]Verdict{"4": Required, "6": NotRead, "11": NotRead}[f.Path]; f.Verdict != want {
			t.Errorf("%s: %s, want %s", f.Path, f.Verdict, want)
		}
	}
}

// TestExecuting checks that messages that ask a client to run something stay as they are.
func TestExecuting(t *testing.T) {
	t.Parallel()
	p, _ := newProbe(t, "proto")
	p.Profile = &profile.Profile{Executes: []profile.Execution{{Service: "unwire.test.v1.Catalog", RPC: "Get", Paths: [][]profile.Step{{{Number: 4, Names: []string{"name"}}}}}}}
	b, err := p.Learn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, allow := range []bool{false, true} {
		p.AllowExecute = allow
		plan, err := p.Plan(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, f := range plan.Targets {
			if f.Method == service+"Get" {
				n++
			}
		}
		if (n == 0) == allow || (len(plan.Skipped) == 1) == allow {
			t.Errorf("allow %t: %d fields, %+v", allow, n, plan.Skipped)
		}
	}

	// Not even the control, nor a change that somebody else planned.
	p.AllowExecute = false
	o, err := p.run(t.Context(), &change{Target: &Target{Method: service + "Get", Path: "4"}, Op: opRemove}, 5*time.Second)
	if err != nil || o.applied != 0 || o.exit != 0 {
		t.Errorf("%+v %v", o, err)
	}
}

// TestNoBaseline has a client that calls nothing, and one whose calls were not recorded.
func TestNoBaseline(t *testing.T) {
	t.Parallel()
	p, _ := newProbe(t, "proto")
	p.Client = func(context.Context, Run) (int, error) { return 5, nil }
	if _, err := p.Learn(t.Context()); !errors.Is(err, ErrBaseline) || !strings.Contains(err.Error(), "the client sent no request to probe-client, and ended with exit status 5") {
		t.Errorf("%v", err)
	}
	p, _ = newProbe(t, "proto")
	other, _ := newProbe(t, "json")
	p.Client = other.Client
	if _, err := p.Learn(t.Context()); !errors.Is(err, ErrBaseline) || !strings.Contains(err.Error(), "not with connect-unary and json") {
		t.Errorf("%v", err)
	}
}
