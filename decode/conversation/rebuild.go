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

// RebuildHead returns the message of a head with another request id; all other
// fields stay as they are.
//
// Errors: where the message has no one request id.
func RebuildHead(p *profile.Profile, c decode.Call, data []byte, requestID string) ([]byte, error) {
	h := headOf(p, c)
	if h == nil {
		return nil, fmt.Errorf("decode: %s is no head of a conversation", c.RPC)
	}
	t := wire.Parse(data, wire.Options{})
	edit, err := setID(t, h.ID, requestID)
	if err != nil {
		return nil, err
	}
	return wire.Splice(t, []wire.Edit{edit})
}

// RebuildAppend returns the message of an append with another request id,
// number and message inside, which is wrapped as the one before was; all other
// fields stay as they are.
//
// Errors: where the message has no one request id, or several numbers or messages.
func RebuildAppend(by *profile.Append, data []byte, requestID string, number int64, message []byte) ([]byte, error) {
	t := wire.Parse(data, wire.Options{})
	edit, err := setID(t, by.ID, requestID)
	if err != nil {
		return nil, err
	}
	edits := []wire.Edit{edit}
	was := appended(by, &decode.Frame{Tree: t}, false)
	value, err := was.form.Wrap(message)
	if err != nil {
		return nil, err
	}
	field := by.Binary
	if was.form.Hex || len(t.Find(fieldpath.Path{fieldpath.Field(field)})) == 0 && len(t.Find(fieldpath.Path{fieldpath.Field(by.Text)})) > 0 {
		field = by.Text
	}
	tagged := protowire.AppendBytes(protowire.AppendTag(nil, protowire.Number(field), protowire.BytesType), value)
	if edits, err = setField(t, edits, field, value, tagged, len(value) == 0); err != nil {
		return nil, err
	}
	value = protowire.AppendVarint(nil, uint64(number))
	tagged = append(protowire.AppendTag(nil, protowire.Number(by.Number), protowire.VarintType), value...)
	if edits, err = setField(t, edits, by.Number, value, tagged, number == 0); err != nil {
		return nil, err
	}
	return wire.Splice(t, edits)
}

func setID(t *wire.Tree, numbers []uint64, id string) (wire.Edit, error) {
	p := pathOf(numbers)
	at := t.Find(p)
	if len(at) != 1 || t.Node(at[0]).Type != wire.Len {
		return wire.Edit{}, fmt.Errorf("decode: the message has %d request ids at %s", len(at), p)
	}
	return wire.Edit{Op: wire.Set, Node: at[0], Data: []byte(id)}, nil
}

// setField gives a field of the root a value; tagged is the whole field, for
// where it is not there, unless it need not be.
func setField(t *wire.Tree, edits []wire.Edit, number uint64, value, tagged []byte, isDefault bool) ([]wire.Edit, error) {
	at := t.Find(fieldpath.Path{fieldpath.Field(number)})
	switch {
	case len(at) > 1:
		return nil, fmt.Errorf("decode: field %d is there %d times", number, len(at))
	case len(at) == 1:
		return append(edits, wire.Edit{Op: wire.Set, Node: at[0], Data: value}), nil
	case isDefault:
		return edits, nil
	}
	return append(edits, wire.Edit{Op: wire.Into, Node: 0, Data: tagged}), nil
}

// Carried returns the server's messages that frames of a head's answer carry:
// the frames themselves, unless the call is one that wraps them.
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

// IsLast reports whether one of the frames of a head's answer says that the
// server's half ends with it: of polls, which come in several calls. The answer
// of any other head is all there is.
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
