package decode

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode/envelope"
	"unwire/decode/text"
	"unwire/decode/wire"
	subject "unwire/proto"
)

// one is a Source with one exchange.
type one struct {
	ex     captures.Exchange
	chunks []captures.Chunk
	fail   error // after the chunks
}

func (o *one) Exchange(context.Context, int64) (*captures.Exchange, error) {
	if o.ex.ID == 0 {
		return nil, errors.New("no such exchange")
	}
	return &o.ex, nil
}

func (o *one) Profile() *profile.Profile { return subject.Profile() }

func (o *one) Chunks(_ context.Context, _, from int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		for _, c := range o.chunks {
			if c.Seq >= from && !yield(c, nil) {
				return
			}
		}
		if o.fail != nil {
			yield(captures.Chunk{}, o.fail)
		}
	}
}

// call makes a complete exchange; chunks are ">" or "<" and hex.
func call(method, url string, req, resp captures.Headers, status int, chunks ...string) *one {
	o := &one{ex: captures.Exchange{
		ID: 7, Method: method, URL: "https://api.example.com" + url, HTTP: "2", Status: status,
		RequestHeaders: req, ResponseHeaders: resp, Outcome: captures.Complete, Duration: time.Second,
	}}
	for i, c := range chunks {
		dir := captures.Up
		if c[0] == '<' {
			dir = captures.Down
		}
		data, err := hex.DecodeString(strings.ReplaceAll(c[1:], " ", ""))
		if err != nil {
			panic(err)
		}
		o.chunks = append(o.chunks, captures.Chunk{Exchange: 7, Dir: dir, Seq: int64(i), T: time.Duration(i+1) * time.Millisecond, Data: data})
	}
	return o
}

func h(kv ...string) (out captures.Headers) {
	for i := 0; i+1 < len(kv); i += 2 {
		out = append(out, captures.Header{Name: kv[i], Value: kv[i+1]})
	}
	return out
}

func hexOf(s string) string { return hex.EncodeToString([]byte(s)) }

func gz(s string) string {
	b, err := envelope.Compress("gzip", []byte(s))
	if err != nil {
		panic(err)
	}
	return string(b)
}

const run = "/agent.v1.AgentService/Run"

func TestClassify(t *testing.T) {
	ct := func(s string) captures.Headers { return h("Content-Type", s) }
	for _, c := range []struct {
		method, url string
		req, resp   captures.Headers
		want        Call
	}{
		{"POST", run, ct("application/connect+proto"), nil, Call{ConnectStream, "proto", "agent.v1.AgentService", "Run"}},
		{"POST", run, ct("application/connect+json"), ct("application/connect+json"), Call{ConnectStream, "json", "agent.v1.AgentService", "Run"}},
		{"POST", "/prefix" + run, ct("application/proto"), nil, Call{ConnectUnary, "proto", "agent.v1.AgentService", "Run"}},
		{"POST", run, ct("application/json; charset=utf-8"), nil, Call{ConnectUnary, "json", "agent.v1.AgentService", "Run"}},
		{"POST", "/Service/Method", append(ct("application/json"), captures.Header{Name: "connect-protocol-version", Value: "1"}), nil, Call{ConnectUnary, "json", "Service", "Method"}},
		{"POST", "/auth/exchange_user_api_key", ct("application/json"), ct("application/json"), Call{HTTP, "json", "", ""}},
		{"POST", "/v1/traces", ct("application/x-protobuf"), nil, Call{HTTP, "proto", "", ""}},
		{"GET", "/a.v1.S/Get?connect=v1&encoding=json&message=%7B%7D", nil, nil, Call{ConnectGet, "json", "a.v1.S", "Get"}},
		{"GET", "/index.html", nil, ct("text/html"), Call{HTTP, "html", "", ""}},
		{"POST", run, ct("application/grpc"), nil, Call{GRPC, "proto", "agent.v1.AgentService", "Run"}},
		{"POST", run, ct("application/grpc+json"), nil, Call{GRPC, "json", "agent.v1.AgentService", "Run"}},
		{"POST", run, ct("application/grpc-web+proto"), nil, Call{GRPCWeb, "proto", "agent.v1.AgentService", "Run"}},
		{"POST", run, ct("application/grpc-web-text"), nil, Call{GRPCWebText, "proto", "agent.v1.AgentService", "Run"}},
		{"POST", "/agent.v1.AgentService/RunSSE", ct("application/connect+proto"), ct("text/event-stream"), Call{SSE, "proto", "agent.v1.AgentService", "RunSSE"}},
		{"GET", "/events", nil, ct("text/event-stream"), Call{SSE, "", "", ""}},
		{"POST", "://", ct("application/json"), nil, Call{HTTP, "json", "", ""}},
	} {
		got := Classify(&captures.Exchange{Method: c.method, URL: "https://h" + c.url, RequestHeaders: c.req, ResponseHeaders: c.resp})
		if got != c.want {
			t.Errorf("%s %s %v: %+v, want %+v", c.method, c.url, c.req, got, c.want)
		}
	}
}

// outline writes frames as lines.
func outline(ex *Exchange) string {
	var b strings.Builder
	for _, f := range ex.Frames {
		fmt.Fprintf(&b, "%s %d at %v", f.Dir, f.Seq, f.T)
		if f.Tree != nil {
			fmt.Fprintf(&b, " tree:%d", len(f.Tree.Nodes))
		} else {
			fmt.Fprintf(&b, " %q", f.Data)
		}
		if f.End != nil {
			b.WriteString(" end")
		}
		if f.Partial {
			b.WriteString(" partial")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s %q", ex.Code, ex.Message)
	return b.String()
}

func TestDecode(t *testing.T) {
	connect := h("content-type", "application/connect+proto", "connect-content-encoding", "gzip")
	proto, js := h("content-type", "application/proto"), h("content-type", "application/json")
	failure := `{"code":"not_found","message":"gone"}`
	for _, c := range []struct {
		name string
		in   *one
		want string
	}{
		{
			"stream", call("POST", run, connect, connect, 200, ">00 00000002 3a00", "<00 00000008 0a06", ">00 00000002 3a00", "<0a040a024869 02 00000002 7b7d"),
			"up 0 at 1ms tree:2\nup 1 at 3ms tree:2\ndown 0 at 4ms tree:5\ndown 1 at 4ms \"{}\" end\nok \"\"",
		},
		{
			"stream error, compressed", call("POST", run, connect, connect, 200, "<"+hex.EncodeToString(envelope.Append(nil, 3, []byte(gz(`{"error":{"code":"aborted","message":"no"}}`))))),
			"down 0 at 1ms \"{\\\"error\\\":{\\\"code\\\":\\\"aborted\\\",\\\"message\\\":\\\"no\\\"}}\" end\naborted \"no\"",
		},
		{
			"stream without end", call("POST", run, connect, connect, 200, "<00 00000002 3a00"),
			"down 0 at 1ms tree:2\n \"\"",
		},
		{
			"stream cut", call("POST", run, connect, connect, 200, "<00 00000008 0a060a"),
			"down 0 at 1ms tree:2 partial\n \"\"",
		},
		{
			"stream refused by a proxy", call("POST", run, connect, h("content-type", "text/html"), 502, "<"+hexOf("<html>")),
			"down 0 at 1ms \"<html>\"\nunavailable \"Bad Gateway\"",
		},
		{
			"unary", call("POST", "/a.v1.S/Get", proto, append(proto, captures.Header{Name: "Content-Encoding", Value: "gzip"}), 200, ">0801", "<"+hexOf(gz("\x08\x02"))),
			"up 0 at 1ms tree:2\ndown 0 at 2ms tree:2\nok \"\"",
		},
		{
			"unary, empty", call("POST", "/a.v1.S/Get", proto, proto, 200),
			"up 0 at 0s tree:1\ndown 0 at 1s tree:1\nok \"\"",
		},
		{
			"unary error", call("POST", "/a.v1.S/Get", proto, js, 404, ">0801", "<"+hexOf(failure)),
			"up 0 at 1ms tree:2\ndown 0 at 2ms \"{\\\"code\\\":\\\"not_found\\\",\\\"message\\\":\\\"gone\\\"}\" end\nnot_found \"gone\"",
		},
		{
			"unary in an envelope", call("POST", "/a.v1.S/Get", proto, proto, 200, ">00 00000002 0801", "<0802"),
			"up 0 at 1ms tree:2\ndown 0 at 2ms tree:2\nok \"\"",
		},
		{
			"get", call("GET", "/a.v1.S/Get?connect=v1&encoding=proto&base64=1&message=CAE&compression=identity", nil, proto, 200, "<0802"),
			"up 0 at 0s tree:2\ndown 0 at 1ms tree:2\nok \"\"",
		},
		{
			"get gzip", call("GET", "/a.v1.S/Get?connect=v1&encoding=json&base64=1&compression=gzip&message="+base64.RawURLEncoding.EncodeToString([]byte(gz("{}"))), nil, js, 200, "<7b7d"),
			"up 0 at 0s \"{}\"\ndown 0 at 1ms \"{}\"\nok \"\"",
		},
		{
			"grpc-web", call("POST", run, h("content-type", "application/grpc-web+proto"), h("content-type", "application/grpc-web+proto"), 200, ">00 00000002 0801", "<80"+fmt.Sprintf("%08x", 32)+hexOf("grpc-status:5\r\ngrpc-message:gone")),
			"up 0 at 1ms tree:2\ndown 0 at 2ms \"grpc-status:5\\r\\ngrpc-message:gone\" end\nnot_found \"gone\"",
		},
		{
			"grpc-web-text", call("POST", run, h("content-type", "application/grpc-web-text"), h("content-type", "application/grpc-web-text"), 200, ">"+hexOf("AAAAAAIIAQ=="), "<"+hexOf("AAAAAAIIAQ==")),
			"up 0 at 1ms tree:2\ndown 0 at 2ms tree:2\n \"\"",
		},
		{
			"sse, raw envelopes", call("POST", run+"SSE", connect, h("content-type", "text/event-stream"), 200, ">00 00000002 0801", "<00 00000008 0a060a040a024869", "<02 00000002 7b7d"),
			"up 0 at 1ms tree:2\ndown 0 at 2ms tree:5\ndown 1 at 3ms \"{}\" end\nok \"\"",
		},
		{
			"sse, base64", call("POST", run+"SSE", proto, h("content-type", "text/event-stream"), 200, ">0801", "<"+hexOf("data: AAAAAAIIAQ==\n\nevent: end\ndata: {}\n\n")),
			"up 0 at 1ms tree:2\ndown 0 at 2ms tree:2\ndown 1 at 2ms \"{}\" end\nok \"\"",
		},
		{
			"sse, empty end", call("POST", run+"SSE", proto, h("content-type", "text/event-stream"), 200, "<"+hexOf("data: AAAAAAIIAQ==\n\nevent: end\ndata:\n\n")),
			"down 0 at 1ms tree:2\ndown 1 at 1ms \"\" end\nok \"\"",
		},
		{
			"code that does not exist", call("POST", "/a.v1.S/Get", proto, js, 503, "<"+hexOf(`{"code":"overloaded","message":"later"}`)),
			"up 0 at 0s tree:1\ndown 0 at 1ms \"{\\\"code\\\":\\\"overloaded\\\",\\\"message\\\":\\\"later\\\"}\" end\nunavailable \"later\"",
		},
		{
			"plain HTTP is no Connect", call("POST", "/auth/token", js, js, 403, "<"+hexOf(`{"code":"not_found"}`)),
			"down 0 at 1ms \"{\\\"code\\\":\\\"not_found\\\"}\"\npermission_denied \"Forbidden\"",
		},
		{
			"sse without names of fields", call("GET", "/events", nil, h("content-type", "text/event-stream"), 200, "<"+hexOf("{\"a\":1}\n\n{\"a\":2}\n\n")),
			"down 0 at 1ms \"{\\\"a\\\":1}\"\ndown 1 at 1ms \"{\\\"a\\\":2}\"\nok \"\"",
		},
		{
			"sse in gzip", call("GET", "/events", nil, h("content-type", "text/event-stream", "content-encoding", "gzip"), 200, "<"+hexOf(gz("data: hello world\n\n"))),
			"down 0 at 1ms \"hello world\"\nok \"\"",
		},
		{
			"http", call("GET", "/x", nil, h("content-type", "text/html"), 403, "<"+hexOf("no")),
			"down 0 at 1ms \"no\"\npermission_denied \"Forbidden\"",
		},
		{
			"garbage", call("POST", "/a.v1.S/Get", proto, proto, 200, ">0f"),
			"up 0 at 1ms tree:2\ndown 0 at 1s tree:1\nok \"\"",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			ex, err := Decode(context.Background(), c.in, 7, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := outline(ex); got != c.want {
				t.Errorf("got\n%s\nwant\n%s\nErr %v", got, c.want, ex.Err)
			}
		})
	}
}

func TestGRPCStatus(t *testing.T) {
	g := h("content-type", "application/grpc")
	o := call("POST", run, g, g, 200, ">00 00000002 0801", "<00 00000002 0801")
	o.ex.ResponseTrailers = h("grpc-status", "8", "grpc-message", "too%20much")
	ex, err := Decode(context.Background(), o, 7, Options{NoTrees: true})
	if err != nil || ex.Code != "resource_exhausted" || ex.Message != "too much" || len(ex.Frames) != 2 || ex.Frames[0].Tree != nil {
		t.Errorf("%s, %v", outline(ex), err)
	}
	o = call("POST", run, g, append(g, h("grpc-status", "0")...), 200)
	if ex, _ := Decode(context.Background(), o, 7, Options{}); ex.Code != "ok" {
		t.Errorf("trailers only: %q", ex.Code)
	}
}

func TestErrorsNameTheirPlace(t *testing.T) {
	c := h("content-type", "application/connect+proto")
	o := call("POST", run, c, c, 200, ">00 00000002 0801 00 00000003 6a9007", "<00 0000")
	o.fail = errors.New("disk on fire")
	ex, err := Decode(context.Background(), o, 7, Options{})
	if err == nil || ex == nil || len(ex.Frames) != 3 {
		t.Fatalf("%v, %v", ex, err)
	}
	for _, want := range []string{
		"decode: exchange 7: client frame 1: field 13 at 0x0: the length is 912, but only 0 bytes are left",
		"server frame 0: frame at offset 0x0: the header has 5 bytes, but only 3 arrived", "disk on fire",
	} {
		if !strings.Contains(ex.Err.Error(), want) {
			t.Errorf("%v\nhas no %s", ex.Err, want)
		}
	}
	if _, err := Decode(context.Background(), &one{}, 7, Options{}); err == nil || !strings.Contains(err.Error(), "decode: exchange 7") {
		t.Errorf("%v", err)
	}
}

func TestInner(t *testing.T) {
	message := "\x0a\x06\x0a\x04\x0a\x02Hi"
	field := func(s string) string { return string(append(wire.AppendVarint([]byte{0x0a}, uint64(len(s))), s...)) }
	proto := h("content-type", "application/proto", "content-encoding", "gzip")
	body := field(hexOf(message)) + "\x12\x03\x0a\x01x\x18\x05"
	o := call("POST", "/aiserver.v1.BidiService/BidiAppend", proto, h("content-type", "application/proto"), 200, ">"+hexOf(gz(body)))
	ex, err := Decode(context.Background(), o, 7, Options{})
	if err != nil || len(ex.Frames) != 2 {
		t.Fatalf("%s, %v", outline(ex), err)
	}
	in := ex.Frames[0].Inner
	if len(in) != 1 || in[0].Encoding != "hex" || string(in[0].Data) != message || len(in[0].Tree.Nodes) != 5 {
		t.Errorf("%+v", in)
	}
	long := "\x0a\x10some longer text\x10\x96\x01\x1a\x05again"
	for name, c := range map[string]struct {
		value, encoding string
	}{
		"hex":             {hexOf(long), "hex"},
		"base64":          {base64.StdEncoding.EncodeToString([]byte(long)), "base64"},
		"gzip":            {gz(long), "gzip"},
		"base64 and gzip": {base64.StdEncoding.EncodeToString([]byte(gz(long))), "base64+gzip"},
		"words":           {"longer words that are no code", ""},
		"a word":          {"abcdefghijkl", ""},
		"a hash":          {"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", ""},
	} {
		o := call("POST", "/a.v1.S/Get", h("content-type", "application/proto"), nil, 0, ">"+hexOf(field(c.value)))
		ex, _ := Decode(context.Background(), o, 7, Options{})
		in := ex.Frames[0].Inner
		if c.encoding == "" && len(in) > 0 || c.encoding != "" && (len(in) != 1 || in[0].Encoding != c.encoding || string(in[0].Data) != long) {
			t.Errorf("%s: %+v", name, in)
		}
	}
}

func TestStreamIsIncremental(t *testing.T) {
	c := h("content-type", "application/connect+proto")
	o := call("POST", run, c, nil, 0, ">00 00000002 3a00", "<00 00000008 0a060a", "<040a024869", "<02 00000002 7b7d")
	s := NewStream(&o.ex, Options{})
	var counts []int
	for _, chunk := range o.chunks {
		if chunk.Seq == 1 {
			ex := o.ex
			ex.Status, ex.ResponseHeaders = 200, c
			s.Update(&ex)
		}
		counts = append(counts, len(s.Feed(chunk)))
	}
	code, _ := s.Status()
	if fmt.Sprint(counts) != "[1 0 1 1]" || code != "ok" || len(s.Close()) != 0 || s.err() != nil {
		t.Errorf("%v, %s, %v", counts, code, s.err())
	}
	// A unary body is complete at its content-length.
	o = call("POST", "/a.v1.S/Get", h("content-type", "application/proto", "content-length", "2"), nil, 0, ">08", ">01")
	s = NewStream(&o.ex, Options{})
	if a, b := s.Feed(o.chunks[0]), s.Feed(o.chunks[1]); len(a) != 0 || len(b) != 1 || len(s.Close()) != 0 {
		t.Errorf("%d, %d", len(a), len(b))
	}
}

func TestFrameLimit(t *testing.T) {
	c := h("content-type", "application/connect+proto")
	o := call("POST", run, c, c, 200, "<"+strings.Repeat("00 00000000", 50))
	ex, err := Decode(context.Background(), o, 7, Options{MaxFrames: 10})
	if err != nil || len(ex.Frames) != 10 || ex.Err == nil || !strings.Contains(ex.Err.Error(), "server frame 10: the exchange has more than 10 frames") {
		t.Errorf("%d frames, %v, %v", len(ex.Frames), ex.Err, err)
	}
}

// Frames that each inflate to just below the limit are no less a bomb than one
// that does not: what an exchange holds is bounded as a whole.
func TestExchangeIsBounded(t *testing.T) {
	frame := envelope.Append(nil, envelope.Compressed, []byte(gz(strings.Repeat("\x08\x01", 100_000))))
	headers := h("content-type", "application/connect+proto", "connect-content-encoding", "gzip")
	body := hex.EncodeToString(bytes.Repeat(frame, 4))
	src := call("POST", "/a.B/C", headers, headers, 200, "<"+body)
	decoded := func(o Options) *Exchange {
		ex, err := Decode(t.Context(), src, 7, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(ex.Frames) != 4 {
			t.Fatalf("%d frames", len(ex.Frames))
		}
		return ex
	}
	ex := decoded(Options{MaxTotal: 500_000})
	for i, want := range []int{200_000, 200_000, keptOfTooLarge, keptOfTooLarge} {
		f := ex.Frames[i]
		if len(f.Data) != want || errors.Is(f.Err, errTotal) != (i > 1) {
			t.Errorf("frame %d: %d bytes, %v", i, len(f.Data), f.Err)
		}
	}
	if !errors.Is(ex.Err, errTotal) || !strings.Contains(ex.Err.Error(), "server frame 2") {
		t.Errorf("%v", ex.Err)
	}
	ex = decoded(Options{MaxNodes: 150_000})
	for i, f := range ex.Frames {
		switch {
		case i == 0 && (f.Tree == nil || f.Err != nil):
			t.Errorf("frame %d: %v", i, f.Err)
		case i == 1 && (f.Tree == nil || f.Err == nil):
			t.Errorf("frame %d: %v", i, f.Err)
		case i > 1 && (f.Tree != nil || !errors.Is(f.Err, errNodes)):
			t.Errorf("frame %d: %v", i, f.Err)
		}
	}
}

func TestFramesDoNotDependOnChunking(t *testing.T) {
	c := h("content-type", "application/connect+proto")
	rapid.Check(t, func(t *rapid.T) {
		var body []byte
		n := rapid.IntRange(0, 5).Draw(t, "frames")
		for range n {
			body = envelope.Append(body, 0, rapid.SliceOf(rapid.Byte()).Draw(t, "data"))
		}
		o := call("POST", run, c, c, 200)
		seq := int64(0)
		for p := body; len(p) > 0; seq++ {
			k := rapid.IntRange(1, len(p)).Draw(t, "chunk")
			o.chunks = append(o.chunks, captures.Chunk{Dir: captures.Down, Seq: seq, T: time.Duration(seq), Data: p[:k]})
			p = p[k:]
		}
		ex, err := Decode(context.Background(), o, 7, Options{})
		if err != nil || len(ex.Frames) != n {
			t.Fatalf("%d frames of %d: %v", len(ex.Frames), n, err)
		}
		var again []byte
		for i, f := range ex.Frames {
			if f.Seq != i || !bytes.Equal(f.Tree.Append(nil), f.Data) {
				t.Fatalf("frame %d: %+v", i, f)
			}
			again = envelope.Append(again, f.Flags, f.Raw)
		}
		if !bytes.Equal(again, body) {
			t.Fatalf("%x, want %x", again, body)
		}
	})
}

func TestFieldsAsJSON(t *testing.T) {
	tree := wire.Parse([]byte("\x0a\x03abc\x12\x04\x08\x96\x01\x07\x1d\x00\x00\x20\x40\x28\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x0f"), wire.Options{})
	got, err := json.Marshal(View{}.Fields(tree))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"n":1,"wire":"len","off":0,"len":5,"val":2,"kind":"string","type":"string","value":"abc"`,
		`"wire":"i32","off":11,"len":5,"val":12,"kind":"fixed32","type":"float","value":2.5`,
		`"value":9223372036854775807`, `"wire":"garbage"`, `"error":"field 1 at`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s\nhas no %s", got, want)
		}
	}
}

// What show prints can be edited and encoded.
func TestFieldsAreReadByText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b []byte
		for range rapid.IntRange(0, 6).Draw(t, "fields") {
			number := rapid.Uint64Range(1, 40).Draw(t, "number")
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				b = wire.AppendVarint(wire.AppendVarint(b, number<<3), rapid.Uint64().Draw(t, "v"))
			case 1:
				b = append(wire.AppendVarint(b, number<<3|1), rapid.SliceOfN(rapid.ByteMax(0x7e), 8, 8).Draw(t, "i64")...)
			case 2:
				b = append(wire.AppendVarint(b, number<<3|5), rapid.SliceOfN(rapid.ByteMax(0x7e), 4, 4).Draw(t, "i32")...)
			default:
				s := rapid.OneOf(rapid.String(), rapid.Just("\n\x03abc"), rapid.Just("\x01\x02\x03"),
					rapid.Just("\xcd\xcc\x4c\x3e\x00\x00\xc0\x3f\x00\x00\xe8\xc0\x00\x00\x00\x80"), rapid.Just("\x9a\x99\x99\x99\x99\x99\xc9\x3f\x00\x00\x00\x00\x00\x00\x04\x40")).Draw(t, "s")
				b = append(wire.AppendVarint(wire.AppendVarint(b, number<<3|2), uint64(len(s))), s...)
			}
		}
		fields, err := json.Marshal(View{}.Fields(wire.Parse(b, wire.Options{})))
		if err != nil {
			t.Fatal(err)
		}
		got, err := text.ParseJSON([]byte(`{"v":1,"fields":` + string(fields) + `}`))
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%s\ngives %x, %v, want %x", fields, got, err, b)
		}
	})
}

func TestNamesFromASchema(t *testing.T) {
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("a.proto"), Package: proto.String("a.v1"),
		EnumType: []*descriptorpb.EnumDescriptorProto{},
		MessageType: []*descriptorpb.DescriptorProto{{
			Name:  proto.String("M"),
			Field: []*descriptorpb.FieldDescriptorProto{{Name: proto.String("x"), Number: proto.Int32(1), Type: descriptorpb.FieldDescriptorProto_TYPE_SINT32.Enum()}},
		}},
	}
	b, err := proto.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	md := file.ProtoReflect().Descriptor()
	fields := View{Type: md}.Fields(wire.Parse(b, wire.Options{}))
	if fields[0].Name != "name" || fields[0].P != 1 || fields[2].Type != "google.protobuf.DescriptorProto" {
		t.Errorf("%+v", fields)
	}
	label := fields[2].Fields[1].Fields
	if last := label[len(label)-1]; last.Name != "type" || last.Symbol != "TYPE_SINT32" || last.Value != int32(17) {
		t.Errorf("%+v", last)
	}
	wrong := View{Type: md}.Fields(wire.Parse([]byte{8, 1}, wire.Options{}))
	if wrong[0].Name != "name" || wrong[0].Error != "the schema declares string" || wrong[0].Kind != "varint" {
		t.Errorf("%+v", wrong)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x02\x3a\x00\x02\x00\x00\x00\x02{}"), uint8(0))
	f.Add([]byte("data: AAAAAAIIAQ==\n\n"), uint8(4))
	types := []string{"application/connect+proto", "application/proto", "application/grpc-web+proto", "application/grpc-web-text", "text/event-stream", "application/json", ""}
	f.Fuzz(func(t *testing.T, body []byte, mode uint8) {
		c := h("content-type", types[int(mode)%len(types)])
		if mode >= 128 {
			c = append(c, h("content-encoding", "gzip")...)
		}
		o := call("POST", run, c, c, 200)
		o.chunks = []captures.Chunk{{Dir: captures.Up, Data: body}, {Dir: captures.Down, Seq: 1, Data: body}}
		ex, err := Decode(context.Background(), o, 7, Options{MaxFrame: 1 << 16, MaxInflated: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		sameFrames(t, o, Options{MaxFrame: 1 << 16, MaxInflated: 1 << 16})
		for i := range ex.Frames {
			line := View{}.Line(&ex.Frames[i])
			if _, err := json.Marshal(line); err != nil {
				t.Fatal(err)
			}
		}
	})
}
