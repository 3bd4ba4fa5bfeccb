// Package edit changes a captured message by path: the text of a flag or a line
// of a patch goes in, and an Edit comes out that is applied to a protobuf message
// or a JSON text. All bytes that an edit does not name stay as they are, but for
// the lengths around it.
//
//	e, err := edit.Parse("set", "@0 1.2=hello")
//	out, inserted, err := e.Apply(data, false, nil)
//
// A path leads into the fields of protobuf or the members of JSON, and through
// layers: a value that is JSON, protobuf, hex, base64 or compressed inside another.
// The text of a value becomes bytes by its kind, which the edit names or the field
// has; retype keeps a value and changes its kind. A patch is a file of edits. Lookups
// return the values at a path and change nothing.
//
// The package knows no requests: replay, replay/live and replay/suite call it.
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

// An operation is what an Edit does, in the words of the command's flags.
type operation string

const (
	// give a field another value; its wire type stays unless a kind or a schema says otherwise
	opSet operation = "set"
	// put in a field, after its siblings of that number, or before the one that an index names
	opAdd    operation = "add"
	opDel    operation = "del"     // take out all fields that the path names
	opRetype operation = "retype"  // give a field the same value in another kind
	opRaw    operation = "set-raw" // put bytes in place of a value, unchecked
)

// FirstFrame is the frame of an edit that names none: the first frame up that
// carries a message.
const FirstFrame = -1

// An Edit is one change to a request. Edits apply in the order they are given,
// each to what the one before it left.
//
// Shape: the text of a flag, [@FRAME ]PATH[:KIND]=VALUE; see Parse.
type Edit struct {
	Op    operation
	Frame int // number of the frame up, as `show` has it, or FirstFrame
	Kind  valueKind
	Value string // as given; the bytes of opRaw in hex

	path  fieldpath.Path
	added bool // of a set that was carried out: the field was not there
}

// Parse reads the text of a --set, --add, --del, --retype or --set-raw flag.
//
// Shape: set and add take [@FRAME ]PATH[:KIND]=VALUE, where add's KIND may be
// left out only where a schema knows the field; set-raw, formerly raw, takes [@FRAME ]PATH=HEX;
// retype takes [@FRAME ]PATH:KIND; del takes [@FRAME ]PATH. PATH has field numbers, or names where a schema is
// known, or member names where the body is JSON: 1.2[3].5, run_request.mode.
// An empty PATH is the whole message of the frame.
// Errors: name the offset of what is wrong in text.
func Parse(flagKind, text string) (Edit, error) {
	if flagKind == "raw" {
		flagKind = string(opRaw)
	}
	e := Edit{Op: operation(flagKind), Frame: FirstFrame}
	switch e.Op {
	case opSet, opAdd, opDel, opRaw, opRetype:
	default:
		return e, fmt.Errorf("replay: %q is no kind of edit", flagKind)
	}
	if err := e.parse(text); err != nil {
		return e, fmt.Errorf("replay: --%s %q: %w", flagKind, text, err)
	}
	return e, nil
}

func (e *Edit) parse(text string) error {
	frame, rest, err := CutFrame(text)
	if err != nil {
		return err
	}
	e.Frame = frame
	if e.path, rest, err = CutPath(rest); err != nil {
		return err
	}
	if kind, ok := strings.CutPrefix(rest, ":"); ok {
		kind, value, has := strings.Cut(kind, "=")
		if rest = ""; has {
			rest = "=" + value
		}
		if e.Kind, err = parseKind(kind); err != nil {
			return err
		}
		if e.Op == opDel || e.Op == opRaw {
			return fmt.Errorf("a kind has no meaning here")
		}
	}
	value, has := strings.CutPrefix(rest, "=")
	if has == (e.Op == opDel || e.Op == opRetype) {
		if has {
			return fmt.Errorf("a value has no meaning here")
		}
		return fmt.Errorf("=VALUE is missing")
	}
	e.Value = value
	return e.check()
}

// CutFrame reads the frame number that an edit may begin with, "@2 ", and returns
// what follows it; without one, the frame is FirstFrame.
func CutFrame(text string) (frame int, rest string, err error) {
	after, ok := strings.CutPrefix(text, "@")
	if !ok {
		return FirstFrame, text, nil
	}
	rest = strings.TrimLeft(after, "0123456789")
	n, err := strconv.ParseUint(after[:len(after)-len(rest)], 10, 31)
	if err != nil || rest != "" && !strings.ContainsRune(" :=", rune(rest[0])) {
		return FirstFrame, text, fmt.Errorf("%q does not begin with a frame's number, as in @2", text)
	}
	return int(n), strings.TrimLeft(rest, " "), nil
}

// check looks at what can be wrong before the request is known.
func (e *Edit) check() error {
	switch {
	case e.Op == opRaw:
		b, err := hex.DecodeString(e.Value)
		if err != nil {
			return fmt.Errorf("the value is not hex: %w", err)
		}
		e.Value = hex.EncodeToString(b)
	case e.Op == opRetype && e.Kind == "":
		return fmt.Errorf(":KIND is missing")
	case len(e.path) == 0 && (e.Op == opAdd || e.Op == opRetype):
		return fmt.Errorf("a path is missing")
	case len(e.path) == 0 && e.Op == opDel && e.Frame == FirstFrame:
		return fmt.Errorf("a path is missing; a whole frame goes with its number, as in @2")
	}
	return nil
}

// String writes the edit as the flag that makes it.
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
