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

// maxMessageBytes is the maximum size of a client's message.
const maxMessageBytes = 16 << 20

// Message types built from descriptors, in the form that connect's generics need.
type (
	message      = dynamicpb.Message
	serverStream = connect.ServerStream[message]
	bidiStream   = connect.BidiStream[message, message]
	unaryPlay    = func(context.Context, *connect.Request[message]) (*connect.Response[message], error)
	streamPlay   = func(context.Context, *connect.Request[message], *serverStream) error
	bidiPlay     = func(context.Context, *bidiStream) error
)

// An api is the reconstructed API, with the types that the server's code uses.
type api struct {
	*schema.Schema
	client, server protoreflect.MessageDescriptor // of agent.v1.AgentService/Run
	state          protoreflect.MessageDescriptor
}

// relied lists the fields that the code sets or reads by name. They are checked at startup, so that
// a renamed field is a clear error and not a panic during a call.
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

// message creates an empty server message, and the message at the end of the path in it:
// message("interaction_update", "text_delta").
func (a *api) message(path ...protoreflect.Name) (root *dynamicpb.Message, leaf protoreflect.Message) {
	root = dynamicpb.NewMessage(a.server)
	return root, within(root, path...)
}

// within creates and returns the message at the end of a path of fields.
func within(m protoreflect.Message, path ...protoreflect.Name) protoreflect.Message {
	for _, name := range path {
		m = m.Mutable(m.Descriptor().Fields().ByName(name)).Message()
	}
	return m
}

func set(m protoreflect.Message, name protoreflect.Name, v any) {
	m.Set(m.Descriptor().Fields().ByName(name), protoreflect.ValueOf(v))
}

// get returns the value of the field at the end of a path; the default if a message on the path is not
// set.
func get(m protoreflect.Message, path ...protoreflect.Name) protoreflect.Value {
	for _, name := range path[:len(path)-1] {
		m = m.Get(m.Descriptor().Fields().ByName(name)).Message()
	}
	return m.Get(m.Descriptor().Fields().ByName(path[len(path)-1]))
}

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

// copyCommon copies the fields that both messages have with the same name and type: the arguments
// of an execution and of the tool call that displays it are different messages with the same
// meaning.
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

// member returns the name and the message of the oneof's set member; nothing if none is set.
func member(m protoreflect.Message) (kind protoreflect.Name, inner protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Message() != nil && fd.ContainingOneof() != nil && !fd.HasOptionalKeyword() {
			kind, inner = fd.Name(), v.Message()
		}
		return inner == nil
	})
	return kind, inner
}

// stringField returns the string field of that name; "" if the message has none.
func stringField(m protoreflect.Message, name protoreflect.Name) string {
	fd := m.Descriptor().Fields().ByName(name)
	if fd == nil || fd.Kind() != protoreflect.StringKind || fd.IsList() {
		return ""
	}
	return m.Get(fd).String()
}

// bytesField returns the bytes field of that name; nil if the message has none.
func bytesField(m protoreflect.Message, name protoreflect.Name) []byte {
	fd := m.Descriptor().Fields().ByName(name)
	if fd == nil || fd.Kind() != protoreflect.BytesKind || fd.IsList() {
		return nil
	}
	return m.Get(fd).Bytes()
}
