// Package names finds the JSON names of a request's fields. Candidates go in, with values that no
// field of that name accepts; the server's errors reveal which names exist. It also finds the names
// of enum values and the types that an Any accepts, and assigns the names to known field numbers.
//
// Candidates come from a dictionary of definitions and from the JSON keys of captures. A batch of
// candidates is one JSON object; the error names the first that exists. Further batches find enum
// values, the element types of lists and maps, and aliases (two names of one field). Only package
// oracle calls this package.
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

// A namer finds the JSON names of the fields of one message. It sends many candidates in one JSON
// object, each with a value that no field accepts, so that the server's error names the first candidate
// that exists.
type namer struct {
	// c sends the requests.
	c *probe.Client
	// es1 means that the server uses protobuf-es 1, whose errors reveal little about expected types.
	es1 bool
	// goEnd means that the parser is a streaming one, so that truncated JSON can end a batch, i.e. the
	// candidates of one request.
	goEnd bool
	// known are names of request fields with which a batch can end, because their types are not floats.
	known []string
	// in are the fields on the path to the message.
	in []step
	// of is the name of the message's type; "" if unknown.
	of string

	// strict means that the parser refuses unknown names, and names of enum values, instead of
	// ignoring them.
	strict bool
	// refused is the number of names that the parser rejected as unknown; unasked is the number of
	// those that were not tested, because too many had been rejected.
	refused, unasked int
	// enums are the sets of enum values that a strict parser has revealed, for all messages.
	enums *[][]string
	// declared maps each name that is tested only in its JSON spelling to the spelling in which it is
	// probably declared, such as page_size.
	declared map[string]string
	// controlled says whether the error at the end of a batch is understood; nil before that was
	// tested.
	controlled *bool

	// candidates are the names that were not tested yet.
	candidates []string
	// valueNames are candidates for the names of enum values.
	valueNames []string
	// conflicts are names of existing fields whose kind could not be determined, because another field
	// of their oneof came first.
	conflicts []string

	// found are the fields whose names exist.
	found []namedField
}

// A step is one field on the path to a nested message.
type step struct {
	// name is the name of the field.
	name string

	// list means that the field is repeated.
	list bool
}

// A namedField is a field whose name exists according to the server, with what is known about its type.
type namedField struct {
	// Field is the result for the field, as far as it is known.
	probe.Field
	// family is the name that protobuf-es uses in errors for a group of types, such as "int32".
	family string
	// enum is the full name of the enum that is the type of the field, its items or its map values;
	// "enum" if the name is unknown.
	enum string
	// composed means that the field is a message, repeated, or a map.
	composed bool
}

// findNames tests names until a batch contains none that exists, and records those that exist. passed
// are the names that were not found.
//
// Shape: if an error does not identify the candidate, the batch is bisected. A strict parser gets small
// batches, because each unknown name ends one.
// Errors: errNoName; a stopError.
func (n *namer) findNames(ctx context.Context, names []string, as int) (passed []string, err error) {
	left := slices.Clone(names)
	for len(left) > 0 {
		batch := left
		if n.strict {
			batch = left[:min(len(left), strictBatch)]
		}
		a, starts, err := n.sendNames(ctx, batch, as)
		if err != nil && (err != probe.ErrSize || len(batch) == 1) {
			return append(passed, left...), err
		}

		// The error is about a candidate, about the end, or not understood.
		at := unclear
		if err == nil {
			at, err = n.hit(ctx, a, batch, starts, as)
			if err != nil {
				return append(passed, left...), err
			}
		}
		switch {
		case at == atEnd:
			passed, left = append(passed, batch...), left[len(batch):]
		case at == unclear:
			rest, err := n.findInHalves(ctx, batch, as)
			passed, left = append(passed, rest...), left[len(batch):]
			if err != nil {
				return append(passed, left...), err
			}
		case unknownName().MatchString(a.Text):
			passed, left = n.refuse(passed, left, at, as)
		case conflict(a.Text) && as != asNulls:
			n.conflicts = append(n.conflicts, left[at])
			left = slices.Delete(left, at, at+1)
		default:
			taken := n.enter(left[at], a, as)
			passed, left = n.without(passed, taken...), n.without(left, taken...)
		}
	}
	return passed, nil
}

// hit returns the index of the candidate that a response is about, atEnd, or unclear if the batch has
// to be bisected. starts are the offsets of the candidates in the request.
//
// Errors: a stopError if the error message is not understood.
func (n *namer) hit(ctx context.Context, a *probe.Answer, batch []string, starts []int, as int) (int, error) {
	// Strict servers refuse unknown names. One that was not sent is inside of a candidate's value.
	if name := unknownName().FindStringSubmatch(a.Text); name != nil {
		if at := slices.Index(batch, name[1]+name[2]); at >= 0 {
			return at, nil
		}
		if at := candidateOf(a.Text, nil, starts); at >= 0 && as != asNumber && as != asText {
			return at, nil
		}
		return 0, probe.Stop("the server's JSON parser rejects a name that probe did not send: %s", a.Brief())
	}
	sent := slices.Clone(batch)
	for _, name := range n.endings() {
		if len(n.in) > 0 || !slices.Contains(batch, name) { // as in object
			sent = append(sent, name)
		}
	}
	at := candidateOf(a.Text, sent, starts)
	switch {
	case at >= len(batch):
		return atEnd, nil
	case at != unclear:
		return at, nil
	}

	// If a batch without candidates is understood, this error is about one of them.
	if n.controlled == nil {
		if err := n.control(ctx); err != nil {
			return 0, err
		}
	}
	switch {
	case !*n.controlled:
		return 0, probe.Stop("unwire does not understand the error of the server's JSON parser: %s", a.Brief())
	case len(batch) == 1:
		// it exists, and the error is of an unknown kind
		return 0, nil
	}
	return unclear, nil
}

// sendNames sends names as a batch, with values of the form as. starts are their offsets in the
// request.
//
// Errors: errNoName; a stopError.
func (n *namer) sendNames(ctx context.Context, names []string, as int) (a *probe.Answer, starts []int, err error) {
	body, starts := n.object(names, as)
	a, err = n.c.AskJSON(ctx, fmt.Sprintf("%d names%s", len(names), n.at()), body)
	switch {
	case a != nil && a.Accepted && !n.goEnd && len(n.known) == 0:
		return a, starts, errNoName
	case err == nil && !a.FromParser:
		return a, starts, probe.Stop("the answer to request %d contains no error of the server's JSON parser: %s", n.c.Requests, a.Brief())
	}
	return a, starts, err
}

// findInHalves is findNames for both halves of names, one after the other.
func (n *namer) findInHalves(ctx context.Context, names []string, as int) (left []string, err error) {
	left, err = n.findNames(ctx, names[:len(names)/2], as)
	if err != nil {
		return names, err
	}
	right, err := n.findNames(ctx, names[len(names)/2:], as)
	return append(left, right...), err
}

// control sends a batch without candidates. If the error is not understood, then other errors that do
// not identify a candidate prove nothing either.
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

// errNoName reports that no name in the first batch exists.
var errNoName = errors.New("the server knows none of the given names")

// enter records what an error reveals about the candidate name, and returns all names of that field.
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
	f.Evidence = []string{fmt.Sprintf("unwire's request %d: %s", n.c.Requests, a.Quoted())}
	if !slices.ContainsFunc(n.found, func(g namedField) bool { return g.Name == f.Name }) {
		n.found = append(n.found, f)
	}
	return []string{name, also, f.Name}
}

// maxEnds limits the number of names that end a batch.
const maxEnds = 20

// without removes names, in all spellings, from the candidates.
func (n *namer) without(candidates []string, names ...string) []string {
	taken := map[string]bool{}
	for _, name := range names {
		taken[plainName(name)] = name != ""
	}
	return slices.DeleteFunc(candidates, func(s string) bool { return taken[plainName(s)] })
}

// askAll finds all names of the message, and then the element types of lists and maps.
func (n *namer) askAll(ctx context.Context) error {
	left, err := n.findNames(ctx, n.candidates, asNumber)

	// Candidates whose oneof had another member in the batch are tried again.
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
	// One after the other, because they are in the same oneof.
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
	if err == nil && n.goEnd {
		err = n.declaredSpellings(ctx)
	}
	if err == nil {
		err = n.askElements(ctx)
	}
	if err == nil {
		err = n.askMapValues(ctx)
	}
	return err
}

// plainName normalises a name, so that spellings such as page_size and pageSize become equal.
func plainName(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, "_", ""))
}

// maxNames limits the number of candidates, because their values have seven digits.
const maxNames = 100_000

// newNamer returns a namer for the request of a server with the runtime of.
func newNamer(c *probe.Client, o *probe.Options, of probe.Runtime) *namer {
	n := &namer{c: c, goEnd: of == probe.ConnectGo, es1: of == probe.ES1, valueNames: o.Values, enums: &[][]string{}}
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
	// A name as declared is tried before its JSON spelling, which reveals less.
	sort.SliceStable(n.candidates, func(i, j int) bool {
		return strings.Contains(n.candidates[i], "_") && !strings.Contains(n.candidates[j], "_")
	})
	return n
}

// plainText reports whether s consists of printable ASCII characters without spaces.
func plainText(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Ask finds the names of the fields of the request, and of nested messages down to the depth
// Options.Depth, and adds them to res.
//
// Shape: protobuf-es reads an object completely, so that each batch must end with an existing name and
// an invalid value. If no existing name is known, and no candidate of the first batch exists, the RPC
// handler runs. Unless Options allow it, this risk is only taken with servers on this machine.
func Ask(ctx context.Context, c *probe.Client, o *probe.Options, res *probe.Result) error {
	top := newNamer(c, o, res.Runtime)
	if ok, err := top.canAsk(ctx, o, res); !ok {
		return err
	}
	top.of = res.RequestType

	seen := map[string]bool{top.of: top.of != ""}
	// holds are the types that the server accepts in an Any.
	var holds []string

	// A breadth-first walk through the messages; each type is asked about once.
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
			res.Note("the request has none of the given names; the server accepted a request with unknown names only, and may have executed the method")
			return nil
		}
		n.report(res)
		if n.unasked > 0 {
			res.Note(fmt.Sprintf("%d names%s were not tested: with this server, each name that does not exist takes one request, and unwire tries only %d of them", n.unasked, n.at(), maxRefused))
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

// canAsk reports whether names can be probed; if not, it adds the reason to the result's notes.
func (n *namer) canAsk(ctx context.Context, o *probe.Options, res *probe.Result) (bool, error) {
	if len(n.candidates) == 0 || res.Runtime == probe.GRPCGo {
		return false, nil
	}
	if !n.goEnd && len(n.known) == 0 && !o.AllowExecute && n.c.Remote {
		res.Note("names were not tested: a request in which no name exists would execute the method; with --known, name a field that exists")
		return false, nil
	}
	taken, err := n.acceptsAnyName(ctx)
	if err != nil {
		return false, err
	}
	if taken || wellKnownType(res.RequestType) {
		res.Note("names were not tested: the request type is written in JSON in a special form, in which any name is valid")
		return false, nil
	}
	return true, nil
}

// messagesBelow returns namers for the nested messages whose names can be probed, each type once. known
// are names of existing fields of the request, one of which ends each batch; seen has the types that
// were returned before.
func (n *namer) messagesBelow(ctx context.Context, known []string, o *probe.Options, res *probe.Result, seen map[string]bool) (list []*namer, err error) {
	for _, f := range n.found {
		if f.Kind != "message" || f.Label == "map" || wellKnownType(f.Type) || f.Type != "" && seen[f.Type] {
			continue
		}
		seen[f.Type] = f.Type != ""
		below := newNamer(n.c, o, res.Runtime)
		below.known, below.of, below.enums = known, f.Type, n.enums
		if n.strict {
			below.strict = true
			below.candidates = below.oneSpelling(below.candidates)
		}
		below.in = append(slices.Clone(n.in), step{f.Name, f.Label == "repeated"})
		if ok, err := below.dropsUnknown(ctx); err != nil {
			return nil, err
		} else if ok {
			list = append(list, below)
		}
	}
	return list, nil
}

// acceptsAnyName sends names that no field has, and reports whether a Go server treats them as
// existing. The request is then a Struct or a Value.
func (n *namer) acceptsAnyName(ctx context.Context) (bool, error) {
	if !n.goEnd {
		// it names the request's type
		return false, nil
	}
	names := []string{"no1thing", "no2thing"}
	body, starts := n.object(names, asNulls)
	a, err := n.c.AskJSON(ctx, "names that no field has", body)
	if err != nil || unknownName().MatchString(a.Text) {
		return false, err
	}
	i := candidateOf(a.Text, names, starts)
	return i >= 0 && i < len(names), nil
}

// dropsUnknown reports whether a nested message can be probed because it ignores or rejects unknown
// names. A map, a Struct and an Any, which protojson does not distinguish from messages, do neither.
func (n *namer) dropsUnknown(ctx context.Context) (bool, error) {
	if !n.goEnd {
		return len(n.endings()) > 0, nil
	}
	for _, as := range []int{asNumber, asNulls} {
		names := []string{"no1thing", "no2thing"}
		body, starts := n.object(names, as)
		a, err := n.c.AskJSON(ctx, "whether "+n.namePath()+" drops unknown names", body)
		if err == nil && unknownName().MatchString(a.Text) && strings.Contains(a.Text, names[0]) {
			// it is a message of a strict parser
			return true, nil
		}
		if err != nil || candidateOf(a.Text, names, starts) != atEnd {
			return false, err
		}
	}
	return true, nil
}

// wellKnownType reports whether a message type, such as Timestamp, has a special JSON form.
func wellKnownType(name string) bool { return strings.HasPrefix(name, "google.protobuf.") }
