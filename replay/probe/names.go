package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"unwire/replay/outbound"
)

// requestType asks with JSON that ends after its first brace, which no parser
// takes: protobuf-es names the request's type, and each version in its own words.
func requestType(ctx context.Context, c *client, res *Result) error {
	a, err := c.send(ctx, "the request's type: JSON that ends early", "json", []byte("{"))
	if err != nil {
		return err
	}
	m := wholeMessage.FindStringSubmatch(a.message)
	if m == nil {
		return nil
	}
	res.RequestType = strings.TrimPrefix(m[2], ".")
	res.Runtime = ES1
	if m[1] != "" {
		res.Runtime = ES2
	}
	return nil
}

// A namer asks for the JSON names of one message: every candidate gets a value
// of a type that no field of that name takes, all in one object, and the error
// names the first.
type namer struct {
	c     *client
	es1   bool     // the server is protobuf-es 1, which says little of what it expects
	goEnd bool     // the parser reads as it goes, so JSON that breaks off ends a batch
	known []string // names of the request that end a batch: of no floats
	in    []inside // the fields that lead to the message
	of    string   // its type, where it is known

	refused    int   // names that the parser refused as unknown
	controlled *bool // whether what ends a batch is understood; nil: it was not asked

	candidates []string
	valueNames []string // candidates for the names of enums' values
	conflicts  []string // that exist, but their kind was not told: something else of their oneof came first
	found      []nameField
}

// inside is a step to a message below the request.
type inside struct {
	name string
	list bool
}

// A nameField is a field whose name exists.
type nameField struct {
	Field
	family   string // protobuf-es has one word for several types: "int32"
	enum     string // full name of its enum, or of its items' or values'; "enum" where only that is known
	composed bool   // a message, a list or a map
}

// pass asks for the names among candidates until a batch has none, and returns
// those that were not met.
//
// Shape: where an error does not say which candidate it is about, halves do.
// Errors: errNoName; a stopError.
func (n *namer) pass(ctx context.Context, names []string, as int) (left []string, err error) {
	left = slices.Clone(names)
	for len(left) > 0 {
		body, starts := n.object(left, as)
		a, err := n.c.send(ctx, fmt.Sprintf("%d names%s", len(left), n.at()), "json", body)
		if a != nil && a.Accepted && !n.goEnd && len(n.known) == 0 {
			return left, errNoName
		}
		if err == errSize && len(left) > 1 {
			return n.passHalves(ctx, left, as)
		}
		if err != nil {
			return left, err
		}
		if !a.parser {
			return left, stop("the answer to request %d tells nothing of the JSON parser: %s", n.c.requests, a.brief())
		}
		i := hit(a.message, append(slices.Clone(left), n.ends()...), starts)
		if name := unknownName.FindStringSubmatch(a.message); name != nil { // who is strict
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
			return left, stop("the JSON parser's words are not understood: %s", a.brief())
		case len(left) == 1:
			i = 0 // it exists, and how it is refused is not known
		default:
			return n.passHalves(ctx, left, as)
		}
		name := left[i]
		if conflict(a.message) && as != asNulls {
			n.conflicts = append(n.conflicts, name)
			left = slices.Delete(left, i, i+1)
			continue
		}
		left = n.without(left, n.learn(name, a, as)...)
	}
	return left, nil
}

func (n *namer) passHalves(ctx context.Context, names []string, as int) (left []string, err error) {
	left, err = n.pass(ctx, names[:len(names)/2], as)
	if err != nil {
		return names, err
	}
	right, err := n.pass(ctx, names[len(names)/2:], as)
	return append(left, right...), err
}

// control asks with no candidates: where that is not understood, no error that
// does not say which candidate it is about means one.
func (n *namer) control(ctx context.Context) error {
	body, starts := n.object(nil, asNumber)
	a, err := n.c.send(ctx, "no names"+n.at(), "json", body)
	if err != nil {
		return err
	}
	i := hit(a.message, n.ends(), starts)
	understood := a.parser && (i == atEnd || i >= 0)
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

// learn enters what an error tells of a candidate, and returns the names that
// the field has.
func (n *namer) learn(name string, a *answer, as int) []string {
	var f nameField
	var also string
	if n.goEnd {
		f, also = readGo(name, a.message, as)
	} else {
		f, also = readES(name, a.message, n.of, as)
		if as == asNumber && len(n.in) == 0 && len(n.known) < maxKnown && !slices.Contains(n.known, name) {
			n.known = append(n.known, name)
		}
	}
	f.Evidence = []string{fmt.Sprintf("request %d: %s", n.c.requests, quote(a.message))}
	if !slices.ContainsFunc(n.found, func(g nameField) bool { return g.Name == f.Name }) {
		n.found = append(n.found, f)
	}
	return []string{name, also, f.Name}
}

// without takes a field's names out of candidates, in all of their forms.
func (n *namer) without(candidates []string, names ...string) []string {
	taken := map[string]bool{}
	for _, name := range names {
		taken[plainName(name)] = name != ""
	}
	return slices.DeleteFunc(candidates, func(s string) bool { return taken[plainName(s)] })
}

// ask asks for all names of a message, and then what the composed ones are of.
func (n *namer) ask(ctx context.Context) error {
	left, err := n.pass(ctx, n.candidates, asNumber)
	for err == nil && len(n.conflicts) > 0 {
		again := n.conflicts
		n.conflicts = nil
		for _, f := range n.found {
			again = n.without(again, f.Name)
		}
		before := len(n.found)
		var rest []string
		rest, err = n.pass(ctx, again, asNumber)
		if left = append(left, rest...); len(n.found) == before {
			left = append(left, n.conflicts...)
			n.conflicts = nil
		}
	}
	if err == nil {
		left, err = n.pass(ctx, left, asText)
	}
	for err == nil && len(n.conflicts) > 0 { // one after the other: they are of one oneof
		name := n.conflicts[0]
		n.conflicts = n.conflicts[1:]
		_, err = n.pass(ctx, []string{name}, asText)
	}
	if err == nil && n.goEnd {
		_, err = n.pass(ctx, left, asNulls)
		if err == nil {
			err = n.aliases(ctx)
		}
	}
	if err == nil {
		err = n.lists(ctx)
	}
	if err == nil && len(n.valueNames) > 0 {
		err = n.maps(ctx)
	}
	return err
}

// plainName is the same for all forms of a name: page_size, pageSize.
func plainName(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, "_", ""))
}

// maxNames bounds a batch: its values have seven digits.
const maxNames = 100_000

func newNamer(c *client, o *Options, of Runtime) *namer {
	n := &namer{c: c, goEnd: of == ConnectGo, es1: of == ES1, valueNames: o.Values}
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

// names asks for names of the request's fields, and of those of messages
// below it, down to Options.Depth.
//
// Shape: protobuf-es reads the whole of an object, so a batch has to end with a
// name that exists. Where none is known, the first batch runs the handler if no
// candidate exists: that is risked on this machine alone, unless allowed.
func names(ctx context.Context, c *client, o *Options, res *Result) error {
	top := newNamer(c, o, res.Runtime)
	if len(top.candidates) == 0 || res.Runtime == GRPCGo {
		return nil
	}
	if !top.goEnd && len(top.known) == 0 && !o.AllowExecute && outbound.CheckTarget(c.url, false, nil) != nil {
		res.note("names were not asked for: with no name that is known to exist, a request without a hit would run the handler")
		return nil
	}
	if taken, err := top.takesAll(ctx); err != nil {
		return err
	} else if taken || wellKnownType(res.RequestType) {
		res.note("names were not asked for: the request has a form of its own in JSON, which takes names that no field has")
		return nil
	}
	top.of = res.RequestType
	seen := map[string]bool{top.of: top.of != ""}
	var holds []string // types that the server knows
	for todo := []*namer{top}; len(todo) > 0; todo = todo[1:] {
		n := todo[0]
		err := n.ask(ctx)
		if err == nil && len(o.Values) > 0 {
			err = n.values(ctx, res)
		}
		if err == nil && len(o.Types) > 0 && len(holds) == 0 {
			holds, err = n.anys(ctx, o.Types, res)
		}
		n.hold(holds)
		if err == errNoName {
			res.note("none of the names exists: the request without a hit was taken, and may have run the handler")
			return nil
		}
		n.report(res)
		if err == errStrict {
			res.note(fmt.Sprintf("names were not all asked for: the JSON parser refuses each one that does not exist, in a request of its own, and %d were enough", maxRefused))
			return nil
		}
		if err != nil {
			return err
		}
		for _, f := range n.found {
			if len(n.in) >= o.Depth || f.Kind != "message" || f.Label == "map" || wellKnownType(f.Type) || f.Type != "" && seen[f.Type] {
				continue
			}
			seen[f.Type] = f.Type != ""
			below := newNamer(c, o, res.Runtime)
			below.known, below.of = top.known, f.Type
			below.in = append(slices.Clone(n.in), inside{f.Name, f.Label == "repeated"})
			if ok, err := below.drops(ctx); err != nil {
				return err
			} else if ok {
				todo = append(todo, below)
			}
		}
	}
	return nil
}

// takesAll asks for names that no field has, and reports whether a Go server
// answers as if they existed: the request is a Struct, or a Value.
func (n *namer) takesAll(ctx context.Context) (bool, error) {
	if !n.goEnd {
		return false, nil // it names the request's type
	}
	names := []string{"no1thing", "no2thing"}
	body, starts := n.object(names, asNulls)
	a, err := n.c.send(ctx, "names that no field has", "json", body)
	if err != nil || unknownName.MatchString(a.message) {
		return false, err
	}
	i := hit(a.message, names, starts)
	return i >= 0 && i < len(names), nil
}

// drops reports whether a message can be asked, and drops unknown names: a map, a Struct and an
// Any, which protojson does not tell from others, do not.
func (n *namer) drops(ctx context.Context) (bool, error) {
	if !n.goEnd {
		return len(n.ends()) > 0, nil
	}
	for _, as := range []int{asNumber, asNulls} {
		names := []string{"no1thing", "no2thing"}
		body, starts := n.object(names, as)
		a, err := n.c.send(ctx, "whether "+n.namePath()+" drops unknown names", "json", body)
		if err != nil || hit(a.message, names, starts) != atEnd {
			return false, err
		}
	}
	return true, nil
}

// wellKnownType reports whether a type has a form of its own in JSON.
func wellKnownType(name string) bool { return strings.HasPrefix(name, "google.protobuf.") }
