package secret

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
	"unwire/proto"
	"unwire/schema"
)

// FuzzFrame: whatever a frame holds, it is audited and cleaned, keeps its
// length, and has nothing left that its fields tell.
func FuzzFrame(f *testing.F) {
	defs, err := schema.Load(f.Context(), proto.Files)
	if err != nil {
		f.Fatal(err)
	}
	rules := &Rules{Fields: make(map[protoreflect.FullName]bool), FrameType: defs.FrameType}
	for _, name := range proto.Profile().Secrets.Fields {
		rules.Fields[protoreflect.FullName(name)] = true
	}
	calls := []decode.Call{
		{Protocol: decode.ConnectStream, Codec: "proto", Service: "agent.v1.AgentService", RPC: "Run"},
		{Protocol: decode.ConnectStream, Codec: "proto", Service: "aiserver.v1.ChatService", RPC: "StreamUnifiedChat"},
	}
	f.Add([]byte("\x0a\x1c\x1a\x1a\x0a\x01m\x42\x08\x0a\x06secret\x52\x0b\x0a\x03abc\x12\x04\x0a\x02xy"), true)
	f.Add([]byte("\x2a\x10\x12\x03key\x22\x09\x0a\x07a state"), false)
	f.Add([]byte(`{"accessToken":"x"}`), false)
	f.Fuzz(func(t *testing.T, body []byte, framed bool) {
		for _, call := range calls {
			raw := body
			if framed {
				raw = envelope.Append(nil, 0, body)
			}
			frame := decode.Frame{Tree: wire.Parse(body, wire.Options{}), Frame: envelope.Frame{Raw: body, Data: body, Framed: framed}}
			d := &decode.Exchange{Call: call}
			a := auditor{red: redact.New(redact.Options{}), rules: rules, ex: &captures.Exchange{ID: 1}, places: make(map[string]int)}
			a.searchFrame(d, &frame)
			for _, found := range a.found {
				if found.Off < 0 || found.Off+found.Len > len(body) || found.Count < 1 {
					t.Fatalf("%+v lies outside of %d bytes", found, len(body))
				}
			}
			c := cleaner{red: redact.New(redact.Options{}), rules: rules}
			changes, err := c.fieldEdits(d, &frame)
			if err != nil {
				t.Fatal(err)
			}
			if len(changes) == 0 {
				continue
			}
			e, ok, err := c.bodyEdit(raw, &frame, changes)
			if err != nil || !ok {
				t.Fatalf("not edited: %v", err)
			}
			clean := bytes.Join([][]byte{raw[:e.Start], e.Data, raw[e.End:]}, nil)
			if len(clean) != len(raw) {
				t.Fatalf("%d bytes became %d", len(raw), len(clean))
			}
			if framed {
				clean = clean[envelope.PrefixLen:]
			}
			tree := wire.Parse(clean, wire.Options{})
			if left := rules.secretFields(redact.New(redact.Options{}), tree, rules.frameType(call, captures.Up), nil); len(left) > 0 {
				t.Fatalf("%+v is left of %q in %q", left, body, clean)
			}
		}
	})
}
