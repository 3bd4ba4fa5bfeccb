package eval

import (
	"bytes"
	"fmt"
	"os"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// An explanation is how far definitions explain the samples that they were inferred from.
type explanation struct {
	samples, whole   int   // samples, and those without an unknown field
	bytes, unknown   int64 // of the samples, and of unknown fields in them
	canonical, again int   // samples that the truth writes again byte for byte, and those of them that the definitions do, too
}

func (e *explanation) merge(o explanation) {
	e.samples += o.samples
	e.whole += o.whole
	e.bytes += o.bytes
	e.unknown += o.unknown
	e.canonical += o.canonical
	e.again += o.again
}

// explain decodes and encodes the samples with the inferred type.
func explain(got, truth protoreflect.MessageDescriptor, samples [][]byte) (e explanation) {
	rewrite := func(md protoreflect.MessageDescriptor, b []byte) (*dynamicpb.Message, []byte) {
		m := dynamicpb.NewMessage(md)
		if (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(b, m) != nil {
			return nil, nil
		}
		back, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m)
		if err != nil {
			return m, nil
		}
		return m, back
	}
	for _, s := range samples {
		e.samples++
		e.bytes += int64(len(s))
		m, back := rewrite(got, s)
		unknown := int64(len(s))
		if m != nil {
			unknown = unknownBytes(m)
		}
		if e.unknown += unknown; unknown == 0 {
			e.whole++
		}
		// Go writes the members of oneofs last, other languages all fields by number.
		_, own := rewrite(truth, s)
		byNumber := !bytes.Equal(own, s)
		if byNumber {
			own, back = ascending(truth, own), ascending(got, back)
		}
		if bytes.Equal(own, s) {
			e.canonical++
			if bytes.Equal(back, s) {
				e.again++
			} else if os.Getenv("UNWIRE_EVAL_MISSES") != "" && e.again == e.canonical-1 {
				fmt.Printf("not the same: %s: %s (of %d samples; %d bytes, %d again, by number %v)\n", truth.FullName(), differsAt(got, truth, s, back), len(samples), len(s), len(back), byNumber)
			}
		}
	}
	return e
}

// unknownBytes is the size of the unknown fields of a message and those below it.
func unknownBytes(m protoreflect.Message) int64 {
	n := int64(len(m.GetUnknown()))
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			if fd.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					n += unknownBytes(v.Message())
					return true
				})
			}
		case fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				n += unknownBytes(v.List().Get(i).Message())
			}
		default:
			n += unknownBytes(v.Message())
		}
		return true
	})
	return n
}

// differsAt describes the first field that was not written again as it was.
func differsAt(got, truth protoreflect.MessageDescriptor, want, back []byte) string {
	at := 0
	for at < min(len(want), len(back)) && want[at] == back[at] {
		at++
	}
	path := ""
	for off := 0; off < len(want); {
		n, typ, m := protowire.ConsumeTag(want[off:])
		size := m + protowire.ConsumeFieldValue(n, typ, want[off+m:])
		if at >= off+size {
			off += size
			continue
		}
		path += fmt.Sprintf(".%d", n)
		g, w := got.Fields().ByNumber(n), truth.Fields().ByNumber(n)
		if g == nil || w == nil {
			return path + " is missing"
		}
		describe := func(fd protoreflect.FieldDescriptor) string {
			s := fmt.Sprintf("%s %s", fd.Cardinality(), fd.Kind())
			if fd.IsMap() {
				s = "map"
			}
			if fd.ContainingOneof() != nil {
				s += " in " + string(fd.ContainingOneof().Name())
			}
			return s
		}
		path += fmt.Sprintf(" (%s, truly %s %s)", describe(g), w.Name(), describe(w))
		if g.Message() == nil || w.Message() == nil || typ != protowire.BytesType {
			return path
		}
		got, truth = g.Message(), w.Message()
		_, l := protowire.ConsumeVarint(want[off+m:])
		if at < off+m+l {
			return path + " in its length"
		}
		want, at, off = want[off+m+l:off+size], at-off-m-l, 0
	}
	return path
}
