package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay"
)

// FromCapture fills in what an exchange of a capture tells of a method: how it
// is asked, with which headers, and what was seen of the fields at Path.
//
// Shape: what Options have already stays. reach holds the credentials for
// headers that were redacted.
// Errors: of reading the exchange; credential.ErrCredentials; outbound.ErrRefused.
func (o *Options) FromCapture(ctx context.Context, src captures.Source, id int64, reach replay.Options) error {
	request, err := replay.NewRequest(ctx, src, id, replay.Changes{To: o.To, Part: true})
	if err != nil {
		return err
	}
	planned, err := request.Plan(ctx, reach)
	if err != nil {
		return err
	}
	plan := planned.Description()
	headers, secret, err := planned.RequestHeaders()
	if err != nil {
		return err
	}
	for i, h := range headers {
		o.Header = append(o.Header, HeaderField{Name: h.Name, Value: h.Value, Secret: secret[i]})
	}
	if o.Method == "" {
		o.Method = "/" + plan.Service + "/" + plan.RPC
	}
	if o.Protocol == auto {
		switch plan.Protocol {
		case decode.ConnectUnary, decode.ConnectGet:
			o.Protocol = connectUnary
		case decode.ConnectStream:
			o.Protocol = connectStream
		case decode.GRPC:
			o.Protocol = grpc
		case decode.GRPCWeb:
			o.Protocol = grpcWeb
		default:
			return fmt.Errorf("probe: exchange %d is %s, which cannot be probed", id, plan.Protocol)
		}
	}
	o.ClientStreams = o.ClientStreams || len(plan.Frames) > 1
	o.HTTP2 = o.HTTP2 || plan.HTTP == "2"
	if o.Hints == nil {
		o.Hints = map[int32]Hint{}
	}
	for _, f := range plan.Frames {
		if plan.Codec == "json" {
			o.knowName(f.Data)
			continue
		}
		o.hint(f.Data, o.Path)
	}
	return nil
}

// hint enters the wire types of a message's fields.
func (o *Options) hint(data []byte, path []int32) {
	eachField(data, func(n int32, t protowire.Type, value []byte) {
		switch {
		case len(path) > 0 && t == protowire.BytesType && n == path[0]:
			o.hint(value, path[1:])
		case len(path) == 0:
			o.Hints[n] = o.Hints[n].and(t)
		}
	})
}

// and is the hint with one more field of that wire type.
func (h Hint) and(t protowire.Type) Hint {
	h.Varint = h.Varint || t == protowire.VarintType
	h.Len = h.Len || t == protowire.BytesType
	return h
}

// eachField goes through a message up to what is no field. value is what a
// length stands before.
func eachField(data []byte, do func(n int32, t protowire.Type, value []byte)) {
	for len(data) > 0 {
		n, t, used := protowire.ConsumeTag(data)
		if used < 0 {
			return
		}
		data = data[used:]
		size := protowire.ConsumeFieldValue(n, t, data)
		if size < 0 {
			return
		}
		var value []byte
		if t == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(data)
		}
		do(int32(n), t, value)
		data = data[size:]
	}
}

// knowName takes names from captured JSON whose values are no numbers: a float
// could take what ends a batch.
func (o *Options) knowName(data []byte) {
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) != nil {
		return
	}
	for name, value := range object {
		switch s := string(value); {
		case s == `"NaN"`, s == `"Infinity"`, s == `"-Infinity"`, s == "", len(o.Known) >= maxKnown, slices.Contains(o.Known, name):
		case s[0] == '"', s[0] == 't', s[0] == 'f':
			o.Known = append(o.Known, name)
		}
	}
	slices.Sort(o.Known)
}

// maxKnown is how many names are taken from captured JSON.
const maxKnown = 20

// SeenIn enters the wire types of a captured message's fields, by path.
//
// Shape: a value is followed where the definitions say that it is a message.
func SeenIn(seen map[string]Hint, data []byte, md protoreflect.MessageDescriptor) {
	seenIn(seen, data, md, nil)
}

func seenIn(seen map[string]Hint, data []byte, md protoreflect.MessageDescriptor, path []int32) {
	if len(path) > maxDepth {
		return
	}
	eachField(data, func(n int32, t protowire.Type, value []byte) {
		at := append(slices.Clone(path), n)
		seen[PathText(at)] = seen[PathText(at)].and(t)
		if fd := md.Fields().ByNumber(protowire.Number(n)); fd != nil && t == protowire.BytesType && fd.Kind() == protoreflect.MessageKind && !fd.IsMap() {
			seenIn(seen, value, fd.Message(), at)
		}
	})
}
