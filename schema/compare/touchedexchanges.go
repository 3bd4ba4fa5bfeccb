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

// maxTouched is the maximum number of exchanges that are listed for one change.
const maxTouched = 100

// TouchedExchanges collects the exchanges that contain elements which changed between two versions. Make one
// with NewTouchedExchanges.
//
// Protobuf messages are read with both versions: removed and changed elements are found with the old version,
// added elements with the new one. JSON is not read.
type TouchedExchanges struct {
	// Touched has the addresses of the exchanges that use a changed element, by the index of the change, at
	// most 100 for each.
	Touched map[int][]string

	// versions are the definitions of the old ([0]) and of the new version ([1]).
	versions [2]*schema.Schema
	// changes are the changes between the two versions.
	changes []Change

	// byElement has, for each version, the indices of the changes by the full name of the element that is
	// searched for in messages.
	byElement [2]map[string][]int
}

// NewTouchedExchanges returns an empty collection for the changes between the versions before and after.
func NewTouchedExchanges(before, after *schema.Schema, changes []Change) *TouchedExchanges {
	t := &TouchedExchanges{versions: [2]*schema.Schema{before, after}, changes: changes, Touched: map[int][]string{}}
	t.byElement = [2]map[string][]int{{}, {}}
	for i, c := range changes {
		version := 0
		if c.Change == Added {
			version = 1
		}
		t.byElement[version][c.Element] = append(t.byElement[version][c.Element], i)
	}
	return t
}

// AddCapture adds the exchanges of a capture, or only the one with the number id if it is not 0. Exchanges that
// form a conversation are joined, as by conversation.EachCall, unless part is set. address returns the address
// of an exchange for the result.
//
// Errors: those of conversation.EachCall. A damaged capture is read as far as possible.
func (t *TouchedExchanges) AddCapture(ctx context.Context, src captures.Capture, id int64, part bool, address func(id int64) string) error {
	return conversation.EachCall(ctx, src, id, part, decode.Options{}, func(ex *decode.Exchange, joined bool) error {
		if !joined {
			t.Add(address(ex.ID), ex)
		}
		return nil
	})
}

// Add checks which changed elements an exchange uses. address is the address of the exchange for the result.
func (t *TouchedExchanges) Add(address string, ex *decode.Exchange) {
	seen := map[int]bool{}
	for version, s := range t.versions {
		u := elementUse{byElement: t.byElement[version], seen: seen}
		m := s.Method(ex.Service, ex.RPC)
		if m == nil {
			continue
		}
		u.met(m)
		u.met(m.Parent())
		for i := range ex.Frames {
			f := &ex.Frames[i]
			// JSON has no numbers by which the two versions could be compared.
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

	// An exchange counts once for each change, however often the element occurs in it.
	for i := range seen {
		if len(t.Touched[i]) < maxTouched {
			t.Touched[i] = append(t.Touched[i], address)
		}
	}
}

// elementUse collects which changed elements occur in one exchange, for one version of the definitions.
type elementUse struct {
	// byElement has the indices of changes by the full name of the element.
	byElement map[string][]int
	// seen has the indices of the changes whose element occurs in the exchange.
	seen map[int]bool
}

// met records that the element d occurs in the exchange.
func (u *elementUse) met(d protoreflect.Descriptor) {
	for _, i := range u.byElement[name(d)] {
		u.seen[i] = true
	}
}

// message records the elements that occur in a message of the type md, the one at index at of t, recursively.
func (u *elementUse) message(md protoreflect.MessageDescriptor, t *wire.Tree, at int32) {
	u.met(md)
	for i := range t.Children(at) {
		n := &t.Nodes[i]
		if n.Type == wire.Garbage || n.Number > uint64(protoreflect.FieldNumber(1<<29-1)) {
			continue
		}
		// A field that this version lacks is found with the other version.
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
