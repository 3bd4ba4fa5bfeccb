package check

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
	"unwire/schema"
	"unwire/schema/infer"
)

// anyName is the full name of google.protobuf.Any, whose messages contain a message of another type.
const anyName = "google.protobuf.Any"

// checkAny checks the content of an Any, the message at index at of t, against the type that it names, if the
// definitions have that type. more is added to the number of explained bytes; it is negative if the definitions
// explain only a part of the content. ok is false if the content is malformed.
func (k *Checker) checkAny(t *wire.Tree, at int32, m *messageInfo) (more int64, ok bool) {
	url, value := "", wire.None
	for c := range t.Children(at) {
		switch n := &t.Nodes[c]; {
		case n.Type != wire.Len:
		case n.Number == 1:
			url = string(t.Payload(c))
		case n.Number == 2:
			value = c
		}
	}
	if url == "" {
		return 0, true
	}

	// The payload counts as explained so far. Replace that by the part that the named type explains.
	md := k.resolveType(url)
	if md == nil || value == wire.None {
		return 0, true
	}
	size := int64(len(t.Payload(value)))
	if !t.IsMessage(value) {
		// The payload was not parsed because of a limit, which is no contradiction.
		if !t.Nodes[value].Sound() {
			return 0, true
		}
		k.contradict(m, m.fields[2], "the payload does not parse as "+string(md.FullName()))
		return -size, false
	}
	inner, ok := k.checkMessage(t, value, k.info(md))
	return inner - size, ok
}

// resolveType returns the message type that a type URL or a full name refers to, or nil. Unknown types are
// recorded for the report.
func (k *Checker) resolveType(url string) protoreflect.MessageDescriptor {
	name := url[strings.LastIndexByte(url, '/')+1:]
	if md := k.schema.Message(name); md != nil {
		return md
	}
	// The well-known types need not be in the definitions.
	if md := schema.WellKnownMessage(name); md != nil {
		return md
	}
	recordFinding(k.unknownTypes, name[:min(len(name), infer.MaxName)], k)
	return nil
}
