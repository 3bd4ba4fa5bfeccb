package transcript

import "fmt"

// A callForm is a way in which agents report a call of a tool. send sends an event.
type callForm struct {
	name string
	send func(g *apiCall, u toolUse, n int, send func(v object))
}

// callForms are forms of calls that services and frameworks of agents use, all with the same answer around them.
var callForms = []callForm{
	{"start, pieces and end", func(g *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "tool_start", "tool": u.name, "id": u.id})
		for _, p := range g.parts(u.json()) {
			send(object{"type": "tool_delta", "id": u.id, "text": p})
		}
		send(object{"type": "tool_end", "id": u.id, "result": u.result})
	}},
	{"action with its input", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "action", "action": u.name, "action_input": u.args, "log": "Invoking it."})
		send(object{"type": "observation", "observation": u.result})
	}},
	{"object called tool", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "tool", "tool": object{"id": u.id, "name": u.name, "arguments": u.args}})
		send(object{"type": "tool", "tool": object{"id": u.id, "name": u.name, "output": u.result}})
	}},
	{"step with input and output", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "step", "step": object{"id": u.id, "kind": "tool", "tool": u.name, "input": u.args, "output": nil, "status": "running"}})
		send(object{"type": "step", "step": object{"id": u.id, "kind": "tool", "tool": u.name, "input": u.args, "output": u.result, "status": "done"}})
	}},
	{"function with params", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "call", "function": u.name, "params": u.args, "call": u.id})
		send(object{"type": "return", "function": u.name, "value": u.result, "call": u.id})
	}},
	{"name and parameters by status", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "tool_status", "tool_name": u.name, "tool_parameters": u.args, "status": "running"})
		send(object{"type": "tool_status", "tool_name": u.name, "tool_response": u.result, "status": "completed"})
	}},
	{"request inside an execution", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "toolExecution", "toolExecution": object{"executionId": u.id, "toolName": u.name, "request": object{"arguments": u.args}, "state": "STARTED"}})
		send(object{"type": "toolExecution", "toolExecution": object{"executionId": u.id, "toolName": u.name, "response": object{"content": u.result}, "state": "FINISHED"}})
	}},
	{"call named by another event", func(g *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "function_call_started", "function": object{"name": u.name}, "call_id": u.id})
		for _, p := range g.parts(u.json()) {
			send(object{"type": "function_call_arguments", "call_id": u.id, "arguments": p})
		}
		send(object{"type": "function_call_finished", "call_id": u.id})
	}},
	{"invocation with a state", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		for _, state := range []string{"partial-call", "call", "result"} {
			v := object{"state": state, "toolName": u.name, "toolCallId": u.id}
			if v["args"] = u.args; state == "partial-call" {
				v["args"] = nil
			} else if state == "result" {
				v["result"] = u.result
			}
			send(object{"type": "tool-invocation", "invocation": v})
		}
	}},
	{"skill with a payload", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "skill_call", "skill": u.name, "payload": u.args, "call_id": u.id})
		send(object{"type": "skill_result", "skill": u.name, "result": u.result, "call_id": u.id})
	}},
	{"fn and args in a call", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "tool", "call": object{"fn": u.name, "args": u.args, "id": u.id}})
	}},
	{"list of calls", func(_ *apiCall, u toolUse, n int, send func(v object)) {
		send(object{"type": "calls", "calls": []any{object{"tool": u.name, "args": u.args, "index": n}}})
	}},
	{"steps in pairs", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "step", "intermediate_steps": []any{[]any{object{"tool": u.name, "tool_input": u.args, "log": "Invoking it.", "type": "AgentAction"}, u.result}}})
	}},
	{"parameters in a list", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		list := []any{}
		for _, name := range sortedNames(u.args) {
			list = append(list, object{"name": name, "value": u.args[name]})
		}
		send(object{"type": "tool_call", "id": u.id, "tool_name": u.name, "parameters": list})
	}},
	{"arguments as text beside the object", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "tool_call", "data": object{"id": u.id, "name": u.name, "raw_arguments": u.json(), "title": "Using a tool"}})
		send(object{"type": "tool_call_update", "data": object{"id": u.id, "status": "completed", "output": object{"text": u.result}}})
	}},
	{"event named by the tool", func(_ *apiCall, u toolUse, n int, send func(v object)) {
		send(object{"type": "agent_step", "step_id": fmt.Sprint("s", n), "tool_calls": []any{object{"call": object{"name": u.name, "arguments": u.json()}, "status": "pending"}}})
		send(object{"type": "agent_step", "step_id": fmt.Sprint("s", n), "tool_calls": []any{object{"call": object{"name": u.name, "arguments": u.json()}, "status": "done", "result": u.result}}})
	}},
	{"growing arguments", func(g *apiCall, u toolUse, _ int, send func(v object)) {
		said := ""
		for _, p := range g.parts(u.json()) {
			said += p
			send(object{"type": "tool_use", "tool_use": object{"id": u.id, "name": u.name, "input_text": said}})
		}
	}},
	{"request of an approval", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "approval_request", "request_id": u.id, "action": object{"name": u.name, "args": u.args}, "message": "Allow this action?"})
		send(object{"type": "action_result", "request_id": u.id, "content": []any{object{"type": "text", "text": u.result}}})
	}},
	{"call as the content", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"kind": "function_call", "content": object{"name": u.name, "arguments": u.args}})
		send(object{"kind": "function_result", "content": object{"name": u.name, "output": u.result}})
	}},
	{"event of a tool with text input", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"event": "tool", "data": object{"name": u.name, "status": "started", "input": u.json()}})
		send(object{"event": "tool", "data": object{"name": u.name, "status": "finished", "output": u.result}})
	}},
	{"names of several words", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"functionCall": object{"functionName": u.name, "functionArgs": u.args, "functionCallId": u.id}})
		send(object{"functionResult": object{"functionName": u.name, "functionOutput": u.result, "functionCallId": u.id}})
	}},
	{"list of used tools", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "tools_update", "tools": []any{object{"id": u.id, "name": u.name, "args": u.args, "status": "running"}}})
		send(object{"type": "tools_update", "tools": []any{object{"id": u.id, "name": u.name, "args": u.args, "status": "done", "result": u.result}}})
	}},
	{"tool as the identifier of an object", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"node": "tool", "data": object{"tool": object{"id": u.name, "input": u.args}, "run": u.id}})
	}},
	{"block of a message", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "message", "message": object{"role": "assistant", "content": []any{object{"type": "tool", "tool_name": u.name, "tool_call_id": u.id, "input": u.args}}}})
		send(object{"type": "message", "message": object{"role": "tool", "content": []any{object{"type": "tool_output", "tool_call_id": u.id, "value": u.result}}}})
	}},
	{"input in its own event", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "tool_started", "run_id": u.id, "tool": u.name})
		send(object{"type": "tool_input", "run_id": u.id, "value": u.args})
		send(object{"type": "tool_output", "run_id": u.id, "value": u.result})
	}},
	{"calls by their identifiers", func(_ *apiCall, u toolUse, _ int, send func(v object)) {
		send(object{"type": "calls", "tool_calls": object{u.id: object{"name": u.name, "args": u.args}}})
		send(object{"type": "results", "tool_results": object{u.id: u.result}})
	}},
}

// callFormAPIs are the forms as APIs.
var callFormAPIs = func() []api {
	var out []api
	for _, f := range callForms {
		out = append(out, api{f.name, false, func(g *apiCall) {
			g.realistic()
			g.thinking, g.noUsage, g.earlier = "", true, nil
			if len(g.calls) == 0 {
				g.calls = []toolUse{g.use()}
			}
			g.up("/agents/helper/stream", object{"message": object{"role": "user", "content": g.question}, "session": g.uuid(), "stream": true})
			for i, u := range g.calls {
				f.send(g, u, i, func(v object) { g.sse("", v) })
			}
			for _, p := range g.parts(g.answer) {
				g.sse("", object{"type": "text_delta", "text": p})
			}
			g.sse("", object{"type": "done"})
		}})
	}
	return out
}()
