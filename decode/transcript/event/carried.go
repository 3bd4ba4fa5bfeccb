package event

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode"
	"unwire/decode/jsontree"
)

// maxCarriers is the maximum nesting of the protobuf message whose field carries JSON.
const maxCarriers = 4

// carriedJSON returns the JSON value that a field of a protobuf message carries, if a field next to it declares the
// media type of JSON, as in google.api.HttpBody or io.cloudevents.v1.CloudEvent. Services use such messages to send
// events of an API in JSON over gRPC.
func carriedJSON(f *decode.Frame) (v jsontree.Value, ok bool) { return jsonInside(f.Data, 0) }

// jsonInside is carriedJSON for the bytes of a message, nested depth times.
func jsonInside(message []byte, depth int) (v jsontree.Value, ok bool) {
	declared := false
	var values [][]byte
	for b := message; len(b) > 0; {
		_, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return v, false
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(1, typ, b); n < 0 {
			return v, false
		}
		if typ == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b)
			declared = declared || isJSONType(value)
			values = append(values, value)
		}
		b = b[n:]
	}
	for _, value := range values {
		if declared && len(value) > 1 && (value[0] == '{' || value[0] == '[') {
			if v, err := jsontree.Parse(value); err == nil {
				return v, true
			}
		}
		if depth+1 < maxCarriers && 2*len(value) > len(message) {
			if v, ok := jsonInside(value, depth+1); ok {
				return v, true
			}
		}
	}
	return v, false
}

// isJSONType reports whether b is a media type of JSON, such as application/json.
func isJSONType(b []byte) bool {
	kind, _, _ := strings.Cut(string(b[:min(len(b), maxMediaType)]), ";")
	return kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
}

// maxMediaType is the maximum size in bytes of a media type.
const maxMediaType = 100
