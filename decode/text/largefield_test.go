package text

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"unwire/decode/wire"
)

func records(n int) []byte {
	var b []byte
	for i := range n {
		b = append(b, fmt.Sprintf("\x0a\x18\x0a\x04Hi%02d\x10\x96\x01\x1a\x0dsome more tex", i%100)...)
	}
	return b
}

// within puts b into fields of the given numbers, the first one outermost.
func within(b []byte, numbers ...byte) []byte {
	for i := len(numbers) - 1; i >= 0; i-- {
		b = append(wire.AppendVarint([]byte{numbers[i]<<3 | 2}, uint64(len(b))), b...)
	}
	return b
}

// A large field that is a message is written a segment at a time, as it would be at once.
func TestLargeField(t *testing.T) {
	o := Options{segmentLen: 1000}
	in := records(200)
	cut := in[:len(in)-5]
	for name, in := range map[string][]byte{
		"one":                within(in, 2),
		"deep":               within(in, 2, 15, 1),
		"between others":     append(append([]byte("\x08\x96\x01"), within(in, 2)...), 0x18, 5),
		"two":                append(within(in, 2), within(in, 3)...),
		"text":               within([]byte(strings.Repeat("some words of text\n", 300)), 2),
		"bytes":              within(bytes.Repeat([]byte{0xff, 0xfe, 0, 0}, 1000), 2),
		"cut off":            within(in, 2)[:len(in)-5],
		"a bad end inside":   within(cut, 2),
		"a long-form length": append([]byte{0x12, byte(len(in)) | 0x80, byte(len(in)>>7) | 0x80, 0}, in...),
	} {
		roundTrip(t, in, o)
		d, err := Decode(in, o)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := d.Text(&out); err != nil {
			t.Fatal(err)
		}
		if name == "a bad end inside" { // what can be read of it is
			if s := out.String(); !strings.Contains(s, "  1: {\n    1: {\"Hi07\"}\n") || !strings.Contains(s, fmt.Sprintf("# field 1 at %#x: the length is 24, but only 19 bytes are left", 3+len(cut)-21)) {
				t.Errorf("%s:\n%s", name, s[max(0, len(s)-400):])
			}
			continue
		}
		if whole := Format(wire.Parse(in, wire.Options{}), nil); out.String() != whole {
			t.Errorf("%s: in pieces it is written in another way:\n%.300s\n--- at once:\n%.300s", name, out.String(), whole)
		}
	}
}

// What is allocated for one large field, garbage included, is less than its tree takes.
func TestLargeFieldMemory(t *testing.T) {
	in := within(records(1_000_000), 2, 3)
	for format, write := range map[string]func(*Document, io.Writer) error{"text": (*Document).Text, "json": (*Document).JSON} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d, err := Decode(in, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := write(d, io.Discard); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 16*uint64(len(in)) {
			t.Errorf("%s: %d bytes allocated for %d", format, used, len(in))
		}
	}
}
