package proto_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	pb "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/bufbuild/protocompile/linker"
)

// frames are messages as public clients report them on the wire. Each must be
// explained by its type without an unknown field and give its bytes back.
var frames = []struct {
	name, message, hex, json string
}{
	{"text delta", "agent.v1.AgentServerMessage", "0a060a040a024869", `{"interactionUpdate":{"textDelta":{"text":"Hi"}}}`},
	{"thinking delta", "agent.v1.AgentServerMessage", "0a0622040a02686d", `{"interactionUpdate":{"thinkingDelta":{"text":"hm"}}}`},
	{"token delta", "agent.v1.AgentServerMessage", "0a0442020801", `{"interactionUpdate":{"tokenDelta":{"tokens":1}}}`},
	{"server heartbeat", "agent.v1.AgentServerMessage", "0a026a00", `{"interactionUpdate":{"heartbeat":{}}}`},
	{"turn ended", "agent.v1.AgentServerMessage", "0a027200", `{"interactionUpdate":{"turnEnded":{}}}`},
	{"turn ended, counted", "agent.v1.AgentServerMessage", "0a067204080a1005", `{"interactionUpdate":{"turnEnded":{"inputTokens":"10","outputTokens":"5"}}}`},
	{"client heartbeat", "agent.v1.AgentClientMessage", "3a00", `{"clientHeartbeat":{}}`},
	{"set_blob_result", "agent.v1.AgentClientMessage", "1a0408011a00", `{"kvClientMessage":{"id":1,"setBlobResult":{}}}`},
	{"health check", "aiserver.v1.HealthRequest", "0a03666f6f", `{"payload":"foo"}`},
	{"append", "aiserver.v1.BidiAppendRequest", "0a04336130301203" + "0a0172" + "1801", `{"data":"3a00","requestId":{"requestId":"r"},"appendSeqno":"1"}`},
}

func TestFrames(t *testing.T) {
	files := compile(t)
	for _, f := range frames {
		t.Run(f.name, func(t *testing.T) {
			raw, err := hex.DecodeString(f.hex)
			if err != nil {
				t.Fatal(err)
			}
			m := decode(t, files, f.message, raw)
			expect(t, m, f.json)
			if again, err := (pb.MarshalOptions{Deterministic: true}).Marshal(m); err != nil || !bytes.Equal(again, raw) {
				t.Errorf("encoded as %x, %v", again, err)
			}
		})
	}
}

// TestMisreading: what seed 004 took for an ExplicitContext with a file is, byte
// for byte, a RequestContext with a rule, so both types accept it.
//
// Source: RESEARCH.md#seeds
func TestMisreading(t *testing.T) {
	files := compile(t)
	raw := []byte("\x12\x0c\x0a\x05/a.go\x12\x03abc")
	expect(t, decode(t, files, "agent.v1.ExplicitContext", raw), `{"file":{"path":"/a.go","content":"abc"}}`)
	expect(t, decode(t, files, "agent.v1.RequestContext", raw), `{"rules":[{"fullPath":"/a.go","content":"abc"}]}`)
}

// TestSeed004Request: a request with the numbers and the kinds of seed 004
// (conversation_state and unknown3 and unknown4 as empty strings, a file as
// context, unknown7 as 0) is an AgentRunRequest, and says what was meant.
func TestSeed004Request(t *testing.T) {
	const request = "0a5f" + "0a00" + // run_request, conversation_state
		"1222" + "0a20" + "0a0e" + "0a0548656c6c6f" + "12036d2d31" + "1a00" + // action, user message
		"120e120c0a052f612e676f1203616263" + // the file
		"1a30" + "0a0a636f6d706f7365722d31" + "1a0a636f6d706f7365722d31" + "220a436f6d706f7365722031" + "2a08436f6d706f736572" + "3800" + // model
		"2200" + "2a03632d31" // unknown4, conversation_id
	const meant = `{"runRequest":{"conversationState":{},"mcpTools":{},"conversationId":"c-1",
		"action":{"userMessageAction":{"userMessage":{"text":"Hello","messageId":"m-1","selectedContext":{}},
			"requestContext":{"rules":[{"fullPath":"/a.go","content":"abc"}]}}},
		"modelDetails":{"modelId":"composer-1","displayModelId":"composer-1","displayName":"Composer 1","displayNameShort":"Composer","maxMode":false}}}`
	raw, err := hex.DecodeString(request)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, decode(t, compile(t), "agent.v1.AgentClientMessage", raw), meant)
}

// expect compares a message with its JSON form.
func expect(t *testing.T, m *dynamicpb.Message, json string) {
	t.Helper()
	want := dynamicpb.NewMessage(m.Descriptor())
	if err := protojson.Unmarshal([]byte(json), want); err != nil {
		t.Fatal(err)
	}
	if !pb.Equal(m, want) {
		t.Errorf("%s: %s, want %s", m.Descriptor().FullName(), protojson.Format(m), json)
	}
}

// decode parses raw as the named type and fails on an unknown field.
func decode(t *testing.T, files linker.Files, name string, raw []byte) *dynamicpb.Message {
	t.Helper()
	d, err := files.AsResolver().FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		t.Fatal(err)
	}
	m := dynamicpb.NewMessage(d.Descriptor())
	if err := pb.Unmarshal(raw, m); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	refuseUnknown(t, m)
	return m
}

func refuseUnknown(t *testing.T, m protoreflect.Message) {
	t.Helper()
	if u := m.GetUnknown(); len(u) > 0 {
		t.Errorf("%s: unknown fields %x", m.Descriptor().FullName(), []byte(u))
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap() || fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				refuseUnknown(t, v.List().Get(i).Message())
			}
		default:
			refuseUnknown(t, v.Message())
		}
		return true
	})
}
