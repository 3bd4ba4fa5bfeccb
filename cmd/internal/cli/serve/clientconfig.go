package serve

import (
	"fmt"
	"strings"

	"unwire/cmd/internal/app"
)

// A client is a program that can use the server, such as an SDK or a command-line agent.
type client struct {
	// name identifies the client on the command line.
	name string

	// command returns a shell command that runs the client once with the given URL, API key and model.
	command func(url, key, model string) string

	// config returns the content of the client's configuration file, which refers to the API key by the
	// environment variable keyVariable.
	config func(url, model string) string
}

// clients are the clients whose configuration 'unwire serve' can print, tested with particular versions.
var clients = []client{
	{
		name: "opencode",
		command: func(url, key, _ string) string {
			return fmt.Sprintf(`OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=%s opencode run "…"`, url, key)
		},
		config: func(url, model string) string {
			return fmt.Sprintf(`{
  "$schema": "https://opencode.ai/config.json",
  "model": "unwire/%[2]s",
  "provider": {
    "unwire": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "unwire",
      "options": { "baseURL": "%[1]s/v1", "apiKey": "{env:%[3]s}" },
      "models": { "%[2]s": { "name": "%[2]s", "attachment": true, "modalities": { "input": ["text", "image"], "output": ["text"] } } }
    }
  }
}
`, url, model, keyVariable)
		},
	},
	{
		name: "codex",
		command: func(url, key, model string) string {
			return fmt.Sprintf(`%s=%s codex exec -m %s -c model_provider=unwire -c 'model_providers.unwire={name="unwire",base_url="%s/v1",env_key="%s",wire_api="responses"}' "…"`, keyVariable, key, model, url, keyVariable)
		},
		config: func(url, model string) string {
			return fmt.Sprintf(`model = "%[2]s"
model_provider = "unwire"

[model_providers.unwire]
name = "unwire"
base_url = "%[1]s/v1"
env_key = "%[3]s"
wire_api = "responses"
`, url, model, keyVariable)
		},
	},
	{
		name: "claude",
		command: func(url, key, _ string) string {
			return fmt.Sprintf(`ANTHROPIC_BASE_URL=%s ANTHROPIC_API_KEY=%s claude -p "…"`, url, key)
		},
		config: func(url, model string) string {
			return fmt.Sprintf(`export ANTHROPIC_BASE_URL=%s
export ANTHROPIC_API_KEY="$%s"
export ANTHROPIC_MODEL=%s
export ANTHROPIC_DEFAULT_OPUS_MODEL=%[3]s
export ANTHROPIC_DEFAULT_SONNET_MODEL=%[3]s
export ANTHROPIC_DEFAULT_HAIKU_MODEL=%[3]s
# Tool search changes the tools during a conversation, and each change needs a new stream.
export ENABLE_TOOL_SEARCH=false
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
`, url, keyVariable, model)
		},
	},
	{
		name: "openai",
		command: func(url, key, model string) string {
			return fmt.Sprintf(`curl %s/v1/chat/completions -H "Authorization: Bearer %s" -d '{"model":"%s","messages":[{"role":"user","content":"Hello"}]}'`, url, key, model)
		},
		config: func(url, _ string) string {
			return fmt.Sprintf("export OPENAI_BASE_URL=%s/v1\nexport OPENAI_API_KEY=\"$%s\"\n", url, keyVariable)
		},
	},
}

// clientNames returns the names of all clients.
func clientNames() []string {
	names := make([]string, len(clients))
	for i, c := range clients {
		names[i] = c.name
	}
	return names
}

// printConfig executes --print-config: it prints the configuration with which a client uses the server.
func printConfig(a *app.App, f flags) error {
	if err := app.OneOf("--print-config", f.printConfig, clientNames()...); err != nil {
		return err
	}
	if strings.Trim(f.model, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != "" || f.model == "" {
		return app.Usagef("--model must be a model ID of letters, digits, dots and dashes, not %q", f.model)
	}
	address, err := app.LoopbackAddress(f.listen)
	if err != nil {
		return err
	}
	for _, c := range clients {
		if c.name == f.printConfig {
			fmt.Fprint(a.Out, c.config("http://"+address, f.model))
		}
	}
	return nil
}
