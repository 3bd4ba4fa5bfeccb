// Package fieldpath is the one language in which a user names a field: text
// goes in, and a Path comes out that a tree, a schema or a JSON value is walked
// by.
//
//	1.2[3].5                     field numbers, and one element of a repeated field
//	run_request.model.name       names, where a schema or JSON has them
//	messages[0][2]."a.b"         lists of lists; a quoted member of JSON
//	3!gzip.1  1!hex!gzip.2       what is inside a payload in another form
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
// A quoted name is a string literal of Go in double quotes. A bare name has none
// of . [ ] ! and does not begin with a double quote; as a layer, and where the
// path is the beginning of a longer text (see Cut), it has no : = " or blank
// either. Only the first step may begin with an index. The empty path is the
// root.
//
// What a name, a layer or a wildcard means, and whether it is allowed, is the
// reader's business: package wire follows field numbers alone, package search
// takes Any and AnySteps as wildcards, package replay knows the layers.
package fieldpath

import (
	"fmt"
	"strconv"
	"strings"
)

// All is the Index of a step that names every element of its field.
const All = -1

// Names that stand for other steps, where a path is a pattern. Elsewhere they
// are names as any other.
const (
	Any      = "*"  // any one step
	AnySteps = "**" // any number of steps, or none
)

// maxSteps bounds a path; wire trees are followed no deeper by default.
const maxSteps = 100

// A Step leads from a message, an object or a list to what is in it.
type Step struct {
	// Name is a field number in decimal digits, the name of a field or of a
	// member of JSON, or a wildcard. It is empty for a member without a name,
	// and for an element of the list that the step before leads to.
	Name string

	// Index is the place of one element among those that Name leads to, from 0,
	// or All.
	Index int

	// Layers are the encodings that the value is wrapped in, outermost first,
	// joined by exclamation marks: hex!gzip.
	Layers string
}

// A Path leads from the root to fields. The empty path is the root.
type Path []Step

// Field returns the step to all fields of a number.
func Field(number uint64) Step {
	return Step{Name: strconv.FormatUint(number, 10), Index: All}
}

// Number returns the field number that the step has instead of a name.
func (s Step) Number() (n uint64, ok bool) {
	n, err := strconv.ParseUint(s.Name, 10, 61)
	return n, err == nil
}

// IsIndex reports whether the step is an index alone: an element of the list
// that the step before leads to.
func (s Step) IsIndex() bool { return s.Name == "" && s.Index != All }

// ParsePattern reads a pattern of paths: as String writes a path, with Any for any one
// step, AnySteps for any number of them, and [n] behind a number for one of a repeated
// field. A member of JSON goes by its name, an element by its place.
//
// Errors: name the offset of what is wrong.
func ParsePattern(s string) (Path, error) {
	p, err := parse(s, nil)
	if err != nil {
		return nil, err
	}
	if len(p) == 0 {
		return nil, fmt.Errorf("path %.80q: an empty step", s)
	}
	for _, step := range p {
		switch {
		case step.IsIndex():
			return nil, fmt.Errorf("path %.80q: an index without a name; an element of JSON is named by its place, as in list.0", s)
		case step.Layers != "":
			return nil, fmt.Errorf("path %.80q: !%s has no meaning here; every layer is looked into", s, step.Layers)
		case step.Name == AnySteps && step.Index != All:
			return nil, fmt.Errorf("path %.80q: ** has no index", s)
		}
	}
	return p, nil
}

// ParseNumbers reads a path of field numbers, with an index at most each: one
// that can be followed without a schema.
//
// Errors: name the offset of what is wrong.
func ParseNumbers(s string) (Path, error) {
	return parse(s, func(step Step) error {
		switch _, ok := step.Number(); {
		case !ok:
			return fmt.Errorf("%q is not a field number", Path{step}.String())
		case step.Layers != "":
			return fmt.Errorf("!%s has no meaning here", step.Layers)
		}
		return nil
	})
}

// parse reads a path as String writes it, every step of which passes check, if that is
// set.
func parse(s string, check func(Step) error) (Path, error) {
	sc := scanner{text: s, check: check, reserved: inNames}
	p, err := sc.path()
	if err == nil {
		err = sc.unexpected()
	}
	if err != nil {
		return p, fmt.Errorf("path %.80q at %d: %w", s, sc.off, err)
	}
	return p, nil
}

// Cut reads the path at the beginning of s, up to a colon, an equals sign or the
// end, and returns what follows it.
//
// Errors: name the offset of what is wrong.
func Cut(s string) (p Path, rest string, err error) {
	sc := scanner{text: s, reserved: inNames + afterPath}
	p, err = sc.path()
	if err == nil && !sc.atEnd() {
		err = sc.unexpected()
	}
	if err != nil {
		err = fmt.Errorf("at %d: %w", sc.off, err)
	}
	return p, s[sc.off:], err
}

// String writes the path as ParsePattern and Cut read it.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		if i > 0 && !s.IsIndex() {
			b.WriteByte('.')
		}
		switch {
		case s.IsIndex():
		case s.Name == "" || strings.ContainsAny(s.Name, inNames+afterPath) || strconv.Quote(s.Name) != `"`+s.Name+`"`:
			b.WriteString(strconv.Quote(s.Name))
		default:
			b.WriteString(s.Name)
		}
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
