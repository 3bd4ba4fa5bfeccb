package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay"
)

// FromCapture sets options from the captured call with number id: the protocol, the path before the
// service, the headers, and the wire types of the fields in the message at Path.
//
// Shape: values that are already set are kept. reach has the credentials for redacted headers.
// Errors: those of reading the exchange; credential.ErrCredentials; outbound.ErrRefused.
func (o *Options) FromCapture(ctx context.Context, src captures.Source, id int64, reach replay.Options) error {
	var to *url.URL
	if o.To != nil {
		to = &url.URL{Scheme: o.To.Scheme, Host: o.To.Host}
	}

	// The plan of a replay resolves redacted headers in the same way.
	request, err := replay.NewRequest(ctx, src, id, replay.Changes{To: to, Part: true})
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

	// Explicit options take precedence over the captured call.
	for i, h := range headers {
		o.Header = append(o.Header, HeaderField{Name: h.Name, Value: h.Value, Secret: secret[i]})
	}
	if o.Method == "" {
		o.Method = "/" + plan.Service + "/" + plan.RPC
	}
	if u, err := url.Parse(plan.URL); err == nil && o.To != nil {
		if prefix, ok := strings.CutSuffix(u.Path, "/"+plan.Service+"/"+plan.RPC); ok {
			o.addPrefix(prefix)
		}
	}
	if o.Protocol == auto {
		if o.Protocol = protocols[plan.Protocol]; o.Protocol == auto {
			return fmt.Errorf("probe: exchange %d has the protocol %s, which cannot be probed", id, plan.Protocol)
		}
	}
	o.ClientStreams = o.ClientStreams || len(plan.Frames) > 1
	o.HTTP2 = o.HTTP2 || plan.HTTP == "2"

	// Wire types that were seen in accepted requests spare questions.
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

// protocols maps the protocols of captured calls to those with which a probe can send requests.
var protocols = map[decode.Protocol]Protocol{
	decode.ConnectUnary: connectUnary, decode.ConnectGet: connectUnary, decode.ConnectStream: connectStream, decode.GRPC: grpc, decode.GRPCWeb: grpcWeb,
}

// hint adds to Hints the wire types of the fields in the message at path inside data.
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

// and returns the hint extended by an occurrence of the field with wire type t.
func (h Hint) and(t protowire.Type) Hint {
	h.Varint = h.Varint || t == protowire.VarintType
	h.Len = h.Len || t == protowire.BytesType
	return h
}

// eachField calls do for each field of the message data, up to the first malformed one. value is the
// content of a length-delimited field; nil for other fields.
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

// knowName adds to Known the names in captured JSON whose values are not numbers. Numbers are left out
// because a field of type float would accept the value with which the probe ends a request.
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

// maxKnown limits how many names are taken from captured JSON.
const maxKnown = 20

// SeenIn adds the wire types of a captured message's fields to seen, by path such as "1.2". md is the
// type of the message.
//
// Shape: it descends into fields that the definitions declare as messages.
func SeenIn(seen map[string]Hint, data []byte, md protoreflect.MessageDescriptor) {
	seenIn(seen, data, md, nil)
}

// seenIn is SeenIn for the message at path.
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
