package text

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// probabilities are those of readings in doubt: the model's, and not what is held here.
var probabilities = regexp.MustCompile(`(, | +# )(probably )?[a-z][a-z0-9 -]* \(0\.\d\d\)(, (or )?[a-z][a-z0-9 -]* \(0\.\d\d\))*`)

var update = flag.Bool("update", false, "update testdata: write what the tests expect anew")

// Of what is malformed, the text says the place, what was expected and what was found,
// and has the rest of the tree. Protoscope reads it, envelopes apart.
func TestMalformed(t *testing.T) {
	const golden = "testdata/malformed.golden"
	good := unhex(t, "0a0c48656c6c6f20776f726c6421 120c 0a08 74686520776f7264 1001 182a")
	with := func(s string) []byte { return append(append([]byte{}, good...), unhex(t, s)...) }
	inner := func(s string) []byte { // in a message whose length does not count it in
		b := lenField(nil, 1, []byte("hello again"))
		return append(lenField(b, 2, with(s)), 0x18, 7)
	}
	deep := []byte("\x08\x01")
	for range 6 {
		deep = lenField(nil, 1, deep)
	}
	gzipped := gz(t, string(good))
	gzipped[len(gzipped)-6] ^= 1 // its checksum
	var got strings.Builder
	for _, c := range []struct {
		name string
		in   []byte
		o    Options
	}{
		{"varint cut", with("28 80 80"), Options{}},
		{"varint without a byte", with("28"), Options{}},
		{"varint of more than 64 bits, and a field behind it", with("28 ffffffffffffffffffffff01 3001"), Options{}},
		{"fixed64 cut", with("29 010203"), Options{}},
		{"fixed32 cut", with("2d 0102"), Options{}},
		{"length cut", with("2a 80"), Options{}},
		{"length of more than 64 bits", with("2a ffffffffffffffffffffff01 41"), Options{}},
		{"length beyond the end, of text", with("2a 20 7468652072657374"), Options{}},
		{"length beyond the end, of a message", with("2a 20 0a0568656c6c6f 1001 1a0577"), Options{}},
		{"length beyond the end, of lines", with("2a 7f 6f6e6520 0a 74776f20 0a 746872656520666f757220666976652073697820736576656e206569676874206e696e652074656e20656c6576656e207477656c7665"), Options{}},
		{"length beyond the end, of bytes", with("2a 20 fffe0001"), Options{}},
		{"the end inside a message in a message", with("2a 20 0a 1e 0a 0a 68656c6c6f"), Options{}},
		{"inside a payload", inner("2a 20 41"), Options{}},
		{"tag cut", with("80"), Options{}},
		{"tag of more than 64 bits", with("ffffffffffffffffffffff01"), Options{}},
		{"wire type 6", with("2e 0801"), Options{}},
		{"wire type 7", with("2f"), Options{}},
		{"end of no group", with("2c 3001"), Options{}},
		{"group without its end", with("2b 3001"), Options{}},
		{"end of another group", with("2b 3001 34 3802"), Options{}},
		{"field number 0", with("00 01 3001"), Options{}},
		{"field number 2^29", with("8080808010 01 3001"), Options{}},
		{"nested too deeply", deep, Options{Wire: wire.Options{MaxDepth: 4}}},
		{"groups nested too deeply", unhex(t, "0b0b0b0b0b0b"), Options{As: "message", Wire: wire.Options{MaxDepth: 4}}},
		{"envelope cut", append(envelope.Append(nil, 0, good), envelope.Append(nil, 0, good)[:24]...), Options{}},
		{"envelope's head cut", append(envelope.Append(nil, 0, good), 0, 0), Options{}},
		{"envelope of a broken gzip", envelope.Append(envelope.Append(nil, 1, gzipped), 0, good), Options{}},
		{"delimited messages cut", append(append([]byte{byte(len(good))}, good...), 0x20, 0x0a), Options{As: "delimited"}},
	} {
		d, err := Decode(c.in, c.o)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := d.Text(&b); err != nil {
			t.Fatal(err)
		}
		got.WriteString("== " + c.name + "\n" + probabilities.ReplaceAllString(b.String(), ""))
		roundTrip(t, c.in, c.o)
		if out, err := assemble(b.String()); d.As != "frames" && (err != nil || string(out) != string(c.in)) {
			t.Errorf("%s: Protoscope: %x, %v", c.name, out, err)
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || got.String() != string(want) {
		t.Errorf("%v\n%s", err, got.String())
	}
}
