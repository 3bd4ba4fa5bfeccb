package kind

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"unwire/decode/wire"
)

// TestClearlyText: what the bounds call text is text by its exact probability, too.
func TestClearlyText(t *testing.T) {
	chars := rapid.OneOf(rapid.ByteRange(' ', '~'), rapid.ByteRange('a', 'z'), rapid.ByteRange('0', '9'), rapid.ByteRange('A', 'F'), rapid.SampledFrom([]byte("@@`p .-_/AB")))
	clear := 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(chars, 4, 100).Draw(t, "text")
		message := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), text)
		fresh := NewReader(wire.Parse(message, wire.Options{}), nil)
		r := NewReader(wire.Parse(message, wire.Options{}), nil)
		r.Reset(wire.Parse(message, wire.Options{}))
		if !r.IsClearlyText(1) {
			return
		}
		clear++
		if is, typ, p := fresh.Best(1); is != wire.KindString || typ != "string" || p < 0.95 {
			t.Fatalf("%q is clearly text, but Best returns %s, %s, %v", text, is, typ, p)
		}
	})
	if clear == 0 {
		t.Error("no text is clear")
	}
}

// TestLoneNodes: a Reader that judges the nodes of small messages one by one returns what one without a memo returns,
// in whatever order it is asked.
func TestLoneNodes(t *testing.T) {
	tree := new(wire.Tree)
	reused := NewReader(wire.Parse(nil, wire.Options{}), nil)
	rapid.Check(t, func(t *rapid.T) {
		data := smallMessage(0).Draw(t, "message")
		tree.Reset(data, wire.Options{})
		reused.Reset(tree)
		fresh := NewReader(wire.Parse(data, wire.Options{}), nil)
		for range 2 * len(tree.Nodes) {
			i := rapid.Int32Range(0, int32(len(tree.Nodes)-1)).Draw(t, "node")
			is, typ, p := reused.Best(i)
			if wantIs, wantType, wantP := fresh.Best(i); is != wantIs || typ != wantType || p != wantP {
				t.Fatalf("node %d of %x: %s %s %v, want %s %s %v", i, data, is, typ, p, wantIs, wantType, wantP)
			}
			if a, b := reused.Remark(i, is, typ), fresh.Remark(i, is, typ); a != b {
				t.Fatalf("node %d of %x: %+v, want %+v", i, data, a, b)
			}
		}
	})
}

// smallMessage generates messages with few fields, some of which are repeated, and with values that occur often.
func smallMessage(depth int) *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) (m []byte) {
		for range rapid.IntRange(1, 5).Draw(t, "fields") {
			number := protowire.Number(rapid.SampledFrom([]int{1, 2, 3, 4, 5, 6, 63, 64, 300}).Draw(t, "number"))
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				v := rapid.SampledFrom([]uint64{0, 1, 7, 40, 1_700_000_000, 1 << 63}).Draw(t, "varint")
				m = protowire.AppendVarint(protowire.AppendTag(m, number, protowire.VarintType), v)
			case 1:
				m = protowire.AppendFixed32(protowire.AppendTag(m, number, protowire.Fixed32Type), rapid.Uint32().Draw(t, "fixed"))
			case 2:
				text := rapid.SampledFrom([]string{"", "ok", "assistant", "a longer text, with words", "\x08\x01", "\x00\x00\x80\x3f", "9f86d081884c7d65"}).Draw(t, "text")
				m = protowire.AppendBytes(protowire.AppendTag(m, number, protowire.BytesType), []byte(text))
			case 3:
				m = protowire.AppendBytes(protowire.AppendTag(m, number, protowire.BytesType), rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "bytes"))
			default:
				if depth < 3 {
					m = protowire.AppendBytes(protowire.AppendTag(m, number, protowire.BytesType), smallMessage(depth+1).Draw(t, "message"))
				}
			}
		}
		return m
	})
}
