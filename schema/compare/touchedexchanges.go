package compare

import (
	"context"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/wire"
	"unwire/schema"
)

// maxTouched is how many exchanges are named for one change.
const maxTouched = 100

// A Toucher collects which exchanges hold what changed between two versions.
//
// Protobuf frames are read with both versions: what was removed or changed is
// looked for by the old one, what was added by the new one. JSON is not read.
type Toucher struct {
	// Touched are the addresses of the exchanges that hold a change, by its index, at
	// most 100 each.
	Touched map[int][]string

	versions [2]*schema.Schema
	changes  []Change

	// changes by the element that shows them, in either version
	by [2]map[string][]int
}

// NewToucher returns a Toucher for the changes between two versions.
func NewToucher(before, after *schema.Schema, changes []Change) *Toucher {
	t := &Toucher{versions: [2]*schema.Schema{before, after}, changes: changes, Touched: map[int][]string{}}
	t.by = [2]map[string][]int{{}, {}}
	for i, c := range changes {
		version := 0
		if c.Change == Added {
			version = 1
		}
		t.by[version][c.Element] = append(t.by[version][c.Element], i)
	}
	return t
}

// AddCapture looks at the exchanges of a capture, or only at the one with the number id
// if that is not 0, as conversation.EachCall walks them; those that carry a
// conversation are not looked at on their own. address names an exchange.
//
// Errors: those of conversation.EachCall, of a damaged capture after all that is readable.
func (t *Toucher) AddCapture(ctx context.Context, src captures.Capture, id int64, part bool, address func(id int64) string) error {
	return conversation.EachCall(ctx, src, id, part, decode.Options{}, func(ex *decode.Exchange, joined bool) error {
		if !joined {
			t.Add(address(ex.ID), ex)
		}
		return nil
	})
}

// Add looks at one exchange, which address names.
func (t *Toucher) Add(address string, ex *decode.Exchange) {
	seen := map[int]bool{}
	for version, s := range t.versions {
		u := use{by: t.by[version], seen: seen}
		m := s.Method(ex.Service, ex.RPC)
		if m == nil {
			continue
		}
		u.met(m)
		u.met(m.Parent())
		for i := range ex.Frames {
			f := &ex.Frames[i]
			if ex.CodecOf(f) != "proto" || !ex.IsMessage(f) {
				continue
			}
			tree := f.Tree
			if tree == nil {
				tree = wire.Parse(f.Data, wire.Options{})
			}
			u.message(s.FrameType(ex.Call, f.Dir), tree, 0)
		}
	}
	for i := range seen {
		if len(t.Touched[i]) < maxTouched {
			t.Touched[i] = append(t.Touched[i], address)
		}
	}
}

// A use notes which changed elements are met in an exchange.
type use struct {
	by   map[string][]int
	seen map[int]bool
}

func (u *use) met(d protoreflect.Descriptor) {
	for _, i := range u.by[name(d)] {
		u.seen[i] = true
	}
}

func (u *use) message(md protoreflect.MessageDescriptor, t *wire.Tree, at int32) {
	u.met(md)
	for i := range t.Children(at) {
		n := &t.Nodes[i]
		if n.Type == wire.Garbage || n.Number > uint64(protoreflect.FieldNumber(1<<29-1)) {
			continue
		}
		f := md.Fields().ByNumber(protoreflect.FieldNumber(n.Number))
		if f == nil {
			continue
		}
		u.met(f)
		if o := realOneof(f); o != nil {
			u.met(o)
		}
		switch {
		case f.Message() != nil && (n.Type == wire.Len || n.Type == wire.StartGroup):
			u.message(f.Message(), t, i)
		case f.Enum() != nil:
			u.met(f.Enum())
			if n.Type == wire.Varint {
				if v := f.Enum().Values().ByNumber(protoreflect.EnumNumber(int32(t.Uint(i)))); v != nil {
					u.met(v)
				}
			}
		}
	}
}
