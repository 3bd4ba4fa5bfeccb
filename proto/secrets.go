package proto

// SecretFields returns the fields whose value is a secret, by full name. Of a
// field that is a message, every text in it is one.
//
// A recorder never decodes, so it cannot use this list: whoever reads what was
// recorded can.
//
// Source: RESEARCH.md#redaction
func SecretFields() []string {
	return []string{
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
	}
}
