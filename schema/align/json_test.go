package align

import (
	"encoding/binary"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// JSON that someone wrote may have 64-bit integers as numbers, floats as texts,
// names as in the .proto and null for what is not set: all of it says the same.
func TestJSONWrittenByHand(t *testing.T) {
	t.Parallel()
	var m []byte
	varint := func(n protowire.Number, v uint64) {
		m = protowire.AppendVarint(protowire.AppendTag(m, n, protowire.VarintType), v)
	}
	varint(1, 5_000_000_000)
	varint(2, math.MaxUint64) // -1
	varint(3, protowire.EncodeZigZag(-6_000_000_000))
	varint(4, 1<<63+5)
	m = protowire.AppendFixed64(protowire.AppendTag(m, 5, protowire.Fixed64Type), 7_000_000_000)
	m = binary.LittleEndian.AppendUint32(protowire.AppendTag(m, 6, protowire.Fixed32Type), math.Float32bits(1.5))
	m = protowire.AppendString(protowire.AppendTag(m, 7, protowire.BytesType), "a long enough text")
	text := `{"big_one":5000000000, "minus":"-1", "zig_zag":-6000000000, "huge":9223372036854775813, "fixed":7000000000, "half":"1.5", "text":"a long enough text", "none":null}`
	var a Aligner
	if err := a.addPair(dataPair{Message: "m", Proto: m, JSON: []byte(text), Evidence: [2]string{"p", "j"}}); err != nil {
		t.Fatal(err)
	}
	names := map[uint64]string{}
	for _, j := range a.Solve().Joins {
		names[j.Number] = j.JSONName + " " + j.Type
	}
	for n, want := range map[uint64]string{
		1: "big_one int64", 2: "minus int64", 3: "zig_zag sint64", 4: "huge uint64", 5: "fixed fixed64", 6: "half float", 7: "text string",
	} {
		if names[n] != want {
			t.Errorf("%d is %q, want %q", n, names[n], want)
		}
	}
}
