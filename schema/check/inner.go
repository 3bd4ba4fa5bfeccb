package check

import (
	"bytes"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
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
	k.frame = func() string { return k.o.Address(ex, &decode.Frame{Dir: captures.Down, Seq: -1}, k.part) }
	for _, h := range []captures.Headers{ex.ResponseTrailers, ex.ResponseHeaders} {
		if end, _ := envelope.ParseStatus(h.Get); end != nil {
			k.addEnd(end)
			return
		}
	}
}

// A mapKey is a key, encoded, of one of a message's maps.
type mapKey struct {
	field *fieldInfo
	key   []byte
}

// fewKeys are compared with each other; of more, a set is made.
const fewKeys = 12

// keys checks that no map of a message has a key twice.
func (k *Checker) keys(t *wire.Tree, at int32, m *messageInfo) {
	list := k.mapKeys[:0]
	for c := t.Nodes[at].First; c != wire.None; c = t.Nodes[c].Next {
		n := &t.Nodes[c]
		if n.Type != wire.Len || n.Number > maxFieldNumber {
			continue
		}
		f := m.fields[int32(n.Number)]
		if f == nil || !f.isMap {
			continue
		}
		key := mapKey{field: f}
		for e := n.First; e != wire.None; e = t.Nodes[e].Next {
			if t.Nodes[e].Number == 1 {
				key.key = t.Payload(e)
			}
		}
		list = append(list, key)
	}
	k.mapKeys = list[:0]
	if len(list) > fewKeys {
		k.manyKeys(m, list)
		return
	}
	for i, b := range list {
		if slices.ContainsFunc(list[:i], func(a mapKey) bool { return a.field == b.field && bytes.Equal(a.key, b.key) }) {
			k.contradictTwice(m, b.field)
		}
	}
}

func (k *Checker) manyKeys(m *messageInfo, list []mapKey) {
	sets := map[*fieldInfo]map[string]struct{}{}
	for _, key := range list {
		set := sets[key.field]
		if set == nil {
			set = map[string]struct{}{}
			sets[key.field] = set
		}
		if _, twice := set[string(key.key)]; twice {
			k.contradictTwice(m, key.field)
		}
		set[string(key.key)] = struct{}{}
	}
}

func (k *Checker) contradictTwice(m *messageInfo, f *fieldInfo) {
	k.contradict(m, f, "a key more than once in a map")
}
