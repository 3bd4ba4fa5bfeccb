package replay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/captures/store"
	"unwire/proto"
	"unwire/replay/credential"
	"unwire/replay/edit"
	"unwire/replay/standin"
	"unwire/schema"
)

const (
	agentService = "agent.v1.AgentService"
	standinToken = "a-token-for-the-stand-in"
)

// An agent is a client of the stand-in whose calls are recorded.
type agent struct {
	*testing.T
	server *standin.Server
	schema *schema.Schema
	store  *store.Store
	tap    *tap
	roots  *x509.CertPool
	blobs  map[string]string

	linesOf func(path string) int // nil: one
}

func newAgent(t *testing.T, o standin.Options) *agent {
	t.Helper()
	o.Token = standinToken
	server, err := standin.New(o)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if err := errors.Join(server.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
	})
	pem, err := os.ReadFile(server.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	s, err := schema.Load(t.Context(), proto.Files)
	if err != nil {
		t.Fatal(err)
	}
	store, err := store.Create(filepath.Join(t.TempDir(), "turn.uwc"), store.Options{Profile: proto.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &agent{
		T: t, server: server, schema: s, store: store, roots: roots, blobs: map[string]string{},
		tap: &tap{next: tr, store: store, done: make(chan struct{}, 10)},
	}
}

// lines is how long a file is said to be.
func (a *agent) lines(path any) int {
	if name, ok := path.(string); ok && a.linesOf != nil {
		return a.linesOf(name)
	}
	return 1
}

// answers says what the client sends for a server message, as JSON.
func (a *agent) answers(m map[string]any) (list []any) {
	if exec, ok := m["execServerMessage"].(map[string]any); ok {
		answer := map[string]any{"id": exec["id"], "execId": exec["execId"]}
		if args, ok := exec["readArgs"].(map[string]any); ok {
			answer["readResult"] = map[string]any{"success": map[string]any{"path": args["path"], "content": "package retry\n", "totalLines": a.lines(args["path"])}}
		}
		return []any{
			map[string]any{"execClientMessage": answer},
			map[string]any{"execClientControlMessage": map[string]any{"streamClose": map[string]any{"id": exec["id"]}}},
			map[string]any{"clientHeartbeat": map[string]any{}},
		}
	}
	kv, ok := m["kvServerMessage"].(map[string]any)
	if !ok {
		return nil
	}
	answer := map[string]any{"id": kv["id"]}
	if args, ok := kv["setBlobArgs"].(map[string]any); ok {
		a.blobs[args["blobId"].(string)] = args["blobData"].(string)
		answer["setBlobResult"] = map[string]any{}
	} else {
		args := kv["getBlobArgs"].(map[string]any)
		answer["getBlobResult"] = map[string]any{"blobData": a.blobs[args["blobId"].(string)]}
	}
	return []any{map[string]any{"kvClientMessage": answer}}
}

func (a *agent) build(v any) *dynamicpb.Message {
	a.Helper()
	m := dynamicpb.NewMessage(a.schema.Message("agent.v1.AgentClientMessage"))
	b, err := json.Marshal(v)
	if err == nil {
		err = protojson.Unmarshal(b, m)
	}
	if err != nil {
		a.Fatal(err)
	}
	return m
}

// turn records one turn of the agent and returns its number in the capture.
func (a *agent) turn(prompt string, o ...connect.ClientOption) int64 {
	a.Helper()
	md := a.schema.Method(agentService, "Run")
	o = append(o, connect.WithSchema(md), connect.WithResponseInitializer(func(_ connect.Spec, v any) error {
		if m, ok := v.(*dynamicpb.Message); ok {
			*m = *dynamicpb.NewMessage(md.Output())
		}
		return nil
	}))
	ctx, cancel := context.WithTimeout(a.Context(), time.Minute)
	defer cancel()
	stream := connect.NewClient[dynamicpb.Message, dynamicpb.Message](&http.Client{Transport: a.tap}, a.server.URL()+"/"+agentService+"/Run", o...).CallBidiStream(ctx)
	stream.RequestHeader().Set("authorization", "Bearer "+standinToken)
	stream.RequestHeader().Set("x-cursor-client-version", "cli-2026.02.01-abcdef0")
	stream.RequestHeader().Set("x-request-id", "9a2a0a4e-0000-4000-8000-000000000001")
	if err := stream.Send(a.build(map[string]any{"runRequest": map[string]any{
		"action":       map[string]any{"userMessageAction": map[string]any{"userMessage": map[string]any{"text": prompt, "messageId": "m-1"}}},
		"modelDetails": map[string]any{"modelId": "composer-1"}, "conversationId": "c-1",
	}})); err != nil {
		a.Fatal(err)
	}
	for {
		m, err := stream.Receive()
		if err != nil {
			if !errors.Is(err, io.EOF) && !strings.HasPrefix(prompt, "fault:") {
				a.Fatal(err)
			}
			break
		}
		b, err := protojson.Marshal(m)
		if err != nil {
			a.Fatal(err)
		}
		var v map[string]any
		if err := json.Unmarshal(b, &v); err != nil {
			a.Fatal(err)
		}
		for _, answer := range a.answers(v) {
			if err := stream.Send(a.build(answer)); err != nil && !errors.Is(err, io.EOF) {
				a.Fatal(err)
			}
		}
	}
	_, _ = stream.CloseRequest(), stream.CloseResponse()
	select {
	case <-a.tap.done:
	case <-time.After(time.Minute):
		a.Fatal("the turn was not recorded to its end")
	}
	if err := a.store.Flush(a.Context()); err != nil {
		a.Fatal(err)
	}
	return a.tap.last.Load()
}

// settings are those of a request to the stand-in.
func (a *agent) settings(edits ...string) settings {
	a.Helper()
	c, err := credential.Load("", func(name string) string {
		return map[string]string{credential.EnvToken: standinToken}[name]
	})
	if err != nil {
		a.Fatal(err)
	}
	o := settings{Roots: a.roots, Schema: a.schema, Credentials: c, Wait: 3 * time.Second, random: rand.NewChaCha8([32]byte{1})}
	for _, text := range edits {
		e, err := edit.Parse("set", text)
		if err != nil {
			a.Fatal(err)
		}
		o.Edits = append(o.Edits, e)
	}
	return o
}

func (a *agent) plan(id int64, edits ...string) *Plan {
	a.Helper()
	return a.planned(id, a.settings(edits...))
}

func (a *agent) planned(id int64, o settings) *Plan {
	a.Helper()
	p, err := newPlan(a.Context(), a.store, id, o)
	if err != nil {
		a.Fatal(err)
	}
	return p
}

func (a *agent) replay(id int64, edits ...string) *Result {
	a.Helper()
	r, err := a.plan(id, edits...).Send(a.Context(), nil)
	if err != nil {
		a.Fatal(err)
	}
	return r
}

func TestAgentTurn(t *testing.T) {
	for name, o := range map[string]struct {
		script string
		client []connect.ClientOption
	}{
		"default":       {"", nil},
		"gzip":          {"", []connect.ClientOption{connect.WithSendGzip()}},
		"json":          {"", []connect.ClientOption{connect.WithProtoJSON()}},
		"scattered ids": {`{"v":1,"scatter_ids":true}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			so := standin.Options{Seed: 7}
			if o.script != "" {
				so.Script = []byte(o.script)
			}
			a := newAgent(t, so)
			id := a.turn("Does Backoff ever return more than its limit?", o.client...)
			r := a.replay(id)
			if r.Comparison != Same || r.Code != "ok" || r.Origin != FromServer {
				for _, c := range r.Diff {
					if c.Ignored == "" {
						t.Logf("%+v", c)
					}
				}
				t.Fatalf("%s %s %s: %s", r.Comparison, r.Origin, r.Code, r.Message)
			}
			p := a.plan(id)
			timed := 0
			for _, f := range p.shown.Frames {
				if f.Beat {
					timed++
				}
			}
			if r.Sent-r.Beats != len(p.shown.Frames)-timed || r.Sent < 6 || r.Received < 10 || r.Unsent != 0 || r.Concluded != nil {
				t.Errorf("%d of %d frames sent, %d received", r.Sent, len(p.shown.Frames), r.Received)
			}
			// The prompt is echoed, so another one gives another answer.
			r = a.replay(id, "run_request.action.user_message_action.user_message.text=What does Backoff do?")
			if r.Comparison != differs || r.Code != "ok" {
				t.Errorf("edited: %s %s %s %s", r.Comparison, r.Origin, r.Code, r.Message)
			}
		})
	}
}

func TestAgentTurnPlan(t *testing.T) {
	t.Parallel()
	a := newAgent(t, standin.Options{})
	p := a.plan(a.turn("Does Backoff ever return more than its limit?"))
	heartbeats, bound := 0, map[string]bool{}
	for _, f := range p.shown.Frames {
		if string(f.Data) == "\x3a\x00" {
			heartbeats++
			if f.After != 0 || f.Answers != "" {
				t.Errorf("frame %d is a heartbeat and waits for %s", f.Seq, f.Answers)
			}
			continue
		}
		for _, b := range f.Live {
			bound[b.Path+"<"+b.FromPath] = true
		}
	}
	if heartbeats == 0 {
		t.Error("no heartbeat")
	}
	// The tool call's number, also where its end is told, and its id, the number of a blob, and the blob itself.
	for _, want := range []string{"2.1<2.1", "2.15<2.15", "5.1.1<2.1", "3.1<4.1", "3.2.1<4.3.2"} {
		if !bound[want] {
			t.Errorf("%s is not bound: %v", want, bound)
		}
	}
}

func TestAgentRejects(t *testing.T) {
	t.Parallel()
	a := newAgent(t, standin.Options{})
	id := a.turn("Does Backoff ever return more than its limit?")
	r := a.replay(id, "run_request.action.user_message_action.user_message.text=fault:error")
	if r.Comparison != Rejected || r.Code != "resource_exhausted" || r.ConnectCode() != 8 {
		t.Fatalf("%+v", r)
	}
	if len(r.Details) != 1 || !strings.Contains(r.Details[0].Text, "ERROR_RATE_LIMITED") {
		t.Errorf("details %+v", r.Details)
	}
	r = a.replay(id, "run_request.action.user_message_action.user_message.text=fault:drop-end")
	if r.Comparison != differs || r.Origin != fromLocal || r.Code != "unavailable" {
		t.Errorf("dropped end: %+v", r)
	}
	r = a.replay(id, "run_request.action.user_message_action.user_message.text=fault:reset")
	if r.Comparison != differs || r.Origin != fromLocal || r.Code != "unavailable" {
		t.Errorf("reset: %+v", r)
	}
}
