package probe

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Wrap puts a message below the message fields of a path. A group has no
// length, and nothing that ends it is needed, as the message ends the request.
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

// AppendBadText gives a field a value that is no UTF-8.
func AppendBadText(b []byte, n int32) []byte {
	b = protowire.AppendTag(b, protowire.Number(n), protowire.BytesType)
	return protowire.AppendBytes(b, []byte{0xFF})
}
