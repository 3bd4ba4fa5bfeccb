package syntax

import (
	"bytes"
	"slices"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
)

// maxPartHead is the greatest length of the rest of a multipart form part's headers, in bytes.
const maxPartHead = 256

// element finds the text of an XML element whose name, or whose attribute "name", denotes a secret. i is the
// index of the '>' that ends the start tag. final and flush are as for Finder.At.
func (f *Finder) element(b []byte, i int, final, flush bool) (match.Match, match.State) {
	name := f.elementName(b, i)
	if len(name) == 0 {
		return match.Match{}, match.Nothing
	}
	p, v := skipSpace(b, i+1)
	if v != match.Found {
		return orNothing(v, final)
	}
	until := "<"
	switch n, v := expect(b, p, "<![CDATA["); {
	case v == match.Found:
		p, until = n, "]"
	case v == match.Undecided && !final:
		return match.Match{}, v
	}

	// The value ends at the next tag or, in a CDATA section, at its end.
	end := p
	for end < len(b) && end-p < match.MaxSecret && b[end] != until[0] {
		end++
	}
	cut := end == len(b)
	switch {
	case cut && !final && end-p < match.MaxSecret:
		return match.Match{}, match.Undecided
	case cut && !flush:
		return match.Match{}, match.Nothing // no element
	}
	value := bytes.TrimRight(b[p:end], " \t\r\n")
	if len(value) == 0 || !f.names.Kind(name).Fits(value) {
		return match.Match{}, match.Nothing
	}
	m := match.Match{Start: p, End: p + len(value), Secret: string(value), Learn: len(value) >= match.ShortSecret, Rule: match.Member, Name: string(name)}
	if cut || end-p >= match.MaxSecret {
		m.End, m.Mask, m.Learn = end, &match.Mask{Until: until}, false
	}
	return m, match.Found
}

// elementName returns the name that denotes a secret of the XML element whose start tag ends at index i: its
// own name, that in an attribute, or, in a property list, that of the element before it; nil if there is none.
func (f *Finder) elementName(b []byte, i int) []byte {
	window := b[max(0, i-lookBack):i]
	open := bytes.LastIndexByte(window, '<')
	if open < 0 {
		return nil
	}
	tag := window[open+1:]
	if len(tag) == 0 || !charset.Member.Has(tag[0]) {
		return nil
	}
	name := tag
	if n := bytes.IndexAny(tag, " \t\r\n/"); n >= 0 {
		name = tag[:n]
	}
	if f.isSecret(name) {
		return name
	}

	// Otherwise the name is in an attribute, in a preceding <key> element of a property list, or that of the element around.
	if bytes.IndexByte(tag, '=') > 0 {
		if _, attribute := f.siblingKind(b, i); f.isSecret(attribute) {
			return attribute
		}
		if !isValueElement(name) {
			return nil
		}
	}
	own := name
	far := b[max(0, i-farBack) : i-len(window)+open]
	for _, name = range [...][]byte{keyElement(window[:open]), ownerElement(far, own)} {
		if f.isSecret(name) {
			return name
		}
	}
	return nil
}

// ownerElement returns the name of the element whose start tag b ends in, or that in an attribute of it, if own is as general
// as "Value": <AdministratorPassword><Value>, <Attribute Name="password"><AttributeValue>.
func ownerElement(b, own []byte) []byte {
	if !isValueElement(own) {
		return nil
	}
	b = bytes.TrimRight(b, " \t\r\n")
	open := bytes.LastIndexByte(b, '<')
	if open < 0 || b[len(b)-1] != '>' || b[len(b)-2] == '/' || b[open+1] == '/' {
		return nil
	}
	if isLaterArgument(b) {
		return []byte("password")
	}
	tag := b[open+1 : len(b)-1]
	name, attributes, _ := bytes.Cut(tag, []byte(" "))
	if len(attributes) == 0 {
		return name
	}
	if _, attribute, ok := bytes.Cut(attributes, []byte(`ame="`)); ok {
		attribute, _, _ = bytes.Cut(attribute, []byte(`"`))
		return attribute[bytes.LastIndexAny(attribute, ":/")+1:]
	}
	return name
}

// isLaterArgument reports whether an argument follows b other than the first one of a call of XML-RPC to a method that takes a
// password.
func isLaterArgument(b []byte) bool {
	at := bytes.LastIndex(b, []byte("<methodName>"))
	if at < 0 || bytes.Count(b[at:], []byte("<param>")) < 2 {
		return false
	}
	method, _, _ := bytes.Cut(b[at:], []byte("</"))
	method = bytes.ToLower(method)
	return slices.ContainsFunc(passwordMethods, func(word []byte) bool { return bytes.Contains(method, word) })
}

// isValueElement reports whether an element of this name contains a value that another name describes.
func isValueElement(name []byte) bool {
	name = name[bytes.LastIndexByte(name, ':')+1:]
	return isValueName(name) || bytes.EqualFold(name, []byte("string")) || bytes.EqualFold(name, []byte("text")) || string(name) == "stringProp"
}

// keyElement returns the text of the element that names the value of the next one: <key> in a property list, <name> in
// XML-RPC, whose value is in further elements, <Key> of KeePass; nil if there is none. b ends before the tag of the value.
func keyElement(b []byte) []byte {
	b = bytes.TrimRight(b, " \t\r\n")
	b = bytes.TrimRight(bytes.TrimSuffix(b, []byte("<value>")), " \t\r\n")
	key, ok := cutEnd(b, "key>")
	if !ok {
		key, ok = cutEnd(b, "name>")
	}
	if !ok {
		// <stringProp name="Argument.name">password</stringProp> of JMeter
		key, ok = cutEnd(b, "prop>")
		ok = ok && bytes.Contains(key[bytes.LastIndexByte(key, '<')+1:], []byte(`name">`))
	}
	if !ok {
		return nil
	}
	return key[bytes.LastIndexByte(key, '>')+1:]
}

// cutEnd returns b without the end tag in which it ends, if the name of the element ends in end, in any case.
func cutEnd(b []byte, end string) ([]byte, bool) {
	if len(b) < len(end) || !bytes.EqualFold(b[len(b)-len(end):], []byte(end)) {
		return nil, false
	}
	open := bytes.LastIndexByte(b, '<')
	if open < 0 || len(b)-open < len(end)+2 || b[open+1] != '/' {
		return nil, false
	}
	return b[:open], true
}

// isSecret reports whether a value with this name is a secret, always or if it looks like one.
func (f *Finder) isSecret(name []byte) bool {
	return len(name) > 0 && len(name) <= names.MaxLen && f.names.Kind(name).MayTell()
}

// part finds the content of a multipart form part whose name denotes a secret. i is the index of the sign after
// "name" in the part's header. final is as for Finder.At.
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
	if !kind.MayTell() && kind != names.Parameter {
		return match.Match{}, match.Nothing
	}
	m, v := partContent(b, end, kind, final)
	if v == match.Found {
		m.Rule, m.Name = match.Parameter, string(b[from:end])
	}
	return m, v
}

// partContent finds the content of a multipart form part whose headers continue at index p. kind is that of the
// part's name.
func partContent(b []byte, p int, kind names.Kind, final bool) (match.Match, match.State) {
	head := b[p:min(len(b), p+maxPartHead)]
	n := bytes.Index(head, []byte("\n\r\n"))
	if n < 0 {
		if len(head) < maxPartHead {
			return match.Pending(final)
		}
		return match.Match{}, match.Nothing
	}
	p += n + 3
	stop := bytes.Index(b[p:min(len(b), p+match.MaxSecret)], []byte("\r\n--"))
	if stop < 0 {
		if !final && len(b)-p < match.MaxSecret {
			return match.Match{}, match.Undecided
		}
		stop = min(len(b)-p, match.MaxSecret)
	}
	value := b[p : p+stop]
	if !kind.FitsParameter(value) {
		return match.Match{}, match.Nothing
	}
	m := match.Match{Start: p, End: p + stop, Secret: string(value), Learn: kind == names.Secret && len(value) >= match.ShortSecret}
	if stop == match.MaxSecret {
		m.Mask, m.Learn = &match.Mask{Until: "\r"}, false
	}
	return m, match.Found
}
