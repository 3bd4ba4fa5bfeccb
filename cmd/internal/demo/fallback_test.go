package demo

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/diff"
	"unwire/decode/transcript"
	"unwire/mitm"
	"unwire/mitm/ca"
	definitions "unwire/proto"
	"unwire/replay"
	"unwire/replay/credential"
	"unwire/replay/edit"
	"unwire/replay/outbound"
	"unwire/replay/standin"
	"unwire/schema"
)

// A recorder is a proxy in front of a stand-in that records into a capture.
type recorder struct {
	t      *testing.T
	server *standin.Server
	store  *store.Store
	roots  *x509.CertPool // of the stand-in
	to     *url.URL       // where replays go; nil: where they were recorded
}

func newRecorder(t *testing.T, script string) *recorder {
	t.Helper()
	r := &recorder{t: t, server: startStandin(t, standin.Options{Script: []byte(script)}), roots: x509.NewCertPool()}
	pem, err := os.ReadFile(r.server.CAFile)
	if err != nil || !r.roots.AppendCertsFromPEM(pem) {
		t.Fatal("the stand-in's certificate: ", err)
	}
	dir := t.TempDir()
	ca, err := ca.Load(filepath.Join(dir, "ca"))
	if err != nil {
		t.Fatal(err)
	}
	if r.store, err = store.Create(filepath.Join(dir, "f.uwc"), store.Options{Profile: definitions.Profile()}); err != nil {
		t.Fatal(err)
	}
	proxy, err := mitm.New(mitm.Options{CA: ca, Store: r.store, UpstreamRoots: r.roots})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- proxy.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(proxy.Shutdown(ctx), <-served, r.store.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("HTTPS_PROXY", "http://"+l.Addr().String())
	t.Setenv("SSL_CERT_FILE", ca.CertFile)
	return r
}

// turn records one turn and returns the exchange that it goes by. around is put
// between the client and the network; nil is nothing.
func (r *recorder) turn(o ClientOptions, around func(next http.RoundTripper) http.RoundTripper) (id int64) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	o.URL, o.Token, o.CAFile = r.server.URL(), token, r.server.CAFile
	c, err := newClient(o)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.http.CloseIdleConnections()
	if around != nil {
		c.http.Transport = around(c.http.Transport)
	}
	if err := c.turn(ctx); err != nil {
		r.t.Fatal(err)
	}
	for !r.ended(&id) {
		if ctx.Err() != nil {
			r.t.Fatal("the turn was not recorded to its end")
		}
		time.Sleep(2 * time.Millisecond)
	}
	return id
}

// ended says whether all that was recorded has ended, and which exchange the
// last turn goes by.
func (r *recorder) ended(id *int64) bool {
	if err := r.store.Flush(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	for ex, err := range r.store.Exchanges(r.t.Context()) {
		if err != nil {
			r.t.Fatal(err)
		}
		if !ex.Ended() {
			return false
		}
		if strings.Contains(ex.URL, "/Run") {
			*id = ex.ID
		}
	}
	return true
}

func (r *recorder) joined(id int64) *conversation.Conversation {
	r.t.Helper()
	c, err := conversation.Decode(r.t.Context(), r.store, id, decode.Options{})
	if err != nil || c == nil || c.Err != nil {
		r.t.Fatalf("exchange %d: %v, %v", id, c, err)
	}
	return c
}

// said are the messages of a direction without heartbeats, which come by the
// clock, and without what differs in every run.
func said(t *testing.T, s *schema.Schema, ex *decode.Exchange, dir captures.Direction) (list []string) {
	t.Helper()
	md := s.FrameType(ex.Call, dir)
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if f.Dir != dir || f.End != nil {
			continue
		}
		m := dynamicpb.NewMessage(md)
		if err := proto.Unmarshal(f.Data, m); err != nil {
			t.Fatal(err)
		}
		var fields []string
		for _, path := range []string{
			"run_request.action.user_message_action.user_message.text", "exec_client_message.id", "exec_client_message.read_result.success.content",
			"exec_client_control_message.stream_close.id", "kv_client_message.id", "kv_client_message.get_blob_result.blob_data",
			"interaction_update.text_delta.text", "interaction_update.thinking_delta.text", "exec_server_message.read_args.path", "kv_server_message.id",
		} {
			if v, ok := find(m, path); ok {
				fields = append(fields, path+"="+v.String())
			}
		}
		if len(fields) > 0 {
			list = append(list, strings.Join(fields, " "))
		}
	}
	return list
}

// spoken is how many messages a client sent without its heartbeats, which come by the clock.
func spoken(t *testing.T, s *schema.Schema, ex *decode.Exchange) (n int) {
	t.Helper()
	md := s.FrameType(ex.Call, captures.Up)
	for i := range ex.Frames {
		if ex.Frames[i].Dir != captures.Up {
			continue
		}
		m := dynamicpb.NewMessage(md)
		if err := proto.Unmarshal(ex.Frames[i].Data, m); err != nil {
			t.Fatal(err)
		}
		if _, beat := find(m, "client_heartbeat"); !beat {
			n++
		}
	}
	return n
}

// appendNumber is which append a request is, or -1.
func appendNumber(t *testing.T, s *schema.Schema, req *http.Request) (number int64, body []byte) {
	if !strings.HasSuffix(req.URL.Path, "/BidiAppend") {
		return -1, nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Error(err)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	plain := body
	if req.Header.Get("content-encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return -1, nil
		}
		if plain, err = io.ReadAll(z); err != nil {
			t.Error(err)
		}
	}
	m := dynamicpb.NewMessage(s.Message("aiserver.v1.BidiAppendRequest"))
	if err := proto.Unmarshal(plain, m); err != nil {
		t.Error(err)
	}
	v, _ := find(m, "append_seqno")
	return v.Int(), body
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// anomalies are those of a conversation in words, those of a kind that the
// scheduler decides on left out.
func anomalies(c *conversation.Conversation) (list []string) {
	for _, a := range c.Anomalies {
		if a.Kind != "overtook" {
			list = append(list, string(a.Kind))
		}
	}
	return list
}

// The fallback, recorded by the proxy in each of its forms, says what one
// stream says, and can be sent again in step.
func TestFallbackIsOneStream(t *testing.T) {
	s, err := schema.Load(t.Context(), definitions.Files)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []struct{ sse, appends, script string }{
		{"raw", FallbackHex, `{"v":1,"sse":"raw","appends":{"window":16,"hold_ms":5}}`},
		{"base64", FallbackBinary, `{"v":1,"sse":"base64"}`},
		{"connect", FallbackHex, `{"v":1,"sse":"connect","scatter_ids":true}`},
	} {
		t.Run(form.sse+" "+form.appends, func(t *testing.T) {
			r := newRecorder(t, form.script)
			stream, err := decode.Decode(t.Context(), r.store, r.turn(ClientOptions{}, nil), decode.Options{})
			if err != nil {
				t.Fatal(err)
			}
			id := r.turn(ClientOptions{Fallback: form.appends}, nil)
			c := r.joined(id)
			for _, dir := range []captures.Direction{captures.Up, captures.Down} {
				want, got := said(t, s, stream, dir), said(t, s, c.Exchange, dir)
				if form.script != "" && strings.Contains(form.script, "scatter_ids") {
					continue // the numbers follow from the request id
				}
				if dir == captures.Up {
					slices.Sort(want) // a client may answer two calls in either order
					slices.Sort(got)
				}
				if len(got) < 5 || !slices.Equal(got, want) {
					t.Errorf("%s:\n got %q\nwant %q", dir, got, want)
				}
			}
			if a := anomalies(c); a != nil {
				t.Errorf("anomalies %q", a)
			}
			if c.Service != stream.Service || c.RPC != stream.RPC || c.Code != "ok" || c.Outcome != captures.Complete {
				t.Errorf("%s/%s %s %s", c.Service, c.RPC, c.Code, c.Outcome)
			}
			if got, want := transcript.Extract(c.Exchange, transcript.Options{}).Answer, transcript.Extract(stream, transcript.Options{}).Answer; got != want || len(want) < 100 {
				t.Errorf("answer %q, want %q", got, want)
			}
			for _, ch := range diff.Exchanges(stream, c.Exchange, diff.Options{Answer: true}) {
				if ch.Ignored == "" && !strings.HasSuffix(ch.Path, " 1.5.1") && !strings.Contains(form.script, "scatter_ids") { // made-up durations
					t.Errorf("differs from the stream: %+v", ch)
				}
			}
			r.replay(s, c)
		})
	}
}

// replay sends a conversation again and wants the same answer.
func (r *recorder) replay(s *schema.Schema, c *conversation.Conversation) {
	r.t.Helper()
	res, live := r.send(s, c.ID, time.Minute)
	if res.Comparison != replay.Same || res.Code != "ok" || res.Origin != replay.FromServer {
		r.t.Fatalf("%s %s %s: %s %+v", res.Comparison, res.Origin, res.Code, res.Message, res.Diff)
	}
	ups := spoken(r.t, s, c.Exchange)
	if res.Sent-res.Beats != ups || live == nil || live.RequestID == c.RequestID || len(live.Appends) != res.Sent {
		r.t.Errorf("%d frames and %d heartbeats sent for %d frames; recorded: %+v", res.Sent-res.Beats, res.Beats, ups, live)
		return
	}
	if a := anomalies(live); a != nil {
		r.t.Errorf("the replay has anomalies %q", a)
	}
}

// send replays an exchange and returns what was recorded of that, joined.
func (r *recorder) send(s *schema.Schema, id int64, wait time.Duration, edits ...string) (*replay.Result, *conversation.Conversation) {
	r.t.Helper()
	credentials, err := credential.Resolver{Getenv: func(name string) string {
		return map[string]string{credential.EnvToken: token}[name]
	}}.Load("")
	if err != nil {
		r.t.Fatal(err)
	}
	changes := replay.Changes{To: r.to, Timing: replay.Timing{Wait: wait}}
	o := replay.Options{Policy: outbound.Policy{Roots: r.roots}, Schema: s, Credentials: credentials}
	for _, text := range edits {
		e, err := edit.Parse("set", text)
		if err != nil {
			r.t.Fatal(err)
		}
		changes.Edits = append(changes.Edits, e)
	}
	request, err := replay.NewRequest(r.t.Context(), r.store, id, changes)
	if err != nil {
		r.t.Fatal(err)
	}
	plan, err := request.Plan(r.t.Context(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := store.Create(filepath.Join(r.t.TempDir(), "r.uwc"), store.Options{Profile: definitions.Profile()})
	if err != nil {
		r.t.Fatal(err)
	}
	defer out.Close()
	res, err := plan.Send(r.t.Context(), out)
	if err != nil {
		r.t.Fatal(err)
	}
	live, err := conversation.Decode(r.t.Context(), out, res.Exchange, decode.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	return res, live
}

// Appends that overtake each other, come twice, or pass where nobody records.
func TestFallbackOutOfOrder(t *testing.T) {
	s, err := schema.Load(t.Context(), definitions.Files)
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder(t, `{"v":1}`)
	elsewhere := &http.Transport{Protocols: new(http.Protocols)}
	c, err := newHTTPClient(ClientOptions{URL: r.server.URL(), CAFile: r.server.CAFile})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere.TLSClientConfig = c.Transport.(*http.Transport).TLSClientConfig
	elsewhere.Protocols.SetHTTP1(true)
	defer elsewhere.CloseIdleConnections()

	second := make(chan struct{}) // closed when append 1 has passed
	var once sync.Once
	id := r.turn(ClientOptions{Fallback: FallbackHex}, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			number, body := appendNumber(t, s, req)
			switch number {
			case 0:
				<-second
			case 1:
				defer once.Do(func() { close(second) })
			case 2:
				again := req.Clone(req.Context())
				again.Body = io.NopCloser(bytes.NewReader(body))
				if resp, err := next.RoundTrip(again); err == nil {
					resp.Body.Close()
				}
			case 3:
				return elsewhere.RoundTrip(req)
			}
			return next.RoundTrip(req)
		})
	})
	conv := r.joined(id)
	kinds := map[string]int64{}
	for _, a := range conv.Anomalies {
		if _, known := kinds[string(a.Kind)]; !known {
			kinds[string(a.Kind)] = a.Number
		}
	}
	if kinds["overtook"] != 1 || kinds["duplicate"] != 2 || kinds["gap"] != 4 || len(anomalies(conv)) != 2 {
		t.Errorf("%v of %v", kinds, conv.Anomalies)
	}
	if f := conv.Frame(captures.Up, 0); f == nil || !bytes.Contains(f.Data, []byte("What does Backoff")) {
		t.Errorf("the first frame is %v", f)
	}
	if transcript.Extract(conv.Exchange, transcript.Options{}).Answer == "" {
		t.Error("no answer")
	}
	// The missing one carried the tool's result: the server waits for it in vain,
	// and not for a number that never comes.
	res, live := r.send(s, id, time.Second)
	if res.Comparison == replay.Same || live == nil || len(anomalies(live)) != 0 {
		t.Errorf("replayed: %s %s: %s; %+v", res.Comparison, res.Code, res.Message, live)
	}
}

// editedScript has a turn that ends, one that asks for what the first did not
// need, one that fails, and one that never ends.
const editedScript = `{"v":1,"answer_timeout_ms":1500,"turns":[
	{"name":"hello","steps":[{"text":"Hello there.","split":[3]},{"turn_ended":{}}]},
	{"name":"ask","when":"ask","steps":[{"kv_set":{"json":{"note":"${prompt}"}}},{"turn_ended":{}}]},
	{"name":"fail","when":"fail","steps":[{"error":{"code":"resource_exhausted","message":"no more"}}]},
	{"name":"hang","when":"hang","steps":[{"text":"Hello there.","split":[1]},{"wait":{"ms":300000}},{"turn_ended":{}}]}]}`

func TestFallbackEdited(t *testing.T) {
	s, err := schema.Load(t.Context(), definitions.Files)
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder(t, editedScript)
	id := r.turn(ClientOptions{Fallback: FallbackBinary, Prompt: "Say hello."}, nil)
	for _, c := range []struct {
		prompt     string
		comparison replay.Comparison
		origin     replay.Origin
		code       string
		wait       time.Duration
	}{
		{"Say hello twice.", replay.Same, replay.FromServer, "ok", time.Minute},
		{"fail", replay.Rejected, replay.FromServer, "resource_exhausted", time.Minute},
		{"ask", replay.Rejected, replay.FromServer, "deadline_exceeded", time.Minute},
		{"hang", "differs", "local", "deadline_exceeded", 3 * time.Second},
	} {
		res, live := r.send(s, id, c.wait, "run_request.action.user_message_action.user_message.text="+c.prompt)
		if res.Comparison != c.comparison || res.Origin != c.origin || res.Code != c.code {
			t.Errorf("%s: %s %s %s: %s", c.prompt, res.Comparison, res.Origin, res.Code, res.Message)
		}
		if live == nil {
			t.Errorf("%s: not recorded", c.prompt)
		} else if f := live.Frame(captures.Up, 0); f == nil || !bytes.Contains(f.Data, []byte(c.prompt)) {
			t.Errorf("%s: the edit is not in %v", c.prompt, f)
		}
	}
}

// An append that the server does not take ends the replay with its word for it.
func TestFallbackDeclined(t *testing.T) {
	s, err := schema.Load(t.Context(), definitions.Files)
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder(t, editedScript)
	id := r.turn(ClientOptions{Fallback: FallbackHex, Prompt: "Say hello."}, nil)
	strict := startStandin(t, standin.Options{Script: []byte(`{"v":1,"answers":{"/aiserver.v1.BidiService/BidiAppend":{"$error":{"code":"permission_denied","message":"not you"}}}}`)})
	pem, err := os.ReadFile(strict.CAFile)
	if err != nil || !r.roots.AppendCertsFromPEM(pem) {
		t.Fatal("the stand-in's certificate: ", err)
	}
	if r.to, err = url.Parse(strict.URL()); err != nil {
		t.Fatal(err)
	}
	res, _ := r.send(s, id, time.Minute)
	if res.Comparison != replay.Rejected || res.Origin != replay.FromServer || res.Code != "permission_denied" || res.Message != "append 0: not you" || res.Sent != 1 {
		t.Errorf("%s %s %s: %s; %d sent", res.Comparison, res.Origin, res.Code, res.Message, res.Sent)
	}
}
