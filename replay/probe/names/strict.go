package names

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"unwire/replay/probe"
	"unwire/schema/jsonname"
)

// A strict parser refuses unknown names of fields and enum values instead of ignoring them. So it
// reveals the values of every enum, wherever the enum is used. But a batch ends at its first unknown
// name, so that each name that does not exist costs a request.

const (
	// maxRefused limits how many unknown names are tested for each message, and for each enum, of a
	// strict parser, i.e. one that rejects unknown names.
	maxRefused = 200
	// strictBatch is the number of names in a batch for a strict parser. Names that exist do not end
	// a batch, so several can be found by one request.
	strictBatch = 50
)

// valueRefused matches the errors for an unknown name of an enum value.
var valueRefused = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:cannot decode enum [\w.]+ from JSON|invalid value for enum field [^:]+): "([^"]*)"`)
})

// refuse handles an error about the unknown name left[at]: it is removed from the candidates, and those
// before it move to passed, because they were accepted. If too many names were rejected, the candidates
// after it are not tested.
func (n *namer) refuse(passed, left []string, at, as int) (newPassed, newLeft []string) {
	if as != asNumber && as != asText {
		// The candidate exists, but its value contains a name that does not.
		return passed, slices.Delete(left, at, at+1)
	}
	n.refused++
	passed, left = append(passed, left[:at]...), left[at+1:]
	if !n.strict {
		n.strict = true
		left = n.oneSpelling(left)
	}
	if n.refused >= maxRefused {
		n.unasked += len(left)
		left = nil
	}
	return passed, left
}

// oneSpelling removes each candidate whose JSON spelling is a candidate, too. A parser that does not
// know pageSize does not know page_size either, unless that has a JSON name of its own.
func (n *namer) oneSpelling(candidates []string) []string {
	n.declared = map[string]string{}
	all := map[string]bool{}
	for _, name := range candidates {
		all[name] = true
	}
	return slices.DeleteFunc(candidates, func(name string) bool {
		other := jsonname.Of(name)
		if other == name || !all[other] {
			return false
		}
		n.declared[other] = name
		return true
	})
}

// declaredSpellings replaces the JSON spelling of the names that a strict protojson accepted by the
// declared spelling, if it accepts that as well. protobuf-es mentions the declared spelling in its
// errors.
func (n *namer) declaredSpellings(ctx context.Context) error {
	var names []string
	for _, f := range n.found {
		if name := n.declared[f.Name]; name != "" {
			names = append(names, name)
		}
	}

	// An accepted null does not end a batch, so one request suffices if all names exist.
	for len(names) > 0 {
		var body bytes.Buffer
		n.appendOpening(&body)
		for _, name := range names {
			fmt.Fprintf(&body, "%s:null,", quoteJSON(name))
		}
		body.WriteByte('"')
		a, err := n.c.AskJSON(ctx, fmt.Sprintf("which of %d names are as declared%s", len(names), n.at()), body.Bytes())
		if err != nil {
			return err
		}
		m := unknownName().FindStringSubmatch(a.Text)
		if m == nil {
			break
		}
		at := slices.Index(names, m[1]+m[2])
		if at < 0 {
			return nil
		}
		names = slices.Delete(names, at, at+1)
	}
	for i := range n.found {
		if f := &n.found[i]; slices.Contains(names, n.declared[f.Name]) {
			f.Name = n.declared[f.Name]
		}
	}
	return nil
}

// seeWhetherStrict sets strict: it determines whether the parser rejects unknown names of enum values,
// by sending a name that no enum has.
func (n *namer) seeWhetherStrict(ctx context.Context) error {
	at := slices.IndexFunc(n.found, func(f namedField) bool { return f.enum != "" && (n.goEnd || n.closing(f.Name) != "") })
	if n.strict || at < 0 {
		return nil
	}
	_, refused, err := n.askStrictly(ctx, &n.found[at], []string{"0_NO_VALUE"})
	n.strict = refused == 0
	return err
}

// valuesRefused returns the values of the field's enum: the candidates that a strict parser does not
// reject.
//
// Limits: maxRefused.
func (n *namer) valuesRefused(ctx context.Context, f *namedField, res *probe.Result) (values []string, err error) {
	if !n.goEnd && n.closing(f.Name) == "" {
		return nil, nil
	}
	first, unknown := n.c.Requests+1, 0
	if n.goEnd {
		if values, err = n.knownEnum(ctx, f); values != nil || err != nil {
			n.enterStrictly(f, values, first)
			return values, err
		}
	}
	names, prefix := n.strictValuesFor(f), ""
	for len(names) > 0 && unknown < maxRefused {
		batch := names[:1]
		if f.Label == "repeated" {
			batch = names[:min(len(names), strictBatch)]
		}
		accepted, refused, err := n.askStrictly(ctx, f, batch)
		if err != nil {
			return values, err
		}
		if accepted < 0 {
			// the answer is not understood, so nothing is reported
			return nil, nil
		}
		values = append(values, batch[:accepted]...)
		names = names[accepted:]
		if refused >= 0 {
			unknown++
			names = names[1:]
		}

		// Words are tried with several prefixes, until one of them is right.
		if prefix == "" && accepted > 0 {
			prefix = prefixOf(values[0], n.prefixes(f))
			names = slices.DeleteFunc(names, func(name string) bool {
				return prefix != "" && !strings.HasPrefix(name, prefix) && !slices.Contains(n.valueNames, name)
			})
		}
	}
	if len(names) > 0 {
		res.Note(fmt.Sprintf("%d names of values of %s%s were not tested: with this server, each name that does not exist takes one request, and unwire tries only %d of them", len(names), f.Name, n.at(), maxRefused))
	}
	n.enterStrictly(f, values, first)
	if len(values) > 0 {
		*n.enums = append(*n.enums, values)
	}
	return values, nil
}

// enterStrictly records the values of a field's enum, which the requests from number first on revealed.
func (n *namer) enterStrictly(f *namedField, values []string, first int) {
	if len(values) > 0 {
		f.Values = values
		f.Evidence = append(f.Evidence, fmt.Sprintf("requests %d to %d: the parser rejects unknown names, and accepts %s", first, n.c.Requests, strings.Join(values, ", ")))
	}
}

// knownEnum returns the values of an enum that was found before, if the field accepts all of them, too.
// protojson does not name enums, but two enums rarely have the same values.
func (n *namer) knownEnum(ctx context.Context, f *namedField) ([]string, error) {
	for _, values := range *n.enums {
		for left := values; ; {
			batch := left[:1]
			if f.Label == "repeated" {
				batch = left
			}
			accepted, _, err := n.askStrictly(ctx, f, batch)
			if err != nil {
				return nil, err
			}
			if accepted < len(batch) {
				break
			}
			if left = left[len(batch):]; len(left) == 0 {
				return values, nil
			}
		}
	}
	return nil, nil
}

// askStrictly tests in one request whether names are values of the field's enum. The parser accepts the
// first ones, and may reject the next.
//
// Shape: accepted is the number of accepted names, -1 if the response is not understood; refused is the
// index of the rejected name, -1 if there is none.
func (n *namer) askStrictly(ctx context.Context, f *namedField, names []string) (accepted, refused int, err error) {
	var list []string
	for _, name := range names {
		list = append(list, string(quoteJSON(name)))
	}
	forms := []string{list[0]}
	switch f.Label {
	case "repeated":
		forms = []string{"[" + strings.Join(list, ",") + "]"}
	case "map":
		// the second one is for keys of type bool
		forms = []string{`{"1":` + list[0] + `}`, `{"true":` + list[0] + `}`}
	}
	for _, value := range forms {
		a, at, err := n.askOne(ctx, fmt.Sprintf("%d values of %s%s", len(names), f.Name, n.at()), f.Name, value)
		if err != nil {
			return -1, -1, err
		}
		if m := valueRefused().FindStringSubmatch(a.Text); m != nil {
			if i := slices.Index(names, m[1]); i >= 0 {
				return i, i, nil
			}
		}
		// An error about what follows the value means that all names were accepted.
		if candidateOf(a.Text, n.endings(), []int{at, at + len(value)}) == atEnd || endOfNames().MatchString(a.Text) {
			return len(names), -1, nil
		}
	}
	return -1, -1, nil
}

// strictValuesFor returns the names to test for an enum of a strict parser, the most likely first: the
// given candidates that begin like the enum's values, common words with the prefixes that names of enum
// values usually have, the other given candidates, and common words alone.
func (n *namer) strictValuesFor(f *namedField) []string {
	seen := map[string]bool{}
	var out []string
	add := func(name string) {
		if name != "" && !seen[name] && plainText(name) {
			seen[name] = true
			out = append(out, name)
		}
	}
	prefixes := n.prefixes(f)
	for _, name := range n.valueNames {
		if prefixOf(name, prefixes) != "" {
			add(name)
		}
	}
	for _, prefix := range prefixes {
		if prefix == "" {
			for _, name := range n.valueNames {
				add(name)
			}
		}
		for _, word := range commonValues {
			add(prefix + word)
		}
	}
	return out
}

// prefixOf returns the first of prefixes with which a name begins; "" for none.
func prefixOf(name string, prefixes []string) string {
	for _, prefix := range prefixes {
		if prefix != "" && strings.HasPrefix(name, prefix) {
			return prefix
		}
	}
	return ""
}

// prefixes returns possible prefixes of the names of an enum's values, the most likely first; the last
// one is "".
func (n *namer) prefixes(f *namedField) []string {
	var out []string
	parts := strings.Split(f.enum, ".")
	if len(parts) > 1 {
		out = append(out, upper(parts[len(parts)-1])+"_", upper(parts[len(parts)-2])+"_"+upper(parts[len(parts)-1])+"_")
	}
	out = append(out, upper(f.Name)+"_", strings.TrimSuffix(upper(f.Name), "S")+"_", "")
	return slices.Compact(out)
}
