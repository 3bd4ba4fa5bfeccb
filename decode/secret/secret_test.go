package secret_test

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/secret"
	"unwire/proto"
	"unwire/schema"
)

// Made up, and of no known shape: only their fields tell of them.
const (
	apiKey    = "made up, with spaces"
	accessKey = "abc" // too short to be looked for anywhere else
	session   = "zq7f3bmadeupSESSION9d41x"
	stray     = "k8s0madeupTOKEN77aa"
)

func field(n protowire.Number, v string) string {
	return string(protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), v))
}

// runRequest has secrets at 1.3.8.1, 1.3.10.1, 1.3.10.4 and, in a field that
// nobody knows, 1.3.10.77.
func runRequest() string {
	details := field(1, "model-id") + field(8, field(1, apiKey)+field(2, "https://h/")) +
		field(10, field(1, accessKey)+field(3, "eu-west-1")+field(4, session)+field(77, stray))
	return field(1, field(3, details)+field(7, "a prompt"))
}

func testRules(t *testing.T) *secret.Rules {
	t.Helper()
	defs, err := schema.Load(t.Context(), proto.Files)
	if err != nil {
		t.Fatal(err)
	}
	r := &secret.Rules{
		Fields:    make(map[protoreflect.FullName]bool),
		FrameType: defs.FrameType,
		InnerType: func(_ decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
			return defs.FrameType(decode.Call{Protocol: decode.ConnectStream, Codec: "proto", Service: "agent.v1.AgentService", RPC: "Run"}, dir)
		},
	}
	for _, name := range proto.Profile().Secrets.Fields {
		r.Fields[protoreflect.FullName(name)] = true
	}
	return r
}

// record makes a capture that keeps its secrets: a stream with a plain and a
// compressed frame, a unary body in gzip, and a message in hex in a field.
func record(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.uwc")
	store, err := store.Create(path, store.Options{KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	begin := func(rpc, media string, h ...captures.Header) captures.Recording {
		r, err := store.Begin(captures.Exchange{
			Method: "POST", URL: "https://h/" + rpc, HTTP: "2", Started: time.Now(),
			RequestHeaders: append(captures.Headers{{Name: "content-type", Value: media}}, h...),
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	packed, err := envelope.Compress("gzip", []byte(runRequest()))
	if err != nil {
		t.Fatal(err)
	}
	r := begin("agent.v1.AgentService/Run", "application/connect+proto", captures.Header{Name: "connect-content-encoding", Value: "gzip"})
	plain := envelope.Append(nil, 0, []byte(runRequest()))
	r.Chunk(captures.Up, plain[:31]) // within the first secret
	r.Chunk(captures.Up, plain[31:])
	r.Chunk(captures.Up, envelope.Append(nil, envelope.Compressed, packed))
	r.Chunk(captures.Up, envelope.Append(nil, 0, []byte(field(1, "unharmed"))))
	r.End(captures.Complete, "")

	config, err := envelope.Compress("gzip", []byte(field(3, field(7, "repo token, short"))))
	if err != nil {
		t.Fatal(err)
	}
	r = begin("aiserver.v1.ServerConfigService/GetServerConfig", "application/proto")
	r.Response(200, captures.Headers{{Name: "content-type", Value: "application/proto"}, {Name: "content-encoding", Value: "gzip"}})
	r.Chunk(captures.Down, config)
	r.End(captures.Complete, "")

	r = begin("aiserver.v1.BidiService/BidiAppend", "application/proto", captures.Header{Name: "authorization", Value: "Bearer made-up-token-1"})
	r.Chunk(captures.Up, []byte(field(1, hex.EncodeToString([]byte(runRequest())))))
	r.End(captures.Complete, "")
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(path, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func audit(t *testing.T, path string) (lines []string) {
	t.Helper()
	found, err := secret.Audit(t.Context(), open(t, path), redact.New(redact.Options{}), testRules(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		lines = append(lines, fmt.Sprintf("%d %s %s %s %s%s %s %d×%d", f.Exchange, f.Rule, f.Place, f.Dir, f.Header, f.Path, f.Encoding, f.Count, f.Len))
		if text := fmt.Sprint(f); strings.Contains(text, apiKey) || strings.Contains(text, session) {
			t.Errorf("a finding holds the secret: %s", text)
		}
	}
	return lines
}

func TestAudit(t *testing.T) {
	want := []string{
		"1 field frame up 1.3.8.1  2×20", "1 field frame up 1.3.10.1  2×3", "1 field frame up 1.3.10.4  2×24", "1 field-unknown frame up 1.3.10.77  2×19",
		"2 field frame down 3.7  1×17",
		"3 header request header up authorization  1×15",
		"3 field frame up 1.1.3.8.1 hex 1×20", "3 field frame up 1.1.3.10.1 hex 1×3", "3 field frame up 1.1.3.10.4 hex 1×24", "3 field-unknown frame up 1.1.3.10.77 hex 1×19",
	}
	if got := audit(t, record(t)); !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Nothing is left of the secrets, and everything else is as it was.
func TestClean(t *testing.T) {
	path := record(t)
	out := filepath.Join(t.TempDir(), "clean.uwc")
	to, err := store.Create(out, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	exchanges, values, _, err := secret.Clean(t.Context(), to, open(t, path), testRules(t))
	if err != nil || exchanges != 3 || values != 13 {
		t.Fatalf("%d exchanges, %d values, %v", exchanges, values, err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if got := audit(t, out); len(got) > 0 {
		t.Errorf("left\n%s", strings.Join(got, "\n"))
	}

	// All frames decode as before, with their lengths, and the rest is unharmed.
	before, after := open(t, path), open(t, out)
	for id := int64(1); id <= 3; id++ {
		a, err := decode.Decode(t.Context(), before, id, decode.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := decode.Decode(t.Context(), after, id, decode.Options{})
		if err != nil || b.Err != nil || len(a.Frames) != len(b.Frames) {
			t.Fatalf("exchange %d: %d frames for %d, %v, %v", id, len(b.Frames), len(a.Frames), err, b.Err)
		}
		for i := range a.Frames {
			x, y := a.Frames[i], b.Frames[i]
			if len(x.Data) != len(y.Data) || len(x.Inner) != len(y.Inner) || x.Encoding != y.Encoding || x.Flags != y.Flags || x.T != y.T {
				t.Errorf("exchange %d, frame %d: %d bytes became %d", id, i, len(x.Data), len(y.Data))
			}
			if strings.Contains(string(y.Data), session) || strings.Contains(string(y.Data), "made up, w") {
				t.Errorf("exchange %d, frame %d holds a secret", id, i)
			}
		}
	}
	d, err := decode.Decode(t.Context(), after, 1, decode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := string(d.Frames[0].Data)
	for _, kept := range []string{"model-id", "https://h/", "eu-west-1", "a prompt"} {
		if !strings.Contains(first, kept) {
			t.Errorf("%q is gone", kept)
		}
	}
	if d.Frames[0].Data == nil || string(d.Frames[0].Data) != string(d.Frames[1].Data) {
		t.Error("equal frames have become different: their placeholders should be equal")
	}
	sizes := func(s *store.Store) (n []int) {
		for c, err := range s.Chunks(t.Context(), 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			n = append(n, len(c.Data))
		}
		return n
	}
	if a, b := sizes(before), sizes(after); len(a) != len(b) || a[0] != b[0] || a[1] != b[1] || a[3] != b[3] {
		t.Errorf("chunks of %v bytes have become %v", a, b)
	}
}
