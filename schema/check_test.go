package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
)

const chatProto = `syntax = "proto3";
package chat.v1;
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";

service Chat {
  rpc Talk(stream Ask) returns (stream Answer);
}

message Ask {
  string text = 1;
  Mode mode = 2;
  bool fast = 3;
  repeated int32 picks = 4;
  map<string, Ask> more = 5;
  Ask parent = 6;
  int32 limit = 7;
  oneof source {
    string file = 8;
    uint64 blob = 9;
  }
  repeated fixed32 marks = 10;
  google.protobuf.Value value = 11;
  bytes raw = 12;
  sint32 delta = 13;
}

enum Mode {
  MODE_NONE = 0;
  MODE_ASK = 1;
}

message Answer {
  string text = 1;
  google.protobuf.Timestamp at = 2;
  double score = 3;
}

message Unused {
  string a = 1;
  string b = 2;
}
`

func chatSchema(t testing.TB) *Schema {
	t.Helper()
	s, err := Load(fstest.MapFS{"chat/v1/chat.proto": {Data: []byte(chatProto)}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tags builds a message of fields given as number, wire type and encoded value.
type tags []byte

func (b tags) varint(n protowire.Number, v uint64) tags {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func (b tags) text(n protowire.Number, s string) tags {
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
}

func (b tags) fixed64(n protowire.Number, v uint64) tags {
	return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), v)
}

// talk is an exchange of Chat.Talk with client frames of the given data.
func talk(codec string, frames ...[]byte) *decode.Exchange {
	ex := &decode.Exchange{Call: decode.Call{Protocol: decode.ConnectStream, Codec: codec, Service: "chat.v1.Chat", RPC: "Talk"}}
	ex.ID = 7
	for i, b := range frames {
		ex.Frames = append(ex.Frames, decode.Frame{Dir: captures.Up, Seq: i, Frame: envelope.Frame{Data: b, Raw: b, Framed: true}})
	}
	return ex
}

func checkOne(t testing.TB, ex *decode.Exchange) *Report {
	t.Helper()
	k := NewChecker(chatSchema(t), CheckOptions{})
	k.Add(ex)
	return k.Report()
}

func TestCheckContradictions(t *testing.T) {
	nested := func(b tags) []byte { return tags(nil).text(6, string(b)) }
	for _, c := range []struct {
		name   string
		data   []byte
		number int32
		reason string
	}{
		{"wire type", tags(nil).varint(1, 5), 1, "wire type varint, declared string"},
		{"bool", tags(nil).varint(3, 7), 3, "bool with a value above 1"},
		{"int32", tags(nil).varint(7, 1<<40), 7, "int32 with a value outside 32 bits"},
		{"sint32", tags(nil).varint(13, 1<<33), 13, "sint32 with a value outside 32 bits"},
		{"UTF-8", tags(nil).text(1, "\xff"), 1, "text that is not UTF-8"},
		{"twice", tags(nil).text(1, "a").text(1, "b"), 1, "more than once in a message, declared singular"},
		{"twice around itself", tags(nil).text(1, "a").text(6, string(tags(nil).text(1, "x"))).text(1, "b"), 1, "more than once in a message, declared singular"},
		{"enum", tags(nil).varint(2, 9), 2, "number 9 has no name in chat.v1.Mode"},
		{"oneof", tags(nil).text(8, "f").varint(9, 1), 9, "together with file of the same oneof source"},
		{"packed varints", tags(nil).text(4, "\x01\x80"), 4, "packed payload that is no list of varints"},
		{"packed fixed", tags(nil).text(10, "12345"), 10, "packed payload whose size is no multiple of 4"},
		{"no message", tags(nil).text(6, "\xff"), 6, "payload is no message"},
		{"nested", nested(tags(nil).varint(3, 7)), 3, "bool with a value above 1"},
		{"malformed", []byte{0xff}, 0, "malformed: cut off after 1 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := checkOne(t, talk("proto", c.data))
			if len(r.Contradicted) != 1 {
				t.Fatalf("contradictions %+v", r.Contradicted)
			}
			got := r.Contradicted[0]
			if got.Message != "chat.v1.Ask" || got.Number != c.number || got.Reason != c.reason || !cmp.Equal(got.Frames, []string{"#7/up/0"}) {
				t.Errorf("%+v", got)
			}
			if r.Clean() {
				t.Error("clean")
			}
		})
	}
}

func TestCheckAccepts(t *testing.T) {
	for name, data := range map[string][]byte{
		"negative int32":  tags(nil).varint(7, ^uint64(0)),
		"unpacked list":   tags(nil).varint(4, 1).varint(4, 2),
		"packed list":     tags(nil).text(4, "\x01\x02"),
		"message twice":   tags(nil).text(6, "").text(6, ""),
		"itself inside":   tags(nil).text(1, "a").text(6, string(tags(nil).text(1, "b"))),
		"map":             tags(nil).text(5, string(tags(nil).text(1, "k").text(2, ""))).text(5, string(tags(nil).text(1, "l").text(2, ""))),
		"bytes":           tags(nil).text(12, "\xff"),
		"an empty stream": {},
	} {
		r := checkOne(t, talk("proto", data))
		if !r.Clean() || r.Decoded != 1 || r.BytesExplained != r.Bytes || r.Bytes != int64(len(data)) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestCheckUnknown(t *testing.T) {
	inner := tags(nil).text(1, "x").text(20, "file "+strings.Repeat("name ", 8))
	data := tags(nil).text(1, "hello").text(6, string(inner)).fixed64(21, 1).fixed64(21, 2)
	ex := talk("proto", data, tags(nil).text(20, "another piece of text"))
	r := checkOne(t, ex)
	want := []UnknownField{
		{Message: "chat.v1.Ask", Number: 20, Kind: wire.KindString, Seen: 2, Frames: []string{"#7/up/0", "#7/up/1"}},
		{Message: "chat.v1.Ask", Number: 21, Kind: wire.KindFixed64, Seen: 2, Frames: []string{"#7/up/0"}},
	}
	for i := range r.Unknown {
		if r.Unknown[i].P < 0.9 {
			t.Errorf("p = %v", r.Unknown[i].P)
		}
		r.Unknown[i].P = 0
	}
	if d := cmp.Diff(want, r.Unknown); d != "" {
		t.Error(d)
	}
	unexplained := int64(len(tags(nil).text(20, "file "+strings.Repeat("name ", 8))) + 2*len(tags(nil).fixed64(21, 1)) + len(ex.Frames[1].Data))
	if r.Bytes-r.BytesExplained != unexplained {
		t.Errorf("%d bytes unexplained, want %d", r.Bytes-r.BytesExplained, unexplained)
	}
	// Ask has 13 fields, Answer 3, Unused 2; text and parent were seen.
	if r.FieldsSeen != 2 || r.FieldsNeverSeen != 16 {
		t.Errorf("fields seen %d, never %d", r.FieldsSeen, r.FieldsNeverSeen)
	}
}

func TestCheckJSON(t *testing.T) {
	good := `{"text":"hi","mode":"MODE_ASK","fast":true,"picks":[1,"2"],"more":{"k":{"text":"x"}},"parent":{"limit":3},
		"value":{"any":["thing"]},"raw":"AQID","file":null}`
	r := checkOne(t, talk("json", []byte(good)))
	if !r.Clean() || r.Decoded != 1 || r.JSONFrames != 1 || r.BytesExplained != r.Bytes {
		t.Fatalf("%+v", r)
	}
	bad := `{"text":5,"mode":"MODE_WILD","fast":1,"picks":{"a":1},"parent":{"colour":"red","file":"f"},"raw":"*","extra":[1,{"x":2}]}`
	r = checkOne(t, talk("json", []byte(bad)))
	var got []string
	for _, c := range r.Contradicted {
		got = append(got, c.Name+": "+c.Reason)
	}
	want := []string{
		"text: JSON number, declared string", `mode: name "MODE_WILD" is not in chat.v1.Mode`, "fast: JSON number, declared bool",
		"picks: JSON object, declared repeated", "raw: JSON string, declared bytes",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(r.Unknown) != 2 || r.Unknown[0].Name != "colour" || r.Unknown[1].Name != "extra" || r.Unknown[1].Kind != wire.KindMessage {
		t.Errorf("unknown %+v", r.Unknown)
	}
	lost := int64(len(`"colour":"red"`) + len(`,"extra":[1,{"x":2}]`))
	if r.Bytes-r.BytesExplained != lost {
		t.Errorf("%d bytes unexplained, want %d", r.Bytes-r.BytesExplained, lost)
	}
	for _, broken := range []string{`{"text":`, `[]`, `{} {}`, `x`} {
		if r := checkOne(t, talk("json", []byte(broken))); r.Decoded != 0 || len(r.Contradicted) != 1 || !strings.HasPrefix(r.Contradicted[0].Reason, "malformed: JSON: ") {
			t.Errorf("%s: %+v", broken, r)
		}
	}
}

func TestCheckCountsWhatItCannotRead(t *testing.T) {
	ex := talk("proto", []byte{8, 1}, []byte{8}, nil)
	ex.Frames[0].Partial = true
	ex.Frames[1].Err = errors.New("not gzip")
	ex.Frames[2].End = &envelope.End{}
	other := talk("proto", []byte{8, 1})
	other.RPC = "Walk"
	plain := talk("html", []byte("<p>"))
	plain.Service = ""
	page := talk("proto", []byte("<html>bad gateway"))
	page.Status, page.Frames[0].Dir, page.Frames[0].Framed = 502, captures.Down, false
	k := NewChecker(chatSchema(t), CheckOptions{})
	for _, ex := range []*decode.Exchange{ex, other, plain, page} {
		k.Add(ex)
	}
	r := k.Report()
	if len(r.Contradicted) != 0 {
		t.Errorf("%+v", r.Contradicted)
	}
	if r.Frames != 3 || r.BrokenFrames != 2 || r.Decoded != 0 || len(r.UnknownMethods) != 1 || r.UnknownMethods[0].RPC != "Walk" {
		t.Errorf("%+v", r)
	}
	ev := NewEvidence()
	if err := ev.AddExchange(page); err != nil || len(ev.Roots()) != 0 {
		t.Errorf("an error page is evidence of %v: %v", ev.Roots(), err)
	}
}

func TestReportJSONHasTheContractsKeys(t *testing.T) {
	var b bytes.Buffer
	if err := checkOne(t, talk("proto", tags(nil).varint(99, 1).varint(3, 7))).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"v", "frames", "decoded", "bytes", "bytes_explained", "fields_seen", "fields_never_seen", "unknown", "contradicted"} {
		if _, ok := got[key]; !ok {
			t.Errorf("no %s in %s", key, b.String())
		}
	}
	unknown := got["unknown"].([]any)[0].(map[string]any)
	if unknown["number"] != 99.0 || unknown["kind"] != "varint" || unknown["message"] != "chat.v1.Ask" {
		t.Errorf("%v", unknown)
	}
}

// TestCheckOfOwnData: what the runtime writes of a schema is clean under it.
func TestCheckOfOwnData(t *testing.T) {
	for seed := range uint64(30) {
		c := randomCorpus(t, seed, 10)
		s := FromFiles(c.truth.ParentFile())
		k := NewChecker(s, CheckOptions{})
		for _, b := range c.samples {
			k.AddMessage("x", c.truth, wire.Parse(b, wire.Options{}))
			m := dynamicpb.NewMessage(c.truth)
			if err := proto.Unmarshal(b, m); err != nil {
				t.Fatal(err)
			}
			text, err := protojson.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			k.frame = func() string { return "json" }
			if explained, ok := k.checkJSON(c.truth, text); !ok || explained != int64(len(text)) {
				t.Errorf("seed %d: JSON %s", seed, text)
			}
		}
		r := k.Report()
		if enumOnly(r); !r.Clean() || r.BytesExplained != r.Bytes || r.Decoded != r.Frames {
			t.Fatalf("seed %d: %+v", seed, r)
		}
	}
}

// enumOnly takes numbers without a name away, which generated enums have.
func enumOnly(r *Report) {
	kept := r.Contradicted[:0]
	for _, c := range r.Contradicted {
		if !strings.Contains(c.Reason, "has no name in") {
			kept = append(kept, c)
		}
	}
	r.Contradicted = kept
}

func TestLoad(t *testing.T) {
	s := chatSchema(t)
	if m := s.Method("chat.v1.Chat", "Talk"); m == nil || !m.IsStreamingClient() {
		t.Error("no method Talk")
	}
	call := decode.Call{Service: "chat.v1.Chat", RPC: "Talk"}
	if up, down := s.FrameType(call, captures.Up), s.FrameType(call, captures.Down); up.Name() != "Ask" || down.Name() != "Answer" {
		t.Error("wrong frame types")
	}
	if s.Method("chat.v1.Chat", "Walk") != nil || s.FrameType(decode.Call{}, captures.Up) != nil || s.Message("nothing") != nil {
		t.Error("something for nothing")
	}
	if md := s.Message(".chat.v1.Ask"); md == nil || md.FullName() != protoreflect.FullName("chat.v1.Ask") {
		t.Error("no Ask")
	}
	_, err := Load(fstest.MapFS{"a.proto": {Data: []byte("syntax = \"proto3\";\nmessage A {\n  Gone b = 1;\n}\n")}})
	if err == nil || !strings.Contains(err.Error(), "a.proto:3:") {
		t.Errorf("no position: %v", err)
	}
	if _, err := LoadDir(t.TempDir() + "/none"); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("%v", err)
	}
}
