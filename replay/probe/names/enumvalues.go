package names

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"unwire/replay/probe"
)

// Both parsers ignore unknown names of enum values without an error, and accept known ones. The
// error about something after the value reveals which it was:
//
// - protobuf-es 2 numbers the items of a list by those that it accepted, in the error about the
// last item, a number that no enum has;
// - protobuf-es 2 validates the key of a map entry only if it accepted the value;
// - protojson refuses a duplicate key only if it accepted the first value.
//
// A single value, a list in protojson, and all of protobuf-es 1 reveal nothing. A parser that
// refuses unknown names reveals all; see strict.go.
//
// Source: replay/probe/README.md#enum-values-and-any

// maxValues limits the number of names that are tested for one enum.
const maxValues = 20_000

// notOfAnEnum is a number that no enum value can have, because it exceeds 32 bits.
const notOfAnEnum = "3000000000"

var (
	itemES = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`list item #(\d+): expected enum`) })
	// noType matches the errors for an unknown type in an Any.
	noType = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`unable to resolve|is not in the type registry`) })
)

// askValueNames tests candidates for the names of the values of the message's enum fields.
func (n *namer) askValueNames(ctx context.Context, res *probe.Result) error {
	// silent are enums whose values cannot be found out.
	silent := map[string]bool{}
	told := map[string][]string{}
	if err := n.seeWhetherStrict(ctx); err != nil {
		return err
	}
	for i := range n.found {
		f := &n.found[i]
		switch {
		case f.enum == "" || told[f.enum] != nil && !n.goEnd:
			continue
		case n.strict:
			values, err := n.valuesRefused(ctx, f, res)
			if err != nil {
				return err
			}
			if !n.goEnd {
				told[f.enum] = append(values, "")[:len(values):len(values)]
			}
			continue
		case !n.goEnd && (n.es1 || f.Label == "singular" || n.closing(f.Name) == ""), n.goEnd && f.Label != "map":
			silent[f.enum] = true
			continue
		}

		// A control with made-up names: some versions accept or refuse all names in the same way.
		if ok, err := n.showsValues(ctx, f); err != nil {
			return err
		} else if !ok {
			silent[f.enum] = true
			continue
		}
		names := n.valuesFor(f)
		first := n.c.Requests + 1
		values, err := n.valuesAmong(ctx, f, names)
		if err != nil {
			return err
		}
		if len(values) > 0 {
			f.Values = values
			f.Evidence = append(f.Evidence, fmt.Sprintf("requests %d to %d: the parser accepts %s", first, n.c.Requests, strings.Join(values, ", ")))
		}
		if !n.goEnd {
			told[f.enum] = append(values, "")[:len(values):len(values)]
		}
	}

	n.copyValues(told, silent)
	if len(silent) > 0 {
		res.Note("unwire could not find the values of some enums: this server reveals only those of enums in " + map[bool]string{true: "map fields", false: "repeated and map fields"}[n.goEnd])
	}
	return nil
}

// copyValues copies enum values to other fields with the same enum. told are the values found, by enum;
// silent are the enums about which the server revealed nothing.
func (n *namer) copyValues(told map[string][]string, silent map[string]bool) {
	for i := range n.found {
		f := &n.found[i]
		if f.enum != "" && len(f.Values) == 0 && len(told[f.enum]) > 0 {
			f.Values = told[f.enum]
			f.Evidence = append(f.Evidence, "another field of the same enum accepts these values")
		}
		if told[f.enum] != nil {
			delete(silent, f.enum)
		}
	}
}

// showsValues reports whether the server's errors reveal which enum value of a list does not exist. It
// sends names that no enum has. Older versions of protobuf-es 2 do not number the items, or validate
// the keys first.
func (n *namer) showsValues(ctx context.Context, f *namedField) (bool, error) {
	a, starts, err := n.askValues(ctx, f, []string{"0_NO_VALUE", "1_NO_VALUE"})
	if err != nil {
		return false, err
	}
	if f.Label == "map" {
		return candidateOf(a.Text, nil, starts) == atEnd, nil
	}
	item := itemES().FindStringSubmatch(a.Text)
	return item != nil && item[1] == "1", nil
}

// valuesAmong returns the names that are values of the field's enum. It bisects if a response does not
// show which name was rejected.
func (n *namer) valuesAmong(ctx context.Context, f *namedField, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	a, starts, err := n.askValues(ctx, f, names)
	if err == probe.ErrSize && len(names) > 1 {
		return n.valuesInHalves(ctx, f, names, len(names))
	}
	if err != nil {
		return nil, err
	}
	item := itemES().FindStringSubmatch(a.Text)
	if item != nil && f.Label == "repeated" {
		return n.valuesOfList(ctx, f, names, item[1])
	}
	if f.Label != "map" {
		// the answer is not understood, so nothing is reported
		return nil, nil
	}

	// In a map, an error about a key means that the value before it was accepted.
	badKey := strings.Contains(a.Text, "invalid map key")
	switch at := candidateOf(a.Text, nil, starts); {
	case at >= 0 && (badKey || strings.Contains(a.Text, "duplicate map key")):
		more, err := n.valuesAmong(ctx, f, names[at+1:])
		return append([]string{names[at]}, more...), err
	case at == atEnd || !badKey:
		return nil, nil
	case len(names) == 1:
		return names, nil
	}
	return n.valuesInHalves(ctx, f, names, len(names))
}

// valuesOfList returns the names that are values of the enum of the repeated field f. item is the
// number of the item that the server rejected, which reveals how many were accepted.
func (n *namer) valuesOfList(ctx context.Context, f *namedField, names []string, item string) ([]string, error) {
	switch count, err := strconv.Atoi(item); {
	case err != nil || count == 1:
	case count == len(names)+1:
		return names, nil
	case count <= len(names):
		return n.valuesInHalves(ctx, f, names, count-1)
	}
	return nil, nil
}

// valuesInHalves returns the names that are values of the field's enum, of which there are between one
// and most. It tests both halves of names (binary search).
func (n *namer) valuesInHalves(ctx context.Context, f *namedField, names []string, most int) ([]string, error) {
	left, err := n.valuesAmong(ctx, f, names[:len(names)/2])
	if err != nil || len(left) == most {
		return left, err
	}
	right, err := n.valuesAmong(ctx, f, names[len(names)/2:])
	return append(left, right...), err
}

// askValues sends names as values of the enum field f. starts are the offsets of the names in the
// request.
func (n *namer) askValues(ctx context.Context, f *namedField, names []string) (*probe.Answer, []int, error) {
	var value bytes.Buffer
	var starts []int
	for i, name := range names {
		starts = append(starts, value.Len()+1)
		switch key := strconv.Itoa(i); {
		case f.Label == "repeated":
			fmt.Fprintf(&value, "%s,", quoteJSON(name))
		case n.goEnd:
			fmt.Fprintf(&value, "%q:%s,%[1]q:%[2]s,", key, quoteJSON(name))
		// do not split a character of a key
		default:
			fmt.Fprintf(&value, `"\ud800#%s":%s,`, valueOf(i, asNumber), quoteJSON(name))
		}
	}
	starts = append(starts, value.Len())
	text := "{" + strings.TrimSuffix(value.String(), ",") + "}"
	if f.Label == "repeated" {
		text = "[" + value.String() + notOfAnEnum + "]"
	}
	a, at, err := n.askOne(ctx, fmt.Sprintf("%d values of %s%s", len(names), f.Name, n.at()), f.Name, text)
	for i := range starts {
		starts[i] += at
	}
	return a, starts, err
}

// askOne sends the JSON value for the field name. at is the offset of the field in the request; what
// describes the request in the journal.
//
// Errors: a stopError.
func (n *namer) askOne(ctx context.Context, what, name, value string) (a *probe.Answer, at int, err error) {
	var body bytes.Buffer
	n.appendOpening(&body)
	fmt.Fprintf(&body, "%s:", quoteJSON(name))
	at = body.Len()
	body.WriteString(value)
	if n.goEnd {
		body.WriteString(`,"`)
	} else {
		body.WriteString(n.closing(name))
	}
	a, err = n.c.AskJSON(ctx, what, body.Bytes())
	if err == nil && !a.FromParser {
		err = probe.Stop("the answer to request %d contains no error of the server's JSON parser: %s", n.c.Requests, a.Brief())
	}
	return a, at, err
}

// closing returns the end of a JSON request that makes the server reject all of it, so that the RPC
// handler does not run: fields that accept no number, with a number as their value. The field but,
// which the request tests, is not used. It returns "" if no such field is known.
func (n *namer) closing(but string) string {
	var b strings.Builder
	for _, step := range slices.Backward(n.in) {
		b.WriteByte('}')
		if step.list {
			b.WriteByte(']')
		}
	}
	ends := 0
	for _, name := range n.endings() {
		if len(n.in) > 0 || plainName(name) != plainName(but) {
			ends++
			fmt.Fprintf(&b, ",%s:0.5", quoteJSON(name))
		}
	}
	if ends == 0 {
		return ""
	}
	return b.String() + "}"
}

// commonValues are words that names of enum values often consist of.
var commonValues = [...]string{
	"UNSPECIFIED", "UNKNOWN", "INVALID", "NONE", "DEFAULT", "UNDEFINED", "OTHER", "CUSTOM", "AUTO", "ANY", "ALL", "ON", "OFF", "YES", "NO", "TRUE", "FALSE",
	"ENABLED", "DISABLED", "ACTIVE", "INACTIVE", "PENDING", "QUEUED", "RUNNING", "STARTED", "STOPPED", "PAUSED", "DONE", "COMPLETE", "COMPLETED", "FINISHED",
	"SUCCESS", "SUCCEEDED", "OK", "FAILED", "FAILURE", "ERROR", "CANCELED", "CANCELLED", "ABORTED", "TIMEOUT", "IN_PROGRESS", "CREATED", "UPDATED", "DELETED",
	"LOW", "MEDIUM", "HIGH", "SMALL", "LARGE", "FAST", "SLOW", "DEBUG", "INFO", "WARNING", "WARN", "FATAL", "ASC", "DESC", "ASCENDING", "DESCENDING", "READ",
	"WRITE", "ADMIN", "USER", "SYSTEM", "ASSISTANT", "HUMAN", "AI", "TOOL", "AGENT", "ASK", "CHAT", "EDIT", "PLAN", "BACKGROUND", "PUBLIC", "PRIVATE", "INTERNAL",
	"TEXT", "IMAGE", "AUDIO", "VIDEO", "FILE", "DIRECTORY", "JSON", "BINARY", "STRING", "NUMBER", "BOOL", "RED", "GREEN", "BLUE", "NORTH", "SOUTH", "LEFT", "RIGHT",
}

// valuesFor returns the names to test for a field's enum: the given candidates, and common words with
// the name of the enum or the field as a prefix.
func (n *namer) valuesFor(f *namedField) []string {
	seen := map[string]bool{}
	var out []string
	add := func(name string) {
		if name != "" && !seen[name] && plainText(name) && len(out) < maxValues {
			seen[name] = true
			out = append(out, name)
		}
	}
	for _, name := range n.valueNames {
		add(name)
	}
	parts := strings.Split(f.enum, ".")
	prefixes := []string{"", upper(f.Name) + "_", strings.TrimSuffix(upper(f.Name), "S") + "_", upper(parts[len(parts)-1]) + "_"}
	if len(parts) > 1 {
		prefixes = append(prefixes, upper(parts[len(parts)-2])+"_"+upper(parts[len(parts)-1])+"_")
	}
	for _, prefix := range prefixes {
		for _, word := range commonValues {
			add(prefix + word)
		}
		for _, name := range n.candidates {
			add(prefix + upper(name))
		}
	}
	return out
}

// upper returns a name in the spelling of enum values: AgentMode, agent_mode and agentMode become
// AGENT_MODE.
func upper(name string) string {
	var b strings.Builder
	before := '_'
	for _, r := range name {
		if unicode.IsUpper(r) && before != '_' && !unicode.IsUpper(before) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
		before = r
	}
	return b.String()
}
