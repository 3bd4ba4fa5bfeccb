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

// Clean copies a capture without its secrets: everything passes the redaction of
// to, after the values of fields that hold secrets were replaced. Exchanges keep
// their numbers, times, outcomes, trailers and chunk boundaries; what was
// derived is not copied. It returns how many exchanges were copied, and how many
// values were replaced because of their field, and what was left out: what the
// search for secrets cannot look into, if the redaction of to omits it.
//
// Shape: a placeholder has the length of what it replaces; a frame or a body
// that was compressed is compressed anew, and its envelope gets the new length.
// Limits: those of CopyExchange, redact.Redactor and decode.Decode. A value in a field is
// replaced in place in Connect and gRPC envelopes and unary bodies, and there in
// messages that a field holds in hex or base64; in bodies that are base64, in
// events, in compressed fields, and in frames that do not inflate within the
// limits, only as a known secret, that is if it has 12 bytes or more. Audit tells
// what is left.
// Errors: of the stores.
func Clean(ctx context.Context, to, from *store.Store, rules *Rules) (exchanges, values int, omitted Omitted, err error) {
	red := to.Redactor
	if red == nil {
		return 0, 0, omitted, fmt.Errorf("decode/secret: %s keeps secrets", to.Path)
	}
	v, err := NewView(ctx, from, red, rules)
	if err != nil {
		return 0, 0, omitted, err
	}
	for _, id := range v.ids {
		ex, err := from.Exchange(ctx, id)
		if err == nil {
			err = to.CopyExchange(ctx, from, v.c.head(ex), v.c.edits[id])
		}
		if err != nil {
			return exchanges, v.c.values, omitted, err
		}
		exchanges++
		if n := v.c.omitted(id); n > 0 {
			omitted.Exchanges++
			omitted.Bytes += n
		}
	}
	if err := copyAdditions(ctx, to, from); err != nil {
		return exchanges, v.c.values, omitted, err
	}
	return exchanges, v.c.values, omitted, to.Flush(ctx)
}

// copyAdditions copies what users added: readings and definitions as they are, and notes
// without the secrets that the redactor of to knows.
func copyAdditions(ctx context.Context, to, from *store.Store) error {
	red := to.Redactor
	readings, err := from.Readings(ctx, "")
	if err != nil {
		return err
	}
	for _, r := range readings {
		if len(red.FindURL("https://host"+strings.TrimLeft(r.Method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ "))) > 0 || string(red.Bytes([]byte(r.Method))) != r.Method {
			continue // of a path that is another one in the copy
		}
		if err := to.PutReading(ctx, r); err != nil {
			return err
		}
	}
	notes, err := from.Notes(ctx, 0)
	if err != nil {
		return err
	}
	for _, n := range notes {
		if n.Kind != captures.TextNote && n.Kind != captures.MarkNote {
			continue // another program's
		}
		if err := to.PutNote(ctx, n); err != nil {
			return err
		}
	}
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

// A cleaner finds the fields to be replaced.
type cleaner struct {
	red    *redact.Redactor
	rules  *Rules
	edits  map[int64][2][]redact.Edit
	values int

	typed map[int64]bool // exchanges of which a field was replaced

	// messages are, of Connect GETs, the parameter's value, and what replaces it.
	messages map[int64][2]string
	// runs are the parts of bodies that are left out, by exchange.
	runs  map[int64][]redact.Unsearched
	inURL map[int64]int64 // bytes that are left out of URLs
}

// plan finds the secret fields of an exchange, learns them, and notes the edits
// that replace them.
func (c *cleaner) plan(ctx context.Context, from *store.Store, id int64) error {
	d, err := decode.Decode(ctx, from, id, decode.Options{})
	if err != nil {
		return err
	}
	var raw [2][]byte
	var edits [2][]redact.Edit
	for i := range d.Frames {
		f := &d.Frames[i]
		c.learn(f)
		changes, err := c.changes(d, f)
		if err != nil {
			return fmt.Errorf("decode/secret: exchange %d, %s frame %d: %w", id, f.Dir, f.Seq, err)
		}
		if len(changes) == 0 {
			continue
		}
		c.typed[id] = true
		if d.Protocol == decode.ConnectGet && f.Dir == captures.Up {
			if data, err := c.changed(f, changes); err == nil {
				c.replaceMessage(d, f, data)
			}
			continue
		}
		if raw[0] == nil && raw[1] == nil {
			if raw, err = rawBodies(ctx, from, id); err != nil {
				return err
			}
		}
		edit, ok, err := c.edit(raw[f.Dir], f, changes)
		if err != nil {
			return fmt.Errorf("decode/secret: exchange %d, %s frame %d: %w", id, f.Dir, f.Seq, err)
		}
		if ok {
			edits[f.Dir] = append(edits[f.Dir], edit)
		}
	}
	if err := c.learnBodies(ctx, from, d); err != nil {
		return err
	}
	if err := c.omit(ctx, from, &d.Exchange, &edits); err != nil {
		return err
	}
	if len(edits[0])+len(edits[1]) > 0 {
		c.edits[id] = edits
	}
	return nil
}

// learn has the redactor meet the secrets of a frame and of the messages in its
// fields: they may stand elsewhere too, where only known secrets are found.
func (c *cleaner) learn(f *decode.Frame) {
	c.red.Find(f.Data, false)
	for _, in := range f.Inner {
		c.red.Find(in.Data, false)
	}
}

// learnBodies does that for bodies that are no frames.
func (c *cleaner) learnBodies(ctx context.Context, from *store.Store, d *decode.Exchange) error {
	if !hasRawBodies(d) {
		return nil
	}
	raw, err := rawBodies(ctx, from, d.ID)
	for _, p := range raw {
		c.red.Find(p, false)
	}
	return err
}

// changes are the edits of a frame's tree that replace its secret fields, and
// those of the messages in its fields.
func (c *cleaner) changes(d *decode.Exchange, f *decode.Frame) ([]wire.Edit, error) {
	changes := c.fill(f.Tree, c.rules.frameType(d.Call, f.Dir), d.Choices[f.Dir&1])
	taken := make(map[int32]bool)
	for _, e := range changes {
		taken[e.Node] = true
	}
	for _, in := range f.Inner {
		edits := c.fill(in.Tree, c.rules.innerType(d.Call, f.Dir), nil)
		if len(edits) == 0 || taken[in.Node] {
			continue
		}
		data, err := wire.Splice(in.Tree, edits)
		if err != nil {
			return nil, err
		}
		if text, ok := encodeAs(f.Tree.Payload(in.Node), in.Data, data); ok {
			changes = append(changes, wire.Edit{Op: wire.Set, Node: in.Node, Data: text})
		}
	}
	return changes, nil
}

// fill are the edits that put placeholders over a tree's secret fields, which
// are learned.
func (c *cleaner) fill(t *wire.Tree, md protoreflect.MessageDescriptor, choices []kind.Choice) []wire.Edit {
	var edits []wire.Edit
	for _, v := range c.rules.typed(c.red, t, md, choices) {
		c.values++
		p := t.Payload(v.node)
		c.red.Learn(string(p))
		edits = append(edits, wire.Edit{Op: wire.Set, Node: v.node, Data: c.red.Fill(p)})
	}
	return edits
}

// encodeAs encodes data in the way in which text encodes old.
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

// changed returns a frame's raw bytes with changes to its tree.
func (c *cleaner) changed(f *decode.Frame, changes []wire.Edit) ([]byte, error) {
	payload, err := wire.Splice(f.Tree, changes)
	if err != nil || f.Encoding == "" {
		return payload, err
	}
	return envelope.Compress(f.Encoding, payload)
}

// edit makes the changes to a frame in its direction's bytes; ok is false where
// the frame does not stand there as it is.
func (c *cleaner) edit(raw []byte, f *decode.Frame, changes []wire.Edit) (e redact.Edit, ok bool, err error) {
	if f.Encoding != "" && f.Err != nil {
		return e, false, nil // Data may be less than what Raw inflates to
	}
	payload, err := c.changed(f, changes)
	if err != nil {
		return e, false, err
	}
	at := int64(0)
	if f.Framed {
		at = f.Offset + envelope.PrefixLen
	}
	end := at + int64(len(f.Raw))
	if f.Partial || end > int64(len(raw)) || !bytes.Equal(raw[at:end], f.Raw) || !f.Framed && end != int64(len(raw)) {
		return e, false, nil // base64, events, or a compression around all
	}
	if !f.Framed {
		return redact.Edit{Start: 0, End: end, Data: payload}, true, nil
	}
	return redact.Edit{Start: f.Offset, End: end, Data: envelope.Append(nil, f.Flags, payload)}, true, nil
}
