// Package fieldpath parses and prints paths to fields. It is the only path language of unwire: text goes in, and
// a Path comes out that selects nodes of a message tree, a schema or a JSON value.
//
//	1.2[3].5                     field numbers, and one element of a repeated field
//	run_request.model.name       names, if a schema or JSON has them
//	messages[0][2]."a.b"         lists of lists; a quoted member of JSON
//	3!gzip.1  1!hex!gzip.2       the content of a compressed or encoded payload
//	1.*  **.text                 any one step, any number of steps
//
// The grammar, in the notation of Go's specification:
//
//	Path  = [ Step { "." Step } ] .
//	Step  = ( Name [ Index ] | Index ) { Index } { "!" Layer } .
//	Name  = bare | quoted .
//	Index = "[" digit { digit } "]" .
//	Layer = bare .
//
// A quoted name is a Go string literal in double quotes. A bare name contains none of . [ ] ! and does not begin
// with a double quote. A layer contains none of : = " and blanks either, and neither does a bare name if the
// path is the beginning of a longer text (see Cut). Only the first step may begin with an index. The empty path
// is the root.
//
// The users of a Path define the meaning of names, layers and wildcards, and which of them are allowed. Package
// wire follows field numbers only, package search supports the wildcards Any and AnySteps, and package replay
// supports layers.
package fieldpath

import (
	"fmt"
	"strconv"
	"strings"
)

// All is the value of Step.Index that selects every element of a repeated field.
const All = -1

// Any and AnySteps are wildcards in patterns of paths. Elsewhere they are ordinary names.
const (
	// Any is the wildcard that matches any single step of a path.
	Any = "*"

	// AnySteps matches any number of steps, including none.
	AnySteps = "**"
)

// maxSteps is the maximum length of a path. It equals the default of wire.Options.MaxDepth.
const maxSteps = 100

// A Step leads from a message, an object or a list to something inside it.
type Step struct {
	// Name is a field number in decimal digits, the name of a field or of a JSON member, or a wildcard. It is
	// empty for a JSON member with an empty name, and for an element of the list that the previous step selects.
	Name string

	// Index selects one of the elements with the name, counted from 0, or All of them.
	Index int

	// Layers are the encodings to undo before the value is read, outermost first, joined by exclamation marks, as
	// in hex!gzip. Empty means none.
	Layers string
}

// A Path leads from the root to fields. The empty path selects the root.
type Path []Step

// Field returns a step that matches all fields with a number.
func Field(number uint64) Step {
	return Step{Name: strconv.FormatUint(number, 10), Index: All}
}

// Number returns the step's field number. ok is false if Name is not a decimal number below 2^61.
func (s Step) Number() (n uint64, ok bool) {
	n, err := strconv.ParseUint(s.Name, 10, 61)
	return n, err == nil
}

// IsIndex reports whether the step is only an index: an element of the list that the previous step selects.
func (s Step) IsIndex() bool { return s.Name == "" && s.Index != All }

// ParsePattern parses a pattern of paths: a path that may contain Any and AnySteps. Members of JSON objects are
// matched by name, elements of JSON arrays by position, as in list.0, and elements of a repeated field by an
// index behind its number.
//
// Errors: the offset of the offending text.
func ParsePattern(s string) (Path, error) {
	p, err := parse(s, nil)
	if err != nil {
		return nil, err
	}
	if len(p) == 0 {
		return nil, fmt.Errorf("path %.80q: a step is empty", s)
	}

	// Patterns match JSON too, where the elements of arrays are steps of their own.
	for _, step := range p {
		switch {
		case step.IsIndex():
			return nil, fmt.Errorf("path %.80q: an index needs a name before it; to select an element of JSON, use its number as a step, as in list.0", s)
		case step.Layers != "":
			return nil, fmt.Errorf("path %.80q: !%s is not needed here, because the search looks inside every layer", s, step.Layers)
		case step.Name == AnySteps && step.Index != All:
			return nil, fmt.Errorf("path %.80q: ** cannot have an index", s)
		}
	}
	return p, nil
}

// ParseNumbers parses a path of field numbers, each with at most one index. Such a path can be followed without
// a schema.
//
// Errors: the offset of the offending text.
func ParseNumbers(s string) (Path, error) {
	return parse(s, func(step Step) error {
		switch _, ok := step.Number(); {
		case !ok:
			return fmt.Errorf("%q is not a field number", Path{step}.String())
		case step.Layers != "":
			return fmt.Errorf("!%s cannot be used in this path", step.Layers)
		}
		return nil
	})
}

// parse parses s as a path. check, if not nil, returns an error for steps that the caller does not allow.
func parse(s string, check func(Step) error) (Path, error) {
	sc := scanner{text: s, check: check, reserved: inNames}
	p, err := sc.path()
	if err == nil {
		err = sc.unexpected()
	}
	if err != nil {
		return p, fmt.Errorf("path %.80q at offset %d: %w", s, sc.off, err)
	}
	return p, nil
}

// Cut parses the path at the beginning of s, up to a colon, an equals sign or the end, and returns the rest of
// s.
//
// Errors: the offset of the offending text.
func Cut(s string) (p Path, rest string, err error) {
	sc := scanner{text: s, reserved: inNames + afterPath}
	p, err = sc.path()
	if err == nil && !sc.atEnd() {
		err = sc.unexpected()
	}
	if err != nil {
		err = fmt.Errorf("the path is malformed at offset %d: %w", sc.off, err)
	}
	return p, s[sc.off:], err
}

// String returns the path in the form that ParsePattern and Cut parse.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		if i > 0 && !s.IsIndex() {
			b.WriteByte('.')
		}

		// Quote names that would not be parsed as bare names.
		switch {
		case s.IsIndex():
		case s.Name == "" || strings.ContainsAny(s.Name, inNames+afterPath) || strconv.Quote(s.Name) != `"`+s.Name+`"`:
			b.WriteString(strconv.Quote(s.Name))
		default:
			b.WriteString(s.Name)
		}
		// Index and layers follow the name in this order only.
		if s.Index != All {
			b.WriteByte('[')
			b.WriteString(strconv.Itoa(s.Index))
			b.WriteByte(']')
		}
		if s.Layers != "" {
			b.WriteByte('!')
			b.WriteString(s.Layers)
		}
	}
	return b.String()
}
