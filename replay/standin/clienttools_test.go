package standin

import (
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"
)

// weatherTool is part of a run request that announces two tools in one of the places.
func weatherTool(place string) string {
	const tools = `[
		{"name":"mcp_own_get_weather","toolName":"get_weather","providerIdentifier":"own","description":"Weather of a city",
		 "inputSchema":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"],"additionalProperties":false}},
		{"name":"exec_command","inputSchema":{"type":"object","properties":{"cmd":{"type":"string"}},"required":["cmd"]}}]`
	switch place {
	case "mcpTools":
		return `{"mcpTools":{"mcpTools":` + tools + `}}`
	case "context":
		return `{"action":{"userMessageAction":{"requestContext":{"tools":` + tools + `}}}}`
	case "result":
		return `{"success":{"requestContext":{"tools":` + tools + `}}}`
	}
	return `{"mcpTools":{"mcpTools":` + tools + `},"action":{"userMessageAction":{"requestContext":{"tools":` + tools + `}}}}`
}

// oneTurn is a script with one turn of these steps, and other members.
func oneTurn(steps string, members ...string) []byte {
	return []byte(`{"v":1,` + strings.Join(append(members, ""), ",") + `"turns":[{"steps":[` + steps + `]}]}`)
}

const (
	weatherCall = `{"tool":{"name":"mcp","as":"w","args":{"name":"get_weather","args":{"city":"${prompt}"}}}}`
	sunny       = `{"success":{"content":[{"text":{"text":"sunny"}},{"image":{"data":"aGk=","mimeType":"image/png"}}]}}`
)

func TestClientToolsByEveryPlace(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"mcpTools", "context", "result"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			steps := weatherCall + `,{"text":"${w.kind} ${w.text} ${w.images} of ${tools}"},{"turn_ended":{}}`
			p := &player{prompt: "Bern", tools: map[string]string{"get_weather": sunny}}
			if place == "result" {
				steps = `{"tool":{"name":"request_context"}},` + steps
				p.tools["request_context"] = weatherTool(place)
			} else {
				p.request = weatherTool(place)
			}
			s := start(t, Options{Script: oneTurn(steps)})
			got, err := run(t, s, p)
			if err != nil {
				t.Fatal(err)
			}
			const want = "success sunny image/png, 2 bytes, sha256 8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4 of get_weather, exec_command"
			if answerOf(got) != want {
				t.Errorf("answer %q, want %q", answerOf(got), want)
			}
			for _, m := range got {
				if has(m, "exec_server_message", "mcp_args") {
					args := get(m, "exec_server_message", "mcp_args").Message()
					if get(args, "name").String() != "mcp_own_get_weather" || get(args, "provider_identifier").String() != "own" || get(args, "tool_call_id").String() == "" {
						t.Errorf("the call is %v", args)
					}
				}
			}
		})
	}
}

func TestClientToolErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tool, answer, err string }{
		{tool: `"args":{"name":"fly"}`, err: "that the script asks for (fly); it announced: get_weather, exec_command"},
		{tool: `"args":{"name":"fly"},"unannounced":true`, answer: "tool_not_found fly"},
		{tool: `"args":{"name":"get_weather","args":{"city":7}}`, err: "do not match the tool's input schema: get_weather: "},
		{tool: `"args":{"name":"get_weather","args":{"city":"Bern","days":1.5}}`, err: "do not match the tool's input schema: get_weather: "},
		{tool: `"args":{"name":"get_weather","args":{"city":7}},"invalid_args":true`, answer: "success sunny"},
		{tool: `"args":{"name":"get_weather","args":{"city":"Bern","days":2}}`, answer: "success sunny"},
		{tool: `"any":[{"name":"fly"},{"name":"get_weather","args":{}},{"name":"get_weather","args":{"city":"Bern"}}]`, answer: "success sunny"},
		{tool: `"any":[{"name":"fly"},{"name":"swim"}]`, err: "that the script asks for (fly, swim); it announced"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{Script: oneTurn(`{"tool":{"name":"mcp","as":"w",` + c.tool + `}},{"text":"${w.kind} ${w.text}"},{"turn_ended":{}}`)})
			got, err := run(t, s, &player{prompt: "x", request: weatherTool("mcpTools"), tools: map[string]string{"get_weather": sunny}})
			switch {
			case c.err == "" && (err != nil || answerOf(got) != c.answer):
				t.Errorf("got %q, %v, want %q", answerOf(got), err, c.answer)
			case c.err != "" && (connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), c.err)):
				t.Errorf("got %v, want %q", err, c.err)
			}
		})
	}
}

// What is announced twice makes the stream hang with heartbeats.
func TestToolsAnnouncedTwice(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		t.Run(fmt.Sprint("allowed=", allowed), func(t *testing.T) {
			t.Parallel()
			var members []string
			if allowed {
				members = []string{`"announced_twice":"allow"`}
			}
			s := start(t, Options{Script: oneTurn(`{"text":"Hi"},{"turn_ended":{}}`, members...)})
			if allowed {
				if got, err := run(t, s, &player{prompt: "x", request: weatherTool("both")}); err != nil || answerOf(got) != "Hi" {
					t.Errorf("%q, %v", answerOf(got), err)
				}
				return
			}
			kinds := firstKinds(t, s, &player{prompt: "x", request: weatherTool("both")}, 2)
			if strings.Join(kinds, " ") != "heartbeat heartbeat" {
				t.Errorf("messages %v", kinds)
			}
			if n := s.Stats().Hung; n != 1 {
				t.Errorf("%d hung", n)
			}
		})
	}
}
