package search

import (
	"testing"

	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// TestOrigins: servers are named by URLs without a path, in protobuf as in JSON, each
// once.
func TestOrigins(t *testing.T) {
	proto := []byte("\x0a\x15https://api.test:8443\x12\x16https://docs.test/a/page\x1a\x16https://api.test:8443/")
	json := []byte(`{"a":["https://api.test:8443",{"b":"https://docs.test/a/page"}],"c":"http://"}`)
	for name, f := range map[string]*decode.Frame{
		"protobuf": {Frame: envelope.Frame{Data: proto}, Tree: wire.Parse(proto, wire.Options{})},
		"JSON":     {Frame: envelope.Frame{Data: json}},
	} {
		got := origins(f)
		if len(got) != 1 || got[0].Host != "api.test:8443" {
			t.Errorf("%s: %v", name, got)
		}
	}
}
