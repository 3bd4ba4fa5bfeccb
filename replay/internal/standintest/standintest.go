// Package standintest records a client of the stand-in for tests: Turn holds a
// conversation, and returns its number in a capture. A Tap is the transport that
// records it, as the proxy does.
package standintest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
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
	"unwire/replay/standin"
	"unwire/schema"
)

// Token is the bearer token that the stand-in server requires.
const Token = "a-token-for-the-stand-in"

const agentService = "agent.v1.AgentService"

// An Agent is a test client of the stand-in server, i.e. of a local server that plays the agent
// service. Its calls are recorded in a capture.
type Agent struct {
	// T is the test that fails on an error.
	*testing.T
	// Server is the stand-in server.
	Server *standin.Server

	// Schema are the definitions of the service.
	Schema *schema.Schema

	// Dir is the folder of the capture, turn.uwc.
	Dir string

	// Store is the capture.
	Store *store.Store

	// Tap is the transport that records into Store.
	Tap *Tap

	// Roots has the authority that signed the stand-in's certificate.
	Roots *x509.CertPool

	// LinesOf returns the number of lines that the client reports for a file; nil reports one line for
	// each file.
	LinesOf func(path string) int

	// blobs are the byte strings that the server has stored with the client, by name.
	blobs map[string]string
}

// New starts a stand-in server, and returns a client of it whose calls are recorded in a new capture.
func New(t *testing.T, o standin.Options) *Agent {
	t.Helper()
	o.Token = Token
	server, err := standin.New(o)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	// Shutdown must end the server; its error fails the test.
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if err := errors.Join(server.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
	})

	// The client trusts the certificate that the server wrote.
	pem, err := os.ReadFile(server.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	s, err := schema.Load(t.Context(), proto.Files)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	store, err := store.Create(filepath.Join(dir, "turn.uwc"), store.Options{Profile: proto.Profile()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &Agent{
		T: t, Server: server, Schema: s, Dir: dir, Store: store, Roots: roots, blobs: map[string]string{},
		Tap: &Tap{Next: tr, Store: store, Done: make(chan struct{}, 10)},
	}
}

// lines returns the number of lines that the client reports for a file.
func (a *Agent) lines(path any) int {
	if name, ok := path.(string); ok && a.LinesOf != nil {
		return a.LinesOf(name)
	}
	return 1
}

// Answers returns the messages, in JSON form, with which the client responds to a server message.
func (a *Agent) Answers(m map[string]any) (list []any) {
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

// Build converts a value to a client message by way of its JSON.
func (a *Agent) Build(v any) *dynamicpb.Message {
	a.Helper()
	m := dynamicpb.NewMessage(a.Schema.Message("agent.v1.AgentClientMessage"))
	b, err := json.Marshal(v)
	if err == nil {
		err = protojson.Unmarshal(b, m)
	}
	if err != nil {
		a.Fatal(err)
	}
	return m
}

// Turn runs one turn of a conversation with this prompt, and returns the number of its exchange in the
// capture.
func (a *Agent) Turn(prompt string, o ...connect.ClientOption) int64 {
	a.Helper()
	md := a.Schema.Method(agentService, "Run")

	// connect-go creates responses empty; the initializer gives them their type.
	o = append(o, connect.WithSchema(md), connect.WithResponseInitializer(func(_ connect.Spec, v any) error {
		if m, ok := v.(*dynamicpb.Message); ok {
			*m = *dynamicpb.NewMessage(md.Output())
		}
		return nil
	}))
	ctx, cancel := context.WithTimeout(a.Context(), time.Minute)
	defer cancel()
	stream := connect.NewClient[dynamicpb.Message, dynamicpb.Message](&http.Client{Transport: a.Tap}, a.Server.URL()+"/"+agentService+"/Run", o...).CallBidiStream(ctx)
	stream.RequestHeader().Set("authorization", "Bearer "+Token)
	stream.RequestHeader().Set("x-cursor-client-version", "cli-2026.02.01-abcdef0")
	stream.RequestHeader().Set("x-request-id", "9a2a0a4e-0000-4000-8000-000000000001")
	if err := stream.Send(a.Build(map[string]any{"runRequest": map[string]any{
		"action":       map[string]any{"userMessageAction": map[string]any{"userMessage": map[string]any{"text": prompt, "messageId": "m-1"}}},
		"modelDetails": map[string]any{"modelId": "composer-1"}, "conversationId": "c-1",
	}})); err != nil {
		a.Fatal(err)
	}

	// Answer what the server asks, until the stream ends; prompts with fault: end with an error.
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
		for _, answer := range a.Answers(v) {
			if err := stream.Send(a.Build(answer)); err != nil && !errors.Is(err, io.EOF) {
				a.Fatal(err)
			}
		}
	}
	_, _ = stream.CloseRequest(), stream.CloseResponse()

	// The tap records on its own goroutine.
	select {
	case <-a.Tap.Done:
	case <-time.After(time.Minute):
		a.Fatal("the turn was not recorded to its end")
	}
	if err := a.Store.Flush(a.Context()); err != nil {
		a.Fatal(err)
	}
	return a.Tap.Last.Load()
}
