package har_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"unwire/captures"
	"unwire/captures/har"
	"unwire/captures/internal/samples"
	"unwire/captures/store"
	"unwire/captures/transfer"
	"unwire/decode"
)

func export(t testing.TB, src transfer.Source, o har.Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := har.Export(context.Background(), &b, src, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRoundTrip: what is exported is valid and comes back, to the byte and the
// nanosecond; so the frames are the same ones too.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		o := store.Options{KeepSecrets: seed%2 == 0}
		from, to := samples.Store(t, t.TempDir(), o), samples.Store(t, t.TempDir(), o)
		samples.Record(t, from, seed, 15)
		data := export(t, from, har.Options{})
		validate(t, data)
		rep, err := har.Import(context.Background(), iotest.HalfReader(bytes.NewReader(data)), to)
		if err != nil || rep.Exchanges != 15 || len(rep.Problems) > 0 {
			t.Fatalf("%+v, %v", rep, err)
		}
		if d := cmp.Diff(samples.Read(t, from), samples.Read(t, to)); d != "" {
			t.Errorf("seed %d: %s", seed, d)
		}
	}
}

// TestFrames: the extension has the frames as the contract prints them.
func TestFrames(t *testing.T) {
	t.Parallel()
	from := samples.Store(t, t.TempDir(), store.Options{})
	samples.Record(t, from, 2, 10)
	var file struct {
		Log struct {
			Entries []struct {
				Unwire struct {
					ID       int64           `json:"id"`
					Protocol decode.Protocol `json:"protocol"`
					Frames   json.RawMessage `json:"frames"`
				} `json:"_unwire"`
			} `json:"entries"`
		} `json:"log"`
	}
	if err := json.Unmarshal(export(t, from, har.Options{}), &file); err != nil {
		t.Fatal(err)
	}
	framed := 0
	for _, e := range file.Log.Entries {
		if e.Unwire.Frames == nil {
			continue
		}
		ex, err := decode.Decode(context.Background(), from, e.Unwire.ID, decode.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var lines []decode.Line
		for i := range ex.Frames {
			lines = append(lines, decode.View{}.Line(&ex.Frames[i]))
		}
		want, err := json.Marshal(lines)
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal(want, &a) != nil || json.Unmarshal(e.Unwire.Frames, &b) != nil || !cmp.Equal(a, b) {
			t.Errorf("exchange %d: %s", e.Unwire.ID, cmp.Diff(a, b))
		}
		framed++
	}
	if framed < 3 {
		t.Errorf("%d exchanges with frames", framed)
	}
}

// TestForeign: a file as browsers and other tools write them, with what they
// leave out.
func TestForeign(t *testing.T) {
	data, err := os.ReadFile("testdata/browser.har")
	if err != nil {
		t.Fatal(err)
	}
	to := samples.Store(t, t.TempDir(), store.Options{KeepSecrets: true})
	rep, err := har.Import(context.Background(), iotest.OneByteReader(bytes.NewReader(append([]byte("\xef\xbb\xbf"), data...))), to)
	if err != nil {
		t.Fatal(err)
	}
	wantProblems := []string{
		"entries[1].response.content.text: missing: 10 bytes are not in the file",
		`entries[2].startedDateTime: "" is not a date; the year 1970 is used instead`,
		`entries[3].request.url: skipped: the scheme of the URL is "data", not http or https`,
		"entries[4].request.method: skipped: found number instead of string",
		`entries[5].response.content.encoding: the encoding "rot13" is unknown, so the text is stored undecoded`,
		"entries[6].request.url: skipped: the URL is missing, and the header fields do not contain it",
	}
	if d := cmp.Diff(transfer.Report{Exchanges: 4, Skipped: 3, Problems: wantProblems}, rep); d != "" {
		t.Error(d)
	}
	got := samples.Read(t, to)
	want := []samples.Whole{
		{
			Exchange: captures.Exchange{
				ID: 1, Method: "POST", URL: "https://api.example/agent.v1.AgentService/Run?a=1", HTTP: "2", Status: 200,
				RequestHeaders:  captures.Headers{{Name: "content-type", Value: "application/connect+proto"}, {Name: "cookie", Value: "sid=made-up-cookie-value-77"}},
				ResponseHeaders: captures.Headers{{Name: "set-cookie", Value: "a=1; Path=/"}, {Name: "set-cookie", Value: "b=2"}},
				Started:         time.Date(2026, 1, 2, 2, 4, 5, 250e6, time.UTC), Duration: 120500 * time.Microsecond,
				Server: "[2001:db8::1]:443", Outcome: captures.Complete, BytesUp: 7, BytesDown: 4, Source: "import har",
			},
			Chunks: []captures.Chunk{
				{Exchange: 1, Dir: captures.Up, T: 2 * time.Millisecond, Data: []byte("\x00\x00\x00\x00\x02\x08\x01")},
				{Exchange: 1, Dir: captures.Down, Seq: 1, T: 120500 * time.Microsecond, Data: []byte("hé!")},
			},
		},
		{
			Exchange: captures.Exchange{
				ID: 2, Method: "PUT", URL: "http://other.example:81/p?q", Status: 404, Started: time.Date(2026, 1, 1, 21, 34, 6, 500e6, time.UTC),
				Outcome: captures.Complete, BytesUp: 14, Source: "import har",
			},
			Chunks: []captures.Chunk{{Exchange: 2, Data: []byte("a+b=c%26d&e=")}},
		},
		{Exchange: captures.Exchange{
			ID: 3, Method: "GET", URL: "https://gone.example/", HTTP: "1.1", Started: time.Unix(1, 0).UTC(), Outcome: captures.Failed,
			Error: "net::ERR_FAILED", Source: "import har",
		}},
		{
			Exchange: captures.Exchange{
				ID: 4, Method: "GET", URL: "http://h.example/", HTTP: "1.1", Status: 200, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
				Server: "10.1.1.1:80", Outcome: captures.Complete, BytesDown: 5, Source: "import har",
			},
			Chunks: []captures.Chunk{{Exchange: 4, Dir: captures.Down, Data: []byte("plain")}},
		},
	}
	want[1].BytesUp = int64(len(want[1].Chunks[0].Data))
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestSecrets: an import goes through the redaction of the capture.
func TestSecrets(t *testing.T) {
	data, err := os.ReadFile("testdata/browser.har")
	if err != nil {
		t.Fatal(err)
	}
	to := samples.Store(t, t.TempDir(), store.Options{})
	if _, err := har.Import(context.Background(), bytes.NewReader(data), to); err != nil {
		t.Fatal(err)
	}
	if cookie := samples.Read(t, to)[0].RequestHeaders.Get("cookie"); !strings.HasPrefix(cookie, "sid=[redacted:") {
		t.Errorf("cookie %q", cookie)
	}
}

// TestTooLarge: bodies beyond the limit are left out, and both sides say so.
func TestTooLarge(t *testing.T) {
	from, to := samples.Store(t, t.TempDir(), store.Options{}), samples.Store(t, t.TempDir(), store.Options{})
	samples.Record(t, from, 2, 6)
	var b bytes.Buffer
	done, err := har.Export(context.Background(), &b, from, har.Options{MaxBody: 1})
	if err != nil || done.Exchanges != 6 || done.BodiesOmitted < 3 {
		t.Fatalf("%+v, %v", done, err)
	}
	validate(t, b.Bytes())
	rep, err := har.Import(context.Background(), &b, to)
	if err != nil || rep.Exchanges != 6 || !strings.Contains(strings.Join(rep.Problems, "\n"), "_unwire.omitted") {
		t.Errorf("%+v, %v", rep, err)
	}
}

// TestExtension: an extension that does not fit its entry is reported, and what
// can be read is.
func TestExtension(t *testing.T) {
	entry := func(x string) string {
		return `{"log":{"entries":[{"startedDateTime":"2026-01-02T03:04:05Z","request":{"method":"GET","url":"https://h/"},` +
			`"response":{"status":200,"content":{"text":"hello"}},"_unwire":` + x + `}]}}`
	}
	for _, c := range []struct{ x, problem string }{
		{`{"v":9}`, "entries[0]._unwire.v: the version 9 of the extension is unknown"},
		{`{"v":1,"outcome":"complete","chunks":[{"dir":"down","len":6}]}`, "entries[0]._unwire.chunks: chunk 0 claims to have 6 bytes, but only 5 bytes of the body are left"},
		{`{"v":1,"outcome":"complete","chunks":[{"dir":"down","len":-1}]}`, "entries[0]._unwire.chunks: chunk 0 claims to have -1"},
		{`{"v":1,"outcome":"complete","chunks":[{"dir":"down","len":4}]}`, "1 bytes of the body (down) belong to no chunk"},
		{`{"v":1,"outcome":"complete","chunks":[{"dir":"left"}]}`, "dir"},
		{`{"v":1,"outcome":"fine","chunks":[{"dir":"down","len":5}]}`, `entries[0]._unwire.outcome: "fine" is not a known outcome`},
	} {
		to := samples.Store(t, t.TempDir(), store.Options{})
		rep, err := har.Import(context.Background(), strings.NewReader(entry(c.x)), to)
		if err != nil || len(rep.Problems) != 1 || !strings.Contains(rep.Problems[0], c.problem) {
			t.Errorf("%s: %+v, %v", c.x, rep, err)
			continue
		}
		if got := samples.Read(t, to); len(got) != 1 || string(got[0].Chunks[0].Data) != "hello" || got[0].Outcome != captures.Complete {
			t.Errorf("%s: %+v", c.x, got)
		}
	}
}

func TestErrors(t *testing.T) {
	good := `{"log":{"entries":[{"startedDateTime":"2026-01-02T03:04:05Z","request":{"method":"GET","url":"https://h/"}}`
	for _, c := range []struct {
		in, want  string
		exchanges int
	}{
		{`{}`, "no log.entries, so it is not an HTTP Archive", 0},
		{`{"log":{"entries":{}}}`, "log.entries: found { where [ is expected", 0},
		{`[]`, "found [ where { is expected", 0},
		{``, "byte 0: unexpected EOF", 0},
		{good, "unexpected EOF", 1},
		{good + `,{"request":{"method":"GET","url":"https://h/"`, "entries[1]: unexpected EOF", 1},
		{good + `,nonsense]}}`, "invalid character", 1},
		{good + `,` + strings.Repeat("[", 20000), "exceeded max depth", 1},
	} {
		to := samples.Store(t, t.TempDir(), store.Options{})
		rep, err := har.Import(context.Background(), strings.NewReader(c.in), to)
		if err == nil || !strings.Contains(err.Error(), c.want) || rep.Exchanges != c.exchanges {
			t.Errorf("%.60s: %d exchanges, %v, want %s", c.in, rep.Exchanges, err, c.want)
		}
	}
}

func BenchmarkExport(b *testing.B) {
	from := samples.Store(b, b.TempDir(), store.Options{KeepSecrets: true})
	samples.Record(b, from, 1, 200)
	b.SetBytes(int64(len(export(b, from, har.Options{}))))
	for b.Loop() {
		export(b, from, har.Options{})
	}
}

func BenchmarkImport(b *testing.B) {
	from := samples.Store(b, b.TempDir(), store.Options{KeepSecrets: true})
	samples.Record(b, from, 1, 200)
	data := export(b, from, har.Options{})
	to := samples.Store(b, b.TempDir(), store.Options{KeepSecrets: true})
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := har.Import(context.Background(), bytes.NewReader(data), to); err != nil {
			b.Fatal(err)
		}
	}
}
