package transcript

import (
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/transcript/event"
)

// definitions are the definitions of gRPC methods, by the name of the API: the members that matter, from the
// published .proto files. The method has the types Up and Down.
var definitions = map[string]string{
	"Vertex AI StreamGenerateContent, gRPC": `
message Up { string model = 5; repeated Content contents = 2; Content system_instruction = 8; }
message Down { repeated Candidate candidates = 2; string model_version = 11; UsageMetadata usage_metadata = 4; }
message UsageMetadata { int32 prompt_token_count = 1; int32 candidates_token_count = 2; int32 total_token_count = 3; }
message Candidate { int32 index = 1; Content content = 2; FinishReason finish_reason = 3; }
enum FinishReason { FINISH_REASON_UNSPECIFIED = 0; STOP = 1; }
message Content { string role = 1; repeated Part parts = 2; }
message Part { oneof data { string text = 1; FunctionCall function_call = 5; FunctionResponse function_response = 6; } bool thought = 10; }
message FunctionCall { string name = 1; google.protobuf.Struct args = 2; }
message FunctionResponse { string name = 1; google.protobuf.Struct response = 2; }`,
	"xAI GetCompletionChunk, gRPC": `
message Up { repeated Message messages = 1; string model = 2; }
message Down { string id = 1; repeated CompletionOutputChunk outputs = 2; google.protobuf.Timestamp created = 3; string model = 4; string system_fingerprint = 5; SamplingUsage usage = 6; }
message SamplingUsage { int32 completion_tokens = 1; int32 prompt_tokens = 2; int32 total_tokens = 3; int32 prompt_text_tokens = 4; }
message CompletionOutputChunk { Delta delta = 1; int32 index = 2; }
message Delta { string content = 1; MessageRole role = 2; repeated ToolCall tool_calls = 3; string reasoning_content = 4; }
enum MessageRole { INVALID_ROLE = 0; ROLE_USER = 1; ROLE_ASSISTANT = 2; ROLE_SYSTEM = 3; ROLE_FUNCTION = 4; ROLE_TOOL = 5; }
message Message { repeated Content content = 1; MessageRole role = 2; repeated ToolCall tool_calls = 4; string tool_call_id = 7; }
message Content { oneof content { string text = 1; } }
message ToolCall { string id = 1; ToolCallType type = 2; FunctionCall function = 10; }
enum ToolCallType { TOOL_CALL_TYPE_INVALID = 0; TOOL_CALL_TYPE_CLIENT_SIDE_TOOL = 1; }
message FunctionCall { string name = 1; string arguments = 2; }`,
	"Yandex Foundation Models, gRPC": `
message Up { string model_uri = 1; repeated Message messages = 3; }
message Down { repeated Alternative alternatives = 1; ContentUsage usage = 2; string model_version = 3; }
message ContentUsage { int64 input_text_tokens = 1; int64 completion_tokens = 2; int64 total_tokens = 3; }
message Alternative { Message message = 1; AlternativeStatus status = 2; }
enum AlternativeStatus { ALTERNATIVE_STATUS_UNSPECIFIED = 0; ALTERNATIVE_STATUS_PARTIAL = 1; ALTERNATIVE_STATUS_TRUNCATED_FINAL = 2; ALTERNATIVE_STATUS_FINAL = 3; ALTERNATIVE_STATUS_CONTENT_FILTER = 4; ALTERNATIVE_STATUS_TOOL_CALLS = 5; }
message Message { string role = 1; oneof content { string text = 2; ToolCallList tool_call_list = 3; ToolResultList tool_result_list = 4; } }
message ToolCallList { repeated ToolCall tool_calls = 1; }
message ToolCall { oneof type { FunctionCall function_call = 1; } }
message FunctionCall { string name = 1; google.protobuf.Struct arguments = 2; }
message ToolResultList { repeated ToolResult tool_results = 1; }
message ToolResult { oneof type { FunctionResult function_result = 1; } }
message FunctionResult { string name = 1; oneof type { string content = 2; } }`,
	"GigaChat, gRPC": `
message Up { ChatOptions options = 1; string model = 2; repeated Message messages = 3; }
message ChatOptions { int32 max_tokens = 4; }
message Message { string role = 1; string content = 2; }
message Down { repeated Alternative alternatives = 1; Usage usage = 2; ModelInfo model_info = 3; int64 timestamp = 4; }
message Alternative { Message message = 1; string finish_reason = 2; }
message Usage { int32 prompt_tokens = 1; int32 completion_tokens = 2; int32 total_tokens = 3; }
message ModelInfo { string name = 1; string version = 2; }`,
	"LocalAI PredictStream, gRPC": `
message Up { string Prompt = 1; int32 Threads = 4; repeated Message Messages = 44; string CorrelationId = 47; }
message Message { string role = 1; string content = 2; }
message Down { bytes message = 1; int32 tokens = 2; int32 prompt_tokens = 3; double timing_prompt_processing = 4; double timing_token_generation = 5; }`,
	"Caikit text generation, gRPC": `
message Up { string text = 1; int64 max_new_tokens = 6; string method = 8; }
message Down { string generated_text = 1; repeated Token tokens = 2; TokenStreamDetails details = 3; }
message Token { string text = 1; double logprob = 3; }
message TokenStreamDetails { int64 finish_reason = 1; uint64 generated_tokens = 2; uint64 seed = 3; int64 input_token_count = 4; }`,
	"Data Analytics chat, gRPC": `
message Up { repeated Message messages = 2; string parent = 3; DataAgentContext data_agent_context = 104; }
message DataAgentContext { string data_agent = 1; }
message Down { oneof kind { UserMessage user_message = 2; SystemMessage system_message = 3; } google.protobuf.Timestamp timestamp = 1; }
message Message { oneof kind { UserMessage user_message = 2; SystemMessage system_message = 3; } }
message UserMessage { string text = 1; }
message SystemMessage { oneof kind { TextMessage text = 1; SchemaMessage schema = 2; DataMessage data = 3; } int32 group_id = 12; }
message TextMessage { enum TextType { TEXT_TYPE_UNSPECIFIED = 0; FINAL_RESPONSE = 1; THOUGHT = 2; PROGRESS = 3; } repeated string parts = 1; TextType text_type = 2; }
message SchemaMessage { oneof kind { SchemaQuery query = 1; SchemaResult result = 2; } }
message SchemaQuery { string question = 1; }
message SchemaResult { repeated Datasource datasources = 1; }
message Datasource { BigQueryTableReference bigquery_table_reference = 1; }
message BigQueryTableReference { string project_id = 1; string dataset_id = 3; string table_id = 4; }
message DataMessage { oneof kind { string generated_sql = 2; DataResult result = 3; } }
message DataResult { string name = 3; repeated google.protobuf.Struct data = 2; }`,
	"Dapr ConverseAlpha2, gRPC": `
message Up { string name = 1; repeated Input inputs = 3; repeated Tools tools = 8; string tool_choice = 9; }
message Input { repeated Message messages = 1; }
message Message { oneof message_types { OfDeveloper of_developer = 1; OfSystem of_system = 2; OfUser of_user = 3; OfAssistant of_assistant = 4; OfTool of_tool = 5; } }
message OfDeveloper { string name = 1; repeated Content content = 2; }
message OfSystem { string name = 1; repeated Content content = 2; }
message OfUser { string name = 1; repeated Content content = 2; }
message OfAssistant { string name = 1; repeated Content content = 2; repeated ToolCalls tool_calls = 3; }
message OfTool { string tool_id = 1; string name = 2; repeated Content content = 3; }
message Content { string text = 1; }
message ToolCalls { string id = 1; oneof tool_types { Function function = 2; } }
message Function { string name = 1; string arguments = 2; }
message Tools { oneof tool_types { ToolsFunction function = 1; } }
message ToolsFunction { string name = 1; string description = 2; google.protobuf.Struct parameters = 3; }
message Down { string context_id = 1; repeated Result outputs = 2; }
message Result { repeated Choices choices = 1; }
message Choices { string finish_reason = 1; int64 index = 2; ResultMessage message = 3; }
message ResultMessage { string content = 1; repeated ToolCalls tool_calls = 2; }`,
	"text generation service of watsonx, gRPC": `
message Up { string model_id = 1; GenerationRequest request = 3; Parameters params = 10; }
message GenerationRequest { string text = 2; }
message Parameters { int32 method = 1; }
message Down { uint32 input_token_count = 6; uint32 generated_token_count = 2; string text = 4; StopReason stop_reason = 7; repeated TokenInfo tokens = 8; }
enum StopReason { NOT_FINISHED = 0; MAX_TOKENS = 1; EOS_TOKEN = 2; }
message TokenInfo { string text = 2; float logprob = 3; }`,
	"Triton ModelStreamInfer, gRPC": `
message Up { string model_name = 1; string id = 3; repeated Tensor inputs = 5; repeated Tensor outputs = 6; repeated bytes raw_input_contents = 7; }
message Tensor { string name = 1; string datatype = 2; repeated int64 shape = 3; }
message Down { string error_message = 1; Response infer_response = 2; }
message Response { string model_name = 1; string model_version = 2; string id = 3; repeated Tensor outputs = 5; repeated bytes raw_output_contents = 6; }`,
}

// frameTypes returns the types of an API's messages from its definitions, or nil.
func frameTypes(t *testing.T, name string) event.FrameType {
	text, ok := definitions[name]
	if !ok {
		return nil
	}
	source := "syntax = \"proto3\"; package api.v1; import \"google/protobuf/struct.proto\"; import \"google/protobuf/timestamp.proto\";" + text
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(map[string]string{"api.proto": source})})}
	files, err := c.Compile(t.Context(), "api.proto")
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	messages := files[0].Messages()
	return func(_ decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
		if dir == captures.Up {
			return messages.ByName("Up")
		}
		return messages.ByName("Down")
	}
}

// TestEvalDefinedAPIs prints how well gRPC is read if its definitions are known, and demands floors.
func TestEvalDefinedAPIs(t *testing.T) {
	sum := &apiScore{}
	for _, a := range everyAPI() {
		types := frameTypes(t, a.name)
		if types == nil {
			continue
		}
		s := judgeAPI(a, apiRounds(), Options{FrameType: types})
		t.Log(s.row("  " + a.name))
		for _, w := range s.wrong[:min(len(s.wrong), 3)] {
			t.Log("      " + w)
		}
		sum.add(s)
	}
	t.Log(sum.row("= gRPC with definitions"))
	if share(sum.answer) < 0.97 || share(sum.thinking) < 0.9 || share(sum.calls) < 0.97 || share(sum.usage) < 0.83 {
		t.Error("worse than before")
	}
}
