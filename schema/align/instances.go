package align

import "google.golang.org/protobuf/reflect/protoreflect"

// An instance is one message of a pair, possibly nested.
type instance struct {
	*body
	messagePair
	// pair is the index of the pair that contains the message.
	pair int
	// trusted is set if both forms are the same data: the whole bodies agree, or this message does in
	// significant values. Of other instances, only significant values count.
	trusted bool
}

// A position is a message type: the type that definitions name, or the type of one place in the messages of a
// method.
type position struct {
	// key is the full name of the message type; if that is unknown, a name derived from the message's
	// place.
	key string
	// desc is the descriptor of the type; nil if the definitions lack it.
	desc protoreflect.MessageDescriptor
	// instances are the messages of the type.
	instances []instance
	// seen prevents that a message is added twice.
	seen map[messagePair]bool
}

// addInstance adds an instance and decides whether it is trusted. It reports whether the instance is new.
func (p *position) addInstance(i instance) bool {
	if p.seen[i.messagePair] {
		return false
	}
	p.seen[i.messagePair] = true
	i.trusted = i.trusted || i.agree(i.messagePair) != differs && i.significanceOf(i.messagePair) >= significantBits
	p.instances = append(p.instances, i)
	return true
}

// needsPartner reports whether the member v must belong to a field that is set: it is present, and not merely a
// default that protobuf omits.
func (i instance) needsPartner(v *value, how agreement) bool {
	return v != nil && (how == exactly || !mayBeDefault(v))
}
