package eval

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// shuffleMaps writes the entries of each map in a random order, as programs do whose maps are hash tables. All
// else keeps its place.
func shuffleMaps(md protoreflect.MessageDescriptor, data []byte, r *rand.Rand) []byte {
	parts := partsOf(md, data, func(md protoreflect.MessageDescriptor, b []byte) []byte { return shuffleMaps(md, b, r) })
	var out []byte
	for i := 0; i < len(parts); {
		end := i + 1
		for end < len(parts) && parts[end].number == parts[i].number {
			end++
		}
		run := parts[i:end]
		if fd := md.Fields().ByNumber(parts[i].number); fd != nil && fd.IsMap() {
			r.Shuffle(len(run), func(a, b int) { run[a], run[b] = run[b], run[a] })
		}
		for _, p := range run {
			out = append(out, p.raw...)
		}
		i = end
	}
	return out
}

// ascending writes all fields by number, as most languages do.
func ascending(md protoreflect.MessageDescriptor, data []byte) []byte {
	parts := partsOf(md, data, ascending)
	slices.SortStableFunc(parts, func(a, b fieldPart) int { return cmp.Compare(a.number, b.number) })
	var out []byte
	for _, p := range parts {
		out = append(out, p.raw...)
	}
	return out
}

// A fieldPart is one field with its tag.
type fieldPart struct {
	number protowire.Number
	raw    []byte
}

// partsOf splits a message into its fields, with the messages in them changed.
func partsOf(md protoreflect.MessageDescriptor, data []byte, change func(protoreflect.MessageDescriptor, []byte) []byte) (parts []fieldPart) {
	for len(data) > 0 {
		n, typ, m := protowire.ConsumeTag(data)
		size := m + protowire.ConsumeFieldValue(n, typ, data[m:])
		raw := data[:size]
		data = data[size:]
		if fd := md.Fields().ByNumber(n); fd != nil && fd.Message() != nil && typ == protowire.BytesType {
			payload, _ := protowire.ConsumeBytes(raw[m:])
			raw = protowire.AppendBytes(protowire.AppendTag(nil, n, typ), change(fd.Message(), payload))
		}
		parts = append(parts, fieldPart{n, raw})
	}
	return parts
}
