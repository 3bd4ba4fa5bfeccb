package schemacmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/schema/infer"
)

// inferInputs are the inputs of schema infer, and the evidence that they gave.
type inferInputs struct {
	a         *app.App
	inference query.Inference

	// root is the name of the messages in files, and named says that it is the user's.
	root  string
	named bool
	// raw says that each input is a file of one message; messages counts them.
	raw      bool
	messages int64
}

func newInferInputs(a *app.App, root string, raw bool) *inferInputs {
	g := &inferInputs{a: a, root: root, raw: raw}
	g.inference = query.Inference{Evidence: infer.NewEvidence()}
	return g
}

// gather enters all inputs. Where the context ends it returns its error; the evidence is
// of what was read until then.
func (g *inferInputs) gather(ctx context.Context, inputs []string) error {
	defer app.CollectLess(app.InferMemory)()
	if g.raw {
		return g.gatherFiles(ctx, inputs)
	}
	var files []string
	for _, name := range inputs {
		ev, err := readEvidenceFile(name)
		switch {
		case err != nil:
			return err
		case ev == nil:
			files = append(files, name)
		default:
			g.merge(name, ev)
		}
	}
	if g.named && len(files) == len(inputs) {
		return app.Usagef("--root names the message of --raw: methods name their own")
	}
	ctx, meter := g.a.ShowProgress(ctx, "inferring", files...)
	defer meter.Stop()
	return gatherCaptures(g.a, files, func(name string, c *query.Capture, at query.Address) error {
		remarks, err := g.inference.Add(ctx, c, at)
		for _, r := range remarks {
			if r.Undecoded != nil {
				g.a.Say("unwire: %s", term.CleanText(r.Undecoded.Error()))
			}
			if r.Rejected != nil {
				g.a.Say("unwire: %s#%d: %v", name, r.Exchange, r.Rejected)
			}
		}
		return err
	})
}

// gatherCaptures opens captures one after the other, and calls do with each. Damage ends
// nothing, and is the error after all of them.
func gatherCaptures(a *app.App, inputs []string, do func(name string, c *query.Capture, at query.Address) error) error {
	// A name that is wrong is reported before the others have been read for hours.
	for _, name := range inputs {
		if _, err := os.Stat(query.ParseAddress(name).File); err != nil && name != "-" {
			return err
		}
	}
	return withCaptures(a, inputs, do)
}

// merge merges the evidence in a file, once.
func (g *inferInputs) merge(name string, ev *infer.Evidence) {
	switch shared := g.inference.Evidence.MergeUncounted(ev); {
	case shared == 1:
		g.a.Say("unwire: %s: all of it is counted already", app.InputName(name))
	case shared > 0:
		g.a.Say("unwire: warning: %s: %.0f %% of its samples are in the evidence already, and now count twice", app.InputName(name), 100*shared)
	}
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
func (g *inferInputs) gatherFiles(ctx context.Context, names []string) error {
	meter := g.a.ShowFileProgress(ctx, "inferring", 0)
	defer meter.Stop()
	read := int64(0)
	onProgress := func(p infer.Progress) {
		meter.Add("", int(p.Bytes-read))
		read = p.Bytes
	}
	all, stopped := infer.GatherMessages(ctx, names, infer.MessageOptions{Root: g.root, Read: g.a.ReadInput, OnProgress: onProgress})
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
		g.merge(names[i], in.Evidence)
		g.messages++
	}
	g.inference.Evidence.Merge(all.Evidence)
	g.messages += all.Messages
	if stopped != nil {
		return stopped
	}
	if g.messages == 0 {
		return app.Fail(app.ExitInput, errors.New("none of the files is a serialized message"), "")
	}
	return nil
}

// jsonCallsHint is for calls in JSON.
const jsonCallsHint = "JSON has names and no field numbers: 'unwire align F.uwc' makes definitions of calls in both forms, 'unwire schema check' holds JSON against them"

// jsonCallsText counts the calls in JSON.
func (g *inferInputs) jsonCallsText() string {
	return fmt.Sprintf("%s in JSON, such as %s", app.Counted(g.inference.JSONCalls, "call"), g.inference.FirstJSONCall)
}

// reportJSONCalls reports how many calls nothing was inferred of.
func (g *inferInputs) reportJSONCalls() {
	if g.inference.JSONCalls > 0 {
		g.a.Say("unwire: left out: %s", g.jsonCallsText())
		g.a.Say("unwire: hint: %s", jsonCallsHint)
	}
}

// reportMessages reports what of exchanges without HTTP nothing was inferred of.
func (g *inferInputs) reportMessages() {
	m := &g.inference.Messages
	for _, err := range m.Undecoded {
		g.a.Say("unwire: %s", term.CleanText(err.Error()))
	}
	if m.Others > 0 {
		g.a.Say("unwire: left out: %s of exchanges without HTTP, neither protobuf nor an object of JSON", app.Counted(m.Others, "message"))
	}
	if m.Raw > 0 {
		g.a.Say("unwire: left out: %s without HTTP; if their messages are delimited, --as says how", app.Counted(m.Raw, "connection"))
	}
}

// nothingInferred is the error where no input holds a message.
func (g *inferInputs) nothingInferred() error {
	if g.inference.JSONCalls > 0 {
		return app.Fail(app.ExitInput, fmt.Errorf("no protobuf message of an RPC in the input, but %s", g.jsonCallsText()), jsonCallsHint)
	}
	if g.inference.Messages.Raw > 0 {
		return app.Fail(app.ExitInput, errors.New("no protobuf message of an RPC in the input, but connections without HTTP"), "if their messages are delimited, --as says how: "+strings.Join(decode.Splittings(), ", "))
	}
	return app.Fail(app.ExitInput, errors.New("no protobuf message of an RPC in the input"), "'unwire ls F.uwc' shows each exchange's codec")
}
