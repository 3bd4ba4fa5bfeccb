package query

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/contract"
	"unwire/decode"
	"unwire/decode/diff"
	"unwire/decode/fieldpath"
	"unwire/decode/text"
	"unwire/decode/wire"
	"unwire/schema"
)

// DiffOptions say how things are compared.
type DiffOptions struct {
	diff.Options

	// Definitions name the fields; nil for no names.
	Definitions *schema.Schema

	// Type is the full name of the type of messages that are not from a capture; "" if it
	// is not known.
	Type string

	// Open opens a capture, and Read reads a file or standard input.
	Open func(path string) (*Capture, error)
	Read func(name string) ([]byte, error)

	// Opened, if set, is called with each capture of which all calls are compared.
	Opened func(*Capture)
}

// A Comparison is the differences of two things.
type Comparison struct {
	// Call names the call of which a capture has more than one; "" if there is one pair.
	Call string
	// Changes are the differences.
	Changes []diff.Change

	names namer
}

// Describe returns a change with its values as the definitions declare them, the field
// at its path and the path in field names: nil and "" if they are not known.
func (c *Comparison) Describe(ch diff.Change) (diff.Change, protoreflect.FieldDescriptor, string) {
	fd, name := c.names.field(ch.Path)
	ch.Old, ch.New = declaredValue(ch.Old, ch.OldBytes, fd), declaredValue(ch.New, ch.NewBytes, fd)
	return ch, fd, name
}

// Lines returns the changes, ignored ones too, as every front end hands them out. withHex adds the bytes of both
// sides.
func (c *Comparison) Lines(withHex bool) []*contract.Change {
	list := make([]*contract.Change, len(c.Changes))
	for i := range list {
		change, _, name := c.Describe(c.Changes[i])
		change.Path = strings.TrimSpace(c.Call + " " + change.Path)
		list[i] = &contract.Change{Change: change, Name: name}
		if withHex {
			list[i].OldHex, list[i].NewHex = hex.EncodeToString(change.OldBytes.Data), hex.EncodeToString(change.NewBytes.Data)
		}
	}
	return list
}

// declaredValue is a value of a difference as its field is declared, where that is
// a fixed number or a packed list; else the value as it is.
func declaredValue(v any, field diff.Bytes, fd protoreflect.FieldDescriptor) any {
	t := wire.Parse(field.Data, wire.Options{})
	if v == nil || len(t.Nodes) < 2 {
		return v
	}
	if declared, ok := decode.DeclaredNumbers(t, 1, fd); ok {
		return declared
	}
	return v
}

// CountChanges counts the differences that matter, and those that are ignored.
func CountChanges(list []Comparison) (found, ignored int) {
	for _, c := range list {
		for i := range c.Changes {
			if c.Changes[i].Ignored == "" {
				found++
			} else {
				ignored++
			}
		}
	}
	return found, ignored
}

// Diff compares two frames, two exchanges or two captures by their addresses, or two
// files of messages.
//
// Errors: DiffError, and those of Open and Read.
func Diff(ctx context.Context, left, right string, o DiffOptions) ([]Comparison, error) {
	la, ra := ParseAddress(left), ParseAddress(right)
	for _, a := range []Address{la, ra} {
		if _, err := os.Stat(a.File); err != nil && a.File != "-" {
			return nil, err
		}
	}
	lc, rc := la.Exchange == 0 && IsCapture(la.File), ra.Exchange == 0 && IsCapture(ra.File)
	switch {
	case lc && rc:
		return o.diffCaptures(ctx, la, ra)
	case lc != rc:
		return nil, &DiffError{Problem: Unlike, text: fmt.Sprintf("cannot compare a whole capture with a part of one: %s, %s", left, right)}
	case la.Exchange != 0 && ra.Exchange != 0 && la.Frame < 0 && ra.Frame < 0:
		return o.diffExchanges(ctx, la, ra)
	case la.Exchange != 0 && la.Frame < 0 || ra.Exchange != 0 && ra.Frame < 0:
		return nil, &DiffError{Problem: Unlike, text: fmt.Sprintf("cannot compare a whole exchange with a single message: %s, %s", left, right)}
	}
	return o.diffMessages(ctx, left, right)
}

// IsCapture reports whether a file opens as a capture.
func IsCapture(file string) bool {
	if file == "-" {
		return false
	}
	s, err := store.Open(file, store.ReadOptions{})
	if err != nil {
		return false
	}
	s.Close()
	return true
}

// diffMessages compares two frames, or files that hold messages.
func (o *DiffOptions) diffMessages(ctx context.Context, left, right string) ([]Comparison, error) {
	l, err := o.message(ctx, left)
	if err != nil {
		return nil, err
	}
	r, err := o.message(ctx, right)
	if err != nil {
		return nil, err
	}
	names, err := o.namesOfMessages(l, r)
	if err != nil {
		return nil, err
	}
	return []Comparison{{Changes: diff.Compare(l.Message, r.Message, o.Options), names: names}}, nil
}

// diffExchanges compares two exchanges, or the conversations that go by them.
func (o *DiffOptions) diffExchanges(ctx context.Context, left, right Address) ([]Comparison, error) {
	l, err := o.exchange(ctx, left)
	if err != nil {
		return nil, err
	}
	r, err := o.exchange(ctx, right)
	if err != nil {
		return nil, err
	}
	return []Comparison{{Changes: diff.Exchanges(l, r, o.Options), names: namer{defs: o.Definitions, call: l.Call}}}, nil
}

// diffCaptures pairs the exchanges of two captures and compares each pair.
func (o *DiffOptions) diffCaptures(ctx context.Context, left, right Address) ([]Comparison, error) {
	l, err := o.Open(left.File)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	r, err := o.Open(right.File)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if o.Opened != nil {
		o.Opened(l)
		o.Opened(r)
	}
	calls, err := diff.Captures(ctx, l, r, o.Options)
	list := make([]Comparison, len(calls))
	for i, c := range calls {
		list[i] = Comparison{Call: fmt.Sprintf("%s[%d]", c.Name, c.Nth), Changes: c.Changes, names: namer{defs: o.Definitions, call: c.Call}}
	}
	return list, err
}

// exchange decodes the exchange at an address.
func (o *DiffOptions) exchange(ctx context.Context, at Address) (*decode.Exchange, error) {
	c, err := o.Open(at.File)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ex, err := c.Resolve(ctx, at.Exchange, at.Part)
	return ex.Exchange, err
}

// A located message is one with its exchange, if it is a frame.
type locatedMessage struct {
	diff.Message
	exchange *decode.Exchange // nil for a file
	dir      captures.Direction
}

// message reads the frame that name is the address of, or else a file: of one message or
// several, in whatever way it is written, or of JSON.
func (o *DiffOptions) message(ctx context.Context, name string) (m locatedMessage, err error) {
	at := ParseAddress(name)
	if at.Exchange != 0 {
		if m.exchange, err = o.exchange(ctx, at); err != nil {
			return m, err
		}
		frame, err := FrameAt(m.exchange, at)
		if err != nil {
			return m, &DiffError{Problem: NoFrame, At: at, text: err.Error()}
		}
		m.dir = frame.Dir
		m.Message = diff.Message{Data: frame.Data, Choices: m.exchange.Choices[frame.Dir&1]}
		return m, nil
	}
	data, err := o.Read(name)
	if err != nil {
		return m, err
	}
	doc, err := text.Decode(data, text.Options{})
	if err != nil {
		return m, err
	}
	if m.Message, err = diff.ReadDocument(doc); err != nil {
		return m, fmt.Errorf("%s: %w", fileName(name), err)
	}
	return m, nil
}

// fileName is the name of a file, or of standard input.
func fileName(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}

// namesOfMessages are the names of the type that was given, or else of the first
// message that is of a capture.
func (o *DiffOptions) namesOfMessages(messages ...locatedMessage) (namer, error) {
	n := namer{defs: o.Definitions}
	if o.Type != "" {
		if n.defs != nil {
			n.root = n.defs.Message(o.Type)
		}
		if n.root == nil {
			return n, &DiffError{Problem: UnknownType, text: fmt.Sprintf("no message %s in the definitions", o.Type)}
		}
		return n, nil
	}
	for _, m := range messages {
		if m.exchange != nil {
			n.root = n.frameType(m.exchange.Call, m.dir)
			break
		}
	}
	return n, nil
}

// A namer names the paths of differences as definitions have them.
type namer struct {
	defs *schema.Schema
	call decode.Call                    // of an exchange
	root protoreflect.MessageDescriptor // of a message
}

func (n namer) frameType(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
	if n.defs == nil {
		return nil
	}
	return n.defs.FrameType(call, dir)
}

// field is the field at a path of a difference, with the path in names; nil and
// "" where it is not known.
func (n namer) field(path string) (protoreflect.FieldDescriptor, string) {
	md := n.root
	// A path may start with the frame, such as "@up/0 1.2", which determines the type.
	if strings.HasPrefix(path, "@") {
		frame, rest, _ := strings.Cut(path, " ")
		dir := captures.Up
		if strings.HasPrefix(frame, "@"+captures.Down.String()) {
			dir = captures.Down
		}
		if path = rest; md == nil {
			md = n.frameType(n.call, dir)
		}
	}
	steps, err := fieldpath.ParseNumbers(path)
	if md == nil || err != nil || len(steps) == 0 {
		return nil, ""
	}
	var names []string
	var fd protoreflect.FieldDescriptor
	for _, step := range steps {
		number, ok := step.Number()
		if md == nil || !ok || number > uint64(protoreflect.FieldNumber(1<<29-1)) {
			return nil, ""
		}
		if fd = md.Fields().ByNumber(protoreflect.FieldNumber(number)); fd == nil {
			return nil, ""
		}
		name := string(fd.Name())
		if step.Index != fieldpath.All {
			name += "[" + strconv.Itoa(step.Index) + "]"
		}
		names = append(names, name)
		md = fd.Message()
	}
	return fd, strings.Join(names, ".")
}
