package secret

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// Clean copies a capture without its secrets. Everything is filtered by the redactor of to, after fields with
// secrets were replaced by placeholders. Exchanges keep their numbers, times, outcomes, trailers and chunk
// boundaries. Derived data is not copied. Clean returns the number of copied exchanges, the number of values that
// were replaced because of their field, and the amount of data that was omitted because it cannot be searched (if
// the redactor of to omits such data).
//
// Shape: a placeholder has the length of the secret. A compressed frame or body is compressed again, and its
// envelope gets the new length.
//
// Limits: those of CopyExchange, redact.Redactor and decode.Decode. A value in a field is replaced in Connect
// and gRPC envelopes, in unary bodies, and in messages that their fields contain in hex or base64. Elsewhere it
// is replaced only as a known secret, that is, if it has 12 bytes or more: in base64 bodies, in events, in
// compressed fields, and in frames that exceed the limits of decompression. Audit reports what remains.
//
// Errors: errors of the stores.
func Clean(ctx context.Context, to, from *store.Store, rules *Rules) (exchanges, values int, omitted Omitted, err error) {
	red := to.Redactor
	if red == nil {
		return 0, 0, omitted, fmt.Errorf("the capture %s is recorded without redaction, so it cannot be the redacted copy", to.Path)
	}
	v, err := NewView(ctx, from, red, rules)
	if err != nil {
		return 0, 0, omitted, err
	}

	// The view has all edits, so each exchange is copied once.
	for ex, err := range from.Exchanges(ctx) {
		if err == nil && exchanges == len(v.ids) {
			break // it was recorded after the secrets were learned
		}
		if err == nil && ex.ID != v.ids[exchanges] {
			err = captures.NoExchange(v.ids[exchanges])
		}
		if err == nil {
			err = to.CopyExchange(ctx, from, v.c.cleanHead(ex), v.c.edits[ex.ID])
		}
		if err != nil {
			return exchanges, v.c.values, omitted, err
		}
		exchanges++
		if n := v.c.omittedBytes(ex.ID); n > 0 {
			omitted.Exchanges++
			omitted.Bytes += n
		}
	}
	if exchanges < len(v.ids) {
		return exchanges, v.c.values, omitted, captures.NoExchange(v.ids[exchanges])
	}
	if err := copyAdditions(ctx, to, from); err != nil {
		return exchanges, v.c.values, omitted, err
	}
	return exchanges, v.c.values, omitted, to.Flush(ctx)
}

// copyAdditions copies what users added: chosen types and definitions unchanged, and notes without the secrets
// that the redactor of to has learned.
func copyAdditions(ctx context.Context, to, from *store.Store) error {
	red := to.Redactor
	readings, err := from.Readings(ctx, "")
	if err != nil {
		return err
	}
	for _, r := range readings {
		if len(red.FindURL("https://host"+strings.TrimLeft(r.Method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ "))) > 0 || string(red.Bytes([]byte(r.Method))) != r.Method {
			// The method's path contains a secret, so it is a different one in the copy.
			continue
		}
		if err := to.PutReading(ctx, r); err != nil {
			return err
		}
	}

	// The redactor of the target filters the notes' texts.
	notes, err := from.Notes(ctx, 0)
	if err != nil {
		return err
	}
	for _, n := range notes {
		if n.Kind != captures.TextNote && n.Kind != captures.MarkNote {
			// Notes of other programs may have any format.
			continue
		}
		if err := to.PutNote(ctx, n); err != nil {
			return err
		}
	}

	// Only definitions in use, and of formats without traffic in them.
	definitions, err := from.Definitions(ctx)
	if err != nil {
		return err
	}
	for _, d := range definitions {
		if !d.Active || d.Kind != captures.ProtoFile && d.Kind != captures.DescriptorSet {
			continue
		}
		if err := to.PutDefinition(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// A cleaner finds the fields that contain secrets and records the edits of bodies that replace them.
type cleaner struct {
	// red searches for secrets by the form and the name of values, and remembers the found ones to replace them
	// elsewhere.
	red *redact.Redactor

	// rules decide which fields are secret, by path or name.
	rules *Rules

	// edits are the edits of bodies, by exchange and direction.
	edits map[int64][2][]redact.Edit

	// values is the number of replaced values.
	values int

	// typed has the exchanges in which the value of a secret field was replaced.
	typed map[int64]bool

	// messages maps the ID of a Connect GET exchange to the value of its message parameter and the
	// redacted replacement.
	messages map[int64][2]string

	// runs are the ranges of bodies that are omitted because they cannot be searched, by exchange.
	runs map[int64][]redact.Unsearched

	// inURL counts the bytes that are omitted from URLs, by exchange.
	inURL map[int64]int64
}

// planEdits finds the secret fields of an exchange, adds their values to the secrets that the redactor knows, and
// records the edits that replace them.
func (c *cleaner) planEdits(ctx context.Context, from *store.Store, ex *captures.Exchange, o decode.Options) error {
	id := ex.ID
	d, err := decode.DecodeRecord(ctx, from, ex, o)
	if err != nil {
		return err
	}
	var raw [2][]byte
	var edits [2][]redact.Edit
	for i := range d.Frames {
		f := &d.Frames[i]
		c.learnFrame(f, d.URL)
		changes, err := c.fieldEdits(d, f)
		if err != nil {
			return fmt.Errorf("exchange %d, %s frame %d cannot be redacted: %w", id, f.Dir.Sender(), f.Seq, err)
		}
		if len(changes) == 0 {
			continue
		}
		c.typed[id] = true

		// The message of a Connect GET is in the URL, so no body is edited.
		if d.Protocol == decode.ConnectGet && f.Dir == captures.Up {
			if data, err := c.editedPayload(f, changes); err == nil {
				c.replaceMessage(d, f, data)
			}
			continue
		}

		// Read the bodies only if something must be replaced.
		if raw[0] == nil && raw[1] == nil {
			if raw, err = rawBodies(ctx, from, id); err != nil {
				return err
			}
		}
		edit, ok, err := c.bodyEdit(raw[f.Dir], f, changes)
		if err != nil {
			return fmt.Errorf("exchange %d, %s frame %d cannot be redacted: %w", id, f.Dir.Sender(), f.Seq, err)
		}
		if ok {
			edits[f.Dir] = append(edits[f.Dir], edit)
		}
	}

	// Secrets outside of frames.
	if err := c.learnBodies(ctx, from, d); err != nil {
		return err
	}
	if err := c.omitUnsearched(ctx, from, &d.Exchange, &edits); err != nil {
		return err
	}
	if len(edits[0])+len(edits[1]) > 0 {
		c.edits[id] = edits
	}
	return nil
}

// learnFrame adds the secrets of a frame of a call to u and of messages inside its fields to those that the redactor knows. They
// may occur elsewhere in a form in which only known secrets are found.
func (c *cleaner) learnFrame(f *decode.Frame, u string) {
	c.red.Find(f.Data, false, u)
	for _, in := range f.Inner {
		c.red.Find(in.Data, false, u)
	}
}

// learnBodies adds the secrets in body bytes that are not part of a frame to those that the redactor knows.
func (c *cleaner) learnBodies(ctx context.Context, from *store.Store, d *decode.Exchange) error {
	if !hasRawBodies(d) {
		return nil
	}
	raw, err := rawBodies(ctx, from, d.ID)
	for _, p := range raw {
		c.red.Find(p, false, d.URL)
	}
	return err
}

// fieldEdits returns the edits that replace the secret fields of a frame's message, including those in nested
// messages.
func (c *cleaner) fieldEdits(d *decode.Exchange, f *decode.Frame) ([]wire.Edit, error) {
	changes := c.placeholderEdits(f.Tree, c.rules.frameType(d.Call, f.Dir), d.Choices[f.Dir&1])
	replaced := make(map[int32]bool)
	for _, e := range changes {
		replaced[e.Node] = true
	}
	for _, in := range f.Inner {
		edits := c.placeholderEdits(in.Tree, c.rules.innerType(d.Call, f.Dir), nil)
		// If the whole field is secret, its inner message is replaced with it.
		if len(edits) == 0 || replaced[in.Node] {
			continue
		}
		data, err := wire.Splice(in.Tree, edits)
		if err != nil {
			return nil, err
		}
		if text, ok := encodeAs(f.Tree.Payload(in.Node), in.Data, data); ok {
			changes = append(changes, wire.Edit{Op: wire.SetValue, Node: in.Node, Data: text})
		}
	}
	return changes, nil
}

// placeholderEdits returns the edits that replace the secret fields of message t by placeholders, and adds their
// values to the secrets that the redactor knows.
func (c *cleaner) placeholderEdits(t *wire.Tree, md protoreflect.MessageDescriptor, choices []kind.Choice) []wire.Edit {
	var edits []wire.Edit
	for _, v := range c.rules.secretFields(c.red, t, md, choices) {
		c.values++
		p := t.Payload(v.node)
		c.red.Learn(string(p))
		edits = append(edits, wire.Edit{Op: wire.SetValue, Node: v.node, Data: c.red.Fill(p)})
	}
	return edits
}

// encodeAs encodes data in the encoding (hex or base64) in which text encodes old. ok is false if that is not
// known.
func encodeAs(text, old, data []byte) ([]byte, bool) {
	for _, encode := range []func([]byte) string{
		hex.EncodeToString,
		func(b []byte) string { return strings.ToUpper(hex.EncodeToString(b)) },
		base64.StdEncoding.EncodeToString, base64.URLEncoding.EncodeToString,
		base64.RawStdEncoding.EncodeToString, base64.RawURLEncoding.EncodeToString,
	} {
		if encode(old) == string(text) {
			return []byte(encode(data)), true
		}
	}
	return nil, false
}

// editedPayload applies edits to the message in a frame, and returns the frame's new payload, compressed like the
// old one.
func (c *cleaner) editedPayload(f *decode.Frame, changes []wire.Edit) ([]byte, error) {
	payload, err := wire.Splice(f.Tree, changes)
	if err != nil || f.Encoding == "" {
		return payload, err
	}
	return envelope.Compress(f.Encoding, payload)
}

// bodyEdit returns the edit of the body raw that makes the changes to frame f. ok is false if the frame's bytes do
// not occur in the body as they are.
func (c *cleaner) bodyEdit(raw []byte, f *decode.Frame, changes []wire.Edit) (e redact.Edit, ok bool, err error) {
	if f.Encoding != "" && f.Err != nil {
		// Data may be only a part of the decompressed payload.
		return e, false, nil
	}
	payload, err := c.editedPayload(f, changes)
	if err != nil {
		return e, false, err
	}
	at := int64(0)
	if f.Framed {
		at = f.Offset + envelope.PrefixLen
	}
	end := at + int64(len(f.Raw))
	if f.Partial || end > int64(len(raw)) || !bytes.Equal(raw[at:end], f.Raw) || !f.Framed && end != int64(len(raw)) {
		// The body is base64, events, or compressed as a whole.
		return e, false, nil
	}
	if !f.Framed {
		return redact.Edit{Start: 0, End: end, Data: payload}, true, nil
	}
	return redact.Edit{Start: f.Offset, End: end, Data: envelope.Append(nil, f.Flags, payload)}, true, nil
}
