package schemacmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/decode"
	"unwire/schema/infer"
)

// inferInputs reads the inputs of schema infer, and collects the evidence from them.
type inferInputs struct {
	// a is the running program.
	a *app.App

	// inference has the evidence from the inputs read so far.
	inference query.Inference

	// root is the name of the message type for files of one message.
	root string

	// named means that the user chose root.
	named bool

	// raw means that each input file is one message.
	raw bool

	// messages is the number of those files.
	messages int64
	// objects are the options for reading evidence files from object stores.
	objects *app.ObjectStore
}

// newInferInputs returns an inferInputs without any evidence.
func newInferInputs(a *app.App, root string, raw bool) *inferInputs {
	g := &inferInputs{a: a, root: root, raw: raw, objects: new(app.ObjectStore)}
	g.inference = query.Inference{Evidence: infer.NewEvidence()}
	return g
}

// gather reads all inputs. If the context ends, it returns the context's error together with the
// evidence from the inputs read so far.
func (g *inferInputs) gather(ctx context.Context, inputs []string) error {
	defer app.CollectLess(app.InferMemory)()
	if g.raw {
		return g.gatherFiles(ctx, inputs)
	}
	var files []string
	// Evidence files are merged; everything else must be a capture.
	for _, name := range inputs {
		ev, err := readEvidence(ctx, g.objects, name)
		switch {
		case err != nil:
			return err
		case ev == nil:
			files = append(files, name)
		default:
			g.merge(name, ev)
		}

		// A name for the root type makes sense only for messages whose method is unknown.
	}
	if g.named && len(files) == len(inputs) {
		return app.Usagef("--root requires --raw")
	}
	ctx, meter := g.a.ShowProgress(ctx, "inferring", files...)
	defer meter.Stop()
	return gatherCaptures(g.a, files, func(name string, c *query.Capture, at query.Address) error {
		remarks, err := g.inference.Add(ctx, c, at)
		for _, r := range remarks {
			if r.Undecoded != nil {
				g.a.Say("unwire: %v", r.Undecoded)
			}
			if r.Rejected != nil {
				g.a.Say("unwire: %s#%d: %v", name, r.Exchange, r.Rejected)
			}
		}
		return err
	})
}

// gatherCaptures opens captures one after the other, and calls do with each. It first checks that all
// files exist. A damaged capture does not stop it; the errors are joined and returned at the end.
func gatherCaptures(a *app.App, inputs []string, do func(name string, c *query.Capture, at query.Address) error) error {
	// A name that is wrong is reported before the others have been read for hours.
	for _, name := range inputs {
		if _, err := os.Stat(query.ParseAddress(name).File); err != nil && name != "-" {
			return err
		}
	}
	return withCaptures(a, inputs, do)
}

// merge adds the evidence in a file, and prints a warning if the same samples were added before.
func (g *inferInputs) merge(name string, ev *infer.Evidence) {
	switch shared := g.inference.Evidence.MergeIfNew(ev); {
	case shared == 1:
		g.a.Say("unwire: skipped %s: the other inputs already contain all its samples", app.InputName(name))
	case shared > 0:
		g.a.Say("unwire: warning: %s: the other inputs already contain %.0f %% of its samples, which are now counted twice", app.InputName(name), 100*shared)
	}
}

// readEvidenceFile reads an evidence file; it returns nil if the file is something else.
func readEvidenceFile(name string) (*infer.Evidence, error) {
	if name == "-" {
		return nil, nil
	}
	return infer.ReadEvidenceFile(query.ParseAddress(name).File)
}

// gatherFiles adds files that contain one message each. It warns about files that contain no message,
// and fails if no file contains one.
func (g *inferInputs) gatherFiles(ctx context.Context, names []string) error {
	meter := g.a.ShowFileProgress(ctx, "inferring", 0)
	defer meter.Stop()

	// The library reports totals, the meter wants increments.
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
			g.a.Say("unwire: skipped %s: %v", app.InputName(names[i]), in.Rejected)
		}
		if in.Evidence == nil {
			continue
		}
		g.merge(names[i], in.Evidence)
		g.messages++
	}

	// The evidence of all single messages is pooled, because they are of one type.
	g.inference.Evidence.Merge(all.Evidence)
	g.messages += all.Messages
	if stopped != nil {
		return stopped
	}
	if g.messages == 0 {
		return app.Fail(app.ExitInput, errors.New("none of the files is a serialized protobuf message"), "")
	}
	return nil
}

// jsonCallsHint is the hint about calls recorded in JSON, from which no protobuf definitions can be
// inferred.
const jsonCallsHint = "JSON contains no field numbers. If calls were recorded in both JSON and protobuf, 'unwire align F.uwc' writes definitions; 'unwire schema check' checks JSON against definitions"

// jsonCallsText returns a phrase with the number of calls in JSON, which the inference ignores.
func (g *inferInputs) jsonCallsText() string {
	if g.inference.JSONCalls == 1 {
		return fmt.Sprintf("1 call in JSON (%s)", g.inference.FirstJSONCall)
	}
	return fmt.Sprintf("%s in JSON, such as %s", app.Counted(g.inference.JSONCalls, "call"), g.inference.FirstJSONCall)
}

// reportJSONCalls prints how many calls were ignored because they are in JSON.
func (g *inferInputs) reportJSONCalls() {
	if g.inference.JSONCalls > 0 {
		g.a.Say("unwire: skipped %s", g.jsonCallsText())
		g.a.Say("unwire: hint: %s", jsonCallsHint)
	}
}

// reportMessages prints which messages and connections without HTTP were ignored.
func (g *inferInputs) reportMessages() {
	m := &g.inference.Messages
	for _, err := range m.Undecoded {
		g.a.Say("unwire: %v", err)
	}
	if m.Others > 0 {
		g.a.Say("unwire: skipped %s of WebSockets and other connections without HTTP, because they are neither protobuf nor a JSON object", app.Counted(m.Others, "message"))
	}
	if m.Raw > 0 {
		g.a.Say("unwire: skipped %s without HTTP, because it is unknown where each message begins. If a length precedes each message, give the form of the length with --as, such as --as delimited", app.Counted(m.Raw, "connection"))
	}
}

// nothingInferred returns the error for inputs without any message.
func (g *inferInputs) nothingInferred() error {
	if g.inference.JSONCalls > 0 {
		return app.Fail(app.ExitInput, fmt.Errorf("the input contains no protobuf RPC message, only %s", g.jsonCallsText()), jsonCallsHint)
	}
	if g.inference.Messages.Raw > 0 {
		return app.Fail(app.ExitInput, errors.New("the input contains no protobuf RPC message, only connections without HTTP"), "if a length precedes each protobuf message, give the form of the length with --as: "+strings.Join(decode.Splittings(), ", "))
	}
	return app.Fail(app.ExitInput, errors.New("the input contains no protobuf RPC message"), "'unwire ls F.uwc' shows each exchange's codec")
}
