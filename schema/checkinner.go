package schema

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
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
	note(k.unknownTypes, name[:min(len(name), maxName)], k)
	return nil
}

// addEnd checks the details of the error that a stream or a call ended with.
func (k *Checker) addEnd(end *envelope.End) {
	if end == nil || end.Error == nil {
		return
	}
	for _, d := range end.Error.Details {
		k.details++
		md := k.named(d.Type)
		if md == nil {
			continue
		}
		if _, ok := k.message(wire.Parse(d.Value, wire.Options{}), 0, k.info(md)); ok {
			k.detailsDecoded++
		}
	}
}

// addStatus checks the details of a gRPC status in trailers, or in the headers
// of an answer without a body. They are found at the exchange.
func (k *Checker) addStatus(ex *decode.Exchange) {
	switch ex.Protocol {
	case decode.GRPC, decode.GRPCWeb, decode.GRPCWebText:
	default:
		return
	}
	k.frame = func() string { return k.o.Address(ex, &decode.Frame{Dir: captures.Down, Seq: -1}) }
	for _, h := range []captures.Headers{ex.ResponseTrailers, ex.ResponseHeaders} {
		if end, _ := envelope.ParseStatus(h.Get); end != nil {
			k.addEnd(end)
			return
		}
	}
}

// mapKeys are the encoded keys of a message's maps.
type mapKeys map[mapKey]struct{}

type mapKey struct {
	field *fieldInfo
	key   string
}

// twice reports whether the map f has the key of entry already.
func (m *mapKeys) twice(t *wire.Tree, entry int32, f *fieldInfo) bool {
	at := mapKey{field: f}
	for c := range t.Children(entry) {
		if t.Nodes[c].Number == 1 {
			at.key = string(t.Payload(c))
		}
	}
	if _, ok := (*m)[at]; ok {
		return true
	}
	if *m == nil {
		*m = mapKeys{}
	}
	(*m)[at] = struct{}{}
	return false
}
