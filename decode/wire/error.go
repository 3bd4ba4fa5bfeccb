package wire

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrDepth and errNodes are values of Tree.Fault for a Len node whose payload was not parsed because the tree reached
// Options.MaxDepth or Options.MaxNodes.
var (
	ErrDepth = errors.New("the payload is not decoded, because messages are nested too deeply")
	errNodes = errors.New("the payload is not decoded, because the message has too many fields")
)

// A Reason is the kind of a violation of the protobuf encoding.
type Reason uint8

const (
	// tagTruncated: the input ends inside a tag.
	tagTruncated Reason = iota

	// tagTooLong: a tag of more than 64 bits.
	tagTooLong

	// numberRange: a field number of 0 or above 2^29-1.
	numberRange

	// badType: wire type 6 or 7.
	badType

	// valueTruncated: the input ends inside a varint or a fixed value.
	valueTruncated

	// valueTooLong: a varint of more than 64 bits.
	valueTooLong

	// lengthTruncated: the input ends inside a length.
	lengthTruncated

	// LengthRange is a length beyond the end of the enclosing message, or of more than 64 bits.
	LengthRange

	// strayEnd: the end tag of a group that is not open.
	strayEnd

	// groupOpen: a group without its end tag.
	groupOpen

	// tooDeep: groups nested deeper than Options.MaxDepth.
	tooDeep

	// tooMany: more nodes than Options.MaxNodes.
	tooMany
)

// An Error describes one place where bytes violate the protobuf encoding.
type Error struct {
	// Reason is the kind of the violation.
	Reason Reason

	// Off is the offset of the field's first byte in Tree.Data.
	Off int

	// Number is the field number, or 0 if the tag could not be read.
	Number uint64

	// Found is the offending value: a length, a wire type, a field number, a limit, or the bytes that a value
	// needs.
	Found uint64

	// Left is the number of bytes from the offending place to the end of the enclosing message.
	Left int
}

// Error formats the error, as in `field 13 at 0x2f: the length is 912, but only 40 bytes are left`.
func (e *Error) Error() string {
	// Most messages begin with the field. Those about a tag, or about the whole tree, have no field to name.
	switch e.Reason {
	case tagTruncated:
		return fmt.Sprintf("tag at %#x: the tag is truncated after %d bytes", e.Off, e.Left)
	case tagTooLong:
		return fmt.Sprintf("tag at %#x: the varint has more than 64 bits", e.Off)
	case tooMany:
		return fmt.Sprintf("at %#x: the message has more than %d fields, and %d bytes are left", e.Off, e.Found, e.Left)
	}

	// Hostile messages have a million errors, so those of which there can be many are made without fmt.
	var buf [96]byte
	b := strconv.AppendUint(append(buf[:0], "field "...), e.Number, 10)
	b = append(strconv.AppendUint(append(b, " at 0x"...), uint64(e.Off), 16), ": "...)
	switch e.Reason {
	case numberRange:
		b = append(b, "the field number must be from 1 to 536870911"...)
	case badType:
		b = fmt.Appendf(b, "the wire type %d does not exist, and %d bytes are left", e.Found, e.Left)
	case valueTruncated:
		b = fmt.Appendf(b, "the value needs %d bytes or more, but only %d are left", e.Found, e.Left)
	case valueTooLong:
		b = append(b, "the varint has more than 64 bits"...)
	case lengthTruncated:
		b = fmt.Appendf(b, "the length is truncated after %d bytes", e.Left)
	case LengthRange:
		b = fmt.Appendf(b, "the length is %d, but only %d bytes are left", e.Found, e.Left)
	case strayEnd:
		b = append(b, "the tag ends a group that is not open"...)
	case groupOpen:
		b = append(b, "the group has no end tag"...)
	case tooDeep:
		b = fmt.Appendf(b, "groups are nested more than %d deep", e.Found)
	default:
		b = append(b, "the field is malformed"...)
	}
	return string(b)
}

// AfterTag reports whether the tag itself is sound, so that the field's number and type are usable. The length
// or the value is malformed, or the tag ends a group that is not open.
func (e *Error) AfterTag() bool {
	switch e.Reason {
	case valueTruncated, valueTooLong, lengthTruncated, LengthRange, strayEnd:
		return true
	}
	return false
}

// truncated reports whether the only violation is that the bytes end within the field.
func (e *Error) truncated() bool {
	switch e.Reason {
	case tagTruncated, valueTruncated, lengthTruncated, LengthRange:
		return true
	}
	return false
}

// IsTruncated reports whether err is an Error because the bytes end too early.
func IsTruncated(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.truncated()
}

// ErrorText formats err for a tree that is embedded in a larger message: base is the offset of the tree's first
// byte in that message, and is added to the offset in the text.
func ErrorText(err error, base int) string {
	var e *Error
	if base == 0 || !errors.As(err, &e) {
		return err.Error()
	}
	moved := *e
	moved.Off += base
	return moved.Error()
}

// OnlyTruncated reports whether the message is sound apart from a possible missing end: no field is malformed
// except the last, and that one only by truncation.
func (t *Tree) OnlyTruncated() bool {
	for c := range t.Children(0) {
		if n := t.Node(c); !n.Sound() && (n.End < len(t.Data) || !IsTruncated(t.Fault(n))) {
			return false
		}
	}
	return true
}
