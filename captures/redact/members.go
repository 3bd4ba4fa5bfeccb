package redact

// maxName bounds the name of a member or a parameter, in bytes.
const maxName = 64

// member finds the value of "name": "value" in JSON where the name tells of a
// secret, also within a JSON string, where the quotes are escaped; i is at the
// name's first quote.
func (r *Redactor) member(b []byte, i int, final, flush bool) (match, matchState) {
	quote := `"`
	if i > 0 && b[i-1] == '\\' {
		quote = `\"`
	}
	p := i + 1
	for p < len(b) && p-i <= maxName && nameChars.has(b[p]) {
		p++
	}
	name := b[i+1 : min(p, len(b))]
	if len(name) < 2 && p < len(b) {
		return match{}, nothing
	}
	p, v := expect(b, p, quote)
	if v != found {
		return orNothing(v, final)
	}
	if p, v = skipSpace(b, p); v != found {
		return orNothing(v, final)
	}
	if p, v = expect(b, p, ":"); v != found {
		return orNothing(v, final)
	}
	kind := r.kindOf(name)
	if kind != secretName && kind != perhapsName {
		return match{}, nothing
	}
	if p, v = skipSpace(b, p); v != found {
		return orNothing(v, final)
	}
	if p, v = expect(b, p, quote); v != found {
		return orNothing(v, final)
	}
	m, v := r.memberValue(b, p, quote, kind, final, flush)
	if v == found {
		m.rule, m.name = ruleMember, string(name)
	}
	return m, v
}

// isOtherQuote reports whether b begins with a quote that begins nothing that is looked for.
// JSON has so many of them that at would take longer for them than for all else.
func (s *scanner) isOtherQuote(f *ruleset, b []byte) bool {
	if b[0] != '"' || len(b) < 3 || f.admits(b[0], b[1], b[2]) {
		return false
	}
	p := 1
	for p < len(b) && p <= maxName && nameChars.has(b[p]) {
		p++
	}
	if p == len(b) {
		return false // the name goes on
	}
	name := b[1:p]
	if len(name) < 2 || b[p] != '"' && b[p] != '\\' {
		return true
	}
	return s.isOtherName(name)
}

// otherNames has names of members that are not those of secrets, each at a place that
// depends on its bytes: JSON has the same ones again and again.
type otherNames [32]struct {
	size uint8
	name [23]byte
}

// namesBefore is how many names of a body are looked at before they are remembered.
const namesBefore = 8

// isOtherName reports whether a name is not that of a secret.
func (s *scanner) isOtherName(name []byte) bool {
	if s.names++; s.names > namesBefore && s.others == nil {
		s.others = new(otherNames)
	}
	at := (uint(name[0])*3 + uint(name[len(name)-1])*5 + uint(len(name))*7) % uint(len(otherNames{}))
	if s.others != nil && string(s.others[at].name[:s.others[at].size]) == string(name) {
		return true
	}
	if kind := s.r.kindOf(name); kind == secretName || kind == perhapsName {
		return false
	}
	if s.others != nil && len(name) <= len(s.others[at].name) {
		s.others[at].size = uint8(copy(s.others[at].name[:], name))
	}
	return true
}

// memberValue finds the end of the value that begins at from.
func (r *Redactor) memberValue(b []byte, from int, quote string, kind nameKind, final, flush bool) (match, matchState) {
	end := from
	for end < len(b) && end-from < maxSecret && b[end] != '"' {
		if b[end] == '\\' {
			if quote == `\"` && end+1 < len(b) && b[end+1] == '"' {
				break
			}
			end++ // and whatever it escapes
		}
		end++
	}
	cut := end >= len(b)
	end = min(end, len(b))
	if cut && !final && end-from < maxSecret {
		return match{}, undecided
	}
	from = afterScheme(b, from, end)
	value := b[from:end]
	if len(value) == 0 || kind == perhapsName && !looksRandom(value) {
		return match{}, nothing
	}
	m := match{start: from, end: end, secret: string(value), learn: kind == secretName && len(value) >= shortSecret}
	if end-from >= maxSecret || cut && flush {
		m.mask = &mask{until: "\""}
		m.learn = false
	}
	return m, found
}

// afterScheme skips the scheme of an authorization.
func afterScheme(b []byte, from, end int) int {
	for _, scheme := range []string{"Bearer ", "bearer ", "Basic ", "basic "} {
		if n := len(scheme); end-from > n && string(b[from:from+n]) == scheme {
			return from + n
		}
	}
	return from
}

// bodyParameter finds the value of name=value, as in a form or in a URL that
// stands in a text; from is where the name begins.
func (r *Redactor) bodyParameter(b []byte, from int, final, flush bool) (match, matchState) {
	p := from
	for p < len(b) && p-from <= maxName && nameChars.has(b[p]) {
		p++
	}
	if p-from > maxName {
		return match{}, nothing
	}
	if p == len(b) {
		return pending(final)
	}
	if b[p] != '=' || p-from < 2 {
		return match{}, nothing
	}
	kind := r.kindOf(b[from:p])
	if kind == otherName {
		return match{}, nothing
	}
	m, v := bodyParameterValue(b, p+1, kind, final, flush)
	if v == found {
		m.rule, m.name = ruleParameter, string(b[from:p])
	}
	return m, v
}

// bodyParameterValue finds the end of the value that begins at from.
func bodyParameterValue(b []byte, from int, kind nameKind, final, flush bool) (match, matchState) {
	end := from
	for end < len(b) && end-from < maxSecret && tokenChars.has(b[end]) {
		end++
	}
	if end == len(b) && end-from < maxSecret && !final {
		return match{}, undecided
	}
	value := b[from:end]
	if len(value) == 0 || kind != secretName && !looksRandom(value) {
		return match{}, nothing
	}

	m := match{start: from, end: end, secret: string(value), learn: kind == secretName && len(value) >= shortSecret}
	if end-from >= maxSecret || end == len(b) && flush {
		m.mask = &mask{chars: tokenChars}
		m.learn = false
	}
	return m, found
}

// expect consumes want at p; undecided says that b ends within it.
func expect(b []byte, p int, want string) (int, matchState) {
	n := min(len(b)-p, len(want))
	switch {
	case string(b[p:p+n]) != want[:n]:
		return p, nothing
	case n < len(want):
		return p, undecided
	}
	return p + n, found
}

// skipSpace passes a little white space; more is no program's output.
func skipSpace(b []byte, p int) (int, matchState) {
	const most = 16
	for n := 0; p < len(b); n, p = n+1, p+1 {
		if c := b[p]; c != ' ' && c != '\t' && c != '\n' && c != '\r' || n == most {
			return p, found
		}
	}
	return p, undecided
}

// orNothing turns "undecided" into "nothing" where nothing more will come.
func orNothing(v matchState, final bool) (match, matchState) {
	if v == undecided && final {
		v = nothing
	}
	return match{}, v
}
