package messages

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode/jsontree"
	"unwire/schema/infer"
	"unwire/schema/infer/jsonshape"
)

// record records WebSockets with messages: "<" or ">", then the data; JSON is text.
func record(t *testing.T, url string, messages ...string) *store.Store {
	t.Helper()
	s, err := store.Create(filepath.Join(t.TempDir(), "a.uwc"), store.Options{KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	rec, err := s.Begin(captures.Exchange{Transport: captures.WebSocket, URL: url})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		dir, op := captures.Up, captures.OpText
		if m[0] == '<' {
			dir = captures.Down
		}
		if m[1] != '{' {
			op = captures.OpBinary
		}
		rec.Message(dir, op|captures.OpFinal, []byte(m[1:]))
	}
	rec.End(captures.Complete, "")
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// inferred returns the definitions of WebSockets.
func inferred(t *testing.T, captures ...*store.Store) string {
	t.Helper()
	var set Set
	ev := infer.NewEvidence()
	for _, c := range captures {
		if err := set.Add(t.Context(), c, 0, ev); err != nil {
			t.Fatal(err)
		}
	}
	in, err := infer.Infer(ev, infer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(in, ev, ""); err != nil {
		t.Fatal(err)
	}
	text, err := in.Text()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func wants(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		not, found := strings.CutPrefix(want, "!")
		if found == strings.Contains(text, not) {
			t.Errorf("%q in\n%s", want, text)
		}
	}
}

// Messages of JSON are grouped by the URL, the direction and a discriminator.
func TestJSONGroups(t *testing.T) {
	t.Parallel()
	a := record(
		t, "wss://chat.example/rooms/1234/ws?token=x",
		`>{"type":"join","room_id":"r1"}`, `<{"type":"joined","users":[{"name":"kim","age":31},{"name":"lee"}]}`,
		`>{"type":"say","text":"hi","at":1.5,"draft":false}`, `<{"type":"said","by":{"name":"kim"},"meta":{}}`, `>{"type":"say","text":"ho","at":2,"draft":null}`,
		`<{"error":1}`,
	)
	b := record(t, "wss://chat.example/rooms/99/ws", `>{"type":"join","room_id":"r2"}`)
	wants(
		t, inferred(t, a, b),
		"// 2 messages in JSON, wss://chat.example/rooms/{id}/ws up.\n// Its type is \"join\".\n", "message ChatExampleRoomsWsUpJoin {",
		`string room_id = 1 [json_name = "room_id"];`, "double at = 1;", "// Seen in 2 of 2 messages.\n  bool draft = 2;",
		"message ChatExampleRoomsWsDownJoined {", "repeated Users users = 2;", "    int64 age = 1;", "google.protobuf.Struct meta = 2;",
		"message ChatExampleRoomsWsDown {", `import "google/protobuf/struct.proto";`, "!token",
	)
}

// A member with as many values as messages is no discriminator.
func TestManyValuesAreNoKinds(t *testing.T) {
	t.Parallel()
	var messages []string
	for i := range 60 {
		messages = append(messages, fmt.Sprintf(`<{"type":"id%d","n":%d}`, i, i))
	}
	text := inferred(t, record(t, "ws://127.0.0.1:8080/feed", messages...))
	wants(t, text, "// 60 messages in JSON, ws://127.0.0.1:8080/feed down.", "message FeedDown {", "!Id1 {")
}

// Field 1 is the discriminator of protobuf messages if the other fields depend on it.
func TestProtobufKinds(t *testing.T) {
	t.Parallel()
	kind := func(n byte, field byte, text string) string {
		return "<" + string(protowire.AppendString([]byte{8, n, field<<3 | 2}, text))
	}
	kinds := record(t, "wss://h.example/ws", kind(1, 2, "a user"), kind(2, 3, "a message"), kind(1, 2, "another"), kind(2, 3, "more"))
	wants(t, inferred(t, kinds), "message HExampleWsDownKind1 {", "message HExampleWsDownKind2 {", "string field_3 = 3;")

	counter := record(t, "wss://h.example/ws", kind(1, 2, "a user"), kind(2, 2, "a message"), kind(1, 2, "another"), kind(2, 2, "more"))
	wants(t, inferred(t, counter), "message HExampleWsDown {", "!Kind1")
}

// What is inferred of any JSON compiles.
func TestAnyJSONCompiles(t *testing.T) {
	t.Parallel()
	name := rapid.SampledFrom([]string{"type", "user_id", "userId", "User", "user", "1", "", "a b", "\n", "message", "user_id_2", "_", "é", "reserved", "[x]", "Object"})
	var value func(depth int) *rapid.Generator[any]
	object := func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			return any(rapid.MapOfN(name, value(depth-1), 0, 6).Draw(t, "object"))
		})
	}
	value = func(depth int) *rapid.Generator[any] {
		scalar := rapid.SampledFrom([]any{nil, true, 1, 1.5, "text", []any{}, []any{nil}, []any{1, "x"}, map[string]any{}})
		if depth <= 0 {
			return scalar
		}
		return rapid.OneOf(scalar, object(depth), rapid.Map(rapid.SliceOfN(object(depth), 0, 3), func(l []any) any { return l }))
	}
	rapid.Check(t, func(t *rapid.T) {
		ev := infer.NewEvidence()
		for range rapid.IntRange(1, 4).Draw(t, "messages") {
			data, err := json.Marshal(object(3).Draw(t, "message"))
			if err != nil {
				t.Fatal(err)
			}
			v, err := jsontree.Parse(data)
			if err != nil {
				t.Fatal(err)
			}
			ev.JSON().Add("ws://h/ up", "M", v)
		}
		in := &infer.Inferred{}
		if err := Write(in, ev, ""); err != nil {
			t.Fatalf("%v\n%s", err, in.Files["inferred/inferred.proto"])
		}
	})
}

func BenchmarkAddJSON(b *testing.B) {
	v, err := jsontree.Parse([]byte(`{"type":"delta","index":3,"delta":{"text":"some words of an answer","n":1},"list":[1,2,3]}`))
	if err != nil {
		b.Fatal(err)
	}
	set := jsonshape.NewSet()
	b.ReportAllocs()
	for b.Loop() {
		set.Add("ws://h/ up", "M", v)
	}
}
