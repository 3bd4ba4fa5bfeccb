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

// probeQuestions takes from --settle what is to be asked.
func probeQuestions(ctx context.Context, a *app.App, o *probe.Options, f *probeFlags) error {
	switch len(f.settle) {
	case 0:
		return nil
	case 1:
		return inferredQuestions(a, o, f)
	case 2:
	default:
		return app.Usagef("--settle takes the evidence of an inference, or two definitions, not %d", len(f.settle))
	}
	var requests [2]protoreflect.MessageDescriptor
	for i, name := range f.settle {
		s, err := schema.LoadDefinitions(ctx, name)
		if err != nil {
			return err
		}
		if requests[i] = requestOf(s, o.Method, f.typ); requests[i] == nil {
			return app.Fail(app.ExitUsage, errors.New(name+" does not know the request of "+o.Method), "--type names it")
		}
	}
	if o.Questions, o.Texts = probe.QuestionsOfDefinitions(f.settle[0], requests[0], f.settle[1], requests[1]); len(o.Questions) == 0 {
		return app.Fail(app.ExitUsage, errors.New("the definitions agree on the request: there is nothing to ask"), "")
	}
	return nil
}

// requestOf is the request of a method in definitions; typ names it otherwise.
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

func inferredQuestions(a *app.App, o *probe.Options, f *probeFlags) error {
	name := f.settle[0]
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return app.Usagef("--settle %s: one of two definitions; give --settle again with the other", name)
	}
	data, err := a.ReadInput(name)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return app.Usagef("--settle %s: it is no evidence of 'schema infer'; two definitions are given as two --settle", name)
	}
	o.Questions, o.Texts, err = probe.QuestionsOfInference(data, f.typ, o.Method)
	switch {
	case errors.Is(err, probe.ErrNoRoot):
		return app.Fail(app.ExitUsage, err, "--type names it, as the inference does")
	case err != nil:
		return err
	case len(o.Questions) == 0:
		return app.Fail(app.ExitUsage, errors.New(name+" has no doubt about the request: there is nothing to ask"), "")
	}
	return nil
}
