package transcript

import "fmt"

// A textForm is a way in which services stream thinking and an answer, and report the tokens.
type textForm struct {
	name string
	send func(g *apiCall, send func(v any))
}

// textForms are forms of texts that services use, each with thinking before the answer.
var textForms = []textForm{
	{"growing text at the root", func(g *apiCall, send func(v any)) {
		g.thinking, g.noUsage = "", true
		said := ""
		for _, p := range g.parts(g.answer) {
			said += p
			send(object{"text": said, "done": false})
		}
		send(object{"text": g.answer, "done": true})
	}},
	{"names of one letter", func(g *apiCall, send func(v any)) {
		g.thinking = ""
		for _, p := range g.parts(g.answer) {
			send(object{"e": "chunk", "d": object{"t": p}})
		}
		send(object{"e": "end", "d": object{"usage": object{"in": g.input, "out": g.output}}})
	}},
	{"messages by their identifiers", func(g *apiCall, send func(v any)) {
		g.noUsage = true
		a, b := "m_"+g.padding(), "m_"+g.padding()
		asked := object{"author": "user", "content": g.question}
		said := ""
		for _, p := range g.parts(g.thinking) {
			said += p
			send(object{"messages": object{a: asked, b: object{"author": "bot", "reasoning": said, "content": ""}}})
		}
		said = ""
		for _, p := range g.parts(g.answer) {
			said += p
			send(object{"messages": object{a: asked, b: object{"author": "bot", "reasoning": g.thinking, "content": said}}})
		}
	}},
	{"whole message in each event", func(g *apiCall, send func(v any)) {
		message := func(thinking, answer string) {
			var parts []any
			if thinking != "" {
				parts = append(parts, object{"kind": "thinking", "body": thinking})
			}
			if answer != "" {
				parts = append(parts, object{"kind": "text", "body": answer})
			}
			send(object{"message": object{"id": "m1", "role": "assistant", "parts": parts}, "tokens": object{"prompt": g.input, "completion": g.output}})
		}
		said := ""
		for _, p := range g.parts(g.thinking) {
			said += p
			message(said, "")
		}
		said = ""
		for _, p := range g.parts(g.answer) {
			said += p
			message(g.thinking, said)
		}
	}},
	{"stages", func(g *apiCall, send func(v any)) {
		for _, p := range g.parts(g.thinking) {
			send(object{"stage": "thinking", "delta": p})
		}
		for _, p := range g.parts(g.answer) {
			send(object{"stage": "answering", "delta": p})
		}
		send(object{"stage": "finished", "usage": []any{object{"type": "input", "tokens": g.input}, object{"type": "output", "tokens": g.output}}})
	}},
	{"a flag of thinking", func(g *apiCall, send func(v any)) {
		for _, p := range g.parts(g.thinking) {
			send(object{"token": p, "is_thought": true, "n": 1})
		}
		for _, p := range g.parts(g.answer) {
			send(object{"token": p, "is_thought": false, "n": 1})
		}
		send(object{"token": "", "stats": object{"tokens_prompt": g.input, "tokens_completion": g.output}})
	}},
	{"blocks announced by an index", func(g *apiCall, send func(v any)) {
		block := func(n int, kind, s string) {
			if s == "" {
				return
			}
			send(object{"op": "open", "block": n, "kind": kind})
			for _, p := range g.parts(s) {
				send(object{"op": "push", "block": n, "text": p})
			}
			send(object{"op": "close", "block": n})
		}
		block(0, "thinking", g.thinking)
		block(1, "answer", g.answer)
		send(object{"op": "end", "usage": object{"promptTokenUsage": g.input, "completionTokenUsage": g.output}})
	}},
	{"blocks announced by an identifier", func(g *apiCall, send func(v any)) {
		block := func(kind, s string) {
			if s == "" {
				return
			}
			id := g.padding()
			send(object{"type": "block_started", "block_id": id, "block": object{"type": kind}})
			for _, p := range g.parts(s) {
				send(object{"type": "block_delta", "block_id": id, "delta": p})
			}
			send(object{"type": "block_finished", "block_id": id})
		}
		block("reasoning", g.thinking)
		block("message", g.answer)
		send(object{"type": "run_finished", "usage": object{"input": object{"tokens": g.input}, "output": object{"tokens": g.output}}})
	}},
	{"growing choices", func(g *apiCall, send func(v any)) {
		g.thinking, g.noUsage = "", true
		said := ""
		for _, p := range g.parts(g.answer) {
			said += p
			send(object{"choices": []any{object{"text": said, "index": 0}}})
		}
	}},
	{"states until the result", func(g *apiCall, send func(v any)) {
		g.thinking = ""
		for i := range 3 {
			send(object{"status": "running", "progress": i * 30, "message": "Working on it"})
		}
		send(object{"status": "done", "progress": 100, "output": object{"answer": g.answer}, "token_count": object{"input": g.input, "output": g.output}})
	}},
	{"several tokens in an event", func(g *apiCall, send func(v any)) {
		g.thinking = ""
		parts := g.parts(g.answer)
		for len(parts) > 0 {
			n := min(len(parts), 1+g.r.IntN(3))
			var list []any
			for i, p := range parts[:n] {
				list = append(list, object{"text": p, "logprob": -0.1 * float64(i+1)})
			}
			parts = parts[n:]
			send(object{"segments": list})
		}
		send(object{"segments": []any{}, "billing": object{"input_tokens": g.input, "output_tokens": g.output}})
	}},
	{"thinking ends with a tag", func(g *apiCall, send func(v any)) {
		text := g.answer
		if g.thinking != "" {
			text = g.thinking + "\n</think>\n\n" + g.answer
		}
		for _, p := range g.parts(text) {
			send(object{"choices": []any{object{"index": 0, "delta": object{"content": p}}}})
		}
		send(object{"choices": []any{}, "usage": g.openAIUsage()})
	}},
	{"thinking in another tag, growing", func(g *apiCall, send func(v any)) {
		g.noUsage = true
		text := g.answer
		if g.thinking != "" {
			text = "<reasoning>" + g.thinking + "</reasoning>" + g.answer
		}
		said := ""
		for _, p := range g.parts(text) {
			said += p
			send(object{"reply": said})
		}
	}},
	{"the answer beside its source and title", func(g *apiCall, send func(v any)) {
		g.thinking = ""
		for i, p := range g.parts(g.answer) {
			send(object{"id": fmt.Sprint("c", i), "output": object{"kind": "markdown", "value": p}, "title": "About the clock", "agent": object{"name": "Helper", "description": "Answers questions about the handbook."}})
		}
		send(object{"metadata": object{"usage": object{"inputTokenCount": g.input, "outputTokenCount": g.output}}})
	}},
}

// textFormAPIs are the forms as APIs.
var textFormAPIs = func() []api {
	var out []api
	for _, f := range textForms {
		out = append(out, api{f.name, false, func(g *apiCall) {
			before := g.realistic()
			g.withoutTools()
			var messages []any
			for _, b := range before {
				messages = append(messages, object{"role": "user", "content": b.question}, object{"role": "assistant", "content": b.answer})
			}
			g.up("/v1/generate", object{"messages": append(messages, object{"role": "user", "content": g.question}), "model": g.model, "stream": true})
			f.send(g, func(v any) { g.sse("", v) })
		}})
	}
	return out
}()
