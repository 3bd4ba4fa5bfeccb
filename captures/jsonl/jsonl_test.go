package jsonl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"unwire/captures"
	"unwire/captures/internal/samples"
	"unwire/captures/jsonl"
	"unwire/captures/store"
)

var update = flag.Bool("update", false, "update testdata: write what the tests expect anew")

func export(t testing.TB, s *store.Store) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := jsonl.Export(context.Background(), &b, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRoundTrip: what was exported comes back, to the byte and the nanosecond.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		o := store.Options{KeepSecrets: seed%2 == 0}
		from, to := samples.Store(t, t.TempDir(), o), samples.Store(t, t.TempDir(), o)
		samples.Record(t, from, seed, 20)
		rep, err := jsonl.Import(context.Background(), iotest.HalfReader(bytes.NewReader(export(t, from))), to)
		if err != nil || rep.Exchanges != 20 {
			t.Fatalf("%+v, %v", rep, err)
		}
		if d := cmp.Diff(samples.Read(t, from), samples.Read(t, to)); d != "" {
			t.Errorf("seed %d: %s", seed, d)
		}
	}
}

// TestNotes: the notes of exchanges, frames and fields come back, and those that cannot be
// added are reported.
func TestNotes(t *testing.T) {
	t.Parallel()
	from, to := samples.Store(t, t.TempDir(), store.Options{}), samples.Store(t, t.TempDir(), store.Options{})
	samples.Record(t, from, 3, 2)
	want := []captures.Note{
		{Place: captures.Place{Exchange: 1, Frame: captures.NoFrame}, Kind: captures.TextNote, Value: "two\nlines \u2028 <&>"},
		{Place: captures.Place{Exchange: 2, Frame: captures.NoFrame}, Kind: captures.MarkNote, Value: "star"},
		{Place: captures.Place{Exchange: 2, Frame: 0}, Kind: captures.TextNote, Value: "a frame"},
		{Place: captures.Place{Exchange: 2, Dir: captures.Down, Frame: 7, Path: "1.2[3].1"}, Kind: captures.TextNote, Value: "a field"},
	}
	for _, n := range want {
		if err := from.PutNote(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	text := export(t, from)
	// After an exchange of another file, the numbers are others.
	before := `{"v":1,"id":9,"method":"GET","url":"https://h/","http":"1.1","status":0,"started":"2026-01-02T03:04:05Z","outcome":"complete","notes":[` +
		`{"kind":"note","value":""},{"kind":"odd","value":"x"},{"kind":"mark","value":"two words"},{"kind":"note","dir":"left","frame":0,"value":"x"},` +
		`{"kind":"note","frame":0,"value":"x"},{"kind":"note","dir":"up","frame":-1,"value":"x"},{"kind":"note","path":"1","value":"x"}],"chunks":[]}` + "\n"
	rep, err := jsonl.Import(t.Context(), iotest.HalfReader(strings.NewReader(before+string(text))), to)
	if err != nil || rep.Exchanges != 3 || len(rep.Problems) != 7 || !strings.HasPrefix(rep.Problems[6], "line 1: notes[6] is left out: ") {
		t.Fatalf("%+v, %v", rep, err)
	}
	got, err := to.Notes(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].Exchange--
		got[i].Changed = time.Time{}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestOrder: members in another order, as jq -S writes them, and unknown ones.
func TestOrder(t *testing.T) {
	t.Parallel()
	from, to := samples.Store(t, t.TempDir(), store.Options{}), samples.Store(t, t.TempDir(), store.Options{})
	samples.Record(t, from, 3, 8)
	var sorted bytes.Buffer
	for line := range bytes.Lines(export(t, from)) {
		var m map[string]any
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.UseNumber()
		if err := dec.Decode(&m); err != nil {
			t.Fatal(err)
		}
		m["aaa"] = []any{1, map[string]any{"b": nil}}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		sorted.Write(append(again, '\n', '\n'))
	}
	if _, err := jsonl.Import(context.Background(), iotest.OneByteReader(&sorted), to); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(samples.Read(t, from), samples.Read(t, to)); d != "" {
		t.Error(d)
	}
}

// TestSecrets: an import goes through the redaction of the capture.
func TestSecrets(t *testing.T) {
	const secret = "made-up-secret-4711-xyz"
	line := `{"v":1,"method":"GET","url":"https://h/?api_key=` + secret + `","outcome":"complete",` +
		`"request_headers":[{"name":"authorization","value":"Bearer ` + secret + `"}],"chunks":[{"dir":"up","t_ns":1,"data":"` +
		"eyJ4IjoibWFkZS11cC1zZWNyZXQtNDcxMS14eXoifQ==" + `"}]}`
	for _, keep := range []bool{false, true} {
		to := samples.Store(t, t.TempDir(), store.Options{KeepSecrets: keep})
		if _, err := jsonl.Import(context.Background(), strings.NewReader(line), to); err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(export(t, to), []byte(secret)); got != keep {
			t.Errorf("keep secrets %v: the secret is in the headers: %v", keep, got)
		}
		body := samples.Read(t, to)[0].Chunks[0].Data
		if got := bytes.Contains(body, []byte(secret)); got != keep {
			t.Errorf("keep secrets %v: the body is %q", keep, body)
		}
	}
}

func TestErrors(t *testing.T) {
	good := `{"v":1,"method":"GET","url":"https://h/","outcome":"complete","chunks":[]}` + "\n"
	for _, c := range []struct{ in, want string }{
		{`{"v":1,"url":"https://h/"`, "line 2: byte"},
		{`{"v":2,"url":"https://h/"}`, "v is 2, but this version of unwire reads only version 1"},
		{`{"url":"https://h/"}`, "no member v"},
		{`{"v":1}`, "the member url is missing"},
		{`[]`, "found [ where { is expected"},
		{`nonsense`, "line 2: byte"},
		{`{"v":1,"url":"https://h/","outcome":"fine"}`, `outcome: "fine" is not a known outcome`},
		{`{"v":1,"url":"https://h/","status":-1}`, "status: -1"},
		{`{"v":1,"url":7}`, "url: json: cannot unmarshal number"},
		{`{"v":1,"url":"https://h/","chunks":[{"dir":"left"}]}`, `chunks[0].dir must be up or down, not "left"`},
		{`{"v":1,"url":"https://h/","chunks":[{"dir":"up","t_ns":-1}]}`, `chunks[0].t_ns: -1`},
		{`{"v":1,"url":"https://h/","chunks":[{"dir":"up","data":"***"}]}`, `chunks[0]: illegal base64`},
		{`{"v":1,"url":"https://h/","chunks":[],"chunks":[]}`, `the member chunks occurs twice`},
		{`{"v":1,"url":"https://h/",` + strings.Repeat(`"x":1,`, 100) + `"y":1}`, `more than 64 members`},
		{`{"v":1,"url":"https://h/","x":` + strings.Repeat(`[`, 20000), `exceeded max depth`},
	} {
		to := samples.Store(t, t.TempDir(), store.Options{})
		rep, err := jsonl.Import(context.Background(), strings.NewReader(good+c.in), to)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: %v, want %s", c.in, err, c.want)
		}
		if rep.Exchanges != 1 {
			t.Errorf("%.60s: %d exchanges, want the one before it", c.in, rep.Exchanges)
		}
	}
}

// TestShape holds the documented shape, byte for byte.
func TestShape(t *testing.T) {
	want, err := os.ReadFile("testdata/shape.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s := samples.Store(t, t.TempDir(), store.Options{})
	if _, err := jsonl.Import(context.Background(), bytes.NewReader(want), s); err != nil {
		t.Fatal(err)
	}
	got := export(t, s)
	if *update {
		if err := os.WriteFile("testdata/shape.jsonl", got, 0o644); err != nil {
			t.Fatal(err)
		}
		want = got
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Error(d)
	}
}

func BenchmarkExport(b *testing.B) {
	from := samples.Store(b, b.TempDir(), store.Options{KeepSecrets: true})
	samples.Record(b, from, 1, 200)
	b.SetBytes(int64(len(export(b, from))))
	for b.Loop() {
		export(b, from)
	}
}

func BenchmarkImport(b *testing.B) {
	from := samples.Store(b, b.TempDir(), store.Options{KeepSecrets: true})
	samples.Record(b, from, 1, 200)
	data := export(b, from)
	to := samples.Store(b, b.TempDir(), store.Options{KeepSecrets: true})
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := jsonl.Import(context.Background(), bytes.NewReader(data), to); err != nil {
			b.Fatal(err)
		}
	}
}
