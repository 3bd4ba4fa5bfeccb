package conversation

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/wire"
)

// RebuildHead returns data, the encoded request of call c, with requestID as its request id. The call must be a
// head, i.e. its response carries the server's messages of a split stream. Other fields are unchanged.
//
// Errors: the request does not have exactly one request id.
func RebuildHead(p *profile.Profile, c decode.Call, data []byte, requestID string) ([]byte, error) {
	h := headOf(p, c)
	if h == nil {
		return nil, fmt.Errorf("decode: a call of %s does not begin a conversation", c.RPC)
	}
	t := wire.Parse(data, wire.Options{})
	edit, err := setID(t, h.ID, requestID)
	if err != nil {
		return nil, err
	}
	return wire.Splice(t, []wire.Edit{edit})
}

// RebuildAppend returns data, the encoded request of an append (a call that carries one client message), with
// another request id, sequence number and message. The message is wrapped like the original one. Other fields are
// unchanged.
//
// Errors: the request does not have exactly one request id, or has several numbers or messages.
func RebuildAppend(by *profile.Append, data []byte, requestID string, number int64, message []byte) ([]byte, error) {
	t := wire.Parse(data, wire.Options{})
	edit, err := setID(t, by.ID, requestID)
	if err != nil {
		return nil, err
	}

	// Wrap the new message like the original one.
	edits := []wire.Edit{edit}
	was := appended(by, &decode.Frame{Tree: t}, false)
	value, err := was.form.Wrap(message)
	if err != nil {
		return nil, err
	}
	// Keep the field that the original used.
	field := by.Binary
	if was.form.Hex || len(t.Find(fieldpath.Path{fieldpath.Field(field)})) == 0 && len(t.Find(fieldpath.Path{fieldpath.Field(by.Text)})) > 0 {
		field = by.Text
	}

	// The message, then the number. A missing field is added at the end.
	tagged := protowire.AppendBytes(protowire.AppendTag(nil, protowire.Number(field), protowire.BytesType), value)
	if edits, err = setField(t, edits, field, value, tagged, len(value) == 0); err != nil {
		return nil, err
	}
	value = protowire.AppendVarint(nil, uint64(number))
	tagged = append(protowire.AppendTag(nil, protowire.Number(by.Seq), protowire.VarintType), value...)
	if edits, err = setField(t, edits, by.Seq, value, tagged, number == 0); err != nil {
		return nil, err
	}
	return wire.Splice(t, edits)
}

// setID returns the edit that sets the request id in message t. numbers are the path of field numbers to it. It is
// an error if the path does not select exactly one field.
func setID(t *wire.Tree, numbers []uint64, id string) (wire.Edit, error) {
	p := pathOf(numbers)
	at := t.Find(p)
	if len(at) != 1 || t.Node(at[0]).Type != wire.Len {
		return wire.Edit{}, fmt.Errorf("decode: the message has %d request IDs at the path %s, but exactly one is expected", len(at), p)
	}
	return wire.Edit{Op: wire.SetValue, Node: at[0], Data: []byte(id)}, nil
}

// setField appends to edits the edit that sets the top-level field number to value. If the field is missing,
// tagged, the whole encoded field, is added, unless isDefault is true.
func setField(t *wire.Tree, edits []wire.Edit, number uint64, value, tagged []byte, isDefault bool) ([]wire.Edit, error) {
	at := t.Find(fieldpath.Path{fieldpath.Field(number)})
	switch {
	case len(at) > 1:
		return nil, fmt.Errorf("decode: field %d occurs %d times, but at most once is expected", number, len(at))
	case len(at) == 1:
		return append(edits, wire.Edit{Op: wire.SetValue, Node: at[0], Data: value}), nil
	case isDefault:
		return edits, nil
	}
	return append(edits, wire.Edit{Op: wire.AppendInto, Node: 0, Data: tagged}), nil
}

// Carried returns the server's messages that are contained in frames of a head's response. These are the frames
// themselves, unless the profile says that the method wraps messages in a field.
func Carried(c decode.Call, frames []decode.Frame, o decode.Options) []decode.Frame {
	h := headOf(o.Profile, c)
	if h == nil || h.Data == 0 {
		return frames
	}
	s := decode.NewMessages(Joined(o.Profile, c), o)
	var out []decode.Frame
	for i := range frames {
		f := &frames[i]
		if f.Dir != captures.Down || f.End != nil || f.Tree == nil {
			out = append(out, *f)
			continue
		}
		if m, ok := polled(h, f, false); ok {
			g := m.decode(s, f)
			g.Seq, g.T = f.Seq, f.T
			out = append(out, g)
		}
	}
	return out
}

// IsLast reports whether the server sends no messages after these frames, which are the response to head c. A
// response to a poll has a field for that, because further polls may follow; any other response is complete.
func IsLast(p *profile.Profile, c decode.Call, frames []decode.Frame) bool {
	h := headOf(p, c)
	if h == nil || h.Data == 0 {
		return true
	}
	for i := range frames {
		if f := &frames[i]; f.Dir == captures.Down && (f.Tree != nil && numberAt(f.Tree, h.EOF) != 0 || f.End != nil && f.End.Error != nil) {
			return true
		}
	}
	return false
}
