package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
)

// assignment finds the value in name=value or name: value, or the text of an XML element. i is the index of the
// sign between them ('=', ':' or '>'). final and flush are as for Finder.At.
func (f *Finder) assignment(b []byte, i int, final, flush bool) (match.Match, match.State) {
	if !maySign(b, i) {
		return match.Match{}, match.Nothing
	}
	if b[i] == '>' {
		return f.element(b, i, final, flush)
	}
	name, at, quoted := nameBefore(b, i)
	if len(name) < 2 || quoted && b[i] == ':' || at > 0 && (b[at-1] == '&' || b[at-1] == '?') {
		// Members and parameters are found from their beginning.
		return match.Match{}, match.Nothing
	}
	if b[i] == '=' && string(name) == "name" {
		if m, v := f.part(b, i, final); v != match.Nothing {
			return m, v
		}
	}
	kind := f.assignedKind(b, i, name, at)
	if kind == names.Other && b[i] == ':' {
		v := yamlEntry(b, at, final, flush)
		if v == match.Undecided {
			return match.Match{}, v
		}
		kind = secretIf(v == match.Found)
	}
	if !kind.MayTell() && b[i] == '=' && isLoginName(name) {
		return loginPair(b, i, name, final, flush)
	}
	return assigned(b, i, kind, name, at, final, flush)
}

// isLoginName reports whether a value with this name may be a name of a user with a password: login=mary:x.
func isLoginName(name []byte) bool {
	switch string(name) {
	case "login", "user", "auth", "proxyuser", "proxy_user", "proxy-user", "basicauth", "basic_auth":
		return true
	}
	return false
}

// loginPair finds the password after the colon in the value after the sign at index i. A pair of numbers names a user and a
// group. final and flush are as for Finder.At.
func loginPair(b []byte, i int, name []byte, final, flush bool) (match.Match, match.State) {
	from, end := i+1, i+1
	for end < len(b) && end-i < maxUserinfo && charset.Bare.Has(b[end]) {
		if b[end] == ':' && from == i+1 {
			from = end + 1
		}
		end++
	}
	switch {
	case end == len(b) && !final && !flush:
		return match.Match{}, match.Undecided
	case from == i+1, end-from < leastMarked, b[from] == '/', b[from] == '$', !mixesSigns(b[from:end]), len(bytes.Trim(b[i+1:end], "0123456789:")) == 0:
		return match.Match{}, match.Nothing
	}
	return match.Match{Start: from, End: end, Secret: string(b[from:end]), Rule: match.Parameter, Name: string(name)}, match.Found
}

// secretIf returns the kind Secret if is is true, otherwise Other.
func secretIf(is bool) names.Kind {
	if is {
		return names.Secret
	}
	return names.Other
}

// assigned implements assignment for a name at index at and its kind.
func assigned(b []byte, i int, kind names.Kind, name []byte, at int, final, flush bool) (match.Match, match.State) {
	isParameter := kind == names.Parameter && (at == 0 || b[at-1] == ';' || b[at-1] == '~')
	if !kind.MayTell() && !isParameter {
		return match.Match{}, match.Nothing
	}
	m, v := assignedValue(b, i, kind, isCookie(name), final, flush)
	if v == match.Found {
		m.Rule, m.Name = match.Parameter, string(name)
	}
	return m, v
}

// maySign reports whether the byte at index i may be the sign of an assignment or the end of a tag, by the
// bytes next to it.
func maySign(b []byte, i int) bool {
	switch {
	case i < 2 || b[i] == ':' && b[i-1] == '"':
		return false
	case i+1 < len(b) && !mayFollow(b[i], b[i+1]):
		return false
	}
	return charset.BeforeSign.Has(b[i-1]) && charset.BeforeSign.Has(b[i-2])
}

// assignedKind classifies an assigned value by its name, which is at index at. i is the index of the sign.
func (f *Finder) assignedKind(b []byte, i int, name []byte, at int) names.Kind {
	if isValueName(name) || b[i] == '=' && string(name) == "content" {
		kind, _ := f.siblingKind(b, at)
		return kind
	}
	if b[i] == ':' && at > 0 && b[at-1] == ':' {
		// A part of a resource's name, as in arn:aws:secretsmanager:…:secret:x.
		return names.Other
	}
	kind := f.names.Kind(name)
	if kind == names.Other && b[i] == ':' && bytes.IndexByte(name, '-') > 0 && f.names.Header(string(bytes.ToLower(name))) {
		return names.Secret
	}
	return kind
}

// nameBefore returns the name before the sign (such as "=") at index i, and the index of the name. quoted means
// that a double quote follows the name.
func nameBefore(b []byte, i int) (name []byte, at int, quoted bool) {
	end := i
	if end > 0 && b[i] == '=' && b[end-1] == ':' {
		end--
	}
	for end > 0 && i-end < 8 && (b[end-1] == ' ' || b[end-1] == '\t') {
		end--
	}
	if end > 1 && b[end-1] == ']' && b[i] == '=' && (b[end-2] == '"' || b[end-2] == '\'') {
		end-- // an element: config['password'] = 'x'
	}
	if end > 0 && (b[end-1] == '"' || b[end-1] == '\'') {
		quoted = b[end-1] == '"'
		end--
	}
	least := max(0, end-names.MaxLen)
	at = end
	for at > least && (charset.Name.Has(b[at-1]) || b[at-1] == ']' || b[at-1] == '[') {
		at--
	}
	return b[at:end], at, quoted
}

// assignedValue finds the secret value after the sign at index i, if it fits the kind of its name. cookie means
// that the name is that of a cookie header. final and flush are as for Finder.At.
func assignedValue(b []byte, i int, kind names.Kind, cookie, final, flush bool) (match.Match, match.State) {
	p, quote, v := valueStart(b, afterSign(b, i))
	if v != match.Found {
		return orNothing(v, final)
	}
	from, end := assignedEnd(b, p, quote, cookie)
	if quote == "" && kind == names.Secret {
		end = lineEnd(b, i, from, end)
	}

	cut := end == len(b)
	if cut && !final && end-p < match.MaxSecret {
		return match.Match{}, match.Undecided
	}
	value := b[from:end]
	switch {
	case isBearer(b, from) && (charset.LooksRandom(value) || cut):
		return match.Match{}, match.Nothing // a shape finds it
	case !kind.FitsParameter(value), quote == "" && !isBareSecret(b, value, end):
		return match.Match{}, match.Nothing
	}
	m := match.Match{Start: from, End: end, Secret: string(value), Learn: kind == names.Secret && len(value) >= match.ShortSecret}
	if end-from >= match.MaxSecret || cut && flush {
		m.Mask, m.Learn = &match.Mask{Chars: charset.Bare}, false
	}
	return m, match.Found
}

// afterSign returns the index after the sign at index i, which may have two characters: ":=", "=>", or "::" before base64 in
// LDIF.
func afterSign(b []byte, i int) int {
	p := i + 1
	for p < len(b) && p-i < 3 && (b[p] == '=' && b[i] == ':' || b[p] == '>' && b[i] == '=') {
		p++
	}
	if p+1 < len(b) && b[i] == ':' && b[p] == ':' && b[p+1] == ' ' {
		p++
	}
	return p
}

// assignedEnd returns the start and end of the value at index p, excluding an authorization scheme such as
// "Bearer". quote is the quote before the value, or "".
func assignedEnd(b []byte, p int, quote string, cookie bool) (from, end int) {
	end = p
	for end < len(b) && end-p < match.MaxSecret && inAssigned(b, end, quote, cookie) {
		end++
	}
	if quote == "" && !cookie {
		if from, end, ok := credentialsOf(b, p, end); ok {
			return from, end
		}
		return afterSchemeOf(b, p, end)
	}
	return afterScheme(b, p, end), end
}

// signsInLine are the delimiters that may also be in a value that extends to the end of its line.
const signsInLine = ",;&<>`'"

// lineEnd returns the end of the value that begins at index from and of which end is the first delimiter, if the value and its
// name, with the sign at index i, are a line of a configuration file: password = x,y;z. Otherwise it returns end.
func lineEnd(b []byte, i, from, end int) int {
	if end == from || end == len(b) || bytes.IndexByte([]byte(signsInLine), b[end]) < 0 {
		return end
	}
	stop := end
	for stop < len(b) && stop-from < names.MaxLen && (charset.Bare.Has(b[stop]) || bytes.IndexByte([]byte(signsInLine), b[stop]) >= 0) {
		stop++
	}
	_, at, _ := nameBefore(b, i)
	isLine := stop == len(b) || b[stop] == '\n' || b[stop] == '\r'
	if !isLine || !beginsLine(b[:at]) || bytes.IndexByte([]byte(",;>"), b[stop-1]) >= 0 || bytes.IndexByte(b[from:stop], '=') >= 0 {
		return end
	}
	return stop
}

// valueStart skips what precedes a value, from index p on: white space, the beginning of a YAML block or list,
// and a quote. It returns the index of the value, and the quote with the backslashes before it.
func valueStart(b []byte, p int) (_ int, quote string, _ match.State) {
	p, v := skipBlanks(b, p)
	if v == match.Found {
		p, v = blockStart(b, p)
	}
	if v != match.Found {
		return p, "", v
	}
	from := p
	for p < len(b) && b[p] == '\\' && p-from < 8 {
		p++
	}
	if p == len(b) {
		return p, "", match.Undecided
	}
	if b[p] == '"' || b[p] == '\'' || b[p] == '`' {
		return p + 1, string(b[from : p+1]), match.Found
	}
	return from, "", match.Found
}

// blockStart returns the index of the first character in the next line if a YAML block or list begins at index
// p; otherwise p.
func blockStart(b []byte, p int) (int, match.State) {
	block := p
	if b[block] == '|' || b[block] == '>' {
		block++
		for block < len(b) && (b[block] == '-' || b[block] == '+') {
			block++
		}
	}
	if block == len(b) || b[block] != '\n' && b[block] != '\r' {
		return p, match.Found
	}
	next, v := skipSpace(b, block)
	switch {
	case v != match.Found:
		return p, v
	case block > p && b[next-1] == ' ':
		return next, match.Found
	case next+2 < len(b) && b[next-1] == ' ' && b[next] == '-' && b[next+1] == ' ':
		return next + 2, match.Found
	}
	return p, match.Nothing
}

// skipBlanks skips spaces and tabs.
func skipBlanks(b []byte, p int) (int, match.State) {
	for n := 0; p < len(b); n, p = n+1, p+1 {
		if b[p] != ' ' && b[p] != '\t' || n == 32 {
			return p, match.Found
		}
	}
	return p, match.Undecided
}

// inAssigned reports whether the byte at index p belongs to a value. A value ends at its quote, if it has one;
// the value of a cookie header extends to the end of the line; any other value ends at a space or delimiter.
func inAssigned(b []byte, p int, quote string, cookie bool) bool {
	c := b[p]
	switch {
	case quote != "":
		return c != quote[len(quote)-1] && c != '\n'
	case cookie:
		return c >= ' ' && c != '"' && c != '\''
	case c == ' ':
		return false
	}
	return charset.Bare.Has(c)
}

// afterSchemeOf returns the start and end of the credentials if the value from index from to end is an
// authorization scheme, such as "Bearer" or "token"; otherwise from and end.
func afterSchemeOf(b []byte, from, end int) (int, int) {
	switch string(bytes.ToLower(b[from:min(end, from+8)])) {
	case "bearer", "basic", "token", "digest":
	default:
		return from, end
	}
	next := end
	for next < len(b) && b[next] == ' ' && next-end < 4 {
		next++
	}
	from = next
	for next < len(b) && next-from < match.MaxSecret && charset.Bare.Has(b[next]) {
		next++
	}
	if next > from {
		return from, next
	}
	return from, from
}

// credentialsOf returns the start and end of credentials with parameters, as in "Digest username=\"u\", response=\"…\"", in
// a line of a header dump. p and end are the start and end of the scheme.
func credentialsOf(b []byte, p, end int) (from, to int, ok bool) {
	switch string(bytes.ToLower(b[p:end])) {
	case "digest", "signature", "oauth", "hmac-sha256", "aws4-hmac-sha256", "apikey", "splunk":
	default:
		return 0, 0, false
	}
	if end == len(b) || b[end] != ' ' {
		return 0, 0, false
	}
	from = end + 1
	for to = from; to < len(b) && to-from < match.MaxSecret && b[to] >= ' ' && b[to] != '\\'; {
		to++
	}
	return from, to, to > from
}

// isBearer reports whether the word "Bearer" and a space precede index at.
func isBearer(b []byte, at int) bool {
	const scheme = "earer "
	return at > len(scheme) && string(b[at-len(scheme):at]) == scheme && b[at-len(scheme)-1]|0x20 == 'b'
}

// isBareSecret reports whether a value without quotes looks like a secret rather than a type, a variable or an
// expression. end is the index after the value in b.
func isBareSecret(b, value []byte, end int) bool {
	switch value[0] {
	case '$', '%', '*', '=', ':', '|', '!', '@', '/', '-', '.', '#':
		return false
	}
	if len(value) < 4 || value[len(value)-1] == ':' || isCode(value) || end < len(b) && (b[end] == '(' || b[end] == '[' || b[end] == '{' || b[end] == '<') {
		return false
	}
	letters := 0
	for _, c := range value {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '_' {
			letters++
		}
	}
	return letters < len(value) || end == len(b) || b[end] == '\n' || b[end] == '\r'
}

// isCode reports whether a value is a word of source code, or refers to a variable of a program or of a configuration:
// var.db_password.
func isCode(value []byte) bool {
	object, _, found := bytes.Cut(value, []byte("."))
	return notSecrets[string(value)] || found && references[string(object)]
}

// references are the objects to which such references are.
var references = names.SetOf("var local data module each self this config settings env process os secrets params args options values")

// isCookie reports whether name is "cookie", in any case.
func isCookie(name []byte) bool { return bytes.EqualFold(name, []byte("cookie")) }

// isValueName reports whether name is "value", or ends in "Value" as "ParameterValue" does, so that the secret's name is
// in a member next to it.
func isValueName(name []byte) bool {
	return string(name) == "value" || bytes.HasSuffix(name, []byte("Value"))
}

// siblingKind classifies a member or attribute called "value", which begins at b[at]. The names and types beside it
// decide, as in {"name":"password","value":"x"}, <add key="password" value="x"/>, or YAML. siblingKind also returns the
// first of them that denotes a secret.
func (f *Finder) siblingKind(b []byte, at int) (names.Kind, []byte) {
	window := b[max(0, at-lookBack):at]
	if i := bytes.LastIndexAny(window, "{}<"); i >= 0 {
		window = window[i+1:]
	}
	for _, word := range siblingWords {
		for end := len(window); end > 0; {
			i := bytes.LastIndex(window[:end], []byte(word))
			if i < 0 {
				break
			}
			name := textAfter(window[i+len(word):])
			if kind := f.headerKind(name); kind != names.Other {
				return kind, name
			}
			end = i
		}
	}
	return names.Other, nil
}

// siblingWords are the ends of names of members whose text names what is in the member beside them.
var siblingWords = []string{"name", "key", "Name", "Key", "NAME", "KEY", "type", "Type", "path", "field"}

// textAfter returns the word after an assignment sign at the beginning of b; nil if there is no sign.
func textAfter(b []byte) []byte {
	const around = "\\\"' \t"
	b = bytes.TrimLeft(b, around)
	if len(b) == 0 || b[0] != ':' && b[0] != '=' {
		return nil
	}
	b = bytes.TrimLeft(b[1:], around)
	end := 0
	for end < len(b) && end < names.MaxLen && (charset.Name.Has(b[end]) || b[end] == '/') {
		end++
	}
	return b[:end]
}
