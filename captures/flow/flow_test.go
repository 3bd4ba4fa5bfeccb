package flow_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/captures/flow"
	"unwire/captures/internal/samples"
	"unwire/captures/store"
	"unwire/captures/transfer"
)

func load(t testing.TB, in []byte) ([]samples.Whole, transfer.Report) {
	t.Helper()
	to := samples.Store(t, t.TempDir(), store.Options{KeepSecrets: true})
	rep, err := flow.Import(context.Background(), iotest.OneByteReader(bytes.NewReader(in)), to)
	if err != nil {
		t.Fatal(err)
	}
	return samples.Read(t, to), rep
}

func TestImport(t *testing.T) {
	got, rep := load(t, dump(dump(nil, sample()), sample()))
	if d := cmp.Diff(transfer.Report{Exchanges: 2}, rep); d != "" {
		t.Fatal(d)
	}
	want := samples.Whole{
		Exchange: captures.Exchange{
			ID: 1, Method: "POST", URL: "https://api.example/agent.v1.AgentService/Run?a=1", HTTP: "2", Status: 200,
			RequestHeaders: captures.Headers{
				{Name: "content-type", Value: "application/connect+proto"}, {Name: "x-odd", Value: "\xff"}, {Name: "x-odd", Value: "2"},
			},
			ResponseHeaders:  captures.Headers{{Name: "content-type", Value: "application/connect+proto"}},
			ResponseTrailers: captures.Headers{{Name: "x-t", Value: "v"}},
			Started:          time.Unix(1700000000, 250e6).UTC(), Duration: 500 * time.Millisecond, Client: "127.0.0.1:50000", Server: "10.0.0.1:443",
			TLS:     captures.TLS{Version: "1.3", Cipher: "TLS_AES_128_GCM_SHA256", ServerName: "api.example", ALPN: "h2"},
			Outcome: captures.Complete, BytesUp: 7, BytesDown: 7, Source: "import mitmproxy",
		},
		Chunks: []captures.Chunk{
			{Exchange: 1, Dir: captures.Up, T: time.Millisecond, Data: []byte("\x00\x00\x00\x00\x02\x08\x01")},
			{Exchange: 1, Dir: captures.Down, Seq: 1, T: 500 * time.Millisecond, Data: []byte("\x02\x00\x00\x00\x02{}")},
		},
	}
	if d := cmp.Diff(want, got[0]); d != "" {
		t.Error(d)
	}
}

// TestVariants: what versions and kinds of flows do differently.
func TestVariants(t *testing.T) {
	t.Parallel()
	plain := edit("request", "authority", "")
	plain["request"] = plain["request"].(dict).with("scheme", "http").with("port", 8080).with("http_version", "HTTP/1.1")
	old := sample().with("version", 4).with("client_conn", dict{"address": []any{"127.0.0.1", 9}})
	old["request"] = old["request"].(dict).with("authority", nil).with("headers", []any{[]any{"Host", "named.example"}})
	failed := sample().with("response", nil).with("error", dict{"msg": str("connection lost"), "timestamp": started + 2})
	reset := sample().with("error", dict{"msg": str("reset"), "timestamp": started + 2})
	for _, c := range []struct {
		name, url string
		flow      dict
		outcome   captures.Outcome
		errText   string
		duration  time.Duration
		problem   string
	}{
		{name: "plain", flow: plain, url: "http://10.0.0.1:8080/agent.v1.AgentService/Run?a=1"},
		{name: "old", flow: old, url: "https://named.example/agent.v1.AgentService/Run?a=1"},
		{name: "newer", flow: sample().with("version", 99), problem: "format version 99, newer than"},
		{name: "no answer", flow: sample().with("response", nil), outcome: captures.Incomplete, duration: time.Millisecond},
		{name: "failed", flow: failed, outcome: captures.Failed, errText: "connection lost", duration: 2 * time.Second},
		{name: "reset", flow: reset, outcome: captures.Reset, errText: "reset", duration: 2 * time.Second},
		{name: "streamed", flow: edit("response", "content", nil), problem: "response.content is missing"},
		{name: "no time", flow: edit("request", "timestamp_start", nil), problem: "timestamp_start is missing", duration: -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, rep := load(t, dump(nil, c.flow))
			if len(got) != 1 || rep.Skipped > 0 {
				t.Fatalf("%+v", rep)
			}
			if c.url != "" && got[0].URL != c.url {
				t.Errorf("URL %s, want %s", got[0].URL, c.url)
			}
			if c.outcome == "" {
				c.outcome = captures.Complete
			}
			if c.duration == 0 {
				c.duration = 500 * time.Millisecond
			}
			if got[0].Outcome != c.outcome || got[0].Error != c.errText || c.duration > 0 && got[0].Duration != c.duration {
				t.Errorf("ended as %q, %q after %s", got[0].Outcome, got[0].Error, got[0].Duration)
			}
			if problems := strings.Join(rep.Problems, "\n"); !strings.Contains(problems, c.problem) || (c.problem == "") != (problems == "") {
				t.Errorf("problems %q, want %q", problems, c.problem)
			}
		})
	}
}

// TestSkipped: a flow that cannot be read does not stop the next one.
func TestSkipped(t *testing.T) {
	for _, c := range []struct {
		flow any
		want string
	}{
		{sample().with("version", []any{0, 18}), "older than version 4"},
		{dict{"a": 1}, "no version"},
		{[]any{}, "the flow is not a dictionary"},
		{sample().with("type", str("udp")), `the flow has the type "udp"`},
		{sample().with("websocket", dict{"messages": []any{[]any{3, true, "x", started}}}), "websocket.messages[0] is not a valid message"},
		{sample().with("websocket", dict{"messages": []any{[]any{1, true, "x", "now"}}}), "websocket.messages[0] is not a valid message"},
		{dict{"version": 21, "type": str("tcp"), "messages": 5}, "messages is not a valid list"},
		{dict{"version": 21, "type": str("tcp"), "messages": []any{[]any{true, "x", started}}}, "server_conn.address is not a valid address"},
		{dict{"version": 9, "type": str("websocket"), "messages": []any{[]any{1, true, "x", started}}}, "server_conn.address is not a valid address"},
		{sample().with("request", nil), "no request"},
		{sample().with("request", 5), "request is not a valid dictionary"},
		{edit("request", "method", 5), "request.method is not a valid text"},
		{edit("request", "headers", []any{[]any{"a"}}), "request.headers is not a valid list of pairs"},
		{edit("request", "headers", []any{[]any{"a", 1}}), "request.headers is not a valid list of texts"},
		{edit("response", "status_code", 99999), "response.status_code is not a valid status"},
		{edit("response", "timestamp_end", -1.5), "response.timestamp_end is not a valid time"},
		{edit("response", "timestamp_end", "x"), "response.timestamp_end is not a valid number"},
	} {
		_, rep := load(t, dump(dump(nil, c.flow), sample()))
		if rep.Exchanges != 1 || rep.Skipped != 1 || len(rep.Problems) != 1 || !strings.HasPrefix(rep.Problems[0], "flow 0: skipped: ") ||
			!strings.Contains(rep.Problems[0], c.want) {
			t.Errorf("%+v, want %s", rep, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	good := dump(nil, sample())
	n := len(good)
	deep := []byte("0:~")
	for range 100 {
		deep = fmt.Appendf(nil, "%d:%s]", len(deep), deep)
	}
	for _, c := range []struct {
		in   []byte
		want string
	}{
		{[]byte("nonsense"), fmt.Sprintf("flow 1 at byte %d: the length of a value is expected here, not 'n'", n)},
		{good[:n-1], fmt.Sprintf("flow 1 at byte %d: a value of", n)},
		{[]byte("12"), "unexpected EOF"},
		{[]byte("999999999999:x"), "more than the limit"},
		{[]byte("9999999999999:x"), "the length of a value is expected here"},
		{[]byte("500000000:x,"), "is truncated after 2"},
		{[]byte("3:1:a}"), "a value claims to have 1 bytes, but only 1 bytes are left"},
		{[]byte("4:1:a?}"), `'?' is not a known type of value`},
		{[]byte("3:0:~}"), "a key of the dictionary is not text"},
		{[]byte("1:x~"), "a null value must be empty, but has 1 bytes"},
		{[]byte("1:x#"), `"x": invalid syntax`},
		{[]byte("1:x!"), `"x": invalid syntax`},
		{[]byte("1:x^"), `"x": invalid syntax`},
		{append([]byte("70:"), strings.Repeat("1", 70)+"#"...), "a number or boolean with 70 bytes is too long"},
		{fmt.Appendf(nil, "3300000:%s]", strings.Repeat("0:~", 1_100_000)), "more than 1048576 values"},
		{deep, "lists and dictionaries are nested more than 64"},
	} {
		to := samples.Store(t, t.TempDir(), store.Options{})
		rep, err := flow.Import(context.Background(), bytes.NewReader(append(bytes.Clone(good), c.in...)), to)
		if err == nil || !strings.Contains(err.Error(), c.want) || rep.Exchanges != 1 {
			t.Errorf("%.30q: %d exchanges, %v, want %s", c.in, rep.Exchanges, err, c.want)
		}
	}
	if _, err := flow.Import(context.Background(), strings.NewReader(""), nil); err == nil {
		t.Error("an empty file is taken for flows")
	}
}

// TestBodies: any body and any header come through.
func TestBodies(t *testing.T) {
	t.Parallel()
	to := samples.Store(t, t.TempDir(), store.Options{KeepSecrets: true})
	id := int64(0)
	rapid.Check(t, func(rt *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(rt, "body")
		name := rapid.StringMatching(`[a-z-]{1,20}`).Draw(rt, "name")
		value := rapid.SliceOf(rapid.Byte()).Draw(rt, "value")
		f := edit("response", "content", body)
		f["response"] = f["response"].(dict).with("headers", []any{[]any{name, value}})
		if _, err := flow.Import(context.Background(), bytes.NewReader(dump(nil, f)), to); err != nil {
			rt.Fatal(err)
		}
		id++
		ex, err := to.Exchange(context.Background(), id)
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(captures.Headers{{Name: name, Value: string(value)}}, ex.ResponseHeaders); d != "" {
			rt.Error(d)
		}
		for c, err := range to.Chunks(context.Background(), id, 1) {
			if err != nil || !bytes.Equal(c.Data, body) {
				rt.Errorf("%x, %v, want %x", c.Data, err, body)
			}
		}
	})
}

func TestSniff(t *testing.T) {
	if !flow.Sniff(dump(nil, sample())[:64]) {
		t.Error("a flow is not recognised")
	}
	for _, other := range []string{"", "12", "12:", `{"log":`, "12:hello", "\xd4\xc3\xb2\xa1", "10:00:00 started"} {
		if flow.Sniff([]byte(other)) {
			t.Errorf("%q is taken for a flow", other)
		}
	}
}

func BenchmarkImport(b *testing.B) {
	var data []byte
	for range 200 {
		data = dump(data, edit("response", "content", bytes.Repeat([]byte("0123456789abcdef"), 256)))
	}
	to := samples.Store(b, b.TempDir(), store.Options{KeepSecrets: true})
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := flow.Import(context.Background(), bytes.NewReader(data), to); err != nil {
			b.Fatal(err)
		}
	}
}

// TestMitmproxy reads a file that mitmproxy 8.1.1 wrote: two unary calls, an
// answer of 404 and a server that could not be reached, all made by curl.
func TestMitmproxy(t *testing.T) {
	in, err := os.ReadFile("testdata/mitmproxy-8.1.1.flows")
	if err != nil {
		t.Fatal(err)
	}
	got, rep := load(t, in)
	if d := cmp.Diff(transfer.Report{Exchanges: 4}, rep); d != "" {
		t.Fatal(d)
	}
	var lines []string
	for _, w := range got {
		ex := w.Exchange
		lines = append(lines, fmt.Sprintf("%s %s %s %d %s %d %d", ex.Method, ex.URL, ex.HTTP, ex.Status, ex.Outcome, ex.BytesUp, ex.BytesDown))
	}
	const call = "POST https://127.0.0.1:9777/aiserver.v1.AiService/AvailableModels 2 200 complete 7 0"
	want := []string{call, call, "GET https://127.0.0.1:9777/none 2 404 complete 0 19", "GET http://127.0.0.1:1/none 1.1 0 failed 0 0"}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
	if v := got[0].Exchange.RequestHeaders.Get("authorization"); v != "Bearer x" {
		t.Errorf("authorization is %q", v)
	}
	if up := got[0].Chunks[0].Data; string(up) != "\n\x05hello" {
		t.Errorf("the request is %q", up)
	}
}
