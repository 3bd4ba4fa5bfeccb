package diff

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	kinds "unwire/decode/kind"
	"unwire/decode/wire"
)

// msg builds a message: numbers with an int, a string, a []byte or a nested msg.
type msg []any

func (m msg) bytes() []byte {
	var b []byte
	for i := 0; i < len(m); i += 2 {
		n := protowire.Number(m[i].(int))
		switch v := m[i+1].(type) {
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(v))
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
		case msg:
			b = protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v.bytes())
		default:
			panic(fmt.Sprintf("%T", v))
		}
	}
	return b
}

func (m msg) tree() *wire.Tree { return wire.Parse(m.bytes(), wire.Options{}) }

// lines writes changes as "op path old -> new (ignored)".
func lines(changes []Change) []string {
	var out []string
	for _, c := range changes {
		old, _ := json.Marshal(c.Old)
		now, _ := json.Marshal(c.New)
		s := fmt.Sprintf("%s %s %s -> %s", c.Op, c.Path, old, now)
		if c.Ignored != "" {
			s += " (" + c.Ignored + ")"
		}
		out = append(out, s)
	}
	return out
}

const (
	uuidA = "0b5b9b3e-6a0f-4d0e-9f5e-3f1d2c4b5a69"
	uuidB = "7c1de8a2-12b4-4c55-8a0d-f00dfeedbeef"
	uuidC = "aaaaaaaa-12b4-4c55-8a0d-f00dfeedbeef"
)

func digest(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

func encoded(s string) string { return base64.StdEncoding.EncodeToString(digest(s)) }

func TestTrees(t *testing.T) {
	tool := func(name, about string) msg { return msg{1, name, 2, about} }
	for _, c := range []struct {
		name string
		a, b msg
		want []string
	}{
		{"the same", msg{1, "hello there", 2, 7}, msg{1, "hello there", 2, 7}, nil},
		{"order of fields", msg{1, "hello there", 2, 7}, msg{2, 7, 1, "hello there"}, nil},
		{"scalar", msg{1, "hello there", 2, 7}, msg{1, "hello there", 2, 8}, []string{`change 2 7 -> 8`}},
		{"added", msg{1, "hello there"}, msg{1, "hello there", 12, "more text"}, []string{`add 12 null -> "more text"`}},
		{"removed message", msg{1, "hello there", 3, msg{4, 5}}, msg{1, "hello there"}, []string{`remove 3 [{"n":4,"wire":"varint","value":5}] -> null`}},
		{"nested", msg{1, msg{2, msg{9, 1, 5, "text of the field"}}}, msg{1, msg{2, msg{9, 1, 5, "text of a field"}}}, []string{`change 1.2.5 "text of the field" -> "text of a field"`}},
		{"wire type", msg{1, 5}, msg{1, "five"}, []string{`change 1 5 -> "five"`}},
		{"bytes", msg{1, []byte{0, 255, 1}}, msg{1, []byte{0, 255, 2}}, []string{`change 1 "AP8B" -> "AP8C"`}},
		{
			"insertion",
			msg{1, tool("read", "Reads a file"), 1, tool("write", "Writes a file")},
			msg{1, tool("grep", "Searches in files"), 1, tool("read", "Reads a file"), 1, tool("write", "Writes a file")},
			[]string{`add 1[0] null -> [{"n":1,"wire":"len","value":"grep"},{"n":2,"wire":"len","value":"Searches in files"}]`},
		},
		{
			"moved, and one edited by key",
			msg{1, tool("read", "Reads a file"), 1, tool("write", "Writes a file"), 1, tool("grep", "Searches")},
			msg{1, tool("grep", "Looks around"), 1, tool("write", "Writes a file"), 1, tool("read", "Reads a file")},
			[]string{`move 1[0] 0 -> 2 (map order)`, `move 1[2] 2 -> 0 (map order)`, `change 1[2].2 "Searches" -> "Looks around"`},
		},
		{"moved", msg{7, msg{3, "one thing"}, 7, msg{3, "another thing"}, 7, msg{3, "the third"}}, msg{7, msg{3, "another thing"}, 7, msg{3, "the third"}, 7, msg{3, "one thing"}}, []string{`move 7[0] 0 -> 2`}},
		{"moved scalar", msg{4, 11, 4, 12, 4, 13}, msg{4, 12, 4, 13, 4, 11}, []string{`move 4[0] 0 -> 2`}},
		{
			"removed here, another added there", msg{4, 11, 4, 12, 4, 13, 4, 14}, msg{4, 12, 4, 13, 4, 99, 4, 14}, []string{`remove 4[0] 11 -> null`, `add 4[2] null -> 99`},
		},
		{"a number that names, everywhere", msg{1, 7<<59 + 77, 2, msg{1, 7<<59 + 77, 2, 5}}, msg{1, 7<<59 + 99999, 2, msg{1, 7<<59 + 99999, 2, 5}}, []string{
			`change 1 4035225266123964493 -> 4035225266124064415 (volatile number id)`, `change 2.1 4035225266123964493 -> 4035225266124064415 (volatile number id)`,
		}},
		{"a number that names, once", msg{1, 7<<59 + 77, 2, 5}, msg{1, 7<<59 + 99999, 2, 5}, []string{`change 1 4035225266123964493 -> 4035225266124064415`}},
		{"repeated scalar", msg{4, 1, 4, 2, 4, 3}, msg{4, 1, 4, 9, 4, 3}, []string{`change 4[1] 2 -> 9`}},
		{
			"UUIDs renamed one to one",
			msg{1, uuidA, 2, msg{1, "see " + uuidA + " there", 2, 3}},
			msg{1, uuidB, 2, msg{1, "see " + uuidB + " there", 2, 3}},
			[]string{
				`change 1 "` + uuidA + `" -> "` + uuidB + `" (volatile uuid)`,
				`change 2.1 "see ` + uuidA + ` there" -> "see ` + uuidB + ` there" (volatile uuid)`,
			},
		},
		{
			"UUIDs renamed in two ways",
			msg{1, uuidA, 2, uuidA, 3, uuidA},
			msg{1, uuidB, 2, uuidB, 3, uuidC},
			[]string{
				`change 1 "` + uuidA + `" -> "` + uuidB + `" (volatile uuid)`,
				`change 2 "` + uuidA + `" -> "` + uuidB + `" (volatile uuid)`,
				`change 3 "` + uuidA + `" -> "` + uuidC + `"`,
			},
		},
		{
			"two UUIDs become one",
			msg{1, uuidA, 2, uuidB},
			msg{1, uuidC, 2, uuidC},
			[]string{`change 1 "` + uuidA + `" -> "` + uuidC + `" (volatile uuid)`, `change 2 "` + uuidB + `" -> "` + uuidC + `"`},
		},
		{
			"digests renamed, then not",
			msg{1, digest("a"), 2, digest("a"), 3, digest("b")},
			msg{1, digest("x"), 2, digest("x"), 3, digest("x")},
			[]string{
				`change 1 "` + encoded("a") + `" -> "` + encoded("x") + `" (volatile binary id)`,
				`change 2 "` + encoded("a") + `" -> "` + encoded("x") + `" (volatile binary id)`,
				`change 3 "` + encoded("b") + `" -> "` + encoded("x") + `"`,
			},
		},
		{"epoch in ms", msg{7, 1763700000123}, msg{7, 1763700900456}, []string{`change 7 1763700000123 -> 1763700900456 (volatile timestamp)`}},
		{
			"timestamp",
			msg{7, msg{1, 1763700000, 2, 342590296}},
			msg{7, msg{1, 1763700900, 2, 143188167}},
			[]string{`change 7.1 1763700000 -> 1763700900 (volatile timestamp)`, `change 7.2 342590296 -> 143188167 (volatile timestamp)`},
		},
		{"timestamp in the same second", msg{7, msg{1, 1763700000, 2, 342590296}}, msg{7, msg{1, 1763700000, 2, 143188167}}, []string{`change 7.2 342590296 -> 143188167 (volatile timestamp)`}},
		{"timestamp of a whole second", msg{7, msg{1, 1763700000, 2, 342590296}}, msg{7, msg{1, 1763700000}}, []string{`remove 7.2 342590296 -> null (volatile timestamp)`}},
		{"count beside a time", msg{7, msg{1, 1763700000, 2, 19900}}, msg{7, msg{1, 1763700000, 2, 23900}}, []string{`change 7.2 19900 -> 23900`}},
		{"time in text", msg{7, "at 2026-03-01T10:00:00Z."}, msg{7, "at 2026-03-02T11:00:00Z."}, []string{`change 7 "at 2026-03-01T10:00:00Z." -> "at 2026-03-02T11:00:00Z." (volatile timestamp)`}},
		{"tool call ids", msg{7, "toolu_01Ab3dEf6hIj"}, msg{7, "toolu_02Zy9xWv7uTs"}, []string{`change 7 "toolu_01Ab3dEf6hIj" -> "toolu_02Zy9xWv7uTs" (volatile id)`}},
		{"repeated, renamed and moved", msg{3, msg{1, uuidA, 2, "first part"}, 3, msg{1, uuidB, 2, "second part"}}, msg{3, msg{1, uuidC, 2, "second part"}, 3, msg{1, uuidA, 2, "first part"}}, []string{`move 3[1] 1 -> 0 (map order)`, `change 3[1].1 "` + uuidB + `" -> "` + uuidC + `" (volatile uuid)`}},
	} {
		got := lines(compareTrees(c.a.tree(), c.b.tree(), Options{}))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

func TestOptions(t *testing.T) {
	a, b := msg{1, uuidA, 2, 3, 3, msg{1, 1, 2, 1}}, msg{1, uuidB, 2, 4, 3, msg{1, 2, 2, 2}}
	changes := compareTrees(a.tree(), b.tree(), Options{Ignore: []string{"2", "3"}})
	if !Same(changes) || len(changes) != 4 {
		t.Errorf("ignored paths and UUIDs: %q", lines(changes))
	}
	if changes = compareTrees(a.tree(), b.tree(), Options{Volatile: true, Ignore: []string{"3"}}); Same(changes) || changes[0].Ignored != "" {
		t.Errorf("with volatile values: %q", lines(changes))
	}
	if changes = compareTrees(a.tree(), b.tree(), Options{MaxChanges: 1}); len(changes) != 2 || changes[1].New != "3 more changes" {
		t.Errorf("at most one: %q", lines(changes))
	}
}

// TestFixedValues: fixed values are shown as what they are read as.
func TestFixedValues(t *testing.T) {
	fixed := func(double float64, single float32, count uint64) *wire.Tree {
		b := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), math.Float64bits(double))
		b = protowire.AppendFixed32(protowire.AppendTag(b, 2, protowire.Fixed32Type), math.Float32bits(single))
		return wire.Parse(protowire.AppendFixed64(protowire.AppendTag(b, 3, protowire.Fixed64Type), count), wire.Options{})
	}
	var got []any
	for _, c := range compareTrees(fixed(5.5, 0.1, 7), fixed(6.25, 0.25, 9), Options{}) {
		got = append(got, c.Old, c.New)
	}
	if want := []any{5.5, 6.25, 0.1, 0.25, uint64(7), uint64(9)}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Packed lists are numbers in a difference, as they are inferred or chosen to be.
func TestPackedNumbers(t *testing.T) {
	floats := func(list ...float32) (b []byte) {
		for _, f := range list {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
		}
		return b
	}
	for _, c := range []struct {
		name   string
		a, b   msg
		choice string
		want   []string
	}{
		{"inferred", msg{1, floats(0.2, 1.5, -7.25, 3.5)}, msg{1, floats(0.2, 1.5, -7.5, 3.5)}, "", []string{`change 1 [0.2,1.5,-7.25,3.5] -> [0.2,1.5,-7.5,3.5]`}},
		{"added", msg{1, "hello there"}, msg{1, "hello there", 2, floats(0.2, 1.5, -7.25, 3.5)}, "", []string{`add 2 null -> [0.2,1.5,-7.25,3.5]`}},
		{"in an added message", msg{1, "hello there"}, msg{1, "hello there", 2, msg{3, floats(0.2, 1.5, -7.25, 3.5)}}, "", []string{`add 2 null -> [{"n":3,"wire":"len","value":[0.2,1.5,-7.25,3.5]}]`}},
		{"of one version alone", msg{1, floats(0.2, 1.5, -7.25, 3.5)}, msg{1, []byte{1, 2, 3, 255, 254}}, "", []string{`change 1 "zcxMPgAAwD8AAOjAAABgQA==" -> "AQID//4="`}},
		{"chosen", msg{1, []byte{1, 2}}, msg{1, []byte{1, 3}}, "1:packed-sint64", []string{`change 1 [-1,1] -> [-1,-2]`}},
		{"chosen NaN", msg{1, floats(float32(math.NaN()))}, msg{1, floats(0)}, "1:float", []string{`change 1 ["NaN"] -> [0]`}},
		{"a chosen number", msg{1, 3}, msg{1, 4}, "1:sint64", []string{`change 1 -2 -> 2`}},
		{"impossible", msg{1, []byte{1, 255, 1}}, msg{1, []byte{1, 255, 2}}, "1:float", []string{`change 1 "Af8B" -> "Af8C"`}},
	} {
		var o Options
		if c.choice != "" {
			choice, err := kinds.ParseChoice(c.choice)
			if err != nil {
				t.Fatal(err)
			}
			o.choices = []kinds.Choice{choice}
		}
		if got := lines(compareTrees(c.a.tree(), c.b.tree(), o)); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}
