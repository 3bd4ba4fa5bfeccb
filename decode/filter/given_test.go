package filter

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/fieldpath"
	"unwire/decode/wire"
)

// numbered returns a frame whose message has a text in a field.
func numbered(d captures.Direction, seq int, number protowire.Number, text string) Frame {
	data := protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), text)
	return Frame{Frame: &decode.Frame{Dir: d, Seq: seq, Frame: envelope.Frame{Raw: data, Data: data}, Tree: wire.Parse(data, wire.Options{})}}
}

// What is known of an exchange when it begins changes no decision about its frames, whatever its response will be.
func TestGiven(t *testing.T) {
	t.Parallel()
	terms := []string{
		"", "dir:up", "dir:!up", "host:api.*", "host:other", "method:AddItem", "method:Other", "verb:POST", "protocol:connect", "protocol:sse",
		"codec:proto", "status:200", "status>300", "id:7", "id:8", "path:1", "path:70.2", "path:65=x", "text:rose", "frame:1", "len>3",
		"header:content-type", "header:x-region", "is:failed", "is:end", "is:open", "code:ok", "size>1KB", "note:look", "duration>1h",
	}
	texts := append([]string(nil), terms...)
	for i, a := range terms[1:] {
		b, c := terms[1:][(i*7+3)%(len(terms)-1)], terms[1:][(i*11+5)%(len(terms)-1)]
		texts = append(texts, a+" "+b, a+" or "+b, "not "+a, "not ("+a+" "+b+") or "+c, a+" ("+b+" or not "+c+")", a+" "+b+" or "+c)
	}
	began := sample()
	began.Outcome, began.Code, began.Duration, began.Status, began.ID = captures.InFlight, "", 0, 0, 0
	began.ResponseTrailers, began.BytesUp, began.BytesDown, began.Missing = nil, 0, 0, Notes|Frames
	responded := *began
	ex := *began.Exchange
	ex.Status, ex.ID, ex.ResponseHeaders = 500, 7, captures.Headers{{Name: "x-region", Value: "EU"}}
	responded.Exchange, responded.Protocol, responded.Codec = &ex, decode.SSE, "json"

	decided := 0
	for _, text := range texts {
		f := parse(t, text)
		for _, d := range []captures.Direction{captures.Up, captures.Down} {
			rest, value := f.Given(began, d)
			if value != Unknown {
				decided++
			}
			for _, fr := range []Frame{numbered(d, 0, 1, "rose"), numbered(d, 1, 70, "\x12\x01x"), numbered(d, 2, 65, "x")} {
				// Frames of the request may come after the response, but the request's headers decide about them.
				states := []*Exchange{began, &responded}
				if d == captures.Up {
					states = states[:1]
				}
				for _, state := range states {
					want := f.Frame(state, fr) == Yes
					got := value == Yes || value == Unknown && rest.Frame(state, fr) == Yes
					if got != want {
						t.Errorf("%q, %v, status %d, frame %d: %v by what is left, %v by all", text, d, state.Status, fr.Seq, got, want)
					}
					if n := rest.Need().Number; value == Unknown && n > 0 && want && len(fr.Tree.Find(fieldpath.Path{fieldpath.Field(n)})) == 0 {
						t.Errorf("%q matches frame %d without field %d", text, fr.Seq, n)
					}
				}
			}
		}
	}
	if decided < len(texts)/2 {
		t.Errorf("only %d of %d conditions are decided", decided, 2*len(texts))
	}
	for text, want := range map[string]Need{
		"path:7.1": {Name: "7", Number: 7}, "dir:up path:7=x": {Name: "7", Number: 7, Texts: []string{"x"}}, "path:7 or path:8": {}, "not path:7": {},
		"path:*.1": {}, "path:**.1": {}, "path:name": {Name: "name"}, "text:x path:3[1]": {Name: "3", Number: 3}, "path:3[1]=a": {Name: "3", Number: 3},
		"path:7=x*": {Name: "7", Number: 7}, "path:7>3": {Name: "7", Number: 7}, "path:7!=x": {}, "path:7.1=x": {Name: "7", Number: 7},
		"path:7 path:8=y": {Name: "8", Number: 8, Texts: []string{"y"}}, "path:7:a,b": {Name: "7", Number: 7, Texts: []string{"a", "b"}},
	} {
		if got := parse(t, text).Need(); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}
