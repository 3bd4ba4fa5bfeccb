package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"unwire/captures/redact"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/replay"
	"unwire/replay/edit"
	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// replayTools returns the tools about requests to servers. The tool that sends requests is included only
// if allowSend is set.
func replayTools(allowSend bool) []tool {
	list := []tool{
		define("replay_plan", "Plan a replay", "Shows what a replay of a captured request would send, with edits: the bytes of each frame, the headers with new values, the secrets that it needs, possible effects on the server, and why unwire would refuse to send it. The tool itself sends nothing. Same object as 'unwire replay --dry-run --json'.", planReplay),
		define("probe_plan", "Plan a probe", "Shows what a probe would send to find a request's fields through a server's parse errors: the number of requests, the purpose of each, and which of them could make the server execute the method. The tool itself sends nothing; 'unwire probe' sends the requests. Same object as 'unwire probe --dry-run --json'.", planProbe),
	}
	if !allowSend {
		return list
	}
	send := define("replay_send", "Send a replay", "Sends a captured request again, with edits, and compares the answer with the captured one. Call replay_plan first, and check the possible effects. The user has allowed requests to this machine and to the hosts named on the command line of 'unwire mcp'. Same object as 'unwire replay --json'.", sendReplay)
	send.sends = true
	return append(list, send)
}

const (
	// maxEdits bounds the edits of a replay.
	maxEdits = 1000

	// replayTime is the deadline of a replay.
	replayTime = time.Minute
)

// replayArguments are the arguments of the tool replay_plan.
type replayArguments struct {
	// Address is the argument address: exchange to send again, such as F.uwc#7.
	Address string `json:"address" jsonschema:"exchange to send again, such as F.uwc#7"`
	// To is the argument to: URL of the server; default: the server in the capture.
	To string `json:"to,omitempty" jsonschema:"URL of the server; default: the server in the capture"`
	// Edits is the argument edits: edits in their order: set PATH=VALUE, add PATH:KIND=VALUE, del PATH, retype
	// PATH:KIND, set-raw PATH=HEX; PATH has field numbers or names and may begin with a client frame: set @0
	// 1.2=hello.
	Edits []string `json:"edits,omitempty" jsonschema:"edits in their order: set PATH=VALUE, add PATH:KIND=VALUE, del PATH, retype PATH:KIND, set-raw PATH=HEX; PATH has field numbers or names and may begin with a client frame: set @0 1.2=hello"`
	// Codec is the argument codec: json or proto: transcode the request, using the definitions.
	Codec string `json:"codec,omitempty" jsonschema:"json or proto: transcode the request, using the definitions"`
	// Parts is the argument parts: only this call, not the whole stream that it is part of.
	Parts bool `json:"parts,omitempty" jsonschema:"only this call, not the whole stream that it is part of"`
	// paging adds the arguments that limit the size of the answer and continue it at a cursor.
	paging
}

// sendArguments are the arguments of the tool replay_send.
type sendArguments struct {
	// After is the argument after: numbers of exchanges to send first, so that this request uses live IDs from their
	// answers, or auto to detect them.
	After []string `json:"after,omitempty" jsonschema:"numbers of exchanges to send first, so that this request uses live IDs from their answers, or auto to detect them"`
	// Learn is the argument learn: send the unedited request twice first, and ignore what differs between the two
	// answers.
	Learn bool `json:"learn,omitempty" jsonschema:"send the unedited request twice first, and ignore what differs between the two answers"`
	// replayArguments are the arguments that describe the request, shared with the tool replay_plan.
	replayArguments
}

// plan plans to send an exchange again, and calls do with the plan and the exchange's address. Only the
// exchanges that the argument after names, and for learn the unedited request, are really sent.
func (c *call) plan(in sendArguments, do func(*replay.Plan, query.Address) error) error {
	at, err := c.shelf.exchange(in.Address)
	if err != nil {
		return err
	}
	changes := replay.Changes{Part: at.Part || in.Parts, Codec: in.Codec, EditFrame: edit.FirstFrame, Timing: replay.Timing{Timeout: replayTime}}
	if changes.Edits, err = parseEdits(in.Edits); err != nil {
		return err
	}
	if in.Codec != "" && in.Codec != replay.CodecJSON && in.Codec != replay.CodecProto {
		return &argumentError{fmt.Sprintf("codec must be json or proto, not %q", in.Codec)}
	}

	// The command line decides which servers are allowed; the client can only choose one of them.
	target := c.Target
	target.To = in.To
	o := replay.Options{OmitSecrets: target.OmitSecrets}
	if changes.To, o.Policy, err = target.Server(); err != nil {
		return err
	}
	o.Pace = c.Pace
	if o.Schema, err = c.definitions(at.File); err != nil {
		return err
	}
	if err := target.Load(&o); err != nil {
		return err
	}

	// The plan checks target and credentials again, so that a client cannot bypass the command line.
	return c.with(at.File, "", func(capture *query.Capture) error {
		if err := c.sendFirst(capture, at, in.After, &changes, o); err != nil {
			return err
		}
		plan, err := capture.Plan(c.ctx, at.Exchange, changes, o, in.Learn)
		if err != nil && in.Learn {
			return app.Refusal(err)
		}
		if err != nil {
			return err
		}
		for _, w := range plan.Description().Warnings {
			c.app.Say("unwire: warning: %s", w)
		}
		at.Frame = -1
		return do(plan, at)
	})
}

// sendFirst sends the exchanges that the argument after names. The identifiers that the live server
// returns are stored in changes, and used for the exchange at address at.
func (c *call) sendFirst(capture *query.Capture, at query.Address, after []string, changes *replay.Changes, o replay.Options) error {
	if len(after) == 0 {
		return nil
	}
	first, err := replay.ExchangesBefore(c.ctx, capture.Store, at.Exchange, after)
	if errors.Is(err, replay.ErrAfter) {
		return &argumentError{"after must be the numbers of other exchanges, or auto"}
	}
	if err != nil {
		return err
	}
	changes.Issued, err = replay.SendBefore(c.ctx, capture, first, *changes, o, func(n int64, plan *replay.Plan) (*replay.Result, error) {
		result, err := c.app.Send(c.ctx, plan, c.Output)
		if err != nil {
			return nil, fmt.Errorf("cannot send exchange %d, given in \"after\": %w", n, err)
		}
		c.app.Say("unwire: exchange %d was sent first: %s", n, result.Comparison)
		if !result.Comparison.Answered() {
			return nil, app.Fail(app.ExitInput, fmt.Errorf("exchange %d, given in \"after\", was not answered: %s", n, result.Comparison), "call replay_plan to see whether this request would be refused")
		}
		return result, nil
	})
	return err
}

// parseEdits parses the argument edits; each text is an operation and its operand, such as "set
// 1.2=hello".
func parseEdits(texts []string) ([]edit.Edit, error) {
	if len(texts) > maxEdits {
		return nil, &argumentError{fmt.Sprintf("there are %d edits; the limit is %d", len(texts), maxEdits)}
	}
	var list []edit.Edit
	for i, text := range texts {
		op, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
		e, err := edit.Parse(op, strings.TrimSpace(rest))
		if err != nil {
			return nil, app.Fail(app.ExitUsage, fmt.Errorf("edit %d: %w", i+1, err), "an edit is such as 'set 1.2=hello', 'add 3:string=x', 'del 1.4' or 'set @0 run_request.mode=2'")
		}
		list = append(list, e)
	}
	return list, nil
}

// planReplay implements the tool replay_plan: it adds to the answer what a replay would send.
func planReplay(c *call, in replayArguments) error {
	return c.plan(sendArguments{replayArguments: in}, func(plan *replay.Plan, at query.Address) error {
		shown := plan.Description()
		return c.add(at.String(), &contract.ReplayPlan{Description: &shown})
	})
}

// sendReplay implements the tool replay_send: it sends a request again, and adds to the answer how the
// response differs from the recorded one.
func sendReplay(c *call, in sendArguments) error {
	if in.Cursor != "" {
		return &argumentError{"replay_send has no pages: each call sends the request again; use a larger max_bytes"}
	}
	return c.plan(in, func(plan *replay.Plan, at query.Address) error {
		result, err := c.app.Send(c.ctx, plan, c.Output)
		if err != nil {
			return err
		}

		// The answer may have secrets that no recorder has seen.
		var b bytes.Buffer
		if err := contract.NewEncoder(&b).Encode(&contract.ReplayResult{Result: result}); err != nil {
			return err
		}
		clean := redact.New(redact.Options{Profile: c.app.Profile()}).Bytes(b.Bytes())
		if err := c.page.AddJSON(at.String(), clean); err != nil {
			return err
		}
		c.nameAnswer(result)
		return nil
	})
}

// nameAnswer adds to the answer where the live response of a replay was recorded, or why it was not.
func (c *call) nameAnswer(result *replay.Result) {
	switch {
	case result.Comparison == replay.Refused:
		c.app.Say("unwire: nothing was sent: only this machine is allowed; start 'unwire mcp' with --live and --allow-host for another one, or give to")
	case c.Output == "":
		c.app.Say("unwire: the answer is not stored: start 'unwire mcp' with -o to keep answers")
	case result.Exchange != 0:
		at := query.Address{File: c.Output, Exchange: result.Exchange, Frame: -1}
		c.page.Mention(at.String())
		c.app.Say("unwire: the answer is stored as %s", at)
	}
}

// probeArguments are the arguments of the tool probe_plan.
type probeArguments struct {
	// Address is the argument address: captured exchange of the method, whose headers and values to use.
	Address string `json:"address,omitempty" jsonschema:"captured exchange of the method, whose headers and values to use"`
	// To is the argument to: URL of the server; default: the server of the exchange.
	To string `json:"to,omitempty" jsonschema:"URL of the server; default: the server of the exchange"`
	// Method is the argument method: /pkg.Service/Method; default: the method of the exchange.
	Method string `json:"method,omitempty" jsonschema:"/pkg.Service/Method; default: the method of the exchange"`
	// Path is the argument path: path of the nested message to probe, such as 1.2; default: the request itself.
	Path string `json:"path,omitempty" jsonschema:"path of the nested message to probe, such as 1.2; default: the request itself"`
	// Fields is the argument fields: field numbers to probe, in ranges separated by commas; default 1-1100.
	Fields string `json:"fields,omitempty" jsonschema:"field numbers to probe, in ranges separated by commas; default 1-1100"`
	// Depth is the argument depth: number of levels of nested messages to probe.
	Depth int `json:"depth,omitempty" jsonschema:"number of levels of nested messages to probe"`
	// Protocol is the argument protocol: connect-unary, connect-stream, grpc or grpc-web; default: detected.
	Protocol string `json:"protocol,omitempty" jsonschema:"connect-unary, connect-stream, grpc or grpc-web; default: detected"`
	// Names is the argument names: JSON names to try for the request's fields.
	Names []string `json:"names,omitempty" jsonschema:"JSON names to try for the request's fields"`
	// Settle is the argument settle: ask only about fields of the request whose type is ambiguous in the captures.
	Settle bool `json:"settle,omitempty" jsonschema:"ask only about fields of the request whose type is ambiguous in the captures"`
	// Known is the argument known: JSON names of request fields that you know to exist; their type must not be float or double.
	Known []string `json:"known,omitempty" jsonschema:"JSON names of request fields that you know to exist; their type must not be float or double"`
	// Budget is the argument budget: maximum number of requests; default 2000.
	Budget int `json:"budget,omitempty" jsonschema:"maximum number of requests; default 2000"`
	// paging adds the arguments that limit the size of the answer and continue it at a cursor.
	paging
}

// planProbe implements the tool probe_plan: it adds to the answer what a probe would ask a server.
func planProbe(c *call, in probeArguments) error {
	if in.Address == "" && (in.To == "" || in.Method == "") {
		return &argumentError{"give to and method, or the address of an exchange of the method"}
	}

	// The defaults are those of the command probe.
	if in.Budget == 0 {
		in.Budget = 2000
	}
	if in.Fields == "" {
		in.Fields = "1-1100"
	}

	// The options are checked before a capture is opened, so that wrong arguments fail at once.
	o := &probe.Options{Method: in.Method, Depth: in.Depth, Type: true, Protocol: probe.Protocol(in.Protocol), Budget: in.Budget, Timeout: 20 * time.Second, Known: in.Known}
	var err error
	if o.Path, err = probe.ParsePath(in.Path); err != nil {
		return &argumentError{fmt.Sprintf("path must be field numbers joined by dots, such as 1.2, not %q", in.Path)}
	}
	if o.Numbers, err = probe.ParseNumbers(in.Fields); err != nil {
		return &argumentError{err.Error()}
	}
	if !o.Protocol.IsKnown() {
		return &argumentError{fmt.Sprintf("protocol must be connect-unary, connect-stream, grpc or grpc-web, not %q", in.Protocol)}
	}
	address, err := c.probeTarget(in, o)
	if err != nil {
		return err
	}
	if len(in.Names) > maxNames {
		return &argumentError{fmt.Sprintf("there are %d names; the limit is %d", len(in.Names), maxNames)}
	}
	o.Names = in.Names
	o.SplitMethod()
	if in.Settle {
		if err := c.addQuestions(o); err != nil {
			return err
		}
	}
	plan, err := oracle.NewPlan(o)
	if err != nil {
		return app.Refusal(err)
	}
	plan.AddReflection()
	return c.add(address, &contract.ProbePlan{Plan: plan})
}

// maxNames is the largest number of field names that a probe can try.
const maxNames = 100_000

// addQuestions adds to a probe questions about the fields of the request whose type is ambiguous in the
// captures.
func (c *call) addQuestions(o *probe.Options) error {
	addresses, err := c.shelf.addresses(nil)
	if err != nil {
		return err
	}
	found, damage, err := c.inferFrom(addresses, inferArguments{})
	if err != nil {
		return err
	}
	var evidence bytes.Buffer
	if err := found.WriteEvidence(&evidence); err != nil {
		return err
	}
	o.Questions, o.Texts, err = probe.QuestionsOfInference(evidence.Bytes(), "", o.Method)
	switch {
	case errors.Is(err, probe.ErrNoRoot):
		return app.Fail(app.ExitInput, fmt.Errorf("the captures have no request of %s", o.Method), "the tool list shows the methods in the captures")
	case err != nil:
		return err
	case len(o.Questions) == 0:
		return app.Fail(app.ExitInput, fmt.Errorf("no field of the request of %s is ambiguous in the captures", o.Method), "without settle, the probe searches for fields that the captures lack")
	}
	return damage
}

// probeTarget sets in o the server of a probe, and copies method, headers and protocol of the exchange
// that the arguments name. It returns the address of that exchange, or "".
func (c *call) probeTarget(in probeArguments, o *probe.Options) (address string, err error) {
	target := c.Target
	target.To = in.To
	var reach replay.Options

	// The server of the arguments must be allowed on the command line, also for a plan.
	if o.To, reach.Policy, err = target.Server(); err != nil {
		return "", err
	}
	if err := target.Load(&reach); err != nil {
		return "", err
	}
	reach.OmitSecrets = true // nothing is sent, so none is missing
	var at query.Address
	if in.Address != "" {
		if at, err = c.shelf.exchange(in.Address); err != nil {
			return "", err
		}
	}
	if reach.Schema, err = c.definitions(at.File); err != nil {
		return "", err
	}

	// Without an exchange, the server and the method are in the arguments.
	o.Reach, o.Schema = reach.Policy, reach.Schema
	if in.Address == "" {
		return "", nil
	}
	err = c.with(at.File, "", func(capture *query.Capture) error {
		if err := app.NeedCall(c.ctx, capture, at, "probe"); err != nil {
			return err
		}
		if o.To == nil {
			if o.To, err = capture.ServerOf(c.ctx, at.Exchange); err != nil {
				return err
			}
		}
		return app.Refusal(o.FromCapture(c.ctx, capture, at.Exchange, reach))
	})
	at.Frame = -1
	return at.String(), err
}
