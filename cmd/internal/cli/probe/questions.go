package probecmd

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/app"
	"unwire/replay/probe"
	"unwire/schema"
)

// probeQuestions adds the questions of --settle to the probe: the ambiguous fields of an inference, or
// the differences between two definitions.
func probeQuestions(ctx context.Context, a *app.App, o *probe.Options, f *probeFlags) error {
	switch len(f.settle) {
	case 0:
		return nil
	case 1:
		return inferredQuestions(a, o, f)
	case 2:
	default:
		return app.Usagef("use --settle once for evidence of 'schema infer', or twice for two definitions, not %d times", len(f.settle))
	}
	var requests [2]protoreflect.MessageDescriptor
	for i, name := range f.settle {
		s, err := a.LoadSource(ctx, name)
		if err != nil {
			return err
		}
		if requests[i] = requestOf(s, o.Method, f.typ); requests[i] == nil {
			return app.Fail(app.ExitUsage, errors.New(name+" does not define the request of "+o.Method), "name the request's type with --type")
		}
	}
	if o.Questions, o.Texts = probe.QuestionsOfDefinitions(f.settle[0], requests[0], f.settle[1], requests[1]); len(o.Questions) == 0 {
		return app.Fail(app.ExitUsage, errors.New("both definitions of the request are equal: there is nothing to probe"), "")
	}
	return nil
}

// requestOf returns the request type of a method in s or, if typ is not "", the type of that name; nil if
// there is none.
func requestOf(s *schema.Schema, method, typ string) protoreflect.MessageDescriptor {
	if typ != "" {
		return s.Message(typ)
	}
	service, rpc, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if m := s.Method(service, rpc); m != nil {
		return m.Input()
	}
	return nil
}

// inferredQuestions adds the questions for --settle with one file: the ambiguous fields in the evidence
// of 'schema infer'.
func inferredQuestions(a *app.App, o *probe.Options, f *probeFlags) error {
	name := f.settle[0]
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return app.Usagef("--settle %s: the folder has only one version of the definitions, but probe compares two: use --settle twice, as in --settle OLD --settle NEW", name)
	}
	data, err := a.ReadInput(name)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return app.Usagef("--settle %s: the file is not evidence of 'schema infer'; for two definitions, use --settle twice", name)
	}
	o.Questions, o.Texts, err = probe.QuestionsOfInference(data, f.typ, o.Method)
	switch {
	case errors.Is(err, probe.ErrNoRoot):
		return app.Fail(app.ExitUsage, err, "give the full name of the request type, as in the evidence file, with --type")
	case err != nil:
		return err
	case len(o.Questions) == 0:
		return app.Fail(app.ExitUsage, errors.New(name+" has no ambiguous fields in the request: nothing to probe"), "")
	}
	return nil
}
