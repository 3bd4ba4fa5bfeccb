package align

import (
	"testing"
	"time"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
)

// said adds a call whose request is data.
func said(c *Calls, id int64, codec, data string) {
	ex := &decode.Exchange{
		Exchange: captures.Exchange{ID: id, Started: time.Unix(id, 0)},
		Call:     decode.Call{Codec: codec, Service: "a.v1.A", RPC: "Do"},
		Frames:   []decode.Frame{{Dir: captures.Up, Frame: envelope.Frame{Data: []byte(data)}}},
	}
	c.Add("f.uwc", ex)
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
