package transcript

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"unwire/captures"
)

// synonyms are names that published APIs use for the same thing. A variation of an API replaces each name of a group by
// another one of it.
var synonyms = [][]string{
	{"tool_calls", "function_calls", "tool_uses", "tool_invocations", "toolCalls", "tool_requests"},
	{"tool_call", "function_call", "tool_use", "tool_invocation", "toolCall", "tool_request"},
	{"arguments", "args", "parameters", "params", "tool_input", "tool_args", "kwargs"},
	{"tool_name", "toolName", "function_name", "tool"},
	{"tool_call_id", "toolCallId", "call_id", "tool_use_id", "invocation_id", "tool_id"},
	{"reasoning_content", "reasoning", "thinking", "thought", "reasoning_text", "thinking_content", "thoughts", "thought_process", "internal_monologue"},
	{"content", "text", "answer", "message_text", "response_text", "output_text", "body"},
	{"prompt_tokens", "input_tokens", "inputTokens", "promptTokenCount", "tokens_in", "num_input_tokens", "input_token_usage", "prompt_token_num"},
	{"completion_tokens", "output_tokens", "outputTokens", "candidatesTokenCount", "tokens_out", "num_output_tokens", "output_token_usage", "generated_token_num"},
	{"usage", "token_usage", "usage_metadata", "stats", "metrics"},
	{"delta", "chunk", "increment"},
	{"messages", "history", "conversation", "chat_history", "turns"},
}

// aliases maps each name of synonyms to its group and place.
var aliases = func() map[string]int {
	out := make(map[string]int)
	for i, group := range synonyms {
		for _, name := range group {
			out[name] = i
		}
	}
	return out
}()

// A variation sends the conversation of an API with other names, in further objects, or in another framing.
type variation struct {
	// names says whether names are replaced; wrap is the member in which each event is wrapped, or "".
	names bool
	wrap  string

	// lines means that server-sent events without names are lines of JSON instead.
	lines bool

	// chosen are the names for the groups of synonyms so far.
	chosen map[int]string
	r      *rand.Rand
}

// apply changes the chunks of g, unless the exchange is protobuf or in an unusual frame.
func (v *variation) apply(g *apiCall) bool {
	v.chosen = make(map[int]string)
	out := slices.Clone(g.chunks)
	for i, c := range out {
		data, ok := v.chunk(c)
		if !ok {
			return false
		}
		out[i].Data = data
	}
	g.chunks = out
	if v.lines && g.ex.Transport == captures.HTTP {
		g.respond("application/x-ndjson")
	}
	return true
}

// chunk returns the bytes of a chunk as varied.
func (v *variation) chunk(c captures.Chunk) ([]byte, bool) {
	if c.Dir == captures.Up {
		return v.value(c.Data, false)
	}
	text := string(c.Data)
	if !strings.HasPrefix(text, "data: ") && !strings.HasPrefix(text, "event: ") {
		line, ok := v.value(bytes.TrimSpace(c.Data), true)
		return append(line, '\n'), ok
	}
	head, data, _ := strings.Cut(text, "data: ")
	data = strings.TrimSuffix(data, "\n\n")
	if data == "[DONE]" {
		return c.Data, true
	}
	b, ok := v.value([]byte(data), true)
	if v.lines && head == "" {
		return append(b, '\n'), ok
	}
	return []byte(head + "data: " + string(b) + "\n\n"), ok && (!v.lines || head == "")
}

// value returns JSON as varied.
func (v *variation) value(data []byte, wrapped bool) ([]byte, bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var x any
	if d.Decode(&x) != nil || d.More() {
		return nil, false
	}
	if v.names {
		x = v.renamed(x)
	}
	if _, isObject := x.(object); isObject && wrapped && v.wrap != "" {
		x = object{v.wrap: x, "seq": 1, "request_id": "r-1"}
	}
	return compactJSON(x), true
}

// renamed returns a value with other names. Arguments and definitions of tools stay as they are.
func (v *variation) renamed(x any) any {
	switch x := x.(type) {
	case object:
		out := make(object, len(x))
		for _, name := range sortedNames(x) {
			m := x[name]
			group, ok := aliases[name]
			to := name
			if ok {
				if v.chosen[group] == "" {
					v.chosen[group] = synonyms[group][v.r.IntN(len(synonyms[group]))]
				}
				to = v.chosen[group]
			}
			if _, taken := x[to]; taken && to != name {
				to = name
			}
			if _, taken := out[to]; taken {
				to = name
			}
			_, isObject := m.(object)
			if _, isFlag := m.(bool); isFlag || isObject && (ok && synonyms[group][0] == "arguments" || keepsNames(name)) || name == "tools" {
				if isFlag {
					to = name
				}
				out[to] = m
				continue
			}
			out[to] = v.renamed(m)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, m := range x {
			out[i] = v.renamed(m)
		}
		return out
	}
	return x
}

// keepsNames reports whether the names in an object are those of the parameters of a tool.
func keepsNames(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "args") || strings.HasSuffix(name, "input") || strings.HasSuffix(name, "arguments") || strings.HasSuffix(name, "parameters") || strings.HasSuffix(name, "params")
}

// TestVaried demands that APIs are read as well with other names, inside another object, and as lines.
func TestVaried(t *testing.T) {
	rounds := apiRounds() / 2
	all := slices.Concat(tunedAPIs, heldAPIs, lastAPIs, realAPIs, agentAPIs, productAPIs, assistantAPIs, serverAPIs, runAPIs, secondProductAPIs, splitTunedAPIs)
	for _, c := range []struct {
		what string
		make func(r *rand.Rand) *variation

		// answer, thinking, calls and usage are the floors.
		answer, thinking, calls, usage float64
	}{
		{"names", func(r *rand.Rand) *variation { return &variation{names: true, r: r} }, 0.95, 0.97, 0.90, 0.97},
		{"wrapped", func(r *rand.Rand) *variation {
			return &variation{wrap: []string{"data", "payload", "result", "event", "chunk"}[r.IntN(5)], r: r}
		}, 0.95, 0.97, 0.93, 0.97},
		{"lines", func(r *rand.Rand) *variation { return &variation{lines: true, r: r} }, 0.96, 0.97, 0.92, 0.97},
	} {
		sum := &apiScore{}
		for _, a := range all {
			for seed := range rounds {
				g := newAPICall(seed)
				a.make(g)
				if c.make(rand.New(rand.NewPCG(seed, 99))).apply(g) {
					sum.judge(a.name, seed, g, Options{})
				}
			}
		}
		t.Log(sum.row("= " + c.what))
		for _, f := range []struct {
			what    string
			got     [2]int
			atLeast float64
		}{{"answer", sum.answer, c.answer}, {"thinking", sum.thinking, c.thinking}, {"calls", sum.calls, c.calls}, {"usage", sum.usage, c.usage}} {
			if share(f.got) < f.atLeast {
				t.Errorf("%s: %s: %.3f, want %.3f", c.what, f.what, share(f.got), f.atLeast)
			}
		}
	}
}
