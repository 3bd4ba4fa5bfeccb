package proto

import (
	"net/url"

	"unwire/captures/profile"
)

// Profile returns what is known of the subject beyond its messages: Cursor's
// servers, its editor and its CLI.
//
// Source: RESEARCH.md#sse-fallback, RESEARCH.md#headers, RESEARCH.md#secrets-in-messages, RESEARCH.md#tokens
func Profile() *profile.Profile {
	host := func(name string) *url.URL { return &url.URL{Scheme: "https", Host: name} }
	return &profile.Profile{
		Name:     "cursor",
		Packages: []string{AgentPackage, "aiserver.v1"},
		// A method M is asked for as MSSE or MPoll.
		Split: profile.Split{
			Service: "agent.v1.AgentService", RPC: "Run",
			Append: profile.Append{RPC: "BidiAppend", Text: 1, Binary: 4, ID: []uint64{2, 1}, Number: 3},
			Heads: []profile.Head{
				{Suffix: "SSE", ID: []uint64{1}},
				{Suffix: "Poll", ID: []uint64{1, 1}, Number: 1, Data: 2, EOF: 3},
			},
		},
		Secrets: profile.Secrets{
			Headers: []string{"x-client-key", "x-cursor-checksum"},
			Names:   []string{"x-client-key", "x-cursor-checksum"},
			Keys:    []profile.Key{{Prefix: "key_", MinLength: 24}, {Prefix: "crsr_", MinLength: 20}},
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
			AccessToken:  profile.Place{Service: "cursor-access-token", Member: "accessToken"},
			RefreshToken: profile.Place{Service: "cursor-refresh-token", Member: "refreshToken"},
			APIKey:       profile.Place{Service: "cursor-api-key", Member: "apiKey"},
		},
		Exchange:      profile.Exchange{Path: "/auth/exchange_user_api_key", Member: "accessToken"},
		VersionHeader: "x-cursor-client-version",
		Checksum:      profile.Checksum{Header: "x-cursor-checksum", Make: checksum},
	}
}
