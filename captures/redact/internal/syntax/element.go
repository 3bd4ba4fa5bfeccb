package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
)

// maxPartHead is how long the rest of the head of a part of a form may be, in bytes.
const maxPartHead = 256

// element finds the text of an element of XML whose name, or whose attribute "name", tells
// of a secret; i is at the end of its tag.
func (f *Finder) element(b []byte, i int, final, flush bool) (match.Match, match.State) {
	window := b[max(0, i-lookBack):i]
	open := bytes.LastIndexByte(window, '<')
	if open < 0 {
		return match.Match{}, match.Nothing
	}
	tag := window[open+1:]
	if len(tag) == 0 || !charset.Member[tag[0]] {
		return match.Match{}, match.Nothing
	}
	name := tag
	if n := bytes.IndexAny(tag, " \t\r\n/"); n >= 0 {
		name = tag[:n]
	}
	if len(name) == 0 || len(name) > names.MaxLen || f.names.Kind(name) != names.Secret {
		name = nil
		if bytes.IndexByte(tag, '=') > 0 {
			name = siblingName(b, i)
		} else if key, ok := bytes.CutSuffix(window[:open], []byte("</key>")); ok {
			name = key[bytes.LastIndexByte(key, '>')+1:]
		}
		if len(name) == 0 || len(name) > names.MaxLen || f.names.Kind(name) != names.Secret {
			return match.Match{}, match.Nothing
		}
	}
	p, v := skipSpace(b, i+1)
	if v != match.Found {
		return orNothing(v, final)
	}
	until := "<"
	if n, v := expect(b, p, "<![CDATA["); v == match.Found {
		p, until = n, "]"
	} else if v == match.Undecided && !final {
		return match.Match{}, match.Undecided
	}
	end := p
	for end < len(b) && end-p < match.MaxSecret && b[end] != until[0] {
		end++
	}
	cut := end == len(b)
	if cut && !final && end-p < match.MaxSecret {
		return match.Match{}, match.Undecided
	}
	if cut && !flush {
		return match.Match{}, match.Nothing // no element
	}
	value := bytes.TrimRight(b[p:end], " \t\r\n")
	if len(value) == 0 {
		return match.Match{}, match.Nothing
	}
	m := match.Match{Start: p, End: p + len(value), Secret: string(value), Learn: len(value) >= match.ShortSecret, Rule: match.Member, Name: string(name)}
	if cut || end-p >= match.MaxSecret {
		m.End, m.Mask, m.Learn = end, &match.Mask{Until: until}, false
	}
	return m, match.Found
}

// part finds the content of a part of a form; i is at the sign after "name" in its head.
func (f *Finder) part(b []byte, i int, final bool) (match.Match, match.State) {
	if !bytes.Contains(b[max(0, i-lookBack):i], []byte("form-data;")) {
		return match.Match{}, match.Nothing
	}
	from := i + 1
	for from < len(b) && b[from] == '"' {
		from++
	}
	end := from
	for end < len(b) && end-from <= names.MaxLen && (charset.Name.Has(b[end]) || b[end] == '[' || b[end] == ']') {
		end++
	}
	if end == len(b) {
		return match.Pending(final)
	}
	kind := f.names.Kind(b[from:end])
	if kind == names.Other || kind > names.Parameter {
		return match.Match{}, match.Nothing
	}
	head := b[end:min(len(b), end+maxPartHead)]
	n := bytes.Index(head, []byte("\n\r\n"))
	if n < 0 {
		if len(head) < maxPartHead {
			return match.Pending(final)
		}
		return match.Match{}, match.Nothing
	}
	p := end + n + 3
	stop := bytes.Index(b[p:min(len(b), p+match.MaxSecret)], []byte("\r\n--"))
	if stop < 0 {
		if !final && len(b)-p < match.MaxSecret {
			return match.Match{}, match.Undecided
		}
		stop = min(len(b)-p, match.MaxSecret)
	}
	value := b[p : p+stop]
	if len(value) == 0 || kind != names.Secret && !charset.LooksRandom(value) {
		return match.Match{}, match.Nothing
	}
	m := match.Match{Start: p, End: p + stop, Secret: string(value), Learn: kind == names.Secret && len(value) >= match.ShortSecret, Rule: match.Parameter, Name: string(b[from:end])}
	if stop == match.MaxSecret {
		m.Mask, m.Learn = &match.Mask{Until: "\r"}, false
	}
	return m, match.Found
}
