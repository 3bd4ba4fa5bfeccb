// Package additions stores what users add to a capture: notes, the types that they chose for fields, and
// definitions. It validates an addition, writes it in a transaction of the caller, and reads the three tables of
// an untrusted file. Only package store uses it; its FORMAT.md describes the tables.
//
//	c, err := additions.Prepare(captures.Addition{Note: &note})
//	n, err := c.Write(ctx, tx, nextNumber)
package additions

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"unwire/captures"
	"unwire/captures/store/internal/payload"
)

// Limits of the tables for notes, readings (types that users chose for fields) and definitions: numbers of
// rows, and sizes in bytes.
const (
	maxNotes         = 100_000
	maxNoteBytes     = 64 << 10
	maxMarkBytes     = 64
	maxPathBytes     = 4 << 10
	maxNoteKindBytes = 64

	maxReadings     = 10_000
	maxReadingBytes = 4 << 10

	maxDefinitions = 10_000
	maxNameBytes   = 1 << 10

	// maxDefinitionBytes limits the data of all active definitions together.
	maxDefinitionBytes = 256 << 20
)

// ErrInvalid is wrapped by the error for an addition that cannot be stored.
var ErrInvalid = errors.New("the change is invalid")

// Check validates an addition, i.e. a note, a reading or a definition.
//
// Errors: ErrInvalid, captures.ErrTooLarge.
func Check(a *captures.Addition) error {
	switch {
	case a.Note != nil:
		return checkNote(a.Note)
	case a.Reading != nil:
		return checkReading(a.Reading)
	case a.Definition != nil:
		return checkDefinition(a.Definition)
	}
	return fmt.Errorf("%w: the change is empty", ErrInvalid)
}

// checkNote validates a note or mark.
func checkNote(n *captures.Note) error {
	switch {
	case n.Exchange < 1:
		return fmt.Errorf("%w: exchange %d does not exist", ErrInvalid, n.Exchange)
	case n.Frame < captures.NoFrame || n.Frame > math.MaxInt32 || n.Dir > captures.Down:
		return fmt.Errorf("%w: the address does not exist in exchange %d", ErrInvalid, n.Exchange)
	case n.Frame == captures.NoFrame && n.Path != "":
		return fmt.Errorf("%w: a path needs a frame", ErrInvalid)
	case len(n.Path) > maxPathBytes:
		return fmt.Errorf("%w: the path has more than %d bytes", captures.ErrTooLarge, maxPathBytes)
	case n.Kind != captures.TextNote && n.Kind != captures.MarkNote:
		return fmt.Errorf("%w: %.40q is not a kind of note", ErrInvalid, n.Kind)
	case !utf8.ValidString(n.Value) || !utf8.ValidString(n.Path):
		return fmt.Errorf("%w: the text is not UTF-8", ErrInvalid)
	}

	// A mark is one printable word, such as star.
	// Marks are shown in lists, so they must be short and printable.
	if n.Kind == captures.MarkNote && strings.ContainsFunc(n.Value, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return fmt.Errorf("%w: a mark must be one word", ErrInvalid)
	}
	return checkNoteSize(n)
}

// checkNoteSize returns an error if a note is longer than notes of its kind may be.
func checkNoteSize(n *captures.Note) error {
	limit := maxNoteBytes
	if n.Kind == captures.MarkNote {
		limit = maxMarkBytes
	}
	if len(n.Value) > limit {
		return fmt.Errorf("%w: the %s has more than %d bytes", captures.ErrTooLarge, n.Kind, limit)
	}
	return nil
}

// checkReading validates a reading, i.e. the type that a user chose for a field.
func checkReading(r *captures.Reading) error {
	switch {
	case r.Dir > captures.Down || r.Method == "" || r.Path == "":
		return fmt.Errorf("%w: a field type needs a method, a direction and a path", ErrInvalid)
	case len(r.Method)+len(r.Path)+len(r.Type) > maxReadingBytes:
		return fmt.Errorf("%w: the type of the field %.40q of %.40q has more than %d bytes", captures.ErrTooLarge, r.Method, r.Path, maxReadingBytes)
	case !utf8.ValidString(r.Method + r.Path + r.Type):
		return fmt.Errorf("%w: the text is not UTF-8", ErrInvalid)
	}
	return nil
}

// checkDefinition validates a definition. If it is not active, it only removes one, so it needs no kind and no
// data.
func checkDefinition(d *captures.Definition) error {
	switch {
	case d.Name == "" || !utf8.ValidString(d.Name) || strings.ContainsFunc(d.Name, unicode.IsControl):
		return fmt.Errorf("%w: %.40q is not a valid name for definitions", ErrInvalid, d.Name)
	case len(d.Name) > maxNameBytes:
		return fmt.Errorf("%w: the name has more than %d bytes", captures.ErrTooLarge, maxNameBytes)
	case d.Kind != captures.DescriptorSet && d.Kind != captures.ProtoFile && (d.Active || d.Kind != ""):
		return fmt.Errorf("%w: %.40q is not a kind of definitions", ErrInvalid, d.Kind)
	case d.Kind == captures.DescriptorSet && strings.ContainsAny(d.Name, `/\`):
		return fmt.Errorf("%w: the name %.40q must not contain a folder", ErrInvalid, d.Name)
	case d.Active && len(d.Data) == 0:
		return fmt.Errorf("%w: the definitions %.40q are empty", ErrInvalid, d.Name)
	case len(d.Data) > payload.MaxSize:
		return fmt.Errorf("%w: the definitions %.40q have more than %d bytes", captures.ErrTooLarge, d.Name, payload.MaxSize)
	}
	return nil
}
