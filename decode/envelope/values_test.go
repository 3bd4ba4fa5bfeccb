package envelope

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// feedChunks feeds a body in the given chunks and returns the data of the frames.
func feedChunks(o Options, chunks ...string) (data []string, err error) {
	d := NewDecoder(o)
	var frames []Frame
	for _, c := range chunks {
		more, ferr := d.Feed([]byte(c))
		frames, err = append(frames, more...), errors.Join(err, ferr)
	}
	more, cerr := d.Close()
	for _, f := range append(frames, more...) {
		data = append(data, string(f.Data))
	}
	return data, errors.Join(err, cerr)
}

func TestValues(t *testing.T) {
	possible, declared := Options{Values: ValuesPossible, Lengths: true}, Options{Values: ValuesDeclared}
	sized := Options{Values: ValuesPossible, Sized: true}
	for _, c := range []struct {
		name   string
		o      Options
		chunks []string
		want   []string
	}{
		{"lines", declared, []string{"{\"a\":\"}\\\"\"}\n{\"a\":", "2}\n\n[1]\n"}, []string{`{"a":"}\""}`, `{"a":2}`, `[1]`}},
		{"a line without its end", declared, []string{"{\"a\":1}\ntrue"}, []string{`{"a":1}`, `true`}},
		{"one line", declared, []string{"{\"a\":1}\n"}, []string{`{"a":1}`}},
		{"record separators", declared, []string{"\x1e{\"a\":1}\n\x1e{\"a\":2}\n"}, []string{`{"a":1}`, `{"a":2}`}},
		{"lines that no header announces", possible, []string{"{\"a\":1}\n{\"a\"", ":2}\n"}, []string{`{"a":1}`, `{"a":2}`}},
		{"values without lines", possible, []string{`{"a":1}{"a":2}`}, []string{`{"a":1}`, `{"a":2}`}},
		{"one value", possible, []string{"{\"a\":", "1}\n"}, []string{"{\"a\":1}\n"}},
		{"an array in pieces", possible, []string{`[{"a":1}`, "\n,\n{\"a\":2}", "\n,\n{\"a\":3}", "]"}, []string{`{"a":1}`, `{"a":2}`, `{"a":3}`}},
		{"an array of two pieces", possible, []string{`[{"a":1}`, "\n,\n{\"a\":2}\n]"}, []string{`{"a":1}`, `{"a":2}`}},
		{"an array at once", possible, []string{`[{"a":1},{"a":2}]`}, []string{`[{"a":1},{"a":2}]`}},
		{"an array cut anywhere", possible, []string{`[{"a":1},{"a`, `":2},{"a":3},`, `{"a":4}]`}, []string{`[{"a":1},{"a":2},{"a":3},{"a":4}]`}},
		{"an array of known size", sized, []string{`[{"a":1}`, `,{"a":2}`, `,{"a":3}`, `]`}, []string{`[{"a":1},{"a":2},{"a":3}]`}},
		{"an array of numbers", possible, []string{"[1,", "2,", "3]"}, []string{"[1,2,3]"}},
		{"text", possible, []string{"Hello\n{}\n", "{}\n"}, []string{"Hello\n{}\n{}\n"}},
		{"decimal lengths", possible, []string{")]}'\n\n7\n{\"a\":1}\n", "7\n{\"a\":2}\n"}, []string{`{"a":1}`, `{"a":2}`}},
		{"nothing", possible, nil, nil},
		{"bytes", possible, []string{"\x00\x01\x02", "{}"}, []string{"\x00\x01\x02{}"}},
	} {
		got, err := feedChunks(c.o, c.chunks...)
		if err != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
			t.Errorf("%s: %q, want %q, %v", c.name, got, c.want, err)
		}
	}
}

func TestPrefixedValues(t *testing.T) {
	for name, appendLength := range map[string]func(b []byte, n int) []byte{
		"big-endian":    func(b []byte, n int) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) },
		"little-endian": func(b []byte, n int) []byte { return binary.LittleEndian.AppendUint32(b, uint32(n)) },
		"varint":        func(b []byte, n int) []byte { return protowire.AppendVarint(b, uint64(n)) },
	} {
		var body []byte
		var want []string
		for i := range 3 {
			value := fmt.Sprintf(`{"a":%d,"text":%q}`, i, strings.Repeat("x", 200*i))
			body = append(appendLength(body, len(value)), value...)
			want = append(want, value)
		}
		for _, n := range []int{1, 5, len(body)} {
			frames, err := feedAll(Options{Values: ValuesPossible, Lengths: true}, body, n)
			var got []string
			for _, f := range frames {
				got = append(got, string(f.Data))
			}
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, pieces of %d: %.300q, %v", name, n, got, err)
			}
		}
		frames, err := feedAll(Options{Values: ValuesPossible, Lengths: true}, body[:len(body)-1], 64)
		if !errors.Is(err, io.ErrUnexpectedEOF) || len(frames) != 3 || !frames[2].Partial {
			t.Errorf("%s, cut off: %d frames, %v", name, len(frames), err)
		}
	}
}

// A compressed body is split when it is complete.
func TestCompressedValues(t *testing.T) {
	body, err := Compress("gzip", []byte("{\"a\":1}\n{\"a\":2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Values: ValuesPossible, Encoding: "gzip"}, {Values: ValuesDeclared, Whole: "gzip"}} {
		if got, err := feedChunks(o, string(body)); err != nil || fmt.Sprintf("%q", got) != `["{\"a\":1}" "{\"a\":2}"]` {
			t.Errorf("%q, %v", got, err)
		}
	}
}

func TestTooLargeValue(t *testing.T) {
	for _, o := range []Options{{Values: ValuesPossible, MaxFrame: 100}, {Values: ValuesDeclared, MaxFrame: 100}} {
		frames, err := feedAll(o, []byte("{\"a\":1}\n{\"b\":2}\n\""+strings.Repeat("x", 1000)), 50)
		if !errors.Is(err, ErrTooLarge) || len(frames) == 0 || len(frames[len(frames)-1].Data) > 100 || frames[len(frames)-1].Err == nil {
			t.Errorf("%d frames, %v", len(frames), err)
		}
	}
}

// FuzzValues checks that the chunks of an announced stream have no influence, and that no byte of a body without
// several values is lost.
func FuzzValues(f *testing.F) {
	f.Add([]byte("{\"a\":1}\n{\"a\":[\"}\"]}\n"), uint8(3))
	f.Add([]byte("[{\"a\":1}\n,{\"a\":2}]"), uint8(8))
	f.Add([]byte("\x00\x00\x00\x07{\"a\":1}"), uint8(1))
	f.Fuzz(func(t *testing.T, body []byte, n uint8) {
		declared := Options{Values: ValuesDeclared, MaxFrame: 1 << 16}
		whole, _ := feedAll(declared, body, len(body)+1)
		pieces, _ := feedAll(declared, body, int(n)+1)
		if len(whole) != len(pieces) {
			t.Fatalf("%d and %d frames", len(whole), len(pieces))
		}
		for i := range whole {
			if !bytes.Equal(whole[i].Data, pieces[i].Data) {
				t.Fatalf("frame %d: %q and %q", i, whole[i].Data, pieces[i].Data)
			}
		}
		possible := Options{Values: ValuesPossible, Lengths: true, MaxFrame: 1 << 16}
		frames, err := feedAll(possible, body, int(n)+1)
		if len(frames) == 1 && err == nil && json.Valid(body) && !json.Valid(frames[0].Data) {
			t.Fatalf("%q became %q", body, frames[0].Data)
		}
	})
}
