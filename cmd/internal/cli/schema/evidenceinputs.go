package schemacmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/schema/check"
	"unwire/schema/infer"
)

// evidenceInputs are the inputs of schema infer, and the evidence that they gave.
type evidenceInputs struct {
	a       *app.App
	root    string // of messages in files
	raw     bool
	named   bool           // the root has a name of the user's
	checker *check.Checker // for --into; nil without
	// the capture that is being read, for the checker's addresses
	file string

	total  *infer.Evidence
	added  int64  // messages of files
	others int64  // calls of RPCs whose messages are JSON
	other  string // the address of one of them

	started      time.Time
	read         infer.Progress // of the captures before
	nextProgress time.Duration  // since started
}

func newEvidenceInputs(a *app.App, root string, raw bool) *evidenceInputs {
	return &evidenceInputs{a: a, root: root, raw: raw, total: infer.NewEvidence(), started: time.Now(), nextProgress: app.ProgressEvery}
}

// progress returns what says on a terminal, from time to time, how far it is.
func (g *evidenceInputs) progress() func(infer.Progress) {
	before := g.read
	return func(p infer.Progress) {
		g.read = infer.Progress{Messages: before.Messages + p.Messages, Bytes: before.Bytes + p.Bytes}
		at := time.Since(g.started)
		if !g.a.Err.TTY || at <= g.nextProgress {
			return
		}
		g.nextProgress = at + app.ProgressEvery
		g.a.Say("unwire: %s, %.1f MB, %.0f MB/s", app.Counted(g.read.Messages, "message"), float64(g.read.Bytes)/1e6, float64(g.read.Bytes)/1e6/at.Seconds())
	}
}

// gather enters all inputs. Where the context ends it returns its error, and
// what was read until then stays in total.
func (g *evidenceInputs) gather(ctx context.Context, inputs []string) error {
	defer app.CollectLess(app.InferMemory)()
	if g.raw {
		return g.gatherFiles(ctx, inputs)
	}
	var files []string
	for _, name := range inputs {
		ev, err := readEvidenceFile(name)
		if err != nil {
			return err
		}
		if ev == nil {
			files = append(files, name)
		} else if err := g.merge(name, ev); err != nil {
			return err
		}
	}
	if g.named && len(files) == len(inputs) {
		return app.Usagef("--root names the message of --raw: methods name their own")
	}
	for _, name := range files {
		if _, err := os.Stat(query.ParseAddress(name).File); err != nil && name != "-" {
			return err // now, and not when the others have been read for hours
		}
	}
	var damage error
	for _, name := range files {
		err := g.gatherCapture(ctx, name)
		if err != nil && !errors.Is(err, captures.ErrDamaged) {
			return err
		}
		damage = errors.Join(damage, err)
	}
	return damage
}

// merge merges the evidence in a file, once.
func (g *evidenceInputs) merge(name string, ev *infer.Evidence) error {
	if g.checker != nil {
		return app.Usagef("--into needs the traffic itself: %s is evidence", name)
	}
	switch shared := g.total.MergeUncounted(ev); {
	case shared == 1:
		g.a.Say("unwire: %s: all of it is counted already", app.InputName(name))
	case shared > 0:
		g.a.Say("unwire: warning: %s: %.0f %% of its inputs are counted already and now count twice", app.InputName(name), 100*shared)
	}
	return nil
}

// readEvidenceFile reads a file of evidence; of another file it returns nil.
func readEvidenceFile(name string) (*infer.Evidence, error) {
	if name == "-" {
		return nil, nil
	}
	return infer.ReadEvidenceFile(query.ParseAddress(name).File)
}

// gatherFiles enters files that hold one message each. What is no message is said
// and left out, unless nothing else is there.
func (g *evidenceInputs) gatherFiles(ctx context.Context, names []string) error {
	all, stopped := infer.GatherMessages(ctx, names, infer.MessageOptions{Root: g.root, Read: g.a.ReadInput, OnProgress: g.progress()})
	for i, in := range all.Inputs {
		if in.Err != nil {
			return in.Err
		}
		if in.Rejected != nil {
			g.a.Say("unwire: left out: %s: %v", app.InputName(names[i]), in.Rejected)
		}
		if in.Evidence == nil {
			continue
		}
		if err := g.merge(names[i], in.Evidence); err != nil {
			return err
		}
		g.added++
	}
	g.total.Merge(all.Evidence)
	g.added += all.Messages
	if stopped != nil {
		return stopped
	}
	if g.added == 0 {
		return app.Fail(app.ExitInput, errors.New("none of the files is a serialized message"), "")
	}
	return nil
}

// gatherCapture enters every exchange of a capture, or the one that name says.
func (g *evidenceInputs) gatherCapture(ctx context.Context, name string) error {
	return withCapture(name, func(c *query.Capture, at query.Address) error {
		g.file = at.File
		if g.checker != nil {
			return g.checkCapture(ctx, name, c.Store, at)
		}
		return g.inferCapture(ctx, name, c.Store, at)
	})
}

// inferCapture enters what infer makes of a capture.
func (g *evidenceInputs) inferCapture(ctx context.Context, name string, c *store.Store, at query.Address) error {
	read, err := infer.Gather(ctx, c, infer.GatherOptions{Exchange: at.Exchange, Part: at.Part, OnProgress: g.progress()})
	for _, r := range read.Remarks {
		if r.Undecoded != nil {
			g.a.Say("unwire: %s", term.CleanText(r.Undecoded.Error()))
		}
		if r.Rejected != nil {
			g.a.Say("unwire: %s#%d: %v", name, r.Exchange, r.Rejected)
		}
	}
	g.total.Merge(read.Evidence)
	if g.others += read.JSONCalls; g.other == "" && read.JSONCalls > 0 {
		g.other = query.Address{File: at.File, Exchange: read.FirstJSONCall, Frame: -1}.String()
	}
	return err
}

// othersHint is for calls in JSON.
const othersHint = "JSON has names and no field numbers: 'unwire align F.uwc' makes definitions of calls in both forms, 'unwire schema check' holds JSON against them"

// othersText counts the calls in JSON.
func (g *evidenceInputs) othersText() string {
	return fmt.Sprintf("%s in JSON, such as %s", app.Counted(g.others, "call"), g.other)
}

// sayOthers says how many calls nothing was inferred of.
func (g *evidenceInputs) sayOthers() {
	if g.others > 0 {
		g.a.Say("unwire: left out: %s", g.othersText())
		g.a.Say("unwire: hint: %s", othersHint)
	}
}

// nothingInferred is the error where no input holds a message.
func (g *evidenceInputs) nothingInferred() error {
	if g.others > 0 {
		return app.Fail(app.ExitInput, fmt.Errorf("no protobuf message of an RPC in the input, but %s", g.othersText()), othersHint)
	}
	return app.Fail(app.ExitInput, errors.New("no protobuf message of an RPC in the input"), "'unwire ls F.uwc' shows each exchange's codec")
}

// checkCapture checks every exchange of a capture against definitions.
func (g *evidenceInputs) checkCapture(ctx context.Context, name string, c *store.Store, at query.Address) error {
	n, err := g.checker.AddCapture(ctx, c, at.Exchange, at.Part, g.a.Remark)
	if err == nil && n == 0 {
		g.a.Say("unwire: warning: %s holds no exchanges", term.Clean(name))
	}
	return err
}
