package standin

import (
	"context"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/proto"
	"unwire/schema"
)

// maxMessageBytes limits the size of a client's message, in bytes.
const maxMessageBytes = 16 << 20

// Message types built from descriptors, in the form that connect's generics need.
type (
	// A message is a message built from a descriptor, in the form that connect's generics need.
	message = dynamicpb.Message

	// A serverStream is the stream of a call in which only the server streams.
	serverStream = connect.ServerStream[message]

	// A bidiStream is the stream of a bidirectional call.
	bidiStream = connect.BidiStream[message, message]

	// A unaryPlay implements a unary method.
	unaryPlay = func(context.Context, *connect.Request[message]) (*connect.Response[message], error)

	// A streamPlay implements a method that streams responses.
	streamPlay = func(context.Context, *connect.Request[message], *serverStream) error

	// A bidiPlay implements a bidirectional method.
	bidiPlay = func(context.Context, *bidiStream) error
)

// An api has the definitions of the reconstructed API, and the message types that the server's code
// uses.
type api struct {
	// Schema has the definitions.
	*schema.Schema

	// client and server are the types of the messages of agent.v1.AgentService/Run in the two
	// directions.
	client, server protoreflect.MessageDescriptor

	// state is the type of the conversation's state.
	state protoreflect.MessageDescriptor
}

// relied lists, by message, the fields that the code sets or reads by name. They are checked at
// startup, so that a renamed field causes a clear error and not a panic during a call.
const relied = `
agent.v1.AgentClientMessage: run_request exec_client_message kv_client_message conversation_action exec_client_control_message interaction_response client_heartbeat prewarm_request
agent.v1.AgentServerMessage: interaction_update exec_server_message conversation_checkpoint_update kv_server_message exec_server_control_message interaction_query
agent.v1.InteractionUpdate: text_delta tool_call_started tool_call_completed thinking_delta thinking_completed user_message_appended partial_tool_call token_delta heartbeat turn_ended
agent.v1.TextDeltaUpdate: text
agent.v1.ThinkingDeltaUpdate: text
agent.v1.ThinkingCompletedUpdate: thinking_duration_ms
agent.v1.TokenDeltaUpdate: tokens
agent.v1.UserMessageAppendedUpdate: user_message
agent.v1.ToolCallStartedUpdate: call_id tool_call model_call_id
agent.v1.ToolCallCompletedUpdate: call_id tool_call model_call_id
agent.v1.PartialToolCallUpdate: call_id tool_call args_text_delta model_call_id
agent.v1.ExecServerMessage: id exec_id
agent.v1.ExecClientMessage: id exec_id shell_stream
agent.v1.ExecServerControlMessage: abort
agent.v1.ExecServerAbort: id
agent.v1.ExecClientControlMessage: throw stream_close heartbeat
agent.v1.ExecClientHeartbeat: id
agent.v1.ExecClientThrow: id error
agent.v1.KvServerMessage: id get_blob_args set_blob_args
agent.v1.GetBlobArgs: blob_id
agent.v1.SetBlobArgs: blob_id blob_data
agent.v1.KvClientMessage: id get_blob_result set_blob_result
agent.v1.GetBlobResult: blob_data
agent.v1.SetBlobResult: error
agent.v1.ConversationAction: user_message_action resume_action cancel_action
agent.v1.UserMessageAction: user_message request_context
agent.v1.ResumeAction: request_context
agent.v1.RequestContext: tools
agent.v1.UserMessage: text message_id selected_context is_simulated_msg
agent.v1.SelectedContext: selected_images
agent.v1.AgentRunRequest: conversation_state action model_details conversation_id mcp_tools custom_system_prompt
agent.v1.McpTools: mcp_tools
agent.v1.McpToolDefinition: name tool_name provider_identifier input_schema
agent.v1.McpArgs: name args tool_name provider_identifier
agent.v1.McpResult: success error rejected tool_not_found
agent.v1.McpSuccess: content is_error
agent.v1.McpToolResultContentItem: text image
agent.v1.McpTextContent: text
agent.v1.McpImageContent: data mime_type
agent.v1.RequestContextResult: success
agent.v1.RequestContextSuccess: request_context
agent.v1.InteractionQuery: id
agent.v1.InteractionResponse: id
agent.v1.ModelDetails: model_id
agent.v1.ConversationStateStructure: turns root_prompt_messages_json
aiserver.v1.BidiAppendRequest: data request_id append_seqno data_binary
aiserver.v1.ErrorDetails: error details
`

// loadAPI compiles the definitions in proto/ and checks the fields in relied.
func loadAPI() (*api, error) {
	s, err := schema.Load(context.Background(), proto.Files)
	if err != nil {
		return nil, fmt.Errorf("standin: %w", err)
	}
	for line := range strings.Lines(strings.TrimSpace(relied)) {
		name, fields, _ := strings.Cut(line, ":")
		md := s.Message(name)
		if md == nil {
			return nil, fmt.Errorf("standin: proto/ has no message %s", name)
		}
		for _, f := range strings.Fields(fields) {
			if md.Fields().ByName(protoreflect.Name(f)) == nil {
				return nil, fmt.Errorf("standin: proto/: %s has no field %s", name, f)
			}
		}
	}
	return &api{
		Schema: s,
		client: s.Message("agent.v1.AgentClientMessage"),
		server: s.Message("agent.v1.AgentServerMessage"),
		state:  s.Message("agent.v1.ConversationStateStructure"),
	}, nil
}

// message creates a server message and the nested message to which the path of field names leads, for
// example message("interaction_update", "text_delta"). root is the message to send, leaf the nested
// one.
func (a *api) message(path ...protoreflect.Name) (root *dynamicpb.Message, leaf protoreflect.Message) {
	root = dynamicpb.NewMessage(a.server)
	return root, within(root, path...)
}

// within returns the nested message to which a path of field names leads; missing messages are created.
func within(m protoreflect.Message, path ...protoreflect.Name) protoreflect.Message {
	for _, name := range path {
		m = m.Mutable(m.Descriptor().Fields().ByName(name)).Message()
	}
	return m
}

// set sets the field name of a message to a Go value of the field's type.
func set(m protoreflect.Message, name protoreflect.Name, v any) {
	m.Set(m.Descriptor().Fields().ByName(name), protoreflect.ValueOf(v))
}

// get returns the value of the field to which a path of names leads; its default if a message on the
// path is not set.
func get(m protoreflect.Message, path ...protoreflect.Name) protoreflect.Value {
	for _, name := range path[:len(path)-1] {
		m = m.Get(m.Descriptor().Fields().ByName(name)).Message()
	}
	return m.Get(m.Descriptor().Fields().ByName(path[len(path)-1]))
}

// has reports whether the field to which a path of names leads is set.
func has(m protoreflect.Message, path ...protoreflect.Name) bool {
	for _, name := range path {
		fd := m.Descriptor().Fields().ByName(name)
		if !m.Has(fd) {
			return false
		}
		if fd.Message() != nil && !fd.IsList() && !fd.IsMap() {
			m = m.Get(fd).Message()
		}
	}
	return true
}

// copyCommon copies the fields that both messages have under the same name and with the same type. It
// is used for the arguments of a tool request and of the message that displays the call, which have
// different types with the same meaning.
func copyCommon(dst, src protoreflect.Message) {
	src.Range(func(from protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		to := dst.Descriptor().Fields().ByName(from.Name())
		switch {
		case to == nil || to.Kind() != from.Kind() || to.Cardinality() != from.Cardinality() || to.IsMap() != from.IsMap():
		case from.Message() == nil && from.Enum() == nil:
			dst.Set(to, v)
		case from.Message() != nil && !from.IsList() && !from.IsMap():
			copyCommon(dst.Mutable(to).Message(), v.Message())
		}
		return true
	})
}

// member returns name and content of the member that is set in the message's oneof; "" if none is set.
func member(m protoreflect.Message) (kind protoreflect.Name, inner protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Message() != nil && fd.ContainingOneof() != nil && !fd.HasOptionalKeyword() {
			kind, inner = fd.Name(), v.Message()
		}
		return inner == nil
	})
	return kind, inner
}

// stringField returns the value of the string field name; "" if the message type has none.
func stringField(m protoreflect.Message, name protoreflect.Name) string {
	fd := m.Descriptor().Fields().ByName(name)
	if fd == nil || fd.Kind() != protoreflect.StringKind || fd.IsList() {
		return ""
	}
	return m.Get(fd).String()
}

// bytesField returns the value of the bytes field name; nil if the message type has none.
func bytesField(m protoreflect.Message, name protoreflect.Name) []byte {
	fd := m.Descriptor().Fields().ByName(name)
	if fd == nil || fd.Kind() != protoreflect.BytesKind || fd.IsList() {
		return nil
	}
	return m.Get(fd).Bytes()
}
