package align

import "google.golang.org/protobuf/reflect/protoreflect"

// An instance is one message of a pair.
type instance struct {
	*body
	at
	pair int // which pair's
	// trusted says that both halves are the same data: the whole bodies agree,
	// or the message does in values that no chance explains. Of another, only
	// such values count.
	trusted bool
}

// A position is a message type: one that definitions name, or else whatever
// stands in one place of a method's messages.
type position struct {
	key       string // full name
	desc      protoreflect.MessageDescriptor
	instances []instance
	seen      map[at]bool
}

func (p *position) addInstance(i instance) bool {
	if p.seen[i.at] {
		return false
	}
	p.seen[i.at] = true
	i.trusted = i.trusted || i.agree(i.at) != differs && i.sureOf(i.at) >= sureBits
	p.instances = append(p.instances, i)
	return true
}

// needsPartner reports whether a member must be some field of the message: it is
// there, and is not just a default that protobuf leaves out.
func (i instance) needsPartner(v *value, how mode) bool {
	return v != nil && (how == exactly || !mayBeDefault(v))
}
