package standin

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/replay/standin/codec"
)

// steps is a script of one turn.
func steps(list string) []byte {
	return []byte(`{"v":1,"turns":[{"steps":[` + list + `]}]}`)
}

func wantCode(t *testing.T, err error, code connect.Code, text string) {
	t.Helper()
	if connect.CodeOf(err) != code || err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %v with %q", err, code, text)
	}
}

// The frames that RESEARCH.md#agent-v1 gives, byte for byte.
func TestFramesAreThosePublished(t *testing.T) {
	s := start(t, Options{Script: steps(`{"text":"Hi"},{"heartbeat":1},{"tokens":1},{"turn_ended":{}},{"turn_ended":{"inputTokens":"10","outputTokens":"5"}},{"thinking":"hm"}`)})
	hc := httpClient(t, s, true)
	rec := &recorder{next: hc.Transport}
	hc.Transport = rec
	if _, err := runWith(t, s, hc, &player{}); err != nil {
		t.Fatal(err)
	}
	want := "00000000080a060a040a024869" + "00000000040a026a00" + "00000000060a0442020801" + "00000000040a027200" + "00000000080a067204080a1005" +
		"00000000080a0622040a02686d" + "02000000027b7d"
	if got := hex.EncodeToString(rec.body.Bytes()); got != want {
		t.Errorf("got\n %s\nwant\n %s", got, want)
	}
}

func TestRunOverGRPC(t *testing.T) {
	s := start(t, Options{})
	for name, o := range map[string]connect.ClientOption{"grpc": connect.WithGRPC(), "grpc-web": connect.WithGRPCWeb(), "json": connect.WithProtoJSON()} {
		got, err := runWith(t, s, httpClient(t, s, true), &player{prompt: "What does Backoff do?"}, o)
		if err != nil || !strings.Contains(answerOf(got), "The file is 3 lines long") {
			t.Errorf("%s: %q, %v", name, answerOf(got), err)
		}
	}
}

func TestTurnEndsWithItsError(t *testing.T) {
	s := start(t, Options{})
	got, err := run(t, s, &player{prompt: "fault:error"})
	wantCode(t, err, connect.CodeResourceExhausted, "Error")
	if answerOf(got) != "Let me look at that. " {
		t.Errorf("before the error: %q", answerOf(got))
	}
	e := new(connect.Error)
	if !errors.As(err, &e) || len(e.Details()) != 1 || e.Details()[0].Type() != "aiserver.v1.ErrorDetails" {
		t.Fatalf("details of %v", err)
	}
	d := dynamicpb.NewMessage(s.api.Message("aiserver.v1.ErrorDetails"))
	if err := (codec.Binary{}).Unmarshal(e.Details()[0].Bytes(), d); err != nil {
		t.Fatal(err)
	}
	if get(d, "error").Enum() != 50 || get(d, "details", "title").String() != "Slow down" {
		t.Errorf("details: %v", d)
	}
}

func TestResetCutsTheStream(t *testing.T) {
	got, err := run(t, start(t, Options{}), &player{prompt: "fault:reset"})
	if err == nil || connect.IsWireError(err) {
		t.Errorf("got %v, want a broken connection", err)
	}
	if !strings.HasPrefix(answerOf(got), "Let me") {
		t.Errorf("before the reset: %q", answerOf(got))
	}
}

func TestDropEndLeavesOnlyTheEndOut(t *testing.T) {
	got, err := run(t, start(t, Options{}), &player{prompt: "fault:drop-end"})
	if err == nil {
		t.Error("a stream without its end-of-stream message counted as complete")
	}
	if kinds := strings.Join(kindsOf(got), " "); kinds != "text_delta turn_ended" {
		t.Errorf("messages %s", kinds)
	}
}

func TestRawBytesArriveAsTheyAre(t *testing.T) {
	got, err := run(t, start(t, Options{}), &player{prompt: "fault:drift"})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, m := range got {
		found = found || hex.EncodeToString(m.GetUnknown()) == "c23e080a0474746674102a"
	}
	if !found {
		t.Error("the field that no definition has did not arrive")
	}
}

func TestUnansweredToolIsAbortedAndTimesOut(t *testing.T) {
	s := start(t, Options{Script: steps(`{"tool":{"name":"read","args":{"path":"x"},"timeout_ms":40}},{"turn_ended":{}}`)})
	got, err := run(t, s, &player{mute: true})
	wantCode(t, err, connect.CodeDeadlineExceeded, "no answer to exec 1 (read_args) within 40ms")
	if len(got) == 0 || !has(got[len(got)-1], "exec_server_control_message", "abort") {
		t.Errorf("messages %v, want an abort at the end", kindsOf(got))
	}
}

func TestAnswersThatAreNotWanted(t *testing.T) {
	for _, c := range []struct {
		steps string
		code  connect.Code
		text  string
	}{
		{`{"tool":{"name":"read","args":{"path":"x"},"require":"success"}}`, connect.CodeFailedPrecondition, `the result is "file_not_found", not "success"`},
		{`{"kv_set":{"data":"abc","as":"a"}},{"kv_get":{"blob":"a"}}`, connect.CodeDataLoss, "14 bytes back that are not the 3 stored"},
	} {
		s := start(t, Options{Script: steps(c.steps)})
		_, err := run(t, s, &player{wrong: true})
		wantCode(t, err, c.code, c.text)
	}
}

func TestShellStreamIsReadToItsExit(t *testing.T) {
	s := start(t, Options{Script: steps(`{"tool":{"name":"shell_stream","args":{"command":"go test ./..."}}},{"text":"Done."},{"turn_ended":{}}`)})
	got, err := run(t, s, &player{})
	if err != nil || answerOf(got) != "Done." {
		t.Errorf("got %v, %v", kindsOf(got), err)
	}
}

func TestScatteredIDs(t *testing.T) {
	script := strings.Replace(string(steps(`{"kv_set":{"data":"a"}},{"kv_set":{"data":"b"}},{"turn_ended":{}}`)), `"v":1`, `"v":1,"scatter_ids":true`, 1)
	got, err := run(t, start(t, Options{Script: []byte(script), Seed: 3}), &player{})
	if err != nil {
		t.Fatal(err)
	}
	first, second := get(got[0], "kv_server_message", "id").Uint(), get(got[1], "kv_server_message", "id").Uint()
	if first < 2 || second != first+1 {
		t.Errorf("ids %d, %d", first, second)
	}
}

func TestHeartbeatsWhileWaiting(t *testing.T) {
	inBubble(t, Options{Script: steps(`{"wait":{"ms":65,"heartbeat_every_ms":20}},{"turn_ended":{}}`)}, func(t *testing.T, s *Server, hc *http.Client) {
		began := time.Now()
		got, err := runWith(t, s, hc, &player{})
		if err != nil || len(got) != 4 {
			t.Errorf("%d messages (%v), want three heartbeats and the end", len(got), err)
		}
		if d := time.Since(began); d != 65*time.Millisecond {
			t.Errorf("waited for %v", d)
		}
	})
}

func TestConversationGoesOn(t *testing.T) {
	s := start(t, Options{Script: []byte(`{"v":1,"turns":[
		{"steps":[{"text":"first"},{"checkpoint":{}},{"turn_ended":{}}]},
		{"steps":[{"text":"second to ${prompt}"},{"checkpoint":{}},{"turn_ended":{}}]}]}`)})
	got, err := run(t, s, &player{prompt: "one"})
	if err != nil || answerOf(got) != "first" {
		t.Fatalf("%q, %v", answerOf(got), err)
	}
	var state *message
	for _, m := range got {
		if has(m, "conversation_checkpoint_update") {
			state = m
		}
	}
	c, _ := rpc(t, s, httpClient(t, s, true), procedureRun)
	stream := c.CallBidiStream(t.Context())
	headers(stream.RequestHeader())
	p := &player{t: t, api: s.api, prompt: "two"}
	ask := p.first()
	within(ask, "run_request").Set(within(ask, "run_request").Descriptor().Fields().ByName("conversation_state"), get(state, "conversation_checkpoint_update"))
	if err := stream.Send(ask); err != nil {
		t.Fatal(err)
	}
	m, err := stream.Receive()
	if err != nil || get(m, "interaction_update", "text_delta", "text").String() != "second to two" {
		t.Errorf("got %v, %v", m, err)
	}
	_ = stream.CloseRequest()
	_ = stream.CloseResponse()
}

// converse sends messages one after the other and returns the stream's end.
func converse(t *testing.T, s *Server, list ...*message) ([]*message, error) {
	t.Helper()
	c, _ := rpc(t, s, httpClient(t, s, true), procedureRun)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream := c.CallBidiStream(ctx)
	defer stream.CloseResponse()
	headers(stream.RequestHeader())
	for _, m := range list {
		if err := stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if err := stream.CloseRequest(); err != nil {
		t.Fatal(err)
	}
	var got []*message
	for {
		m, err := stream.Receive()
		if err != nil {
			return got, err
		}
		got = append(got, m)
	}
}

func TestClientsThatBreakTheProtocol(t *testing.T) {
	s := start(t, Options{Script: steps(`{"tool":{"name":"read","args":{"path":"x"}}},{"turn_ended":{}}`)})
	first := (&player{t: t, api: s.api}).first()
	for name, c := range map[string]struct {
		say  []string
		code connect.Code
		text string
	}{
		"no run request":     {[]string{`{"clientHeartbeat":{}}`, `{"kvClientMessage":{"id":1}}`}, connect.CodeInvalidArgument, "must be a run_request, not KvClientMessage"},
		"nothing":            {nil, connect.CodeFailedPrecondition, "closed its side before it answered the connection"},
		"closed too early":   {[]string{"first"}, connect.CodeFailedPrecondition, "closed its side before it answered exec 1"},
		"another result":     {[]string{"first", `{"execClientMessage":{"id":1,"lsResult":{}}}`}, connect.CodeInvalidArgument, "has no read_result"},
		"a client exception": {[]string{"first", `{"execClientControlMessage":{"throw":{"id":1,"error":"no disk"}}}`}, connect.CodeAborted, "the client threw: no disk"},
	} {
		t.Run(name, func(t *testing.T) {
			var list []*message
			for _, form := range c.say {
				if form == "first" {
					list = append(list, first)
				} else {
					list = append(list, build(t, s.api.client, form))
				}
			}
			_, err := converse(t, s, list...)
			wantCode(t, err, c.code, c.text)
		})
	}
}

func TestCancelEndsTheTurn(t *testing.T) {
	s := start(t, Options{Script: steps(`{"tool":{"name":"read","args":{"path":"x"}}},{"text":"never"},{"turn_ended":{}}`)})
	got, err := converse(t, s, (&player{t: t, api: s.api}).first(), build(t, s.api.client, `{"conversationAction":{"cancelAction":{}}}`))
	if !errors.Is(err, io.EOF) || answerOf(got) != "" || !has(got[len(got)-1], "interaction_update", "turn_ended") {
		t.Errorf("got %v, %v", kindsOf(got), err)
	}
}

func TestPieces(t *testing.T) {
	var got []string
	for p := range pieces("añb€cdé", []int{2, 1, 3}) {
		got = append(got, p)
	}
	if want := "[añ b €cd é]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestEveryCompressionArrives(t *testing.T) {
	long := strings.Repeat("the same words again and again ", 40)
	for _, name := range []string{"gzip", "br", "zstd", ""} {
		names := `[]`
		if name != "" {
			names = `["` + name + `"]`
		}
		s := start(t, Options{Script: []byte(`{"v":1,"compression":{"names":` + names + `,"min_bytes":100},"turns":[{"steps":[{"text":"` + long + `"},{"turn_ended":{}}]}]}`)})
		hc := httpClient(t, s, true)
		rec := &recorder{next: hc.Transport}
		hc.Transport = rec
		var o []connect.ClientOption
		if name != "" && name != "gzip" {
			o = append(o, acceptCompression(name))
		}
		got, err := runWith(t, s, hc, &player{}, o...)
		if err != nil || answerOf(got) != long {
			t.Errorf("%q: %d characters, %v", name, len(answerOf(got)), err)
		}
		if compressed := rec.body.Bytes()[0] == 1; compressed != (name != "") {
			t.Errorf("%q: the first message's flags are %#x", name, rec.body.Bytes()[0])
		}
	}
}

func acceptCompression(name string) connect.ClientOption {
	if name == "br" {
		return connect.WithAcceptCompression("br", func() connect.Decompressor { return brotliReader{brotli.NewReader(nil)} },
			func() connect.Compressor { return brotli.NewWriter(nil) })
	}
	return connect.WithAcceptCompression("zstd", func() connect.Decompressor {
		r, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		return zstdReader{r}
	}, func() connect.Compressor {
		w, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		return w
	})
}

type brotliReader struct{ *brotli.Reader }

func (brotliReader) Close() error { return nil }

type zstdReader struct{ *zstd.Decoder }

func (r zstdReader) Close() error { return r.Reset(nil) }

// A client that leaves must not leave its turn behind.
func TestTurnEndsWhenItsClientLeaves(t *testing.T) {
	ended := make(chan struct{})
	s := start(t, Options{Script: steps(`{"wait":{"ms":600000,"heartbeat_every_ms":60000}}`)}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			next.ServeHTTP(w, r)
		})
	})
	c, _ := rpc(t, s, httpClient(t, s, true), procedureRun)
	ctx, cancel := context.WithCancel(t.Context())
	stream := c.CallBidiStream(ctx)
	headers(stream.RequestHeader())
	if err := stream.Send((&player{t: t, api: s.api}).first()); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the turn went on without its client")
	}
}
