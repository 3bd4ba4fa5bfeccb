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

// DiffOptions say how frames, exchanges or captures are compared.
type DiffOptions struct {
	// Options are the options of the comparison itself.
	diff.Options

	// Definitions give names to fields; nil for none.
	Definitions *schema.Schema

	// Type is the full name of the type of messages in files; "" if it is not known.
	Type string

	// Open opens a capture.
	Open func(path string) (*Capture, error)

	// Read reads a file, or standard input for "-".
	Read func(name string) ([]byte, error)

	// Opened, if set, is called with each of two captures that are compared as a whole.
	Opened func(*Capture)
}

// A Comparison has the differences between two frames, files or exchanges.
type Comparison struct {
	// Call names the pair of calls that was compared, such as "pkg.Service/Run[0]", if two captures are
	// compared; otherwise "".
	Call string

	// Changes are the differences, including ignored ones.
	Changes []diff.Change

	// names finds the field names of paths.
	names namer
}

// Message returns the type of the message that the path of a change names: of a frame, or of a field; nil
// if it is not known.
func (c *Comparison) Message(ch *diff.Change) protoreflect.MessageDescriptor {
	if md, rest := c.names.start(ch.Path); rest == "" {
		return md
	}
	if fd, _ := c.names.field(ch.Path); fd != nil {
		return fd.Message()
	}
	return nil
}

// Describe returns a change with its values converted to the types that the definitions declare, the
// definition of the field, and the path in field names. The latter are nil and "" if they are not known.
func (c *Comparison) Describe(ch diff.Change) (diff.Change, protoreflect.FieldDescriptor, string) {
	fd, name := c.names.field(ch.Path)
	ch.Old, ch.New = declaredValue(ch.Old, ch.OldBytes, fd), declaredValue(ch.New, ch.NewBytes, fd)
	return ch, fd, name
}

// Lines returns the changes, including ignored ones, as objects for JSON output. withHex adds the bytes
// of both sides.
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

// declaredValue returns the value v of a difference as a number or list of numbers, if the field's
// definition fd declares a fixed-size number or a packed list; otherwise v. field has the field's bytes.
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

// CountChanges returns the number of differences that count, and of those that are ignored by default.
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

// Diff compares two frames, two exchanges or two captures, given by their addresses, or two files of
// messages.
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
		return nil, &DiffError{Problem: Unlike, text: unlikeCapture(left, right, lc)}
	case la.Exchange != 0 && ra.Exchange != 0 && la.Frame < 0 && ra.Frame < 0:
		return o.diffExchanges(ctx, la, ra)
	case la.Exchange != 0 && la.Frame < 0 || ra.Exchange != 0 && ra.Frame < 0:
		return nil, &DiffError{Problem: Unlike, text: fmt.Sprintf("cannot compare a whole exchange with a single message: %s, %s", left, right)}
	}
	return o.diffMessages(ctx, left, right)
}

// IsCapture reports whether a file can be opened as a capture.
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

// diffMessages compares two messages: frames given by addresses, or files.
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

// diffExchanges compares two exchanges, or the conversations that begin with them.
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

// diffCaptures pairs the exchanges of two captures by their methods, and compares each pair.
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

// exchange decodes the exchange, or the conversation, at an address.
func (o *DiffOptions) exchange(ctx context.Context, at Address) (*decode.Exchange, error) {
	c, err := o.Open(at.File)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ex, err := c.Resolve(ctx, at.Exchange, at.Part)
	return ex.Exchange, err
}

// A locatedMessage is a message to compare, with the exchange that it comes from.
type locatedMessage struct {
	// Message is the encoded message, or the messages of a file.
	diff.Message

	// exchange is the exchange of a frame; nil for a message in a file.
	exchange *decode.Exchange

	// dir is the direction of a frame.
	dir captures.Direction
}

// message reads the frame that name addresses, or else a file: one or several protobuf messages in any
// encoding that 'unwire decode' reads, or JSON.
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

// fileName returns the name of an input for messages: "stdin" for "-".
func fileName(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}

// namesOfMessages returns the namer for messages of the type o.Type or, if it is "", of the type of the
// first message that is a frame.
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

// A namer translates paths of field numbers to field names, by definitions.
type namer struct {
	// defs are the definitions; nil for none.
	defs *schema.Schema

	// call is the call whose frames are compared, for paths that begin with a frame.
	call decode.Call

	// root is the type of the compared messages; nil if it is not known.
	root protoreflect.MessageDescriptor
}

// frameType returns the message type of a call's frames in one direction; nil if it is not known.
func (n namer) frameType(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
	if n.defs == nil {
		return nil
	}
	return n.defs.FrameType(call, dir)
}

// start returns the type of the message that a path begins in, nil if it is not known, and the path
// without its frame: it may begin with one, as in "@up/0 1.2".
func (n namer) start(path string) (md protoreflect.MessageDescriptor, rest string) {
	if !strings.HasPrefix(path, "@") {
		return n.root, path
	}
	frame, rest, _ := strings.Cut(path, " ")
	if n.root != nil {
		return n.root, rest
	}
	dir := captures.Up
	if strings.HasPrefix(frame, "@"+captures.Down.String()) {
		dir = captures.Down
	}
	return n.frameType(n.call, dir), rest
}

// field returns the definition of the field at a path, and the path in field names; nil and "" if they
// are not known. The path may begin with a frame, as in "@up/0 1.2".
func (n namer) field(path string) (protoreflect.FieldDescriptor, string) {
	md, path := n.start(path)
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

// unlikeCapture returns the error for two inputs of which only one is a whole capture; isLeft means that it is left.
func unlikeCapture(left, right string, isLeft bool) string {
	if !isLeft {
		left, right = right, left
	}
	return fmt.Sprintf("cannot compare %s, which is a whole capture, with %s, which is not", left, right)
}
