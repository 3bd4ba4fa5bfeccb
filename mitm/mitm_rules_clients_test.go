package mitm

import (
	"bytes"
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/coder/websocket"

	"unwire/captures/need"
	"unwire/mitm/launch"
)

// Rules for the conversations of clients with the echo service. Those of conversationEdits edit a message of each kind
// of call, and edited tells what a client prints then. unmatchedRules match calls and none of their frames.
const (
	conversationEdits = `rules:
  - {name: unary, match: 'method:Unary dir:up path:1=hello', set: 1=longer hello}
  - {name: server stream, match: 'method:Download dir:down path:1="d 3"', set: 1=D three}
  - {name: client stream, match: 'method:Upload dir:up path:1=1', set: 1=one hundred}
  - {name: bidirectional, match: 'method:Chat dir:down path:1="ack 7"', set: 1=another answer}
`
	jsonEdits = `rules:
  - {match: 'method:Unary dir:up text:hello', replace: 'json:"longer hello"'}
  - {match: 'method:Download dir:down text:"d 3"', replace: 'json:"D three"'}
  - {match: 'method:Upload dir:up frame:1', replace: 'json:"one hundred"'}
  - {match: 'method:Chat dir:down text:"ack 7"', replace: 'json:"another answer"'}
`
	unmatchedRules = `rules:
  - {match: 'host:nobody.example', drop: true}
  - {match: 'method:Unary path:7.7', set: 1=x}
  - {match: 'dir:down text:"this text is in no frame"', drop: true}
  - {match: 'method:Chat dir:up len>1MB', duplicate: 2}
`
)

// edited returns what a client prints after conversationEdits.
func edited(printed string) string {
	return strings.NewReplacer(
		`Unary: 10 bytes "echo hello"`, `Unary: 17 bytes "echo longer hello"`, "Unary: echo hello\n", "Unary: echo longer hello\n",
		"Download: \"d 3\"\n", "Download: \"D three\"\n", "Download: d 3\n", "Download: D three\n",
		"0+1+2", "0+one hundred+2",
		"Chat: \"ack 7\"\n", "Chat: \"another answer\"\n", "Chat: ack 7\n", "Chat: another answer\n",
	).Replace(printed)
}

// withRules starts a proxy with rules.
func withRules(tb testing.TB, origin *httptest.Server, text string) *testProxy {
	return newTestProxy(tb, []*httptest.Server{origin}, func(o *Options) { o.Rewrite = newRules(tb, text) })
}

// TestRulesConnectGo: connect-go's clients get what they get directly through rules that match no frame, and exactly
// the edits through others, in each protocol.
func TestRulesConnectGo(t *testing.T) {
	t.Parallel()
	gzip := connect.WithSendGzip()
	for name, opts := range map[string][]connect.ClientOption{
		"Connect":       nil,
		"Connect gzip":  {gzip},
		"Connect JSON":  {connect.WithProtoJSON()},
		"gRPC":          {connect.WithGRPC()},
		"gRPC gzip":     {connect.WithGRPC(), gzip},
		"gRPC-Web":      {connect.WithGRPCWeb()},
		"gRPC-Web gzip": {connect.WithGRPCWeb(), gzip},
	} {
		t.Run(name, func(t *testing.T) {
			origin, tap := newTappedEcho(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			want := converse(ctx, direct(t, origin, true), "direct", origin.URL, opts)
			b := withRules(t, origin, unmatchedRules)
			if got := converse(ctx, b.client(true), "proxy", origin.URL, opts); got != want {
				t.Errorf("with rules that match nothing:\n%s\ndirectly:\n%s", got, want)
			}
			tap.compare(t, b, callsInConversation)
			rules := conversationEdits
			if name == "Connect JSON" {
				rules = jsonEdits
			}
			changed := edited(want)
			if got := converse(ctx, withRules(t, origin, rules).client(true), "edited", origin.URL, opts); got != changed || changed == want {
				t.Errorf("with edits:\n%s\nwant:\n%s", got, changed)
			}
		})
	}
}

// runClient runs a program directly, or captured by a proxy.
func runClient(t *testing.T, origin *httptest.Server, b *testProxy, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out bytes.Buffer
	if b == nil {
		caFile := filepath.Join(t.TempDir(), "origin.pem")
		if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: origin.Certificate().Raw}), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+caFile), &out, &out
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		return out.String()
	}
	code, err := launch.Run(ctx, launch.Options{
		Argv: argv, ProxyURL: "http://" + b.addr, CAFile: b.ca.CertFile, ControlToken: controlToken, Stdout: &out, Stderr: &out,
	})
	if code != 0 || err != nil {
		t.Errorf("status %d, %v: %s", code, err, out.String())
	}
	return out.String()
}

// TestRulesConnectES is TestRulesConnectGo for connect-es of both major versions on Node.
func TestRulesConnectES(t *testing.T) {
	t.Parallel()
	const node1, node2 = "testdata/node", "../replay/probe/testdata/node2"
	node := need.Node(t, node1, node2)
	set := echoDescriptors(t)
	for version, argv := range map[string][]string{
		"1": {node, node1 + "/client.mjs"},
		"2": {node, node2 + "/echo.mjs", set},
	} {
		for _, protocol := range []string{"connect", "grpc", "grpc-web", "connect-http1"} {
			t.Run(version+" "+protocol, func(t *testing.T) {
				origin, tap := newTappedEcho(t)
				argv := append(slices.Clone(argv), origin.URL, protocol)
				want := runClient(t, origin, nil, append(argv, "direct")...)
				b := withRules(t, origin, unmatchedRules)
				if got := runClient(t, origin, b, append(argv, "proxy")...); got != want {
					t.Errorf("with rules that match nothing:\n%s\ndirectly:\n%s", got, want)
				}
				tap.compare(t, b, strings.Count(want, "\nend of "))
				changed := edited(want)
				if got := runClient(t, origin, withRules(t, origin, conversationEdits), append(argv, "edited")...); got != changed || changed == want {
					t.Errorf("with edits:\n%s\nwant:\n%s", got, changed)
				}
			})
		}
	}
}

// TestRulesGRPCGo is the same for grpc-go.
func TestRulesGRPCGo(t *testing.T) {
	t.Parallel()
	origin := grpcServer(t)
	addr := strings.TrimPrefix(origin.URL, "https://")
	ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
	defer cancel()
	converse := func(w way) string {
		c := newLane(t, w, origin, nil).dialGRPC(t, addr)
		return grpcUnary("Unary", "hello")(ctx, c) + "\n" + grpcStream("ServerStream", false, 1)(ctx, c) + "\n" +
			grpcStream("ClientStream", false, 5)(ctx, c) + "\n" + grpcStream("Bidi", true, 30)(ctx, c) + "\n" + grpcUnary("Fail", "x")(ctx, c)
	}
	want := converse(way{name: directWay})
	if got := converse(way{name: "no-match", proxied: true, rules: unmatchedRules}); got != want {
		t.Errorf("with rules that match nothing:\n%s\ndirectly:\n%s", got, want)
	}
	changed := strings.NewReplacer(`5 bytes "hello"`, `12 bytes "longer hello"`, `"2" "3"`, `"2" "three"`, `"0+1+2+3+4"`, `"0+one hundred+2+3+4"`, `"ack 7"`, `"another answer"`).Replace(want)
	got := converse(way{name: "edits", proxied: true, rules: `rules:
  - {match: 'method:Unary path:1=hello dir:up', set: 1=longer hello}
  - {match: 'method:ServerStream dir:down path:1=3', set: 1=three}
  - {match: 'method:ClientStream dir:up path:1=1', set: 1=one hundred}
  - {match: 'method:Bidi dir:down path:1="ack 7"', set: 1=another answer}
`})
	if got != changed || strings.Count(changed, "another answer")+strings.Count(changed, "three")+strings.Count(changed, "hundred")+strings.Count(changed, "longer") != 4 {
		t.Errorf("with edits:\n%s\nwant:\n%s", got, changed)
	}
}

// TestRulesCurl is the same for curl, with bodies of known and unknown length and a compressed answer.
func TestRulesCurl(t *testing.T) {
	t.Parallel()
	program := need.Curl(t, "HTTP2", "libz")
	origin := newMatrixOrigin(t)
	for _, version := range []string{"--http1.1", "--http2"} {
		for name, c := range map[string]struct {
			path, rules string
			args        []string
			before      string
			after       string
		}{
			"JSON":       {"/echo", "{match: 'dir:up verb:POST', set: name=a longer name}", []string{"-H", "Content-Type: application/json", "-d", `{"name":"x"}`}, `{\"name\":\"x\"}`, `{\"name\":\"a longer name\"}`},
			"from stdin": {"/sum", "{match: 'dir:up text:stdin', replace: 'text:another body'}", []string{"-T", "-", "-H", "Content-Type: application/json"}, "", ""},
			"gzip":       {"/gzip", "{match: 'dir:down text:gzip', replace: 'text:unpacked, packed'}", []string{"--compressed"}, "gzip gzip", "unpacked, packed"},
		} {
			t.Run(name+" "+version, func(t *testing.T) {
				run := func(w way) string { return newLane(t, w, origin, nil).curl(t, program, c.path, version, c.args) }
				want := run(way{name: directWay})
				if got := run(way{name: "no-match", proxied: true, rules: unmatchedRules}); got != want {
					t.Errorf("with rules that match nothing:\n%s\ndirectly:\n%s", got, want)
				}
				got := run(way{name: "edits", proxied: true, rules: "rules:\n  - " + c.rules + "\n"})
				switch {
				case c.before == "" && got == want:
					t.Errorf("nothing has changed:\n%s", got)
				case c.before != "" && (!strings.Contains(want, c.before) || !strings.Contains(got, c.after) || strings.Contains(got, c.before)):
					t.Errorf("with edits:\n%s\ndirectly:\n%s", got, want)
				}
			})
		}
	}
}

// TestRulesWS is the same for WebSockets of the package ws on Node, compressed with a shared window and not.
func TestRulesWS(t *testing.T) {
	t.Parallel()
	node := need.Node(t, "testdata/node")
	for name, mode := range map[string]websocket.CompressionMode{"plain": websocket.CompressionDisabled, "deflate": websocket.CompressionContextTakeover} {
		t.Run(name, func(t *testing.T) {
			origin := newTLSOrigin(t, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: mode, CompressionThreshold: 1})
				if err != nil {
					t.Error(err)
					return
				}
				c.SetReadLimit(1 << 20)
				for {
					kind, p, err := c.Read(r.Context())
					if err != nil {
						return
					}
					if string(p) == "drop this" {
						continue
					}
					_ = c.Write(r.Context(), kind, append([]byte("re "), p...))
				}
			}))
			url := strings.Replace(origin.URL, "https", "wss", 1) + "/talk"
			run := func(b *testProxy) string { return runClient(t, origin, b, node, "testdata/node/ws.mjs", url, name) }
			want := run(nil)
			if strings.Count(want, "\n") != 6 || !strings.Contains(want, "closed 1000 done") || strings.Contains(want, "permessage-deflate") != (name == "deflate") {
				t.Fatalf("directly:\n%s", want)
			}
			if got := run(withRules(t, origin, unmatchedRules)); got != want {
				t.Errorf("with rules that match nothing:\n%s\ndirectly:\n%s", got, want)
			}
			changed := strings.NewReplacer(
				`re {"name":"before"} 20`, `re {"name":"a longer name"} 27`, "re bye 6", "made up 7", "72652000", "6e6f74",
			).Replace(want)
			got := run(withRules(t, origin, `rules:
  - {match: 'dir:up text:before', set: name=a longer name}
  - {match: 'dir:down text:"re bye"', replace: 'text:made up'}
  - {match: 'dir:down frame:2', replace: 'hex:6e6f740102ff'}
  - {match: 'dir:up text:"drop this"', drop: true}
`))
			if changed = strings.Replace(changed, "6e6f740102ff 7", "6e6f740102ff 6", 1); got != changed || changed == want {
				t.Errorf("with edits:\n%s\nwant:\n%s", got, changed)
			}
		})
	}
}
