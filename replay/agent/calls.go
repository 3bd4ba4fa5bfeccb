package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"unwire/replay/agent/internal/tools"
	"unwire/replay/agent/turn"
)

const (
	// maxCalls bounds the calls that are open at once.
	maxCalls = 128

	// maxAnnounced bounds the calls that were announced and have not come.
	maxAnnounced = 256

	// maxCallID bounds the server's id of a call.
	maxCallID = 512
)

// errStopped ends the reader of a stream that was closed.
var errStopped = errors.New("the stream is closed")

// calls are the calls that a server is waiting for.
type calls struct {
	byID map[string]*tools.Exec
	// byExec are the ids above by the number of the exec.
	byExec map[uint32]string
	// announced are the ids of calls that were shown, and not asked for yet.
	announced []string
}

func newCalls() calls {
	return calls{byID: map[string]*tools.Exec{}, byExec: map[uint32]string{}}
}

// open notes a call, and returns its id; "" if there are too many.
//
// Errors: a *turn.Error for a number that another open call has, since an answer would
// go to both.
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

// close removes a call, and returns it; nil if it is not open.
func (c *calls) close(id string) *tools.Exec {
	e := c.byID[id]
	if e != nil {
		delete(c.byID, id)
		delete(c.byExec, e.ID)
	}
	return e
}

// abort removes the call with a number.
func (c *calls) abort(number uint32) {
	if id, ok := c.byExec[number]; ok {
		c.close(id)
	}
}

// execIDs returns the numbers of the open calls.
func (c *calls) execIDs() []uint32 {
	list := make([]uint32, 0, len(c.byExec))
	for id := range c.byExec {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// announce notes that a call was shown which the client will be asked to run.
func (c *calls) announce(id, tool string) {
	if id == "" || runsOnServer[tool] || slices.Contains(c.announced, id) || len(c.announced) >= maxAnnounced {
		return
	}
	c.announced = append(c.announced, id)
}

// arrived notes that a call that was shown has come, or has ended. Some servers join two
// ids by a line feed. A request without an id is the one that was shown first.
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

// runsOnServer are the members of ToolCall that the server runs itself, or asks for by an
// interaction query.
var runsOnServer = map[string]bool{
	"update_todos_tool_call": true, "read_todos_tool_call": true, "sem_search_tool_call": true, "create_plan_tool_call": true,
	"web_search_tool_call": true, "task_tool_call": true, "apply_agent_diff_tool_call": true, "ask_question_tool_call": true,
	"switch_mode_tool_call": true, "exa_search_tool_call": true, "exa_fetch_tool_call": true, "generate_image_tool_call": true,
	"reflect_tool_call": true, "setup_vm_environment_tool_call": true, "truncated_tool_call": true,
	"start_grind_execution_tool_call": true, "start_grind_planning_tool_call": true, "web_fetch_tool_call": true,
	"report_bugfix_results_tool_call": true,
}
