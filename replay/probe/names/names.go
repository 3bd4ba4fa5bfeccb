// Package names asks for the names of a request's fields in JSON: candidates go in,
// with values of types that no field of the name takes, and the error says which of
// them exist. It asks for the names of enums' values and the types that an Any may
// hold, too, and joins the names to the numbers that are known.
//
// Candidates come from the dictionary of definitions, and from the JSON keys of
// captures. A batch of them is one JSON object; the JSON error names the one that it
// is about. Further batches find the names of enum values, the elements of lists and
// maps, and aliases: two names of one field. Package oracle alone asks; the command
// collects the keys.
//
// Source: replay/probe/README.md#json-names
package names

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"unwire/replay/probe"
)

// A namer asks for the JSON names of one message: every candidate gets a value
// of a type that no field of that name takes, all in one object, and the error
// names the first.
type namer struct {
	c *probe.Client
	// the server is protobuf-es 1, which says little of what it expects
	es1 bool
	// the parser reads as it goes, so JSON that breaks off ends a batch
	goEnd bool
	known []string // names of the request that end a batch: of no floats
	in    []step   // the fields that lead to the message
	of    string   // its type, where it is known

	refused int // names that the parser refused as unknown
	// whether what ends a batch is understood; nil: it was not asked
	controlled *bool

	candidates []string
	valueNames []string // candidates for the names of enums' values
	// that exist, but their kind was not told: something else of their oneof came first
	conflicts []string
	found     []namedField
}

// A step leads to a message below the request.
type step struct {
	name string
	list bool
}

// A namedField is a field whose name exists.
type namedField struct {
	probe.Field
	family string // protobuf-es has one word for several types: "int32"
	// full name of its enum, or of its items' or values'; "enum" where only that is known
	enum     string
	composed bool // a message, a list or a map
}

// findNames asks for the names among candidates until a batch has none, and returns
// those that were not met.
//
// Shape: where an error does not say which candidate it is about, halves do.
// Errors: errNoName; a stopError.
func (n *namer) findNames(ctx context.Context, names []string, as int) (left []string, err error) {
	left = slices.Clone(names)
	for len(left) > 0 {
		a, starts, err := n.sendNames(ctx, left, as)
		switch {
		case err == probe.ErrSize && len(left) > 1:
			return n.findInHalves(ctx, left, as)
		case err != nil:
			return left, err
		}
		i := candidateOf(a.Text, append(slices.Clone(left), n.endings()...), starts)
		// who is strict
		if name := unknownName.FindStringSubmatch(a.Text); name != nil {
			at := slices.Index(left, name[1]+name[2])
			if n.refused++; at < 0 || n.refused > maxRefused {
				return left, errStrict
			}
			left = slices.Delete(left, at, at+1)
			continue
		}
		switch {
		case i >= 0 && i < len(left):
		case i == atEnd, i >= len(left):
			return left, nil
		case n.controlled == nil:
			if err := n.control(ctx); err != nil {
				return left, err
			}
			continue
		case !*n.controlled:
			return left, probe.Stop("the JSON parser's words are not understood: %s", a.Brief())
		case len(left) == 1:
			i = 0 // it exists, and how it is refused is not known
		default:
			return n.findInHalves(ctx, left, as)
		}
		name := left[i]
		if conflict(a.Text) && as != asNulls {
			n.conflicts = append(n.conflicts, name)
			left = slices.Delete(left, i, i+1)
			continue
		}
		left = n.without(left, n.enter(name, a, as)...)
	}
	return left, nil
}

// sendNames sends a batch; starts are where its names stand.
//
// Errors: errNoName; a stopError.
func (n *namer) sendNames(ctx context.Context, names []string, as int) (a *probe.Answer, starts []int, err error) {
	body, starts := n.object(names, as)
	a, err = n.c.AskJSON(ctx, fmt.Sprintf("%d names%s", len(names), n.at()), body)
	switch {
	case a != nil && a.Accepted && !n.goEnd && len(n.known) == 0:
		return a, starts, errNoName
	case err == nil && !a.FromParser:
		return a, starts, probe.Stop("the answer to request %d tells nothing of the JSON parser: %s", n.c.Requests, a.Brief())
	}
	return a, starts, err
}

func (n *namer) findInHalves(ctx context.Context, names []string, as int) (left []string, err error) {
	left, err = n.findNames(ctx, names[:len(names)/2], as)
	if err != nil {
		return names, err
	}
	right, err := n.findNames(ctx, names[len(names)/2:], as)
	return append(left, right...), err
}

// control asks with no candidates: where that is not understood, no error that
// does not say which candidate it is about means one.
func (n *namer) control(ctx context.Context) error {
	body, starts := n.object(nil, asNumber)
	a, err := n.c.AskJSON(ctx, "no names"+n.at(), body)
	if err != nil {
		return err
	}
	i := candidateOf(a.Text, n.endings(), starts)
	understood := a.FromParser && (i == atEnd || i >= 0)
	n.controlled = &understood
	return nil
}

// maxRefused is how many names that do not exist are asked for where each of
// them takes a request.
const maxRefused = 100

// errStrict is a parser that refuses unknown names, a request a name.
var errStrict = errors.New("the JSON parser refuses names that do not exist")

// errNoName is a first batch without a name that exists.
var errNoName = errors.New("none of the names exists")

// enter enters what an error tells of a candidate, and returns the names that
// the field has.
func (n *namer) enter(name string, a *probe.Answer, as int) []string {
	var f namedField
	var also string
	if n.goEnd {
		f, also = readGo(name, a.Text, as)
	} else {
		f, also = readES(name, a.Text, n.of, as)
		if as == asNumber && len(n.in) == 0 && len(n.known) < maxEnds && !slices.Contains(n.known, name) {
			n.known = append(n.known, name)
		}
	}
	f.Evidence = []string{fmt.Sprintf("request %d: %s", n.c.Requests, a.Quoted())}
	if !slices.ContainsFunc(n.found, func(g namedField) bool { return g.Name == f.Name }) {
		n.found = append(n.found, f)
	}
	return []string{name, also, f.Name}
}

// maxEnds is how many names end a batch.
const maxEnds = 20

// without takes a field's names out of candidates, in all of their forms.
func (n *namer) without(candidates []string, names ...string) []string {
	taken := map[string]bool{}
	for _, name := range names {
		taken[plainName(name)] = name != ""
	}
	return slices.DeleteFunc(candidates, func(s string) bool { return taken[plainName(s)] })
}

// askAll asks for all names of a message, and then what the composed ones are of.
func (n *namer) askAll(ctx context.Context) error {
	left, err := n.findNames(ctx, n.candidates, asNumber)
	for err == nil && len(n.conflicts) > 0 {
		again := n.conflicts
		n.conflicts = nil
		for _, f := range n.found {
			again = n.without(again, f.Name)
		}
		before := len(n.found)
		var rest []string
		rest, err = n.findNames(ctx, again, asNumber)
		if left = append(left, rest...); len(n.found) == before {
			left = append(left, n.conflicts...)
			n.conflicts = nil
		}
	}
	if err == nil {
		left, err = n.findNames(ctx, left, asText)
	}
	// one after the other: they are of one oneof
	for err == nil && len(n.conflicts) > 0 {
		name := n.conflicts[0]
		n.conflicts = n.conflicts[1:]
		_, err = n.findNames(ctx, []string{name}, asText)
	}
	if err == nil && n.goEnd {
		_, err = n.findNames(ctx, left, asNulls)
		if err == nil {
			err = n.aliases(ctx)
		}
	}
	if err == nil {
		err = n.askElements(ctx)
	}
	if err == nil && len(n.valueNames) > 0 {
		err = n.askMapValues(ctx)
	}
	return err
}

// plainName is the same for all forms of a name: page_size, pageSize.
func plainName(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, "_", ""))
}

// maxNames bounds a batch: its values have seven digits.
const maxNames = 100_000

func newNamer(c *probe.Client, o *probe.Options, of probe.Runtime) *namer {
	n := &namer{c: c, goEnd: of == probe.ConnectGo, es1: of == probe.ES1, valueNames: o.Values}
	if !n.goEnd {
		n.known = slices.Clone(o.Known)
	}
	seen := map[string]bool{}
	for _, name := range o.Names {
		if name != "" && !seen[name] && plainText(name) && len(n.candidates) < maxNames {
			seen[name] = true
			n.candidates = append(n.candidates, name)
		}
	}
	// A name as it is declared comes before its form in JSON, which tells less.
	sort.SliceStable(n.candidates, func(i, j int) bool {
		return strings.Contains(n.candidates[i], "_") && !strings.Contains(n.candidates[j], "_")
	})
	return n
}

func plainText(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Ask asks for names of the request's fields, and of those of messages
// below it, down to Options.Depth.
//
// Shape: protobuf-es reads the whole of an object, so a batch has to end with a
// name that exists. Where none is known, the first batch runs the handler if no
// candidate exists: that is risked on this machine alone, unless allowed.
func Ask(ctx context.Context, c *probe.Client, o *probe.Options, res *probe.Result) error {
	top := newNamer(c, o, res.Runtime)
	if ok, err := top.canAsk(ctx, o, res); !ok {
		return err
	}
	top.of = res.RequestType

	seen := map[string]bool{top.of: top.of != ""}
	var holds []string // types that the server knows
	for todo := []*namer{top}; len(todo) > 0; todo = todo[1:] {
		n := todo[0]
		err := n.askAll(ctx)
		if err == nil && len(o.Values) > 0 {
			err = n.askValueNames(ctx, res)
		}
		if err == nil && len(o.Types) > 0 && len(holds) == 0 {
			holds, err = n.askAnys(ctx, o.Types, res)
		}
		n.enterHolds(holds)
		if err == errNoName {
			res.Note("none of the names exists: the request without a hit was taken, and may have run the handler")
			return nil
		}
		n.report(res)
		if err == errStrict {
			res.Note(fmt.Sprintf("names were not all asked for: the JSON parser refuses each one that does not exist, in a request of its own, and %d were enough", maxRefused))
			return nil
		}
		if err != nil {
			return err
		}
		if len(n.in) >= o.Depth {
			continue
		}
		below, err := n.messagesBelow(ctx, top.known, o, res, seen)
		if err != nil {
			return err
		}
		todo = append(todo, below...)
	}
	return nil
}

// canAsk reports whether names can be asked for, and notes why not.
func (n *namer) canAsk(ctx context.Context, o *probe.Options, res *probe.Result) (bool, error) {
	if len(n.candidates) == 0 || res.Runtime == probe.GRPCGo {
		return false, nil
	}
	if !n.goEnd && len(n.known) == 0 && !o.AllowExecute && n.c.Remote {
		res.Note("names were not asked for: with no name that is known to exist, a request without a hit would run the handler")
		return false, nil
	}
	taken, err := n.acceptsAnyName(ctx)
	if err != nil {
		return false, err
	}
	if taken || wellKnownType(res.RequestType) {
		res.Note("names were not asked for: the request has a form of its own in JSON, which takes names that no field has")
		return false, nil
	}
	return true, nil
}

// messagesBelow are the messages in a message whose names can be asked for, each
// type once; known are names of the request that end a batch.
func (n *namer) messagesBelow(ctx context.Context, known []string, o *probe.Options, res *probe.Result, seen map[string]bool) (list []*namer, err error) {
	for _, f := range n.found {
		if f.Kind != "message" || f.Label == "map" || wellKnownType(f.Type) || f.Type != "" && seen[f.Type] {
			continue
		}
		seen[f.Type] = f.Type != ""
		below := newNamer(n.c, o, res.Runtime)
		below.known, below.of = known, f.Type
		below.in = append(slices.Clone(n.in), step{f.Name, f.Label == "repeated"})
		if ok, err := below.dropsUnknown(ctx); err != nil {
			return nil, err
		} else if ok {
			list = append(list, below)
		}
	}
	return list, nil
}

// acceptsAnyName asks for names that no field has, and reports whether a Go server
// answers as if they existed: the request is a Struct, or a Value.
func (n *namer) acceptsAnyName(ctx context.Context) (bool, error) {
	if !n.goEnd {
		return false, nil // it names the request's type
	}
	names := []string{"no1thing", "no2thing"}
	body, starts := n.object(names, asNulls)
	a, err := n.c.AskJSON(ctx, "names that no field has", body)
	if err != nil || unknownName.MatchString(a.Text) {
		return false, err
	}
	i := candidateOf(a.Text, names, starts)
	return i >= 0 && i < len(names), nil
}

// dropsUnknown reports whether a message can be asked, and drops unknown names: a map, a Struct and an
// Any, which protojson does not tell from others, do not.
func (n *namer) dropsUnknown(ctx context.Context) (bool, error) {
	if !n.goEnd {
		return len(n.endings()) > 0, nil
	}
	for _, as := range []int{asNumber, asNulls} {
		names := []string{"no1thing", "no2thing"}
		body, starts := n.object(names, as)
		a, err := n.c.AskJSON(ctx, "whether "+n.namePath()+" drops unknown names", body)
		if err != nil || candidateOf(a.Text, names, starts) != atEnd {
			return false, err
		}
	}
	return true, nil
}

// wellKnownType reports whether a type has a form of its own in JSON.
func wellKnownType(name string) bool { return strings.HasPrefix(name, "google.protobuf.") }
