package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"unwire/captures"
	"unwire/captures/budget"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/mcp/answer"
	"unwire/cmd/internal/query"
	"unwire/decode"
	"unwire/schema"
)

// A call is one tool call or one read of a resource by an MCP client.
type call struct {
	// Server is the server that got the call.
	*Server

	// ctx ends when the client cancels the call, or when its time is up.
	ctx context.Context

	// app is a copy of the program for this call. Its diagnostics become the remarks of the answer.
	app *app.App

	// page collects the answer.
	page *answer.Page

	// remarks has the diagnostics that app has printed.
	remarks bytes.Buffer

	// opened are the captures that had no secrets when they were opened, and were therefore read directly
	// instead of from a redacted copy.
	opened map[string]bool
}

// newCall returns a call with an empty page. r selects the page, and digest identifies the tool and its
// arguments.
func (s *Server) newCall(ctx context.Context, r answer.Request, digest string) (*call, error) {
	page, err := answer.NewPage(r, digest)
	if err != nil {
		return nil, err
	}
	c := &call{Server: s, ctx: ctx, page: page, opened: map[string]bool{}}
	c.app = s.App.WithRemarks(&c.remarks)
	c.ctx = budget.With(ctx, c.app.Budget)
	return c, nil
}

// errChanging reports that secrets were recorded into a capture while it was read, in several attempts.
var errChanging = errors.New("secrets were added to the capture while unwire was reading it")

// attempts is how often a call is tried if secrets are recorded into a capture while it is read.
const attempts = 3

// run creates a call, has do add the items of the answer, and returns the answer. If secrets were
// recorded into a capture after it was opened, run starts again, so that the answer comes from a redacted
// copy.
//
// Errors: those of do, except that the page is full.
func (s *Server) run(ctx context.Context, r answer.Request, digest string, do func(*call) error) (*answer.Answer, error) {
	for range attempts {
		c, err := s.newCall(ctx, r, digest)
		if err != nil {
			return nil, err
		}
		failure := do(c)
		if errors.Is(failure, answer.ErrFull) {
			failure = nil
		}
		again, err := c.hasNewSecrets()
		switch {
		case err != nil:
			return nil, err
		case again:
			continue
		case failure != nil && !errors.Is(failure, captures.ErrDamaged):
			return nil, failure
		case failure != nil:
			text, _ := c.app.Explain(ctx, failure)
			c.app.Say("%s", text)
		}
		return c.page.Answer(rand.Text(), c.remarkLines()), nil
	}
	return nil, errChanging
}

// hasNewSecrets reports whether secrets were recorded into one of the captures after it was opened.
func (c *call) hasNewSecrets() (bool, error) {
	for file := range c.opened {
		capture, redaction, err := c.opener.OpenRedacted(c.ctx, file)
		if err != nil {
			return false, err
		}
		if err := capture.Close(); err != nil {
			return false, err
		}
		if redaction.Copied {
			return true, nil
		}
	}
	return false, nil
}

// remarkLines returns the diagnostics of the call as lines without the prefix "unwire: ".
func (c *call) remarkLines() []string {
	var list []string
	for line := range strings.Lines(c.remarks.String()) {
		if line = strings.TrimPrefix(strings.TrimSpace(line), "unwire: "); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// open opens a capture. If the capture contains secrets, it opens a redacted copy instead, and adds a
// remark about that.
func (c *call) open(file string) (*query.Capture, error) {
	if _, err := os.Stat(file); err != nil {
		return nil, app.Fail(app.ExitInput, err, "record it with 'unwire capture -o "+file+" -- COMMAND', or name another capture")
	}
	capture, redaction, err := c.opener.OpenRedacted(c.ctx, file)
	if err != nil {
		return nil, err
	}
	if !redaction.Copied {
		c.opened[file] = true
		return capture, nil
	}
	c.app.Say("unwire: %s contains secrets, or bytes that cannot be searched for secrets. This answer comes from a redacted copy, in which exchanges that are still open appear as incomplete", file)
	if n := redaction.Omitted; n.Bytes > 0 {
		c.page.LeaveOut(answer.Omission{What: fmt.Sprintf("bytes of %s in %s that cannot be searched for secrets", app.Counted(n.Exchanges, "exchange"), file), Bytes: int(n.Bytes)})
	}
	return capture, nil
}

// with opens a capture, calls do with it, and closes it. framing selects how connections without HTTP are
// split into messages.
func (c *call) with(file, framing string, do func(*query.Capture) error) (err error) {
	split, err := parseFraming(framing)
	if err != nil {
		return err
	}
	capture, err := c.open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, capture.Close()) }()
	capture.Splitting = split
	return do(capture)
}

// parseFraming parses the argument that selects how a byte stream is split into messages.
func parseFraming(text string) (decode.Splitting, error) {
	split, err := app.ParseSplitting(text)
	if err != nil {
		return "", &argumentError{fmt.Sprintf("framing must be one of %s, not %q", strings.Join(decode.Splittings(), ", "), text)}
	}
	return split, nil
}

// withEach calls with for each address. A damaged capture does not stop it; the damage is returned at the
// end.
func (c *call) withEach(list []query.Address, framing string, do func(*query.Capture, query.Address) error) error {
	var damage error
	for _, at := range list {
		err := c.with(at.File, framing, func(capture *query.Capture) error { return do(capture, at) })
		if err != nil && !errors.Is(err, captures.ErrDamaged) {
			return err
		}
		damage = errors.Join(damage, err)
	}
	return damage
}

// definitions loads the definitions with which the given captures are decoded.
func (c *call) definitions(files ...string) (*schema.Schema, error) {
	return c.app.LoadDefinitions(c.ctx, c.Proto, files...)
}

// definitionsOr compiles the .proto files in texts (contents by path), which the client sent. If there
// are none, it returns the definitions with which the captures are decoded.
func (c *call) definitionsOr(texts map[string]string, files ...string) (*schema.Schema, error) {
	if len(texts) > 0 {
		return app.CompileDefinitions(c.ctx, texts)
	}
	return c.definitions(files...)
}

// add adds an object to the answer; address is what the object is about.
func (c *call) add(address string, o contract.Object) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	return c.page.Add(address, o)
}

// remarkUndecoded adds a remark about the parts of an exchange that could not be decoded.
func (c *call) remarkUndecoded(ex *decode.Exchange) { c.app.Remark(ex) }

// handler returns the function with which the MCP library calls a tool. It limits how many calls run at
// the same time, and the time of each.
func (s *Server) handler(t tool) sdk.ToolHandler {
	return func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		select {
		case s.calls <- struct{}{}:
			defer func() { <-s.calls }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		a, err := s.callTool(ctx, t, r.Params.Arguments)
		if err != nil {
			return s.failure(ctx, t, err), nil
		}
		text, err := encode(a)
		if err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text)}, nil
	}
}

// callTool parses the arguments of a tool call, runs the call, and returns the answer.
//
// Errors: argumentError, and the errors of the tool itself.
func (s *Server) callTool(ctx context.Context, t tool, arguments json.RawMessage) (*answer.Answer, error) {
	if len(arguments) > maxArguments {
		return nil, &argumentError{fmt.Sprintf("the arguments have %d bytes; the limit is %d", len(arguments), maxArguments)}
	}
	request, do, err := t.prepare(arguments)
	if err != nil {
		return nil, err
	}
	if t.sends {
		s.sending.Lock()
		defer s.sending.Unlock()
	}
	return s.run(ctx, request, answer.Digest(t.name, withoutPaging(arguments)), do)
}

// encode encodes an answer as JSON. Characters in captured text that a terminal or a language model could
// misinterpret are escaped; see answer.Inert.
func encode(a *answer.Answer) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // Inert does that and more
	if err := e.Encode(a); err != nil {
		return nil, err
	}
	return answer.Inert(bytes.TrimSpace(b.Bytes())), nil
}

// failure returns the MCP result for a failed call of a tool: the error message and the hint.
func (s *Server) failure(ctx context.Context, t tool, err error) *sdk.CallToolResult {
	text, hint := s.explain(ctx, err)
	text = t.name + ": " + text
	if hint != "" {
		text += "\nhint: " + hint
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// explain returns the message and the hint for an error, worded for an MCP client.
func (s *Server) explain(ctx context.Context, err error) (text, hint string) {
	text, hint = s.App.Explain(ctx, err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		text, hint = fmt.Sprintf("it took longer than %v", callTime), "ask about one exchange instead of a whole capture"
	case errors.Is(err, errChanging):
		hint = "repeat the call"
	case text == "":
		text = "nothing was found"
	}
	if wrong := (*argumentError)(nil); errors.As(err, &wrong) {
		hint = "the tool's input schema lists its arguments"
	}
	return s.opener.HidePath(text), hint
}
