package check

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"unwire/decode/wire"
	"unwire/schema/infer"
)

const anyName = "google.protobuf.Any"

// any checks what an Any holds as the type that it names, where that is known,
// and returns what that changes of the bytes explained.
func (k *Checker) any(t *wire.Tree, at int32, m *messageInfo) (more int64, ok bool) {
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
	md := k.named(url)
	if md == nil || value == wire.None {
		return 0, true
	}
	size := int64(len(t.Payload(value)))
	if !t.IsMessage(value) {
		if t.Nodes[value].Err != nil { // not followed for a limit
			return 0, true
		}
		k.contradict(m, m.fields[2], "payload is no "+string(md.FullName()))
		return -size, false
	}
	inner, ok := k.message(t, value, k.info(md))
	return inner - size, ok
}

// named returns the type that a URL or a full name names; one that is not known
// is noted.
func (k *Checker) named(url string) protoreflect.MessageDescriptor {
	name := url[strings.LastIndexByte(url, '/')+1:]
	if md := k.schema.Message(name); md != nil {
		return md
	}
	if strings.HasPrefix(name, "google.protobuf.") {
		if d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name)); err == nil {
			if md, ok := d.(protoreflect.MessageDescriptor); ok {
				return md
			}
		}
	}
	recordFinding(k.unknownTypes, name[:min(len(name), infer.MaxName)], k)
	return nil
}
