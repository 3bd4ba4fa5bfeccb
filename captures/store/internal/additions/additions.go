// Package additions keeps what users add to a capture: notes, the readings of fields that
// they chose, and definitions. It checks an addition, writes it in a transaction that its
// caller began, and reads the three tables of a file that is not trusted. FORMAT.md of
// package store, which uses it, describes the tables.
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

// Limits of the three tables.
const (
	maxNotes    = 100_000
	maxNote     = 64 << 10
	maxMark     = 64
	maxPath     = 4 << 10
	maxNoteKind = 64

	maxReadings = 10_000
	maxReading  = 4 << 10

	maxDefinitions = 10_000
	maxName        = 1 << 10

	// maxDefinitionBytes bounds the data of all active definitions together.
	maxDefinitionBytes = 256 << 20
)

// ErrInvalid is wrapped where an addition is none that can be stored.
var ErrInvalid = errors.New("invalid")

// Check reports what is wrong with an addition before it is written.
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
	return fmt.Errorf("%w: nothing to add", ErrInvalid)
}

func checkNote(n *captures.Note) error {
	switch {
	case n.Exchange < 1:
		return fmt.Errorf("%w: %d is no exchange", ErrInvalid, n.Exchange)
	case n.Frame < captures.NoFrame || n.Frame > math.MaxInt32 || n.Dir > captures.Down:
		return fmt.Errorf("%w: no place of exchange %d", ErrInvalid, n.Exchange)
	case n.Frame == captures.NoFrame && n.Path != "":
		return fmt.Errorf("%w: a path without a frame", ErrInvalid)
	case len(n.Path) > maxPath:
		return fmt.Errorf("%w: a path of more than %d bytes", captures.ErrTooLarge, maxPath)
	case n.Kind != captures.TextNote && n.Kind != captures.MarkNote:
		return fmt.Errorf("%w: %.40q is no kind of note", ErrInvalid, n.Kind)
	case !utf8.ValidString(n.Value) || !utf8.ValidString(n.Path):
		return fmt.Errorf("%w: text that is not UTF-8", ErrInvalid)
	}
	if n.Kind == captures.MarkNote && strings.ContainsFunc(n.Value, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return fmt.Errorf("%w: a mark is one word", ErrInvalid)
	}
	return noteSize(n)
}

// noteSize reports a note above its limit.
func noteSize(n *captures.Note) error {
	limit := maxNote
	if n.Kind == captures.MarkNote {
		limit = maxMark
	}
	if len(n.Value) > limit {
		return fmt.Errorf("%w: a %s of more than %d bytes", captures.ErrTooLarge, n.Kind, limit)
	}
	return nil
}

func checkReading(r *captures.Reading) error {
	switch {
	case r.Dir > captures.Down || r.Method == "" || r.Path == "":
		return fmt.Errorf("%w: a reading belongs to a method, a direction and a path", ErrInvalid)
	case len(r.Method)+len(r.Path)+len(r.Type) > maxReading:
		return fmt.Errorf("%w: the reading of %.40q at %.40q has more than %d bytes", captures.ErrTooLarge, r.Method, r.Path, maxReading)
	case !utf8.ValidString(r.Method + r.Path + r.Type):
		return fmt.Errorf("%w: text that is not UTF-8", ErrInvalid)
	}
	return nil
}

func checkDefinition(d *captures.Definition) error {
	switch {
	case d.Name == "" || !utf8.ValidString(d.Name) || strings.ContainsFunc(d.Name, unicode.IsControl):
		return fmt.Errorf("%w: %.40q is no name of definitions", ErrInvalid, d.Name)
	case len(d.Name) > maxName:
		return fmt.Errorf("%w: a name of more than %d bytes", captures.ErrTooLarge, maxName)
	case d.Kind != captures.DescriptorSet && d.Kind != captures.ProtoFile && (d.Active || d.Kind != ""):
		return fmt.Errorf("%w: %.40q is no kind of definitions", ErrInvalid, d.Kind)
	case d.Kind == captures.DescriptorSet && strings.ContainsAny(d.Name, `/\`):
		return fmt.Errorf("%w: the name %.40q has a folder", ErrInvalid, d.Name)
	case d.Active && len(d.Data) == 0:
		return fmt.Errorf("%w: the definitions %.40q are empty", ErrInvalid, d.Name)
	case len(d.Data) > payload.MaxSize:
		return fmt.Errorf("%w: the definitions %.40q have more than %d bytes", captures.ErrTooLarge, d.Name, payload.MaxSize)
	}
	return nil
}
