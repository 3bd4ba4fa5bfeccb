package rewrite

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"unwire/captures"
	"unwire/decode/envelope"
)

// unchanged passes everything.
type unchanged struct{ framing Framing }

func (unchanged) Changes(captures.Direction) bool      { return true }
func (unchanged) Diverts(captures.Direction) bool      { return true }
func (unchanged) Request() Verdict                     { return Verdict{} }
func (unchanged) Response(int, captures.Headers)       {}
func (u unchanged) Framing(captures.Direction) Framing { return u.framing }

func (unchanged) Frame(context.Context, *Frame) Verdict                           { return Verdict{} }
func (unchanged) Pace(context.Context, captures.Direction, int)                   {}
func (unchanged) Passes(*Frame) bool                                              { return true }
func (unchanged) ClientLeft()                                                     {}
func (unchanged) PassesEnvelopes(captures.Direction, []byte) (passed, frames int) { return 0, 0 }
func (unchanged) PassesMessage(captures.Direction, envelope.Flags, []byte) bool {
	return false
}
func (unchanged) Paces() bool                       { return false }
func (unchanged) Recorded(int64)                    {}
func (unchanged) Passed(captures.Direction, string) {}
func (unchanged) End()                              {}

type sink struct {
	bytes.Buffer
	// length is that of the last call of Begin.
	length int64
}

func (s *sink) Begin(length int64) error { s.length = length; return nil }

// FuzzBody: whatever arrives, in whatever pieces, is forwarded unchanged if nothing changes it.
func FuzzBody(f *testing.F) {
	for kind := range byte(Chunks) + 1 {
		f.Add(kind, []byte("\x00\x00\x00\x00\x02hi\x01\x00\x00\x00\x05hello"))
		f.Add(kind, []byte("event: x\ndata: 1\ndata: 2\n\ndata: 3\r\n\r\n: c\n\n"))
		f.Add(kind, []byte("\x81\x02hi\x01\x01a\x89\x00\x80\x01b\x81\x82abcd\x08\x0b\x88\x00"))
		f.Add(kind, []byte("\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"))
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		examine(t, Framing{Kind: Kind(kind % (byte(Chunks) + 1)), Encoding: "gzip"}, body)
		framing := Framing{Kind: Kind(kind % (byte(Chunks) + 1)), Encoding: "gzip"}
		for _, r := range []io.Reader{bytes.NewReader(body), iotest.OneByteReader(bytes.NewReader(body))} {
			b := Body{Exchange: unchanged{framing}, Declared: -1}
			var out sink
			err := b.Run(context.Background(), r, &out)
			got, want := out.Bytes(), body
			if framing.Kind == Messages {
				// Control frames within a message come before it.
				got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
			}
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("kind %d: %q became %q, %v", framing.Kind, body, out.Bytes(), err)
			}
			if assembled.Load() != 0 {
				t.Fatalf("%d bytes are still counted", assembled.Load())
			}
		}
	})
}

// examine watches a body: what was examined in pieces is what was examined at once, and a relay can go on with Run.
func examine(t *testing.T, framing Framing, body []byte) {
	t.Helper()
	whole := Body{Exchange: unchanged{framing}, Declared: int64(len(body))}
	if whole.Watch() == WatchBody && whole.ExamineBody(body) && whole.Offset() != int64(len(body)) {
		t.Fatalf("%d of %d bytes were examined", whole.Offset(), len(body))
	}
	b := Body{Exchange: unchanged{framing}, Declared: -1}
	if b.Watch() != WatchFrames {
		return
	}
	all, _ := (&Body{Exchange: unchanged{framing}, Declared: -1, framing: framing}).ExamineFrames(body)
	passed := 0
	for end := range body {
		n, ok := b.ExamineFrames(body[passed : end+1])
		if !ok {
			break
		}
		passed += n
	}
	if b.Offset() != int64(passed) || passed < all {
		t.Fatalf("%d bytes in pieces, %d at once, offset %d", passed, all, b.Offset())
	}
	var out sink
	if err := b.Run(context.Background(), bytes.NewReader(body[passed:]), &out); err != nil || !bytes.Equal(out.Bytes(), body[passed:]) {
		t.Fatalf("%q became %q, %v", body[passed:], out.Bytes(), err)
	}
}

// ending replaces the frame "edit" by "x", and ends the exchange at the frame "stop".
type ending struct{ unchanged }

func (ending) Frame(_ context.Context, f *Frame) (v Verdict) {
	switch string(f.Data) {
	case "edit":
		v = Verdict{Action: Replace, Rule: "edits", Messages: [][]byte{[]byte("x")}}
	case "stop":
		v = Verdict{Action: Answer, Rule: "ends", Answer: &Response{}}
	}
	return v
}

func (e ending) Passes(f *Frame) bool { return e.Frame(context.Background(), f).Action == Pass }

// edits are changes in the form that a Recorder gets.
type edits []captures.Edit

func (e *edits) Edit(d captures.Direction, start, end int64, rule string, data []byte) {
	*e = append(*e, captures.Edit{Dir: d, Start: start, End: end, Rule: rule, Data: data})
}

func (*edits) ForwardHead(captures.Direction, string, captures.ForwardedHead) {}

// TestEndedWhileGathered: the frames of a body whose length must be declared first are forwarded together. If a rule ends
// the exchange at one of them, the recorded changes say that those before were not forwarded either.
func TestEndedWhileGathered(t *testing.T) {
	t.Parallel()
	const pass, edit, stop = "\x00\x00\x00\x00\x04pass", "\x00\x00\x00\x00\x04edit", "\x00\x00\x00\x00\x04stop"
	for _, c := range []struct {
		body     string
		declared bool
		want     edits
		sent     string
	}{
		{pass + edit + stop, true, edits{{Start: 0, End: 27, Rule: "ends"}}, ""},
		{pass + edit + stop, false, edits{{Start: 9, End: 18, Rule: "edits", Data: []byte("\x00\x00\x00\x00\x01x")}, {Start: 18, End: 27, Rule: "ends"}}, pass + "\x00\x00\x00\x00\x01x"},
		{pass + edit, true, edits{{Start: 9, End: 18, Rule: "edits", Data: []byte("\x00\x00\x00\x00\x01x")}}, pass + "\x00\x00\x00\x00\x01x"},
	} {
		var got edits
		var out sink
		b := Body{Exchange: ending{unchanged{Framing{Kind: Envelopes}}}, Recorder: &got, Declared: -1}
		if c.declared {
			b.Declared = int64(len(c.body))
		}
		err := b.Run(t.Context(), bytes.NewReader([]byte(c.body)), &out)
		var stopped *Stop
		if errors.As(err, &stopped) != (c.body == pass+edit+stop) || !reflect.DeepEqual(got, c.want) || out.String() != c.sent || b.Offset() != int64(len(c.body)) {
			t.Errorf("declared %v: %v, %q was forwarded up to %d, changes %+v; want %+v", c.declared, err, out.String(), b.Offset(), got, c.want)
		}
	}
}

// TestBodyUnlikeDeclared: a body that is shorter or longer than its content-length keeps the difference, so that its
// receiver detects the error. A whole body is then not changed.
func TestBodyUnlikeDeclared(t *testing.T) {
	t.Parallel()
	const edit = "\x00\x00\x00\x00\x04edit"
	for name, c := range map[string]struct {
		kind     Kind
		body     string
		declared int64
		sent     string
		length   int64
	}{
		"whole":                {Whole, "edit", 4, "x", 1},
		"whole, cut off":       {Whole, "edit", 5, "edit", Unchanged},
		"whole, tail":          {Whole, "edit", 3, "edit", Unchanged},
		"whole, none declared": {Whole, "edit", 0, "edit", Unchanged},
		"frames":               {Envelopes, edit, 9, "\x00\x00\x00\x00\x01x", 6},
		"frames, cut off":      {Envelopes, edit, 20, "\x00\x00\x00\x00\x01x", Unchanged},
		"frames, tail":         {Envelopes, edit + "tail", 9, "\x00\x00\x00\x00\x01xtail", 6},
		"frames, one too many": {Envelopes, edit + edit, 9, "\x00\x00\x00\x00\x01x\x00\x00\x00\x00\x01x", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out sink
			b := Body{Exchange: ending{unchanged{Framing{Kind: c.kind}}}, Declared: c.declared}
			if err := b.Run(t.Context(), bytes.NewReader([]byte(c.body)), &out); err != nil || out.String() != c.sent || out.length != c.length {
				t.Errorf("%q was forwarded with length %d, %v; want %q, %d", out.String(), out.length, err, c.sent, c.length)
			}
		})
	}
}

// TestLargeDeclaredBody: a body that is larger than what can be changed is forwarded completely.
func TestLargeDeclaredBody(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("x"), MaxFrame+100)
	var out sink
	b := Body{Exchange: ending{unchanged{Framing{Kind: Whole}}}, Declared: int64(len(body))}
	if err := b.Run(t.Context(), bytes.NewReader(body), &out); err != nil || !bytes.Equal(out.Bytes(), body) || out.length != Unchanged {
		t.Errorf("%d of %d bytes were forwarded with length %d, %v", out.Len(), len(body), out.length, err)
	}
}

// TestEnvelopesAreWrittenTogether: the envelopes that arrive together are written together while no rule matches, and
// those behind an edited one one by one. A part of an envelope waits for the rest.
func TestEnvelopesAreWrittenTogether(t *testing.T) {
	t.Parallel()
	const pass, edit, edited = "\x00\x00\x00\x00\x04pass", "\x00\x00\x00\x00\x04edit", "\x00\x00\x00\x00\x01x"
	for name, c := range map[string]struct {
		reads, writes []string
	}{
		"together":  {[]string{pass + pass + pass}, []string{pass + pass + pass}},
		"in pieces": {[]string{pass + pass[:3], pass[3:] + pass}, []string{pass, pass + pass}},
		"edited":    {[]string{pass + pass, pass + edit + pass}, []string{pass + pass, pass, edited, pass}},
		"cut off":   {[]string{pass + pass[:7]}, []string{pass, pass[:7]}},
		"large":     {[]string{pass + "\x00\x00\x01\x00\x00", strings.Repeat("x", 1<<16)}, []string{pass, "\x00\x00\x01\x00\x00" + strings.Repeat("x", 1<<16)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var readers []io.Reader
			for _, part := range c.reads {
				readers = append(readers, strings.NewReader(part))
			}
			var out writes
			b := Body{Exchange: ending{unchanged{Framing{Kind: Envelopes}}}, Declared: -1}
			if err := b.Run(t.Context(), io.MultiReader(readers...), &out); err != nil || !slices.Equal(out.all, c.writes) {
				t.Errorf("%q, %v; want %q", out.all, err, c.writes)
			}
			if want := len(strings.Join(c.reads, "")); b.Offset() != int64(want) {
				t.Errorf("offset %d, want %d", b.Offset(), want)
			}
		})
	}
}

// writes is a sink that keeps each write.
type writes struct{ all []string }

func (*writes) Begin(int64) error { return nil }
func (w *writes) Write(p []byte) (int, error) {
	w.all = append(w.all, string(p))
	return len(p), nil
}
