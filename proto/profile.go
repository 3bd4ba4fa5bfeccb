package proto

import (
	"net/url"

	"unwire/captures/profile"
)

// Profile returns the description of the subject's service apart from its messages: its servers, headers,
// secrets, tokens and its way of splitting a stream across calls.
//
// Source: RESEARCH.md#sse-fallback, RESEARCH.md#headers, RESEARCH.md#secrets-in-messages, RESEARCH.md#tokens
func Profile() *profile.Profile {
	host := func(name string) *url.URL { return &url.URL{Scheme: "https", Host: name} }
	return &profile.Profile{
		Name:     "cursor",
		Packages: []string{AgentPackage, "aiserver.v1"},
		// The fallback of a method M consists of methods named MSSE and MPoll.
		Split: profile.Split{
			Service: "agent.v1.AgentService", RPC: "Run",
			Append: profile.Append{RPC: "BidiAppend", Text: 1, Binary: 4, ID: []uint64{2, 1}, Seq: 3},
			Heads: []profile.Head{
				{Suffix: "SSE", ID: []uint64{1}},
				{Suffix: "Poll", ID: []uint64{1, 1}, Seq: 1, Data: 2, EOF: 3},
			},
		},
		Secrets: profile.Secrets{
			Headers: []string{"x-client-key", "x-cursor-checksum"},
			Names:   []string{"x-client-key", "x-cursor-checksum"},
			Keys:    []profile.KeyShape{{Prefix: "key_", MinLength: 24}, {Prefix: "crsr_", MinLength: 20}},
			// These fields have credentials of users and of their cloud accounts.
			Fields: []string{
				"agent.v1.ApiKeyCredentials.api_key",
				"agent.v1.AzureCredentials.api_key",
				"agent.v1.BedrockCredentials.access_key",
				"agent.v1.BedrockCredentials.secret_key",
				"agent.v1.BedrockCredentials.session_token",
				"agent.v1.ClientLlmGatewayCredential.bearer_token",
				"aiserver.v1.ModelDetails.api_key",
				"aiserver.v1.ModelDetails.azure_state",
				"aiserver.v1.ModelDetails.bedrock_state",
				"aiserver.v1.IndexingConfig.repo42_auth_token",
				"aiserver.v1.IndexingConfig.default_user_path_encryption_key",
				"aiserver.v1.IndexingConfig.default_team_path_encryption_key",
			},
		},
		Hosts: []string{"*.cursor.sh"},
		Endpoints: profile.Endpoints{
			Backend: host("api2.cursor.sh"), Private: host("agent.api5.cursor.sh"), Shared: host("agentn.api5.cursor.sh"),
			PrivacyHeader: "x-ghost-mode", PrivacyOff: []string{"false", "implicit-false"},
		},
		Tokens: profile.Tokens{
			Account: "cursor-user", Folder: "cursor", WindowsFolder: "Cursor", File: "auth.json",
			AccessToken:  profile.TokenPlace{Service: "cursor-access-token", Member: "accessToken"},
			RefreshToken: profile.TokenPlace{Service: "cursor-refresh-token", Member: "refreshToken"},
			APIKey:       profile.TokenPlace{Service: "cursor-api-key", Member: "apiKey"},
		},
		Exchange:      profile.TokenExchange{Path: "/auth/exchange_user_api_key", Member: "accessToken"},
		VersionHeader: "x-cursor-client-version",
		Checksum:      profile.Checksum{Header: "x-cursor-checksum", Make: checksum},
		Executes:      executions(),
	}
}

// executions are the messages that ask the client to run a tool, to stop one, or to decide about one. The messages of
// the polling calls are encoded inside others, so all of them count.
//
// Source: RESEARCH.md#sse-fallback
func executions() []profile.Execution {
	step := func(number uint64, snake, camel string) profile.Step {
		return profile.Step{Number: number, Names: []string{snake, camel}}
	}
	asks := [][]profile.Step{
		{step(2, "exec_server_message", "execServerMessage")},
		{step(5, "exec_server_control_message", "execServerControlMessage")},
		{step(7, "interaction_query", "interactionQuery")},
	}
	call := step(1, "client_side_tool_v2_call", "clientSideToolV2Call")
	tool := [][]profile.Step{{call}}
	inner := [][]profile.Step{{step(1, "server_chunk", "serverChunk"), call}}
	const agent, chat = "agent.v1.AgentService", "aiserver.v1.ChatService"
	return []profile.Execution{
		{Service: agent, RPC: "Run", Paths: asks},
		{Service: agent, RPC: "RunSSE", Paths: asks},
		{Service: agent, RPC: "RunPoll"},
		{Service: chat, RPC: "StreamUnifiedChatWithTools", Paths: tool},
		{Service: chat, RPC: "StreamUnifiedChatWithToolsSSE", Paths: tool},
		{Service: chat, RPC: "StreamUnifiedChatWithToolsPoll"},
		{Service: chat, RPC: "StreamUnifiedChatWithToolsIdempotent", Paths: inner},
		{Service: chat, RPC: "StreamUnifiedChatWithToolsIdempotentSSE", Paths: inner},
		{Service: chat, RPC: "StreamUnifiedChatWithToolsIdempotentPoll"},
	}
}
