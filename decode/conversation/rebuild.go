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

// RebuildHead returns the request of a head with another request id. Other fields are unchanged.
//
// Errors: the request does not have exactly one request id.
func RebuildHead(p *profile.Profile, c decode.Call, data []byte, requestID string) ([]byte, error) {
	h := headOf(p, c)
	if h == nil {
		return nil, fmt.Errorf("decode: %s is not the first exchange of a conversation", c.RPC)
	}
	t := wire.Parse(data, wire.Options{})
	edit, err := setID(t, h.ID, requestID)
	if err != nil {
		return nil, err
	}
	return wire.Splice(t, []wire.Edit{edit})
}

// RebuildAppend returns the request of an append with another request id, number and message. The message is
// wrapped like the original one. Other fields are unchanged.
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

// setID returns the edit of a message that sets its request id.
func setID(t *wire.Tree, numbers []uint64, id string) (wire.Edit, error) {
	p := pathOf(numbers)
	at := t.Find(p)
	if len(at) != 1 || t.Node(at[0]).Type != wire.Len {
		return wire.Edit{}, fmt.Errorf("decode: the message has %d request ids at %s", len(at), p)
	}
	return wire.Edit{Op: wire.SetValue, Node: at[0], Data: []byte(id)}, nil
}

// setField sets the value of a top-level field. tagged is the whole encoded field, which is added if the field
// is missing, unless the value is the default.
func setField(t *wire.Tree, edits []wire.Edit, number uint64, value, tagged []byte, isDefault bool) ([]wire.Edit, error) {
	at := t.Find(fieldpath.Path{fieldpath.Field(number)})
	switch {
	case len(at) > 1:
		return nil, fmt.Errorf("decode: field %d occurs %d times", number, len(at))
	case len(at) == 1:
		return append(edits, wire.Edit{Op: wire.SetValue, Node: at[0], Data: value}), nil
	case isDefault:
		return edits, nil
	}
	return append(edits, wire.Edit{Op: wire.AppendInto, Node: 0, Data: tagged}), nil
}

// Carried returns the server's messages in frames of a head's response: the frames themselves, unless the method
// wraps messages.
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

// IsLast reports whether the server's messages end with these frames of a head's response. A poll announces the
// end, because further polls may follow. The response of another head is always complete.
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
