package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"unwire/replay/agent/internal/tools"
	"unwire/replay/agent/turn"
)

// The limits of the tool calls in one stream.
const (
	// maxCalls limits the number of open calls.
	maxCalls = 128

	// maxAnnounced limits the calls that were announced but not requested yet.
	maxAnnounced = 256

	// maxCallID limits the length of the server's call ids in bytes.
	maxCallID = 512
)

// errStopped ends the reading of a stream that was closed locally.
var errStopped = errors.New("the stream is closed")

// calls are the tool calls that the server has requested and whose results it is waiting for.
type calls struct {
	// byID are the requests of the open calls, by the id of the call.
	byID map[string]*tools.Exec
	// byExec are the ids of the open calls, by the number of the server's exec request.
	byExec map[uint32]string
	// announced are the ids of calls that the server announced while the model wrote their arguments,
	// but that it has not requested yet.
	announced []string
}

// newCalls returns an empty set of calls.
func newCalls() calls {
	return calls{byID: map[string]*tools.Exec{}, byExec: map[uint32]string{}}
}

// open adds the tool call that e requests and returns its id, which is unique among the open calls. It
// returns "" if too many calls are open.
//
// Errors: a *turn.Error if another open call has the same number, because a result would match both.
func (c *calls) open(e *tools.Exec) (id string, err error) {
	if _, taken := c.byExec[e.ID]; taken {
		return "", &turn.Error{Kind: turn.Upstream, Code: "protocol_error", Message: fmt.Sprintf("the upstream asked for two calls with the number %d", e.ID)}
	}
	if len(c.byID) >= maxCalls {
		return "", nil
	}
	id = e.CallID()
	if id == "" || len(id) > maxCallID || c.byID[id] != nil {
		id = fmt.Sprintf("exec-%d", e.ID)
	}
	c.byID[id], c.byExec[e.ID] = e, id
	return id, nil
}

// close removes an open tool call and returns its request; nil if it is not open.
func (c *calls) close(id string) *tools.Exec {
	e := c.byID[id]
	if e != nil {
		delete(c.byID, id)
		delete(c.byExec, e.ID)
	}
	return e
}

// abort removes the open tool call with this number of an exec request, if there is one.
func (c *calls) abort(number uint32) {
	if id, ok := c.byExec[number]; ok {
		c.close(id)
	}
}

// execIDs returns the sorted numbers of the exec requests of all open calls.
func (c *calls) execIDs() []uint32 {
	list := make([]uint32, 0, len(c.byExec))
	for id := range c.byExec {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// announce records that the server announced a call, which it will request later. Calls of tools that
// run on the server are ignored. tool is the name of the tool's member in the message ToolCall.
func (c *calls) announce(id, tool string) {
	if id == "" || runsOnServer[tool] || slices.Contains(c.announced, id) || len(c.announced) >= maxAnnounced {
		return
	}
	c.announced = append(c.announced, id)
}

// arrived records that the call with this id was requested or has ended, and is no longer only
// announced. Some servers join two ids with a line feed. "" means the oldest announced call.
func (c *calls) arrived(id string) {
	if len(c.announced) == 0 {
		return
	}
	if id == "" {
		c.announced = c.announced[1:]
		return
	}
	c.announced = slices.DeleteFunc(c.announced, func(a string) bool {
		return a == id || strings.HasPrefix(id, a+"\n") || strings.HasSuffix(id, "\n"+a) || strings.HasPrefix(a, id+"\n")
	})
}

// runsOnServer are the tools that the server runs itself, or requests as a question to the user. The
// names are those of members of the message ToolCall.
var runsOnServer = map[string]bool{
	"update_todos_tool_call": true, "read_todos_tool_call": true, "sem_search_tool_call": true, "create_plan_tool_call": true,
	"web_search_tool_call": true, "task_tool_call": true, "apply_agent_diff_tool_call": true, "ask_question_tool_call": true,
	"switch_mode_tool_call": true, "exa_search_tool_call": true, "exa_fetch_tool_call": true, "generate_image_tool_call": true,
	"reflect_tool_call": true, "setup_vm_environment_tool_call": true, "truncated_tool_call": true,
	"start_grind_execution_tool_call": true, "start_grind_planning_tool_call": true, "web_fetch_tool_call": true,
	"report_bugfix_results_tool_call": true,
}
