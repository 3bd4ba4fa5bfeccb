package callshape

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/transcript/keyed"
	"unwire/decode/wire"
)

func text(n protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), s)
}

func exchange(dir captures.Direction, bodies ...[]byte) *decode.Exchange {
	ex := &decode.Exchange{}
	for i, b := range bodies {
		ex.Frames = append(ex.Frames, decode.Frame{Dir: dir, Seq: i, Tree: wire.Parse(b, wire.Options{})})
	}
	return ex
}

func TestFind(t *testing.T) {
	s, err := structpb.NewStruct(map[string]any{"city": "Oslo", "days": 3.0, "deep": map[string]any{"list": []any{true, nil}}})
	if err != nil {
		t.Fatal(err)
	}
	args, err := proto.MarshalOptions{Deterministic: true}.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	shaped := string(append(text(1, "get_weather"), text(2, string(args))...))
	inJSON := string(append(text(1, "get_weather"), text(2, `{"city":"Oslo"}`)...))
	for _, c := range []struct {
		name string
		body []byte
		want string
	}{
		{"a Struct", text(3, shaped), `[get_weather  {"city":"Oslo","days":3,"deep":{"list":[true,null]}}]`},
		{"a string of JSON", text(3, string(append(text(1, "call_01ab23"), text(10, inJSON)...))), `[get_weather call_01ab23 {"city":"Oslo"}]`},
		{"a schema", text(3, string(append(text(1, "get_weather"), text(4, `{"type":"object","properties":{}}`)...))), `[]`},
		{"a record", text(3, string(append(text(1, "get_weather"), append(text(2, "Returns the weather of a city."), text(4, `{"a":1}`)...)...))), `[]`},
		{"a text", text(3, "plain"), `[]`},
	} {
		var got []string
		for _, p := range Find(exchange(captures.Down, c.body)) {
			got = append(got, fmt.Sprintf("%s %s %s", p.Name, p.ID, p.Text))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}

	// A message with the identifier of a call and a text is its result.
	ex := exchange(captures.Up, text(3, string(append(text(1, "call_01ab23"), text(10, inJSON)...))), append(text(1, string(text(1, "12 degrees and rain"))), text(7, "call_01ab23")...))
	if got := Find(ex); len(got) != 2 || got[1].Channel != keyed.Result || got[1].Text != "12 degrees and rain" || got[1].ID != "call_01ab23" {
		t.Errorf("%+v", got)
	}
}

// A call may begin with its name and identifier, and its arguments follow in pieces.
func TestFindPieces(t *testing.T) {
	piece := func(s string) []byte { return text(6, string(append(text(1, "call_01ab23"), text(3, s)...))) }
	begin := text(6, string(append(text(1, "call_01ab23"), text(2, "get_weather")...)))
	got := Find(exchange(captures.Down, begin, piece(`{"`), piece("city"), piece(`":"Oslo"}`)))
	if len(got) != 1 || got[0].Name != "get_weather" || got[0].Text != `{"city":"Oslo"}` || got[0].ID != "call_01ab23" {
		t.Errorf("%+v", got)
	}
	if got := Find(exchange(captures.Down, begin, piece("broken"))); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// The identifier of a message is no result, even if it is longer.
func TestFindShortResult(t *testing.T) {
	call := text(3, string(append(text(1, "call_01ab23"), append(text(2, "get_weather"), text(3, `{"city":"Oslo"}`)...)...)))
	result := text(3, string(append(text(1, "0b5b9b3e-6a0f-4d0e-9f5e-3f1d2c4b5a69"), append(text(3, "12 degrees"), text(7, "call_01ab23")...)...)))
	if got := Find(exchange(captures.Up, call, result)); len(got) != 2 || got[1].Text != "12 degrees" {
		t.Errorf("%+v", got)
	}
}

// FuzzFind checks that no message of protobuf breaks the search, and that arguments are JSON.
func FuzzFind(f *testing.F) {
	f.Add(text(3, string(append(text(1, "get_weather"), text(2, "\x0a\x0e\x0a\x04city\x12\x06\x1a\x04Oslo")...))))
	f.Add(text(3, string(append(text(1, "call_01ab23"), text(10, string(append(text(1, "get"), text(2, `{"a":1}`)...)))...))))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, dir := range []captures.Direction{captures.Up, captures.Down} {
			for _, p := range Find(exchange(dir, data, data)) {
				if p.Channel == keyed.Call && (p.Name == "" || len(p.Text) == 0 || p.Text[0] != '{') {
					t.Fatalf("%+v", p)
				}
			}
		}
	})
}
