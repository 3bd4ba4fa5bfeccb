// Package edit changes a captured message by path. The text of a flag or a line of a patch goes in;
// an Edit that can be applied to a protobuf message or a JSON text comes out. Bytes outside the
// edited field stay unchanged, except for the lengths of the messages around it.
//
//	e, err := edit.Parse("set", "@0 1.2=hello")
//	out, inserted, err := e.Apply(data, false, nil)
//
// A path leads through the fields of protobuf or the members of JSON, and through layers: a value
// that is JSON, protobuf, hex, base64 or compressed data inside another. The text of a value is
// encoded according to its kind, which the edit names or the definitions give; retype keeps the
// value and changes its kind. A patch is a file with edits. The lookup functions return the values
// at a path.
//
// The package does not depend on requests; replay, replay/live and replay/suite use it.
//
// Source: replay/README.md#edits
package edit

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"unwire/decode/fieldpath"
)

// An operation is what an Edit does with a field; it has the name of the corresponding flag.
type operation string

const (
	// opSet replaces a field's value. Its wire type stays the same unless the edit's kind or the
	// definitions demand another.
	opSet operation = "set"
	// opAdd inserts a field: after the existing fields of that number, or before the one at an index.
	opAdd operation = "add"
	// opDel deletes all fields that the path selects.
	opDel operation = "del"
	// opRetype keeps a field's value, and encodes it as another kind.
	opRetype operation = "retype"
	// opRaw replaces the encoded value by given bytes, without validation.
	opRaw operation = "set-raw"
)

// FirstFrame stands for the first frame of the request that has a message. An edit that names no frame
// applies to it.
const FirstFrame = -1

// An Edit is one change to a message of a request. Edits apply in order, each to the result of the one
// before it.
//
// Shape: its text has the form [@FRAME ]PATH[:KIND]=VALUE.
type Edit struct {
	// Op is what is done, such as set or delete.
	Op operation
	// Frame is the number of the client's frame, as `unwire show` prints it, or FirstFrame.
	Frame int
	// Kind is the kind of the new value, such as int32; "" means that it is derived from the field.
	Kind valueKind
	// Value is the text of the new value; hexadecimal for opRaw.
	Value string

	// path selects the field; empty for the whole message.
	path fieldpath.Path
	// added is set by Apply if opSet has inserted a field that was missing.
	added bool
}

// Parse parses the text of a --set, --add, --del, --retype or --set-raw flag.
//
// Shape: set and add take [@FRAME ]PATH[:KIND]=VALUE, where add may omit KIND only if the
// definitions have the field; set-raw, formerly raw, takes [@FRAME ]PATH=HEX; retype takes [@FRAME
// ]PATH:KIND; del takes [@FRAME ]PATH. PATH has field numbers, or names if there are definitions,
// or member names if the body is JSON: 1.2[3].5, run_request.mode. An empty PATH is the whole
// message of the frame.
// Errors: they name the offset in text.
func Parse(flagKind, text string) (Edit, error) {
	if flagKind == "raw" {
		flagKind = string(opRaw)
	}
	e := Edit{Op: operation(flagKind), Frame: FirstFrame}
	switch e.Op {
	case opSet, opAdd, opDel, opRaw, opRetype:
	default:
		return e, fmt.Errorf("replay: %q is not an edit", flagKind)
	}
	if err := e.parse(text); err != nil {
		return e, fmt.Errorf("replay: --%s %q: %w", flagKind, excerpt(text), err)
	}
	return e, nil
}

// parse parses the text of an edit and checks it. e.Op is set already.
func (e *Edit) parse(text string) error {
	frame, rest, err := CutFrame(text)
	if err != nil {
		return err
	}
	e.Frame = frame
	if e.path, rest, err = CutPath(rest); err != nil {
		return err
	}

	// An optional kind, then the value, which only del and retype lack.
	if kind, ok := strings.CutPrefix(rest, ":"); ok {
		kind, value, has := strings.Cut(kind, "=")
		if rest = ""; has {
			rest = "=" + value
		}
		if e.Kind, err = parseKind(kind); err != nil {
			return err
		}
		if e.Op == opDel || e.Op == opRaw {
			return fmt.Errorf("this edit must not have a type (:KIND)")
		}
	}
	value, has := strings.CutPrefix(rest, "=")
	if has == (e.Op == opDel || e.Op == opRetype) {
		if has && e.Op == opRetype {
			return fmt.Errorf("this edit keeps the value: want the new type behind a colon, as in 1.7:string")
		} else if has {
			return fmt.Errorf("this edit must not have a value (=VALUE)")
		}
		return fmt.Errorf("the value (=VALUE) is missing")
	}
	e.Value = value
	return e.check()
}

// CutFrame removes the frame number from the beginning of an edit's text, such as "@2 ", and returns
// the rest. If there is none, frame is FirstFrame.
func CutFrame(text string) (frame int, rest string, err error) {
	after, ok := strings.CutPrefix(text, "@")
	if !ok {
		return FirstFrame, text, nil
	}
	rest = strings.TrimLeft(after, "0123456789")
	n, err := strconv.ParseUint(after[:len(after)-len(rest)], 10, 31)
	if err != nil || rest != "" && !strings.ContainsRune(" :=", rune(rest[0])) {
		return FirstFrame, text, fmt.Errorf("%q must begin with the number of a frame, as in @2", excerpt(text))
	}
	return int(n), strings.TrimLeft(rest, " "), nil
}

// check returns an error for mistakes that are visible without the message to be edited.
func (e *Edit) check() error {
	switch {
	case e.Op == opRaw:
		b, err := hex.DecodeString(e.Value)
		if err != nil {
			return fmt.Errorf("the value is not hexadecimal: %w", err)
		}
		e.Value = hex.EncodeToString(b)
	case e.Op == opRetype && e.Kind == "":
		return fmt.Errorf("the type (:KIND) is missing")
	case len(e.path) == 0 && (e.Op == opAdd || e.Op == opRetype):
		return fmt.Errorf("the path is missing")
	case len(e.path) == 0 && e.Op == opDel && e.Frame == FirstFrame:
		return fmt.Errorf("the path is missing; to select a whole frame, use its number, as in @2")
	}
	return nil
}

// String returns the edit as a command-line flag: "--set 1.2=x".
func (e Edit) String() string {
	var b strings.Builder
	b.WriteString("--" + string(e.Op) + " ")
	if e.Frame != FirstFrame {
		fmt.Fprintf(&b, "@%d ", e.Frame)
	}
	b.WriteString(e.path.String())
	if e.Kind != "" {
		b.WriteString(":" + string(e.Kind))
	}
	if e.Op != opDel && e.Op != opRetype {
		b.WriteString("=" + e.Value)
	}
	return b.String()
}

// CheckValue checks whether the value is valid for the kind that the edit names. If it names none, the
// result is nil, because the kind then depends on the field.
func (e Edit) CheckValue() error {
	if e.Kind == "" || e.Op == opRetype || e.Op == opRaw || e.Kind == kindEnum || e.Kind == kindMessage {
		return nil
	}
	if _, err := encodeValue(e.Kind, e.Value, nil); err != nil {
		return fmt.Errorf("%q: %w", excerpt(e.String()), err)
	}
	return nil
}

// maxExcerpt is the number of bytes of an edit's text that an error repeats.
const maxExcerpt = 100

// excerpt returns the text of an edit for an error, shortened if it is long: a patch file may have a line of a megabyte.
func excerpt(text string) string {
	if len(text) <= maxExcerpt {
		return text
	}
	return strings.ToValidUTF8(text[:maxExcerpt], "") + "…"
}
