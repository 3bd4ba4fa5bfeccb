package filter

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/fieldpath"
	"unwire/decode/search"
)

// A term is a condition on a single property, such as status>=400.
type term struct {
	// key is the property that the term examines.
	key *key

	// patterns are alternatives, in lower case unless the key is case-sensitive.
	patterns []pattern

	// numbers are the alternative values of the property, or the operand of a comparison.
	numbers []number

	// comparison is the operator before the number, or "".
	comparison comparison

	// path is the field path, if the term examines a field.
	path fieldpath.Path

	// name is the pattern for the name of a header, in lower case.
	name pattern

	// texts are the patterns of the key text in compiled form.
	texts []*search.Text
}

// newTerm prepares a parsed term for evaluation (lower case, compiled patterns) and returns its node. Several words
// after "is:" become alternatives of their own, because they examine different facts.
func newTerm(t *term) (*node, error) {
	switch {
	case t.key.name == "is" && len(t.patterns) > 1:
		out := &node{op: opOr}
		for _, one := range t.patterns {
			n, err := newTerm(&term{key: t.key, patterns: []pattern{one}})
			if err != nil {
				return nil, err
			}
			out.operands = append(out.operands, n)
		}
		return out, nil
	// Compile the patterns once, not for each frame.
	case t.key.name == "text":
		for _, one := range t.patterns {
			text, literal := one.literal()
			if !literal {
				text = one.expression()
			}
			compiled, err := search.NewText(text, literal, false)
			if err != nil {
				return nil, errorf("%v", err)
			}
			t.texts = append(t.texts, compiled)
		}
	}

	// Case-insensitive patterns are compared with lower-case texts.
	if t.key.kind == wordKey && !t.key.sameCase {
		for i := range t.patterns {
			t.patterns[i] = t.patterns[i].lower()
			if t.key.part {
				t.patterns[i] = t.patterns[i].anywhere()
			}
		}
	}

	return &node{op: opTerm, term: t}, nil
}

// isWord returns the word after "is:" in the term.
func (t *term) isWord() string {
	word, _ := t.patterns[0].literal()
	return word
}

// needs returns the facts that must be known to evaluate the term.
func (t *term) needs() Facts {
	if t.key.name == "is" {
		// The words behind "is" differ in the facts that they need.
		i := slices.IndexFunc(isWords, func(w struct {
			name  string
			facts Facts
		},
		) bool {
			return w.name == t.isWord()
		})
		return isWords[i].facts
	}
	f := t.key.facts
	if t.key.kind == pathKey && slices.ContainsFunc(t.path, func(s fieldpath.Step) bool {
		_, isNumber := s.Number()
		return !isNumber && s.Name != fieldpath.Any && s.Name != fieldpath.AnySteps
	}) {
		f |= Types
	}
	return f
}

// ofFrame reports whether the term examines a frame.
func (t *term) ofFrame() bool { return t.needs()&Frames != 0 }

// eval evaluates the term for an exchange or a frame.
func (t *term) eval(e evaluation) Truth {
	if t.ofFrame() {
		if e.frame == nil {
			return Unknown
		}
		return truthOf(t.matchesFrame(e.frame))
	}
	if t.needs()&e.x.Missing != 0 {
		return Unknown
	}

	// Facts about the exchange as a whole.
	switch t.key.name {
	case "is":
		return t.isExchange(e.x)
	case "note", "mark":
		return truthOf(t.matchesNote(e.x.Notes))
	case "header":
		return truthOf(t.matchesHeader(e.x.Exchange))
	}
	if len(t.numbers) > 0 {
		return t.compare(e.x)
	}

	// A text matches if one of its names does.
	values, known := t.words(e.x)
	if slices.ContainsFunc(values, t.matchesWord) {
		return Yes
	}
	if !known {
		return Unknown
	}
	return No
}

// matchesWord reports whether one of the term's patterns matches text. The empty text stands for a missing value
// and never matches.
func (t *term) matchesWord(text string) bool {
	if text == "" {
		return false
	}
	if !t.key.sameCase {
		text = strings.ToLower(text)
	}
	return slices.ContainsFunc(t.patterns, func(p pattern) bool { return p.matches(text) })
}

// words returns the texts that the term's property has in x; one of them has to match. known is false if they may
// change before the exchange ends.
func (t *term) words(x *Exchange) (values []string, known bool) {
	ended := x.Ended()
	switch t.key.name {
	case "host":
		return t.hosts(x.URL), true
	case "url":
		return []string{x.URL}, true
	case "verb":
		return []string{x.Method}, true
	case "method":
		return methods(x.Service, x.RPC), true
	case "protocol":
		return protocols(x.Protocol), ended || x.Status != 0
	case "codec":
		return []string{x.Codec}, ended || x.Status != 0
	case "http":
		return []string{x.HTTP}, true
	case "code":
		return []string{x.Code}, ended
	case "outcome":
		return []string{string(x.Outcome)}, ended
	case "source":
		return []string{x.Source}, true
	}

	// The key client is the remaining one.
	host, _, _ := net.SplitHostPort(x.Client) // client
	return []string{x.Client, host, x.Process.Name, x.Process.Client}, true
}

// hosts returns the host of a URL, and host with port only if a pattern has a port.
func (t *term) hosts(rawURL string) []string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil
	}
	name := u.Hostname()
	if !slices.ContainsFunc(t.patterns, func(p pattern) bool { return strings.Contains(p.parts[len(p.parts)-1], ":") }) {
		return []string{name}
	}

	// The port is implied by the scheme unless the URL has one.
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https" || u.Scheme == "wss":
		port = "443"
	default:
		port = "80"
	}
	return []string{name, net.JoinHostPort(name, port)}
}

// methods returns the names of a remote procedure, from short to long.
func methods(service, rpc string) []string {
	if service == "" {
		return nil
	}
	short := service[strings.LastIndexByte(service, '.')+1:]
	return []string{rpc, short + "/" + rpc, service + "/" + rpc}
}

// protocols returns the names under which a protocol can be filtered: its own and that of its family.
func protocols(p decode.Protocol) []string {
	names := []string{string(p)}
	switch p {
	case decode.ConnectUnary, decode.ConnectGet, decode.ConnectStream:
		names = append(names, "connect")
	case decode.GRPCWebText:
		names = append(names, string(decode.GRPCWeb))
	}
	return names
}

// compare evaluates a term about a number of an exchange, such as its duration.
func (t *term) compare(x *Exchange) Truth {
	var n number
	known := true
	switch t.key.name {
	case "id":
		n = exactly(x.ID)
	case "status":
		if x.Status == 0 {
			return noOrUnknown(x.Ended())
		}
		n = exactly(int64(x.Status))
	case "frames":
		n, known = exactly(int64(x.FramesUp+x.FramesDown)), x.Ended()
	case "size":
		n, known = exactly(x.BytesUp+x.BytesDown), x.Ended()
	case "up":
		n, known = exactly(x.BytesUp), x.Ended()
	case "down":
		n, known = exactly(x.BytesDown), x.Ended()
	case "started":
		n = exactly(x.Started.UnixNano())
	// The duration.
	default:
		d := x.Duration
		if !x.Ended() {
			d = x.Now.Sub(x.Started)
		}
		n = exactly(d.Nanoseconds())
	}

	holds := t.holds(n)
	// A number that is still growing is decided only if a greater number has the same result.
	if !known && (!holds || t.comparison != ">" && t.comparison != ">=") {
		return Unknown
	}
	return truthOf(holds)
}

// holds reports whether the number n satisfies the term's comparison, or equals one of its alternatives.
func (t *term) holds(n number) bool {
	return slices.ContainsFunc(t.numbers, func(m number) bool { return t.comparison.holds(n.compare(m)) })
}

// isExchange evaluates a term "is:" with a word that concerns exchanges, such as failed or open.
func (t *term) isExchange(x *Exchange) Truth {
	switch t.isWord() {
	case "open":
		return truthOf(!x.Ended())
	case "shortened":
		if !x.Ended() {
			return Unknown
		}
		return truthOf(x.Truncated())
	case "replay":
		return truthOf(x.Source == "replay")
	case "edited":
		return truthOf(x.Edited)
	}
	// failed.
	switch {
	case x.Status >= 400 || x.Code != "" && x.Code != "ok":
		return Yes
	case !x.Ended():
		return Unknown
	}
	return truthOf(x.Outcome != captures.Complete)
}

// matchesNote evaluates a term with the key note or mark.
func (t *term) matchesNote(notes []captures.Note) bool {
	want := captures.TextNote
	if t.key.name == "mark" {
		want = captures.MarkNote
	}
	return slices.ContainsFunc(notes, func(n captures.Note) bool { return n.Kind == want && t.matchesWord(n.Value) })
}

// matchesHeader evaluates a term with the key header.
func (t *term) matchesHeader(x *captures.Exchange) bool {
	for _, section := range []captures.Headers{x.RequestHeaders, x.RequestTrailers, x.ResponseHeaders, x.ResponseTrailers} {
		for _, h := range section {
			if t.name.matches(strings.ToLower(h.Name)) &&
				(t.patterns == nil || slices.ContainsFunc(t.patterns, func(p pattern) bool { return p.matches(h.Value) })) {
				return true
			}
		}
	}
	return false
}

// matchesFrame evaluates a term about a frame.
func (t *term) matchesFrame(f *Frame) bool {
	switch t.key.name {
	case "dir":
		return t.matchesWord(f.Dir.String())
	case "frame":
		return t.holds(exactly(int64(f.Seq)))
	case "len":
		return t.holds(exactly(int64(len(f.Data))))
	case "type":
		return f.Type != nil && t.matchesWord(string(f.Type.FullName()))
	case "text":
		return slices.ContainsFunc(t.texts, func(text *search.Text) bool { return text.In(f.Frame) })
	case "path":
		return t.matchesPath(f)
	}
	switch t.isWord() {
	case "compressed":
		return f.Encoding != "" || f.Flags&envelope.Compressed != 0 || f.Opcode&captures.OpCompressed != 0
	case "end":
		return f.End != nil || f.Flags&(envelope.EndStream|envelope.Trailer) != 0 || f.Close != nil
	}
	// The remaining word is malformed.
	return f.Partial || f.Err != nil || f.Tree != nil && f.Tree.Err() != nil
}
