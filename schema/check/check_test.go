package check

import (
	"bytes"
	"encoding/base64"
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
	"unwire/schema"
	"unwire/schema/infer"
	"unwire/schema/internal/schematest"
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

func chatSchema(t testing.TB) *schema.Schema {
	t.Helper()
	s, err := schema.Load(t.Context(), fstest.MapFS{"chat/v1/chat.proto": {Data: []byte(chatProto)}})
	if err != nil {
		t.Fatal(err)
	}
	return s
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
	k := NewChecker(chatSchema(t), Options{})
	k.Add(ex)
	return k.Report()
}

func TestCheckContradictions(t *testing.T) {
	nested := func(b schematest.Tags) []byte { return schematest.Tags(nil).Text(6, string(b)) }
	for _, c := range []struct {
		name   string
		data   []byte
		number int32
		reason string
	}{
		{"wire type", schematest.Tags(nil).Varint(1, 5), 1, "the wire type is varint, but the field is declared as string"},
		{"bool", schematest.Tags(nil).Varint(3, 7), 3, "the field is declared as bool, but has a value above 1"},
		{"int32", schematest.Tags(nil).Varint(7, 1<<40), 7, "the field is declared as int32, but has a value outside 32 bits"},
		{"sint32", schematest.Tags(nil).Varint(13, 1<<33), 13, "the field is declared as sint32, but has a value outside 32 bits"},
		{"UTF-8", schematest.Tags(nil).Text(1, "\xff"), 1, "the string is not valid UTF-8"},
		{"twice", schematest.Tags(nil).Text(1, "a").Text(1, "b"), 1, "the field occurs more than once in a message, but is declared as singular"},
		{"twice around itself", schematest.Tags(nil).Text(1, "a").Text(6, string(schematest.Tags(nil).Text(1, "x"))).Text(1, "b"), 1, "the field occurs more than once in a message, but is declared as singular"},
		{"enum", schematest.Tags(nil).Varint(2, 9), 2, "the enum chat.v1.Mode has no value 9"},
		{"oneof", schematest.Tags(nil).Text(8, "f").Varint(9, 1), 9, "the field occurs together with file, which is in the same oneof source"},
		{"packed varints", schematest.Tags(nil).Text(4, "\x01\x80"), 4, "the packed payload does not parse as varints"},
		{"packed fixed", schematest.Tags(nil).Text(10, "12345"), 10, "the size of the packed payload is not a multiple of 4"},
		{"no message", schematest.Tags(nil).Text(6, "\xff"), 6, "the payload does not parse as a message"},
		{"nested", nested(schematest.Tags(nil).Varint(3, 7)), 3, "the field is declared as bool, but has a value above 1"},
		{"malformed", []byte{0xff}, 0, "malformed: the tag is truncated after 1 bytes"},
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
		"negative int32":  schematest.Tags(nil).Varint(7, ^uint64(0)),
		"unpacked list":   schematest.Tags(nil).Varint(4, 1).Varint(4, 2),
		"packed list":     schematest.Tags(nil).Text(4, "\x01\x02"),
		"message twice":   schematest.Tags(nil).Text(6, "").Text(6, ""),
		"itself inside":   schematest.Tags(nil).Text(1, "a").Text(6, string(schematest.Tags(nil).Text(1, "b"))),
		"map":             schematest.Tags(nil).Text(5, string(schematest.Tags(nil).Text(1, "k").Text(2, ""))).Text(5, string(schematest.Tags(nil).Text(1, "l").Text(2, ""))),
		"bytes":           schematest.Tags(nil).Text(12, "\xff"),
		"an empty stream": {},
	} {
		r := checkOne(t, talk("proto", data))
		if !r.Clean() || r.Decoded != 1 || r.BytesExplained != r.Bytes || r.Bytes != int64(len(data)) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestCheckUnknown(t *testing.T) {
	inner := schematest.Tags(nil).Text(1, "x").Text(20, "file "+strings.Repeat("name ", 8))
	data := schematest.Tags(nil).Text(1, "hello").Text(6, string(inner)).Fixed64(21, 1).Fixed64(21, 2)
	ex := talk("proto", data, schematest.Tags(nil).Text(20, "another piece of text"))
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
	unexplained := int64(len(schematest.Tags(nil).Text(20, "file "+strings.Repeat("name ", 8))) + 2*len(schematest.Tags(nil).Fixed64(21, 1)) + len(ex.Frames[1].Data))
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
		"text: the JSON value has the type number, but the field is declared as string", `mode: the enum chat.v1.Mode has no value named "MODE_WILD"`, "fast: the JSON value has the type number, but the field is declared as bool",
		"picks: the JSON value has the type object, but the field is declared as repeated", "raw: the JSON value has the type string, but the field is declared as bytes",
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
		if r := checkOne(t, talk("json", []byte(broken))); r.Decoded != 0 || len(r.Contradicted) != 1 || !strings.HasPrefix(r.Contradicted[0].Reason, "malformed JSON: ") {
			t.Errorf("%s: %+v", broken, r)
		}
	}
}

// innerProto has what is checked below and beside a message's own fields.
const innerProto = `syntax = "proto2";
package in.v1;
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
service In { rpc Do(Req) returns (Req); }
message Req {
  required string id = 1;
  optional google.protobuf.Any any = 2;
  map<int32, string> names = 3;
  optional group Part = 4 { optional bool on = 1; }
  optional google.protobuf.Timestamp at = 5;
  optional google.protobuf.Duration span = 6;
  optional google.protobuf.Int32Value wrapped = 7;
  optional int32 n = 8;
  oneof c { string a = 9; string b = 10; }
  optional uint64 big = 11;
}
message Held { optional bool ok = 1; optional string why = 2; }
`

func innerSchema(t testing.TB) *schema.Schema {
	t.Helper()
	s, err := schema.Load(t.Context(), fstest.MapFS{"in.proto": {Data: []byte(innerProto)}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func checkInner(t *testing.T, codec string, prepare func(*decode.Exchange), frames ...[]byte) *Report {
	t.Helper()
	ex := talk(codec, frames...)
	ex.Service, ex.RPC = "in.v1.In", "Do"
	if prepare != nil {
		prepare(ex)
	}
	k := NewChecker(innerSchema(t), Options{})
	k.Add(ex)
	return k.Report()
}

// reasons are the contradictions as message.field: reason.
func reasons(r *Report) []string {
	list := []string{}
	for _, c := range r.Contradicted {
		list = append(list, c.Message+"."+c.Name+": "+c.Reason)
	}
	return list
}

func TestCheckInside(t *testing.T) {
	id := schematest.Tags(nil).Text(1, "x")
	holds := func(name string, held []byte) []byte {
		return append(bytes.Clone(id), schematest.Tags(nil).Text(2, string(schematest.Tags(nil).Text(1, "type.googleapis.com/"+name).Text(2, string(held))))...)
	}
	entry := string(schematest.Tags(nil).Varint(1, 1).Text(2, "v"))
	group := func(b schematest.Tags) []byte {
		p := protowire.AppendTag(bytes.Clone(id), 4, protowire.StartGroupType)
		return protowire.AppendTag(append(p, b...), 4, protowire.EndGroupType)
	}
	for _, c := range []struct {
		name    string
		data    []byte
		want    []string
		unknown string
	}{
		{"required", schematest.Tags(nil).Varint(8, 1), []string{"in.v1.Req.id: the field is missing, but is declared as required"}, ""},
		{"in an Any", holds("in.v1.Held", schematest.Tags(nil).Varint(1, 7)), []string{"in.v1.Held.ok: the field is declared as bool, but has a value above 1"}, ""},
		{"no message in an Any", holds("in.v1.Held", []byte{0xff}), []string{"google.protobuf.Any.value: the payload does not parse as in.v1.Held"}, ""},
		{"an Any of its own", holds("google.protobuf.Duration", schematest.Tags(nil).Text(1, "x")), []string{"google.protobuf.Duration.seconds: the wire type is len, but the field is declared as int64"}, ""},
		{"a field in an Any", holds("in.v1.Held", schematest.Tags(nil).Varint(9, 7)), []string{}, "in.v1.Held"},
		{"an unknown Any", holds("in.v1.Nothing", []byte{0xff}), []string{}, ""},
		{"a key twice", append(bytes.Clone(id), schematest.Tags(nil).Text(3, entry).Text(3, entry)...), []string{"in.v1.Req.names: a key occurs more than once in the map"}, ""},
		{"a key twice of many", append(bytes.Clone(id), manyEntries(20, 4)...), []string{"in.v1.Req.names: a key occurs more than once in the map"}, ""},
		{"many keys", append(bytes.Clone(id), manyEntries(20, 20)...), []string{}, ""},
		{"an entry of more", append(bytes.Clone(id), schematest.Tags(nil).Text(3, entry+string(schematest.Tags(nil).Varint(3, 1)))...), []string{}, "in.v1.Req.NamesEntry"},
		{"a group", group(schematest.Tags(nil).Varint(1, 1)), []string{}, ""},
		{"in a group", group(schematest.Tags(nil).Varint(1, 2)), []string{"in.v1.Req.Part.on: the field is declared as bool, but has a value above 1"}, ""},
		{"a message for a group", append(bytes.Clone(id), schematest.Tags(nil).Text(4, "")...), []string{"in.v1.Req.part: the wire type is len, but the field is declared as group"}, ""},
	} {
		r := checkInner(t, "proto", nil, c.data)
		if d := cmp.Diff(c.want, reasons(r)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if c.unknown != "" && (len(r.Unknown) != 1 || r.Unknown[0].Message != c.unknown) || c.unknown == "" && len(r.Unknown) > 0 {
			t.Errorf("%s: unknown %+v", c.name, r.Unknown)
		}
		if r.BytesExplained < 0 || r.BytesExplained > r.Bytes {
			t.Errorf("%s: %d of %d bytes", c.name, r.BytesExplained, r.Bytes)
		}
		if clean := r.Clean() && r.BytesExplained == r.Bytes; clean != (len(c.want) == 0 && c.unknown == "") {
			t.Errorf("%s: %+v", c.name, r)
		}
		if named := c.name == "an unknown Any"; named != (len(r.UnknownTypes) == 1 && r.UnknownTypes[0].Message == "in.v1.Nothing") {
			t.Errorf("%s: unknown types %+v", c.name, r.UnknownTypes)
		}
	}
}

// manyEntries are entries of the map Req.names, their keys repeated after a while.
func manyEntries(n, keys int) []byte {
	var b schematest.Tags
	for i := range n {
		b = b.Text(3, string(schematest.Tags(nil).Varint(1, uint64(i%keys)).Text(2, "v")))
	}
	return b
}

func TestCheckErrorDetails(t *testing.T) {
	detail := envelope.Detail{Type: "in.v1.Held", Value: schematest.Tags(nil).Varint(1, 7)}
	want := []string{"in.v1.Held.ok: the field is declared as bool, but has a value above 1"}
	r := checkInner(t, "proto", func(ex *decode.Exchange) {
		ex.Frames[0].End = &envelope.End{Error: &envelope.Error{Code: "internal", Details: []envelope.Detail{detail, {Type: "x.Y"}}}}
	}, []byte("{}"))
	if d := cmp.Diff(want, reasons(r)); d != "" || r.Frames != 0 || r.Details != 2 || r.DetailsDecoded != 1 || len(r.UnknownTypes) != 1 || !cmp.Equal(r.Contradicted[0].Frames, []string{"#7/up/0"}) {
		t.Errorf("%s %+v", d, r)
	}

	status := schematest.Tags(nil).Varint(1, 3).Text(3, string(schematest.Tags(nil).Text(1, "type.googleapis.com/in.v1.Held").Text(2, string(detail.Value))))
	r = checkInner(t, "proto", func(ex *decode.Exchange) {
		ex.Protocol = decode.GRPC
		ex.ResponseTrailers = captures.Headers{{Name: "grpc-status", Value: "3"}, {Name: "grpc-status-details-bin", Value: base64.RawStdEncoding.EncodeToString(status)}}
	}, schematest.Tags(nil).Text(1, "x"))
	if d := cmp.Diff(want, reasons(r)); d != "" || r.Frames != 1 || r.Details != 1 {
		t.Errorf("%s %+v", d, r)
	}
}

func TestCheckJSONShapes(t *testing.T) {
	for _, c := range []struct {
		data string
		want []string
	}{
		{`{"id":"x","at":"2026-01-02T03:04:05.5Z","span":"-1.5s","wrapped":7,"n":1e3,"names":{"1":"a"},"big":"18446744073709551615"}`, []string{}},
		{`{"any":{"@type":"t/in.v1.Held","ok":true},"a":null,"b":"x"}`, []string{}},
		{`{"any":{"@type":"t/in.v1.Held","ok":7}}`, []string{"in.v1.Held.ok: the JSON value has the type number, but the field is declared as bool"}},
		{`{"any":{"@type":"t/google.protobuf.Duration","value":"1"}}`, []string{"google.protobuf.Duration.: the JSON value is not a valid google.protobuf.Duration"}},
		{`{"at":"yesterday"}`, []string{"in.v1.Req.at: the JSON value is not a valid google.protobuf.Timestamp"}},
		{`{"span":{"seconds":1}}`, []string{"in.v1.Req.span: the JSON value is not a valid google.protobuf.Duration"}},
		{`{"wrapped":"x"}`, []string{"in.v1.Req.wrapped: the JSON value is not a valid google.protobuf.Int32Value"}},
		{`{"n":2147483648}`, []string{"in.v1.Req.n: the field is declared as int32, but has a value outside the range of this type"}},
		{`{"n":1e999999999}`, []string{"in.v1.Req.n: the field is declared as int32, but has a value outside the range of this type"}},
		{`{"n":1.5}`, []string{"in.v1.Req.n: the field is declared as int32, but has a value with a fraction"}},
		{`{"n":""}`, []string{"in.v1.Req.n: the JSON value has the type string, but the field is declared as int32"}},
		{`{"big":-1}`, []string{"in.v1.Req.big: the field is declared as uint64, but has a value outside the range of this type"}},
		{`{"n":1,"n":2}`, []string{"in.v1.Req.n: the field occurs more than once in a JSON object"}},
		{`{"a":"x","b":"y"}`, []string{"in.v1.Req.b: the field occurs together with a, which is in the same oneof c"}},
		{`{"names":{"one":"a"}}`, []string{"in.v1.Req.names: a key of the map is not a valid int32"}},
	} {
		r := checkInner(t, "json", nil, []byte(c.data))
		if d := cmp.Diff(c.want, reasons(r)); d != "" || r.Decoded != 1 || len(r.Unknown) > 0 || r.BytesExplained != r.Bytes {
			t.Errorf("%s: %s %+v", c.data, d, r)
		}
	}
	if r := checkInner(t, "json", nil, []byte(`{"any":{"@type":"t/in.v1.Held","colour":1}}`)); len(r.Unknown) != 1 || r.Unknown[0].Message != "in.v1.Held" || r.BytesExplained >= r.Bytes {
		t.Errorf("%+v", r)
	}
}

func TestAllowance(t *testing.T) {
	report := func() *Report {
		r := checkInner(t, "proto", nil, schematest.Tags(nil).Text(1, "x").Varint(99, 1).Varint(8, 1<<40))
		r.UnknownMethods = append(r.UnknownMethods, UnknownMethod{Service: "a.B", RPC: "C"})
		return r
	}
	for _, c := range []struct {
		list    string
		allowed int
	}{
		{"", 0},
		{"# nothing\n\n", 0},
		{"in.v1.Req 99", 1},
		{"unknown in.v1.Req", 1},
		{"contradicted in.v1.* n # known\n", 1},
		{"contradicted in.v1.Req 99", 0},
		{"in.v1.*\nmethod a.B/*", 3},
		{"method a.B/D", 0},
	} {
		a, err := ReadAllowance(strings.NewReader(c.list))
		if err != nil {
			t.Fatal(err)
		}
		r := report()
		if r.Allow(a); r.AllowedFindings() != c.allowed || r.Clean() != (c.allowed == 3) {
			t.Errorf("%q: %d allowed", c.list, r.AllowedFindings())
		}
	}
	before, err := json.Marshal(report())
	if err != nil {
		t.Fatal(err)
	}
	a, err := ReadAllowance(bytes.NewReader(before))
	if err != nil {
		t.Fatal(err)
	}
	r := report()
	if r.Allow(a); !r.Clean() {
		t.Errorf("%+v", r)
	}
	r.Contradicted = append(r.Contradicted, Contradiction{Message: "in.v1.Req", Number: 8, Name: "n", Reason: "another"})
	if r.Clean() {
		t.Error("a new finding passes")
	}
	for _, bad := range []string{"a b c", "method a", "[ x", "{"} {
		if _, err := ReadAllowance(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken", bad)
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
	k := NewChecker(chatSchema(t), Options{})
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
	ev := infer.NewEvidence()
	if err := ev.AddExchange(page); err != nil || len(ev.Roots()) != 0 {
		t.Errorf("an error page is evidence of %v: %v", ev.Roots(), err)
	}
}

func TestReportJSONHasTheContractsKeys(t *testing.T) {
	b, err := json.Marshal(checkOne(t, talk("proto", schematest.Tags(nil).Varint(99, 1).Varint(3, 7))))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"frames", "decoded", "bytes", "bytes_explained", "fields_seen", "fields_never_seen", "unknown", "contradicted"} {
		if _, ok := got[key]; !ok {
			t.Errorf("no %s in %s", key, b)
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
		c := schematest.RandomCorpus(t, seed, 10)
		s := schema.FromFiles(c.Truth.ParentFile())
		k := NewChecker(s, Options{})
		for _, b := range c.Samples {
			k.addMessage("x", c.Truth, wire.Parse(b, wire.Options{}))
			m := dynamicpb.NewMessage(c.Truth)
			if err := proto.Unmarshal(b, m); err != nil {
				t.Fatal(err)
			}
			text, err := protojson.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			k.frame = func() string { return "json" }
			if explained, ok := k.checkJSON(c.Truth, text); !ok || explained != int64(len(text)) {
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
		if !strings.Contains(c.Reason, "has no value") {
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
	_, err := schema.Load(t.Context(), fstest.MapFS{"a.proto": {Data: []byte("syntax = \"proto3\";\nmessage A {\n  Gone b = 1;\n}\n")}})
	if err == nil || !strings.Contains(err.Error(), "a.proto:3:") {
		t.Errorf("no position: %v", err)
	}
	if _, err := schema.LoadDir(t.Context(), t.TempDir()+"/none"); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("%v", err)
	}
}

// TestCheckReconstructedSchema checks made-up messages of the reconstructed schema
// against it.
func TestCheckReconstructedSchema(t *testing.T) {
	s, err := schema.LoadDir(t.Context(), "../../proto")
	if err != nil {
		t.Fatal(err)
	}
	truth := s.Method("agent.v1.AgentService", "Run").Output()
	g := schematest.NewGenerator(schematest.NewRand(11))
	k := NewChecker(s, Options{})
	for range 150 {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.Message(truth, 2))
		if err != nil {
			t.Fatal(err)
		}
		k.addMessage("x", truth, wire.Parse(b, wire.Options{}))
	}
	r := k.Report()
	if enumOnly(r); r.Frames == 0 || !r.Clean() || r.BytesExplained != r.Bytes {
		t.Errorf("%+v %+v", r.Unknown, r.Contradicted)
	}
}

// addMessage checks one message of the named address outside any exchange.
// It counts under the method "", whose type is the message's.
func (k *Checker) addMessage(address string, md protoreflect.MessageDescriptor, t *wire.Tree) {
	k.frame = func() string { return address }
	id := [3]string{"", string(md.FullName()), ""}
	row := k.methods[id]
	if row == nil {
		row = &methodRow{MethodCoverage{Type: string(md.FullName())}}
		k.methods[id] = row
	}
	row.Frames++
	row.Bytes += int64(len(t.Data))
	explained, ok := k.checkMessage(t, 0, k.info(md))
	row.count(explained, ok)
}
