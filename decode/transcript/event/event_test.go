package event

import (
	"encoding/base64"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/jsontree"
)

func frames(dir captures.Direction, bodies ...string) *decode.Exchange {
	ex := &decode.Exchange{}
	for i, b := range bodies {
		ex.Frames = append(ex.Frames, decode.Frame{Dir: dir, Seq: i, Frame: envelope.Frame{Data: []byte(b)}})
	}
	return ex
}

func TestRead(t *testing.T) {
	wrapped := `{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(`{"delta":{"text":"a"}}`)) + `"}`
	for _, c := range []struct {
		name   string
		dir    captures.Direction
		bodies []string
		events int
		first  jsontree.Kind
	}{
		{"objects", captures.Down, []string{`{"a":1}`, `{"a":2}`}, 2, jsontree.Object},
		{"an array of a server is a list of events", captures.Down, []string{`[{"a":1},{"a":2}]`}, 2, jsontree.Object},
		{"an array of a client is a value", captures.Up, []string{`[{"a":1},{"a":2}]`}, 1, jsontree.Array},
		{"lines", captures.Down, []string{"{\"a\":1}\n{\"a\":2}\n"}, 2, jsontree.Object},
		{"text", captures.Down, []string{"Hello,\nworld"}, 1, jsontree.String},
		{"the end of a stream, and nothing", captures.Down, []string{"[DONE]", " "}, 0, 0},
		{"base64", captures.Down, []string{wrapped}, 1, jsontree.Object},
	} {
		got := Read(frames(c.dir, c.bodies...))
		if len(got) != c.events || c.events > 0 && got[0].Root.Kind != c.first {
			t.Errorf("%s: %d events, want %d", c.name, len(got), c.events)
		}
	}
	e := Read(frames(captures.Down, wrapped, `{"data":"{\"Some_Text\":\"b\"}"}`, `{"arguments":"{\"a\":1}"}`))
	if e[0].Root.Member("bytes").Member("delta").String("text") != "a" || e[1].Root.Member("data").String("sometext") != "b" || e[2].Root.Member("arguments").Kind != jsontree.String {
		t.Errorf("%s %s %s", e[0].Root.Raw, e[1].Root.Raw, e[2].Root.Raw)
	}
}

// The values of a frame are found whatever precedes or separates them.
func TestLabels(t *testing.T) {
	for _, c := range []struct {
		name string
		body string
		want string
	}{
		{"codes", "0:\"Hi\"\n9:{\"a\":1}\n", `0="Hi" 9={"a":1}`},
		{"record separators", "{\"a\":1}\x1e{\"a\":2}\x1e", `={"a":1} ={"a":2}`},
		{"Socket.IO", `42["stream_token",{"token":"a"}]`, `stream_token={"token":"a"}`},
		{"multipart", "\r\n---\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}\r\n-----\r\n", `={"a":1}`},
		{"text with a colon", "Answer: 42", `=Answer: 42`},
	} {
		var got []string
		for _, e := range Read(frames(captures.Down, c.body)) {
			value := string(e.Root.Raw)
			if value == "" {
				value = e.Root.Text
			}
			got = append(got, e.Name+"="+value)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
}

// A token that is a number or white space is text if the other events are.
func TestBareText(t *testing.T) {
	ex := frames(captures.Down, "There are", " 12", " ", "moons", "[1]")
	for i := range ex.Frames {
		ex.Frames[i].Event = "output"
	}
	text := ""
	for _, e := range Read(ex) {
		text += e.Root.Text
	}
	if want := "There are 12 moons[1]"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
}
