package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/diff"
	"unwire/decode/wire"
	"unwire/replay/live"
	"unwire/schema"
	"unwire/schema/align"
)

// The codecs for Changes.Codec.
const (
	CodecJSON  = "json"
	CodecProto = "proto"
)

// recode transcodes the captured exchange to the codec Changes.Codec, such as JSON, as if it had been
// captured in that codec. body is the captured request body; the result replaces it.
//
// Shape: the media type changes, and each message of both directions is transcoded by means of the
// schema. If the schema lacks the type of the client's messages, Changes.Message replaces them. If the
// server's messages cannot be transcoded, they remain unchanged, and responses are compared across
// codecs.
// Errors: a client message that the target codec cannot represent completely. The error names what
// would be lost.
func (p *planner) recode(body []byte) ([]byte, error) {
	to := p.changes.Codec
	if to == "" || to == p.shown.Codec {
		return body, nil
	}
	if p.shown.Codec != CodecJSON && p.shown.Codec != CodecProto {
		return nil, fmt.Errorf("the request has the codec %s, which is neither json nor proto", p.shown.Codec)
	}
	ex := *p.captured
	ex.Frames, ex.RequestHeaders = slices.Clone(ex.Frames), slices.Clone(ex.RequestHeaders)

	// Transcode each message; an error body in JSON stays as it is.
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if !live.IsMessage(f) || f.Dir == captures.Down && ex.Code != "ok" && ex.Code != "" && !f.Framed {
			continue
		}
		data, err := p.recodeFrame(f, to)
		switch {
		case err == nil:
			f.Data, f.Tree, f.Inner = data, nil, nil
			if to == CodecProto {
				f.Tree = wire.Parse(data, wire.Options{})
			}
		case f.Dir == captures.Up:
			return nil, fmt.Errorf("client frame %d cannot be converted to %s: %w", f.Seq, to, err)
		default:
			p.across = true
		}
	}
	if ex.Protocol == decode.ConnectGet {
		before, query, _ := strings.Cut(ex.URL, "?")
		ex.URL = before + "?" + withParameter(query, "encoding", to)
	}
	for i, h := range ex.RequestHeaders {
		if strings.EqualFold(h.Name, "content-type") {
			ex.RequestHeaders[i].Value = otherMedia(h.Value, p.shown.Codec, to)
		}
	}
	ex.Codec = to
	p.captured, p.shown.Codec, p.recoded = &ex, to, true
	// A unary body of no bytes may not be a frame.
	if len(ex.Frames) == 0 || ex.Frames[0].Dir != captures.Up {
		return recodeEmpty(body, to), nil
	}
	return body, nil
}

// recodeEmpty transcodes the body of a message without fields: no bytes in protobuf are "{}" in JSON.
func recodeEmpty(body []byte, to string) []byte {
	if to == CodecJSON && len(body) == 0 {
		return []byte("{}")
	}
	return body
}

// withParameter returns a URL query in which the existing parameter name has another value.
func withParameter(query, name, value string) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		if n, _, _ := strings.Cut(part, "="); n == name {
			parts[i] = name + "=" + url.QueryEscape(value)
		}
	}
	return strings.Join(parts, "&")
}

// otherMedia returns a media type with the codec to in place of from: application/connect+proto becomes
// application/connect+json. application/grpc has no suffix and means proto.
func otherMedia(media, from, to string) string {
	base, _, _ := strings.Cut(media, ";")
	base = strings.TrimSpace(base)
	switch {
	case strings.HasSuffix(base, "+"+from):
		return strings.TrimSuffix(base, from) + to
	case base == "application/"+from:
		return "application/" + to
	}
	// application/grpc and similar types
	return base + "+" + to
}

// recodeFrame returns the message of a frame in the codec to. It fails if the message's type is
// unknown, unless the message is empty or Changes.Message replaces it.
func (p *planner) recodeFrame(f *decode.Frame, to string) ([]byte, error) {
	md := p.types[f.Dir]
	switch {
	case f.Dir == captures.Up && p.changes.Message != nil:
		return p.changes.Message, nil
	case f.Err != nil:
		return nil, f.Err
	case md != nil:
		return recodeMessage(f.Data, md, to)
	case to == CodecJSON && len(f.Data) == 0:
		// A message without fields needs no definition.
		return []byte("{}"), nil
	case to == CodecProto && string(bytes.TrimSpace(f.Data)) == "{}":
		return nil, nil
	}
	return nil, errors.New("the definitions lack the type of the message. Give its definition with --proto, or the whole body as JSON with --json-body")
}

// recodeMessage transcodes one message of type md from JSON to protobuf or, if to is CodecJSON, the
// other way round.
func recodeMessage(data []byte, md protoreflect.MessageDescriptor, to string) ([]byte, error) {
	m := dynamicpb.NewMessage(md)
	if to == CodecProto {
		if err := protojson.Unmarshal(data, m); err != nil {
			return nil, err
		}
		return proto.MarshalOptions{Deterministic: true}.Marshal(m)
	}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, err
	}
	if where := schema.TypeWithUnknownFields(m); where != "" {
		return nil, fmt.Errorf("%s contains fields that are not in the definitions, and JSON would lose them", where)
	}
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	// without the spaces that protojson inserts
	var out bytes.Buffer
	err = json.Compact(&out, text)
	return out.Bytes(), err
}

// acrossCodecs compares the response to a transcoded request with the captured response, which is in
// another codec. It works without a schema and reports, message by message, those that cannot have the
// same content.
func (p *Plan) acrossCodecs(answer *decode.Exchange) (changes []diff.Change) {
	was, is := answerOf(p.captured), answerOf(answer)
	for i := range max(len(was), len(is)) {
		c := diff.Change{Path: fmt.Sprintf("%s/%d", captures.Down, i), Op: "change"}
		switch {
		case i >= len(is):
			c.Op, c.Old = "remove", shown(was[i])
		case i >= len(was):
			c.Op, c.New = "add", shown(is[i])
		default:
			message, text := was[i].Data, is[i].Data
			if p.shown.Codec == CodecProto {
				message, text = text, message
			}
			if same, err := align.Same(message, text); err == nil && same {
				continue
			}
			c.Old, c.New = shown(was[i]), shown(is[i])
		}
		changes = append(changes, c)
	}
	return changes
}

// shown returns a frame's message for display in a difference: as JSON if it is JSON, otherwise as
// bytes.
func shown(f *decode.Frame) any {
	if json.Valid(f.Data) && len(f.Data) > 0 {
		return json.RawMessage(f.Data)
	}
	return f.Data
}

// answerOf returns the server's frames that carry messages.
func answerOf(ex *decode.Exchange) (out []*decode.Frame) {
	for i := range ex.Frames {
		if f := &ex.Frames[i]; f.Dir == captures.Down && live.IsMessage(f) {
			out = append(out, f)
		}
	}
	return out
}
