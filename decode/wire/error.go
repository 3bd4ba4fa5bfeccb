package wire

import (
	"errors"
	"fmt"
)

// ErrDepth and errNodes are the Err of a Len node whose payload was not
// followed because a limit of Options was reached.
var (
	ErrDepth = errors.New("wire: nesting limit reached, payload not followed")
	errNodes = errors.New("wire: node limit reached, payload not followed")
)

// A Reason says in which way bytes are malformed.
type Reason uint8

const (
	tagCut       Reason = iota // the input ends inside a tag
	tagTooLong                 // a tag of more than 64 bits
	numberRange                // a field number of 0 or above 2^29-1
	badType                    // wire type 6 or 7
	valueCut                   // the input ends inside a varint or fixed value
	valueTooLong               // a varint of more than 64 bits
	lengthCut                  // the input ends inside a length

	// A length beyond the end of what encloses it, or of more than 64 bits.
	LengthRange

	strayEnd  // a group's end tag where no such group is open
	groupOpen // a group without its end tag
	tooDeep   // groups nested deeper than Options.MaxDepth
	tooMany   // more nodes than Options.MaxNodes
)

// An Error is the place at which bytes stop being protobuf, with what was
// expected there and what was found.
type Error struct {
	Reason Reason
	Off    int    // of the field's first byte in Tree.Data
	Number uint64 // field number, where the tag could be read
	Found  uint64 // what was found: a length, a wire type, a field number
	Left   int    // bytes from there to the end of what encloses the field
}

// Error reads `wire: field 13 at 0x2f: length 912, 40 bytes left`.
func (e *Error) Error() string {
	field := fmt.Sprintf("wire: field %d at %#x: ", e.Number, e.Off)
	switch e.Reason {
	case tagCut:
		return fmt.Sprintf("wire: tag at %#x: cut off after %d bytes", e.Off, e.Left)
	case tagTooLong:
		return fmt.Sprintf("wire: tag at %#x: varint of more than 64 bits", e.Off)
	case numberRange:
		return field + "number outside 1 to 536870911"
	case badType:
		return field + fmt.Sprintf("wire type %d does not exist, %d bytes left", e.Found, e.Left)
	case valueCut:
		return field + fmt.Sprintf("value of %d bytes or more, %d bytes left", e.Found, e.Left)
	case valueTooLong:
		return field + "varint of more than 64 bits"
	case lengthCut:
		return field + fmt.Sprintf("length cut off after %d bytes", e.Left)
	case LengthRange:
		return field + fmt.Sprintf("length %d, %d bytes left", e.Found, e.Left)
	case strayEnd:
		return field + "end of a group that is not open"
	case groupOpen:
		return field + "group without its end tag"
	case tooDeep:
		return field + fmt.Sprintf("groups nested deeper than %d", e.Found)
	case tooMany:
		return fmt.Sprintf("wire: at %#x: more than %d nodes, %d bytes left", e.Off, e.Found, e.Left)
	}
	return field + "malformed"
}

// AfterTag reports that the field's tag is sound, and its length or value is not, or the
// group does not exist that it ends.
func (e *Error) AfterTag() bool {
	switch e.Reason {
	case valueCut, valueTooLong, lengthCut, LengthRange, strayEnd:
		return true
	}
	return false
}

// cut reports that the bytes end within the field, and nothing else is wrong.
func (e *Error) cut() bool {
	switch e.Reason {
	case tagCut, valueCut, lengthCut, LengthRange:
		return true
	}
	return false
}

// IsCut reports whether err is an Error of bytes that end too early.
func IsCut(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.cut()
}

// ErrorText is err in words, of a tree whose first byte is at base of the message
// that is shown.
func ErrorText(err error, base int) string {
	var e *Error
	if base == 0 || !errors.As(err, &e) {
		return err.Error()
	}
	moved := *e
	moved.Off += base
	return moved.Error()
}

// OnlyCut reports that nothing is wrong with the message but that it may end too early.
func (t *Tree) OnlyCut() bool {
	for c := range t.Children(0) {
		if n := t.Node(c); n.Err != nil && (n.End < len(t.Data) || !IsCut(n.Err)) {
			return false
		}
	}
	return true
}
