package probe

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Wrap nests a protobuf message in the fields of a path, from the outermost on. group are the indexes
// in path of the fields that are groups. A group has no length; its end tag is omitted, because the
// message ends the request.
func Wrap(path []int32, message []byte, group ...int) []byte {
	for i := len(path) - 1; i >= 0; i-- {
		if slices.Contains(group, i) {
			message = append(protowire.AppendTag(nil, protowire.Number(path[i]), protowire.StartGroupType), message...)
			continue
		}
		b := protowire.AppendTag(nil, protowire.Number(path[i]), protowire.BytesType)
		message = protowire.AppendBytes(b, message)
	}
	return message
}

// AppendBadText appends a length-delimited field with number n whose value is not valid UTF-8.
func AppendBadText(b []byte, n int32) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.BytesType)
	return protowire.AppendBytes(b, []byte{0xFF})
}
