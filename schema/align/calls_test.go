package align

import (
	"maps"
	"testing"
	"time"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
)

// said adds a call whose requests are data.
func said(c *Calls, id int64, codec string, data ...string) {
	ex := &decode.Exchange{
		Exchange: captures.Exchange{ID: id, Started: time.Unix(id, 0)},
		Call:     decode.Call{Codec: codec, Service: "a.v1.A", RPC: "Do"},
	}
	for i, d := range data {
		ex.Frames = append(ex.Frames, decode.Frame{Dir: captures.Up, Seq: i, Frame: envelope.Frame{Data: []byte(d)}})
	}
	c.Add("f.uwc", ex)
}

// TestAMessageMore: a stream that has a heartbeat more is still paired, on
// both sides of it.
func TestAMessageMore(t *testing.T) {
	var calls Calls
	said(&calls, 1, "proto", "\x0a\x05hello", "\x12\x00", "\x18\x2a", "\x22\x03end")
	said(&calls, 2, "json", `{"text":"hello"}`, `{"beat":{}}`, `{"beat":{}}`, `{"size":42}`, `{"last":"end"}`)
	var a Aligner
	if _, err := calls.Pair(&a); err != nil {
		t.Fatal(err)
	}
	got := map[uint64]string{}
	for _, j := range a.Solve().Joins {
		got[j.Number] = j.JSONName
	}
	if want := map[uint64]string{1: "text", 2: "beat", 3: "size", 4: "last"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestWhichCallIsWhich: calls that could be paired in two ways tell nothing,
// unless they were made by turns.
func TestWhichCallIsWhich(t *testing.T) {
	const one, two = "\x08\x01", "\x10\x01" // two flags
	for name, c := range map[string]struct {
		calls [][2]string // codec, data, in their order
		joins int
		why   bool
	}{
		"by turns":      {[][2]string{{"proto", one}, {"json", `{"a":true}`}, {"json", `{"b":true}`}, {"proto", two}}, 2, false},
		"all at once":   {[][2]string{{"proto", one}, {"proto", two}, {"json", `{"b":true}`}, {"json", `{"a":true}`}}, 0, true},
		"repeated":      {[][2]string{{"proto", one}, {"proto", one}, {"json", `{"a":true}`}, {"json", `{"a":true}`}}, 1, false},
		"by their data": {[][2]string{{"proto", "\x08\x05"}, {"proto", "\x10\x07"}, {"json", `{"b":7}`}, {"json", `{"a":5}`}}, 2, false},
		"left over":     {[][2]string{{"proto", one}, {"json", `{"a":true}`}, {"proto", "\x18\x09"}}, 1, false},
		"one codec":     {[][2]string{{"proto", one}, {"proto", two}}, 0, false},
		"no match":      {[][2]string{{"proto", "\x08\x05"}, {"json", `{"a":6}`}}, 0, false},
	} {
		var calls Calls
		for i, x := range c.calls {
			said(&calls, int64(i+1), x[0], x[1])
		}
		var a Aligner
		unpaired, err := calls.Pair(&a)
		if err != nil {
			t.Fatal(err)
		}
		r := a.Solve()
		if len(r.Joins) != c.joins {
			t.Errorf("%s: %d joins: %+v", name, len(r.Joins), r.Joins)
		}
		for _, j := range r.Joins {
			if want := map[uint64]string{1: "a", 2: "b"}[j.Number]; j.JSONName != want || j.Message != "a.v1.DoRequest" {
				t.Errorf("%s: %s.%d is %s", name, j.Message, j.Number, j.JSONName)
			}
		}
		why := len(unpaired) > 0 && unpaired[0].Why != ""
		if why != c.why {
			t.Errorf("%s: %+v", name, unpaired)
		}
	}
}
