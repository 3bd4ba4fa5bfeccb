package align

import "google.golang.org/protobuf/reflect/protoreflect"

// An instance is one recorded message, top-level or nested, in both forms.
type instance struct {
	// body has the message at the top level that contains this one, with cached results of comparing its fields
	// with JSON members.
	*body

	// messagePair are the protobuf message and the JSON object that represent this message.
	messagePair
	// pair is the index of the dataPair that contains the message.
	pair int
	// trusted is set if both forms are known to be the same data: the whole bodies agree, or this message does
	// and has significant values in common. In other instances, only significant values are used.
	trusted bool
}

// A position is a message type and its recorded messages. Without definitions, each field that contains
// messages has a type of its own, named after the path of field numbers from the RPC method.
type position struct {
	// key is the full name of the message type; if that is unknown, a name derived from the method and the
	// field numbers.
	key string
	// desc is the descriptor of the type; nil if the definitions lack it.
	desc protoreflect.MessageDescriptor
	// instances are the recorded messages of this type.
	instances []instance
	// seen has the messages already added, so that none is added twice.
	seen map[messagePair]bool
}

// addInstance adds a message and decides whether it is trusted. It reports whether the message is new.
func (p *position) addInstance(i instance) bool {
	if p.seen[i.messagePair] {
		return false
	}
	p.seen[i.messagePair] = true
	i.trusted = i.trusted || i.agree(i.messagePair) != differs && i.significanceOf(i.messagePair) >= significantBits
	p.instances = append(p.instances, i)
	return true
}

// needsPartner reports whether the JSON member v must belong to a field that is written in protobuf: v is
// present, and not merely a default value that protobuf omits. v is nil if the object lacks the member.
func (i instance) needsPartner(v *value, how agreement) bool {
	return v != nil && (how == exactly || !mayBeDefault(v))
}
