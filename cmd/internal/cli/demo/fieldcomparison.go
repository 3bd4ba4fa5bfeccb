package democmd

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/schema"
)

// maxFieldPairs is the largest number of fields that the demo compares.
const maxFieldPairs = 6

// fieldPairs returns table rows that compare the first scalar fields of the call's response, breadth
// first: field numbers, inferred type, "|", and the type and name in the reference definitions.
func fieldPairs(inferred, reference *schema.Schema, call decode.Call) (rows [][]string) {
	type pair struct {
		numbers, names string
		in, ref        protoreflect.MessageDescriptor
	}

	// Walk the inferred and the reference definitions side by side, breadth first, by field
	// numbers.
	queue := []pair{{in: inferred.FrameType(call, captures.Down), ref: reference.FrameType(call, captures.Down)}}
	met := map[protoreflect.FullName]bool{}
	for len(queue) > 0 && len(rows) < maxFieldPairs {
		p := queue[0]
		queue = queue[1:]
		if p.in == nil || p.ref == nil || met[p.in.FullName()] {
			continue
		}
		met[p.in.FullName()] = true
		for i := range p.in.Fields().Len() {
			fd := p.in.Fields().Get(i)
			ref := p.ref.Fields().ByNumber(fd.Number())
			if ref == nil {
				continue
			}
			numbers, names := fmt.Sprintf("%s%d", p.numbers, fd.Number()), p.names+string(ref.Name())
			if fd.Message() != nil && ref.Message() != nil {
				queue = append(queue, pair{numbers + ".", names + ".", fd.Message(), ref.Message()})
				continue
			}
			rows = append(rows, []string{numbers, typeWords(fd) + " " + string(fd.Name()), "|", typeWords(ref) + " " + names})
		}
	}
	return rows[:min(len(rows), maxFieldPairs)]
}

// typeWords returns a field's label and type as they are written in a .proto file, such as "repeated
// string".
func typeWords(fd protoreflect.FieldDescriptor) string {
	typ := fd.Kind().String()
	switch {
	case fd.Enum() != nil:
		typ = string(fd.Enum().Name())
	case fd.Message() != nil:
		typ = string(fd.Message().Name())
	}
	if fd.IsList() {
		return "repeated " + typ
	}
	return typ
}
