package syntax

import (
	"bytes"
	"strings"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
)

// member finds the value of "name": "value" in JSON if the name denotes a secret, also within JSON strings,
// where the quotes are escaped. i is the index of the name's first quote. final and flush are as for Finder.At.
func (f *Finder) member(b []byte, i int, final, flush bool) (match.Match, match.State) {
	escapes := 0
	for escapes < 7 && i > escapes && b[i-escapes-1] == '\\' {
		escapes++
	}
	if f.inList(b, i) {
		return f.listItem(b, i, escapes, final, flush)
	}
	// The closing quote has as many backslashes as the opening one, if JSON is nested in a JSON
	// string.
	quote := string(b[i-escapes : i+1])
	name, p, v := beforeColon(b, i+1, quote)
	if v != match.Found {
		return orNothing(v, final)
	}
	kind := f.memberKind(b, i, name)
	beside := needsSiblings(kind, name)
	if !kind.MayTell() && !beside {
		return match.Match{}, match.Nothing
	}
	if p, v = skipSpace(b, p); v != match.Found {
		return orNothing(v, final)
	}
	if p < len(b) && b[p] >= '1' && b[p] <= '9' {
		return numberValue(b, p, name, kind, final, flush)
	}
	if p, v = expect(b, p, quote); v != match.Found {
		return orNothing(v, final)
	}
	if beside {
		end := min(valueEnd(b, p, len(quote)-1), len(b))
		if v = withSiblings(b, i, p, end, name, final, flush); v != match.Found {
			return match.Match{}, v
		}
		kind = names.Secret
	}
	m, v := f.memberValue(b, p, quote, kind, final, flush)
	if v == match.Found {
		m.Rule, m.Name = match.Member, string(name)
	}
	return m, v
}

// beforeColon returns the name of the JSON member that begins at index from, and the index after the colon that follows it.
// quote is the quote before the name, with its backslashes.
func beforeColon(b []byte, from int, quote string) (name []byte, p int, v match.State) {
	name, p = memberName(b, from, quote)
	if len(name) < 2 && p < len(b) {
		return nil, p, match.Nothing
	}
	if p, v = expect(b, p, quote); v != match.Found {
		return nil, p, v
	}
	if p, v = skipSpace(b, p); v != match.Found {
		return nil, p, v
	}
	p, v = expect(b, p, ":")
	return name, p, v
}

// memberKind classifies the JSON member at index i by its name. Some names denote a secret only together with the name of
// the enclosing object.
func (f *Finder) memberKind(b []byte, i int, name []byte) names.Kind {
	kind := f.names.Kind(name)
	isOwned := isOwnedName(name)
	if kind == names.Secret || !isOwned && !f.IsIssuing() {
		return kind
	}
	isOther := kind == names.Other || kind == names.Parameter
	if owner := f.ownerKind(b, i, name); isOther || isOwned && owner == names.Secret {
		return owner
	}
	return kind
}

// memberName returns the name of the JSON member that begins at index from, with escapes removed, and the index
// of its end. quote is the quote before it, with its backslashes.
func memberName(b []byte, from int, quote string) (name []byte, end int) {
	p := from
	for p < len(b) && p-from <= names.MaxLen && charset.Member.Has(b[p]) {
		p++
	}
	name = b[from:p]
	if len(quote) > 1 || p == len(b) || b[p] != '\\' {
		return name, p
	}
	name = append([]byte(nil), name...)
	for p < len(b) && p-from <= 2*names.MaxLen {
		switch {
		case charset.Member.Has(b[p]):
			name = append(name, b[p])
			p++
		case b[p] == '\\' && p+1 < len(b) && b[p+1] == '/':
			name = append(name, '/')
			p += 2
		case b[p] == '\\' && p+5 < len(b) && b[p+1] == 'u' && string(b[p+2:p+4]) == "00" && charset.IsHex(strings.ToLower(string(b[p+4:p+6]))):
			name = append(name, charset.Unhex(b[p+4])<<4|charset.Unhex(b[p+5]))
			p += 6
		default:
			return name, p
		}
	}
	return name, p
}

// memberValue finds the JSON string that begins at index from, if it is a secret by the kind of its name. quote
// is the quote before it, with its backslashes. final and flush are as for Finder.At.
func (f *Finder) memberValue(b []byte, from int, quote string, kind names.Kind, final, flush bool) (match.Match, match.State) {
	end := valueEnd(b, from, len(quote)-1)
	cut := end >= len(b)
	end = min(end, len(b))
	if cut && !final && end-from < match.MaxSecret {
		return match.Match{}, match.Undecided
	}
	from = afterScheme(b, from, end)
	value := b[from:end]
	if !kind.Fits(value) {
		return match.Match{}, match.Nothing
	}
	m := match.Match{Start: from, End: end, Secret: string(value), Learn: kind == names.Secret && len(value) >= match.ShortSecret}
	if end-from >= match.MaxSecret || cut && flush {
		m.Mask = &match.Mask{Until: "\""}
		m.Learn = false
	}
	return m, match.Found
}

// maxNumber is the greatest length of a number that is a secret, that of a payment card, in bytes.
const maxNumber = 19

// numberValue finds the number without quotes that begins at index from if its name denotes one that is a secret, such as a
// PIN. Nines replace it, so a number of nines is none. final and flush are as for Finder.At.
func numberValue(b []byte, from int, name []byte, kind names.Kind, final, flush bool) (match.Match, match.State) {
	if !kind.MayBeNumber(name) {
		return match.Match{}, match.Nothing
	}
	end := from
	for end < len(b) && end-from <= maxNumber && b[end] >= '0' && b[end] <= '9' {
		end++
	}
	switch {
	case end-from > maxNumber:
		return match.Match{}, match.Nothing
	case end == len(b) && !final:
		return match.Match{}, match.Undecided
	case end < len(b) && b[end] != ',' && b[end] != '}' && !isSpace(b[end]):
		return match.Match{}, match.Nothing
	}
	value := b[from:end]
	if !kind.Fits(value) || len(value) < leastNumber || len(bytes.Trim(value, "9")) == 0 {
		return match.Match{}, match.Nothing
	}
	m := match.Match{Start: from, End: end, Secret: string(value), IsNumber: true, Rule: match.Member, Name: string(name)}
	if end == len(b) && flush {
		m.Mask = &match.Mask{Until: ",} \t\r\n"}
	}
	return m, match.Found
}

// leastNumber is the smallest length of a number that is a secret, that of the code of a payment card, in bytes.
const leastNumber = 3

// valueEnd returns the index at which the JSON string that begins at index from ends: at a quote with as many
// backslashes before it (escapes) as its first quote has, or after match.MaxSecret bytes.
func valueEnd(b []byte, from, escapes int) int {
	run := 0
	end := from
	for ; end < len(b) && end-from < match.MaxSecret; end++ {
		switch {
		case b[end] == '\\':
			run++
			continue
		case b[end] == '"' && (escapes == 0 && run%2 == 0 || escapes > 0 && run <= escapes):
			return end - min(run, escapes)
		}
		run = 0
	}
	return end
}
