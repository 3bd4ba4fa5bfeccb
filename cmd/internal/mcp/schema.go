package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/mcp/answer"
	"unwire/cmd/internal/query"
	"unwire/decode"
	"unwire/decode/diff"
	"unwire/decode/fieldpath"
	"unwire/schema"
	"unwire/schema/compare"
	"unwire/schema/interrupt"
	"unwire/schema/match"
)

// schemaTools returns the tools that compare exchanges, and those about definitions.
func schemaTools() []tool {
	return []tool{
		define("diff", "Compare frames, exchanges or captures", "Compares two frames, exchanges or captures by structure, and marks IDs, times and tokens that differ in every run as ignored. With series, compares several messages, and reports the field paths whose values vary. Same objects as 'unwire diff --json'.", differences),
		define("infer", "Infer definitions", "Infers .proto files from traffic. The answer has the text of each file, then one object for each field: how often it occurred, the probability of its type, other possible types, and which further data would decide between them. Same objects as 'unwire schema infer --json' and the fields of --evidence.", inferDefinitions),
		define("check", "Check traffic against definitions", "Checks every message of captures against definitions. Reports fields that are unknown or contradict their declaration, the frames that contain these fields, and the share of the bytes that the definitions describe. To check your own .proto text, pass it as definitions. Same object as 'unwire schema check --json'.", checkDefinitions),
		define("match", "Find the type of a message", "Finds the message types in the definitions that fit an unknown frame or field. Ranks the types by description length, and gives the reason for each type that cannot fit. Same objects as 'unwire schema match --json'.", matchTypes),
		define("definitions", "Read definitions", "Reads definitions: find searches names and comments; element returns the .proto text of a type, service or file; uses_of lists the fields and methods that use a type. Without these arguments, the tool lists all elements. Same objects as 'unwire schema find, print, refs and ls --json'.", readDefinitions),
	}
}

// diffArguments are the arguments of the tool diff.
type diffArguments struct {
	// A is the argument a: address of a capture, exchange or frame.
	A string `json:"a,omitempty" jsonschema:"address of a capture, exchange or frame"`
	// B is the argument b: address to compare it with, of the same kind.
	B string `json:"b,omitempty" jsonschema:"address to compare it with, of the same kind"`
	// Series is the argument series: instead of a and b: addresses of several exchanges or frames, or captures with
	// method.
	Series []string `json:"series,omitempty" jsonschema:"instead of a and b: addresses of several exchanges or frames, or captures with method"`
	// Method is the argument method: with series: compare the exchanges of this method, Run or pkg.Service/Run.
	Method string `json:"method,omitempty" jsonschema:"with series: compare the exchanges of this method, Run or pkg.Service/Run"`
	// Ignore is the argument ignore: paths (without indexes) to ignore, with everything below them.
	Ignore []string `json:"ignore,omitempty" jsonschema:"paths (without indexes) to ignore, with everything below them"`
	// Volatile is the argument volatile: count IDs, times and tokens as differences.
	Volatile bool `json:"volatile,omitempty" jsonschema:"count IDs, times and tokens as differences"`
	// Framing is the argument framing: for connections without HTTP: delimited, delimited32be, delimited32le or
	// frames.
	Framing string `json:"framing,omitempty" jsonschema:"for connections without HTTP: delimited, delimited32be, delimited32le or frames"`
	// paging adds the arguments that limit the size of the answer and continue it at a cursor.
	paging
}

// differences implements the tool diff: it adds to the answer the differences between two captures,
// exchanges or frames, or how the fields of a series vary.
func differences(c *call, in diffArguments) error {
	texts := in.Series
	switch {
	case len(in.Series) == 0 && (in.A == "" || in.B == ""):
		return &argumentError{"give both a and b, or series"}
	case len(in.Series) > 0 && (in.A != "" || in.B != ""):
		return &argumentError{"give a and b, or series, not both"}
	case len(in.Series) == 0:
		texts = []string{in.A, in.B}
	}

	// The client may only name captures of its shelf, and may leave out a file name if there is a
	// single one.
	parts := make([]string, len(texts))
	for i, text := range texts {
		at, err := c.shelf.address(text)
		if err != nil {
			return err
		}
		parts[i] = at.String()
	}
	o, err := c.diffOptions(in, parts)
	if err != nil {
		return err
	}
	c.page.Mention(parts...)
	if len(in.Series) > 0 {
		return c.series(parts, in.Method, o)
	}

	// Each difference becomes an item of its own, so that a page can end between two of them.
	list, err := query.Diff(c.ctx, parts[0], parts[1], o)
	if err != nil {
		return diffFailure(err)
	}
	for i := range list {
		for _, line := range list[i].Lines(false) {
			if err := c.add(parts[0], line); err != nil {
				return err
			}
		}
	}
	found, ignored := query.CountChanges(list)
	c.app.Say("unwire: %s and %s: %s, %d ignored", parts[0], parts[1], app.Counted(found, "difference"), ignored)
	return nil
}

// diffOptions returns the options of the comparison for the arguments; parts are the addresses to
// compare.
func (c *call) diffOptions(in diffArguments, parts []string) (query.DiffOptions, error) {
	split, err := parseFraming(in.Framing)
	if err != nil {
		return query.DiffOptions{}, err
	}
	defs, err := c.definitions(parts...)
	return query.DiffOptions{
		Options:     diff.Options{Volatile: in.Volatile, Ignore: in.Ignore},
		Definitions: defs,
		Open: func(path string) (*query.Capture, error) {
			capture, err := c.open(path)
			if capture != nil {
				capture.Splitting = split
			}
			return capture, err
		},
		Read: func(name string) ([]byte, error) {
			return nil, app.Fail(app.ExitUsage, fmt.Errorf("%s is not a capture", name), addressHint)
		},
	}, err
}

// series adds to the answer how the values of each field vary over a series of exchanges.
func (c *call) series(parts []string, method string, o query.DiffOptions) error {
	s, err := query.CompareSeries(c.ctx, parts, method, o)
	if err != nil {
		return diffFailure(err)
	}
	for _, line := range s.Lines() {
		if err := c.add(parts[0], line); err != nil {
			return err
		}
	}
	return nil
}

// diffFailure adds a hint to the error of a comparison.
func diffFailure(err error) error {
	e, ok := errors.AsType[*query.DiffError](err)
	if !ok {
		return err
	}
	switch e.Problem {
	case query.NoMethod:
		return app.Fail(app.ExitUsage, err, "give a method to compare all its calls, or name single exchanges, such as "+e.At.File+"#1")
	case query.NoExchange:
		return app.Fail(app.ExitInput, err, "the tool list shows the methods")
	}
	return app.Fail(app.ExitUsage, err, addressHint)
}

// texts returns addresses as text.
func texts(addresses []query.Address) []string {
	list := make([]string, len(addresses))
	for i, at := range addresses {
		list[i] = at.String()
	}
	return list
}

// maxMentioned is the largest number of exchanges that an answer about a whole capture lists.
const maxMentioned = 50

// mentionCalls adds to the answer the addresses of the exchanges from which it was derived: that of one
// exchange, or those of a capture's RPCs and connections without HTTP.
func (c *call) mentionCalls(capture *query.Capture, at query.Address) {
	if at.Exchange != 0 {
		c.page.Mention(at.String())
		return
	}
	list, err := capture.List(c.ctx)
	if err != nil {
		return // what the capture is read for reports that
	}
	n := 0
	for i := range list.Exchanges {
		ex := &list.Exchanges[i]
		if ex.FramesUp+ex.FramesDown == 0 || ex.Service == "" && ex.Transport == captures.HTTP {
			continue
		}
		if n++; n <= maxMentioned {
			c.page.Mention(query.Address{File: at.File, Exchange: ex.ID, Frame: -1}.String())
		}
	}
	if n > maxMentioned {
		c.page.LeaveOut(answer.Omission{What: fmt.Sprintf("the addresses of %s; the tool list returns them", app.Counted(n-maxMentioned, "more exchange")), Address: at.File})
	}
}

// checkArguments are the arguments of the tool check.
type checkArguments struct {
	// Captures is the argument captures: captures or exchanges to check; default: all captures.
	Captures []string `json:"captures,omitempty" jsonschema:"captures or exchanges to check; default: all captures"`
	// Definitions is the argument definitions: your own .proto files, by path with their text; default: the
	// definitions that apply to the captures.
	Definitions map[string]string `json:"definitions,omitempty" jsonschema:"your own .proto files, by path with their text; default: the definitions that apply to the captures"`
	// paging adds the arguments that limit the size of the answer and continue it at a cursor.
	paging
}

// checkDefinitions implements the tool check: it adds to the answer the report on how far definitions
// explain the recorded messages.
func checkDefinitions(c *call, in checkArguments) error {
	addresses, err := c.shelf.addresses(in.Captures)
	if err != nil {
		return err
	}
	defs, err := c.definitionsOr(in.Definitions, texts(addresses)...)
	if err != nil {
		return err
	}
	if defs == nil {
		return app.Fail(app.ExitUsage, errors.New("the tool check needs definitions, but 'unwire mcp' was started with --proto none"), "give the text of .proto files as definitions")
	}

	// Collect the coverage over all captures first, because a field missing in one may occur in
	// another.
	coverage := query.NewCoverage(defs, c.app.Profile())
	damage := c.withEach(addresses, "", func(capture *query.Capture, at query.Address) error {
		if err := c.app.NeedCalls(c.ctx, capture, at, "check"); err != nil {
			return err
		}
		c.mentionCalls(capture, at)
		return coverage.Add(c.ctx, capture, at, c.remarkUndecoded)
	})

	// A damaged capture is an error, too, but only after the report about what could be read.
	if damage != nil && !errors.Is(damage, captures.ErrDamaged) {
		return damage
	}
	report := coverage.Report()

	// Frames of findings become resources that the client can read next.
	for _, u := range report.Unknown {
		c.page.Mention(u.Frames...)
	}
	switch {
	case !report.Compared():
		c.app.Say("unwire: nothing was checked: the definitions contain none of the recorded methods, or their messages are empty")
	case report.Clean():
		c.app.Say("unwire: no field is unknown, and none contradicts its declaration")
	}
	if err := c.add("", &contract.SchemaCheck{Report: report}); err != nil {
		return err
	}
	return damage
}

// matchArguments are the arguments of the tool match.
type matchArguments struct {
	// Address is the argument address: capture, exchange or frame with the messages.
	Address string `json:"address" jsonschema:"capture, exchange or frame with the messages"`
	// Path is the argument path: field whose payloads are the messages, such as 1.2; default: everything that the
	// definitions leave open.
	Path string `json:"path,omitempty" jsonschema:"field whose payloads are the messages, such as 1.2; default: everything that the definitions leave open"`
	// Dir is the argument dir: up or down; default: both.
	Dir string `json:"dir,omitempty" jsonschema:"up or down; default: both"`
	// Top is the argument top: maximum number of candidates for each path; default 10.
	Top int `json:"top,omitempty" jsonschema:"maximum number of candidates for each path; default 10"`
	// Definitions is the argument definitions: your own .proto files, by path with their text.
	Definitions map[string]string `json:"definitions,omitempty" jsonschema:"your own .proto files, by path with their text"`
	// Framing is the argument framing: for connections without HTTP: delimited, delimited32be, delimited32le or
	// frames.
	Framing string `json:"framing,omitempty" jsonschema:"for connections without HTTP: delimited, delimited32be, delimited32le or frames"`
	// paging adds the arguments that limit the size of the answer and continue it at a cursor.
	paging
}

// matchTypes implements the tool match: it adds to the answer the known message types that fit messages
// of unknown type.
func matchTypes(c *call, in matchArguments) error {
	at, err := c.shelf.address(in.Address)
	if err != nil {
		return err
	}
	if in.Top == 0 {
		in.Top = 10
	}

	// Limits are checked before the capture is opened.
	if in.Top < 1 || in.Top > 1000 || !slices.Contains(directions, in.Dir) {
		return &argumentError{"top must be from 1 to 1000, and dir up or down"}
	}
	path, err := fieldpath.ParseNumbers(in.Path)
	if err != nil {
		return app.Fail(app.ExitUsage, err, "a path is field numbers joined by dots, such as 1.2")
	}
	split, err := parseFraming(in.Framing)
	if err != nil {
		return err
	}
	defs, err := c.matchDefinitions(in, at)
	if err != nil {
		return err
	}

	// The address and the direction select the frames. A frame that the address names is matched as a whole.
	targets := match.NewTargets(defs, path)
	damage := c.with(at.File, in.Framing, func(capture *query.Capture) error {
		return targets.AddCapture(c.ctx, capture, at.Exchange, at.Part, match.FrameOptions{
			Split: split,
			Wanted: func(f *decode.Frame) bool {
				return (at.Frame < 0 || f.Dir == at.Dir && f.Seq == at.Frame) && (in.Dir == "" || f.Dir.String() == in.Dir)
			},
			Chosen: at.Frame >= 0,
			Address: func(ex *decode.Exchange, f *decode.Frame, part bool) string {
				return query.FrameAddress(at.File, ex, f, part).String()
			},
		})
	})
	if damage != nil && !errors.Is(damage, captures.ErrDamaged) {
		return damage
	}

	// A client would otherwise take an empty answer for "no type fits".
	if targets.Empty() && damage == nil {
		c.app.Say("unwire: nothing to match: the definitions describe every message, or no message has the path %q", in.Path)
	}
	for t, r := range targets.Match(match.New(defs, match.Options{Top: in.Top})) {
		address := ""
		if len(t.Frames) > 0 {
			address = t.Frames[0]
		}
		c.page.Mention(t.Frames...)
		if err := c.add(address, contract.NewSchemaMatch(t, r)); err != nil {
			return err
		}
	}
	return damage
}

// matchDefinitions returns the definitions whose types are candidates: those that the client sent, or
// those of the capture.
func (c *call) matchDefinitions(in matchArguments, at query.Address) (*schema.Schema, error) {
	if len(in.Definitions) > 0 {
		return app.CompileDefinitions(c.ctx, in.Definitions)
	}
	return c.app.NeedDefinitions(c.ctx, c.Proto, "match", at.String())
}

// definitionArguments are the arguments of the tool definitions.
type definitionArguments struct {
	// Find is the argument find: words to search for in names and comments.
	Find string `json:"find,omitempty" jsonschema:"words to search for in names and comments"`
	// Element is the argument element: type, service or file whose .proto text to print.
	Element string `json:"element,omitempty" jsonschema:"type, service or file whose .proto text to print"`
	// Deps is the argument deps: with element: also the types that it refers to.
	Deps bool `json:"deps,omitempty" jsonschema:"with element: also the types that it refers to"`
	// UsesOf is the argument uses_of: type whose uses to list.
	UsesOf string `json:"uses_of,omitempty" jsonschema:"type whose uses to list"`
	// Prefix is the argument prefix: list only elements whose full name begins with this.
	Prefix string `json:"prefix,omitempty" jsonschema:"list only elements whose full name begins with this"`
	// Kind is the argument kind: list only this kind: service, method, message or enum.
	Kind string `json:"kind,omitempty" jsonschema:"list only this kind: service, method, message or enum"`
	// Capture is the argument capture: capture whose definitions to read; default: the first capture that keeps some.
	Capture string `json:"capture,omitempty" jsonschema:"capture whose definitions to read; default: the first capture that keeps some"`
	// paging adds the arguments that limit the size of the answer and continue it at a cursor.
	paging
}

// maxHits is the largest number of elements that a search in definitions returns.
const maxHits = 200

// readDefinitions implements the tool definitions: it adds to the answer the results of a search, the
// text of an element, the uses of a type, or a list of all elements.
func readDefinitions(c *call, in definitionArguments) error {
	files := c.shelf.files()
	if in.Capture != "" {
		at, err := c.shelf.address(in.Capture)
		if err != nil {
			return err
		}
		files = []string{at.File}
	}
	defs, builtIn, err := c.app.LookDefinitions(c.ctx, c.Proto, files...)
	if err != nil {
		return err
	}

	// A client may take the built-in definitions for those of the capture.
	if builtIn && !c.app.NamesProfile() {
		c.app.Say("unwire: using the built-in definitions, because no others were named, and none are stored in the captures")
	}
	switch {
	case in.Find != "":
		hits, err := interrupt.Run(c.ctx, func() ([]compare.Hit, error) { return compare.Find(defs, in.Find, maxHits), nil })
		return addEach(c, hits, err, func(h *compare.Hit) contract.Object { return &contract.DefinitionHit{Hit: *h} })
	case in.Element != "":
		return c.printElement(defs, in)
	case in.UsesOf != "":
		return c.listUses(defs, in.UsesOf)
	}
	switch compare.ElementKind(in.Kind) {
	case "", compare.ServiceElement, compare.MethodElement, compare.MessageElement, compare.EnumElement:
	default:
		return &argumentError{fmt.Sprintf("kind must be service, method, message or enum, not %q", in.Kind)}
	}

	// Without a search, list the elements; kind and prefix restrict the list.
	all := slices.DeleteFunc(compare.Contents(defs), func(l compare.Listing) bool {
		return in.Kind != "" && l.Kind != compare.ElementKind(in.Kind) || !strings.HasPrefix(l.Element, in.Prefix)
	})
	return addEach(c, all, nil, func(l *compare.Listing) contract.Object { return &contract.DefinitionListing{Listing: *l} })
}

// addEach adds an object to the answer for each element of a list. If err is not nil, it returns err.
func addEach[T any](c *call, list []T, err error, object func(*T) contract.Object) error {
	if err != nil {
		return err
	}
	for i := range list {
		if err := c.add("", object(&list[i])); err != nil {
			return err
		}
	}
	return nil
}

// printElement adds to the answer the source text of a definition and of the types that it refers to.
func (c *call) printElement(defs *schema.Schema, in definitionArguments) error {
	d, err := compare.Lookup(defs, in.Element)
	if err != nil {
		return lookupFailure(err)
	}
	list := []protoreflect.Descriptor{d}
	if in.Deps {
		list = append(list, defs.Dependencies(d)...)
	}
	for _, d := range list {
		text, err := interrupt.Run(c.ctx, func() (string, error) { return defs.Text(d) })
		if err != nil {
			return err
		}
		element := string(d.FullName())
		if file, ok := d.(protoreflect.FileDescriptor); ok {
			element = file.Path()
		}
		if err := c.add("", &contract.Definition{Element: element, File: d.ParentFile().Path(), Text: text}); err != nil {
			return err
		}
	}
	return nil
}

// listUses adds to the answer all uses of a type.
func (c *call) listUses(defs *schema.Schema, name string) error {
	name = strings.TrimPrefix(name, ".")
	if !strings.HasPrefix(name, "google.protobuf.") {
		d, err := compare.Lookup(defs, name)
		if err != nil {
			return lookupFailure(err)
		}
		name = string(d.FullName())
	}
	return addEach(c, compare.Refs(defs, name), nil, func(r *compare.Ref) contract.Object { return &contract.DefinitionRef{Ref: *r} })
}

// lookupFailure adds to the error about an unknown or ambiguous name a hint that lists possible names.
func lookupFailure(err error) error {
	e, ok := errors.AsType[*compare.LookupError](err)
	switch {
	case !ok:
		return err
	case len(e.Found) > 0:
		return app.Fail(app.ExitInput, err, "give the full name: "+nameList(e.Found))
	case len(e.Similar) > 0:
		return app.Fail(app.ExitInput, err, "similar names: "+nameList(e.Similar))
	}
	return app.Fail(app.ExitInput, err, "call the tool definitions without arguments to list all names")
}
