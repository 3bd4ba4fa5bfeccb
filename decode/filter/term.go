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

// A term is a condition on one property.
type term struct {
	key *key

	// patterns are alternatives, in lower case unless the key distinguishes case.
	patterns []pattern

	// numbers are alternatives, or the one that a comparison has.
	numbers    []number
	comparison comparison

	path fieldpath.Path // of a path
	name pattern        // of a header field, in lower case

	// texts are the patterns of a text, compiled.
	texts []*search.Text
}

// newTerm completes a term. The words of is become a term each, since they are about
// different things.
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

// isWord is the word of a term of is.
func (t *term) isWord() string {
	word, _ := t.patterns[0].literal()
	return word
}

// needs returns the facts that the term depends on.
func (t *term) needs() Facts {
	if t.key.name == "is" {
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

// ofFrame reports whether the term is about a frame.
func (t *term) ofFrame() bool { return t.needs()&Frames != 0 }

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
	values, known := t.words(e.x)
	if slices.ContainsFunc(values, t.matchesWord) {
		return Yes
	}
	if !known {
		return Unknown
	}
	return No
}

// matchesWord reports whether a text matches one of the patterns. The empty text is no value.
func (t *term) matchesWord(text string) bool {
	if text == "" {
		return false
	}
	if !t.key.sameCase {
		text = strings.ToLower(text)
	}
	return slices.ContainsFunc(t.patterns, func(p pattern) bool { return p.matches(text) })
}

// words returns the texts that a property of an exchange has. They are not known if they
// may change until the exchange has ended.
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
	host, _, _ := net.SplitHostPort(x.Client) // client
	return []string{x.Client, host, x.Process.Name, x.Process.Client}, true
}

// hosts are the names of a URL's host, with its port only if a pattern has one.
func (t *term) hosts(rawURL string) []string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil
	}
	name := u.Hostname()
	if !slices.ContainsFunc(t.patterns, func(p pattern) bool { return strings.Contains(p.parts[len(p.parts)-1], ":") }) {
		return []string{name}
	}
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

// methods are the names of a remote procedure.
func methods(service, rpc string) []string {
	if service == "" {
		return nil
	}
	short := service[strings.LastIndexByte(service, '.')+1:]
	return []string{rpc, short + "/" + rpc, service + "/" + rpc}
}

// protocols are the names of a protocol, that of its family too.
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

// compare compares a number of an exchange.
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
	default: // duration
		d := x.Duration
		if !x.Ended() {
			d = x.Now.Sub(x.Started)
		}
		n = exactly(d.Nanoseconds())
	}
	holds := t.holds(n)
	// A number that still grows decides only what is true of greater ones as well.
	if !known && (!holds || t.comparison != ">" && t.comparison != ">=") {
		return Unknown
	}
	return truthOf(holds)
}

// holds compares a number with that of the term, or with the alternatives.
func (t *term) holds(n number) bool {
	return slices.ContainsFunc(t.numbers, func(m number) bool { return t.comparison.holds(n.compare(m)) })
}

// isExchange evaluates the words of is that are about exchanges.
func (t *term) isExchange(x *Exchange) Truth {
	switch t.isWord() {
	case "open":
		return truthOf(!x.Ended())
	case "shortened":
		if !x.Ended() {
			return Unknown
		}
		return truthOf(x.Shortened())
	case "replay":
		return truthOf(x.Source == "replay")
	case "edited":
		return No // no rule can change what is forwarded yet
	}
	switch { // failed
	case x.Status >= 400 || x.Code != "" && x.Code != "ok":
		return Yes
	case !x.Ended():
		return Unknown
	}
	return truthOf(x.Outcome != captures.Complete)
}

func (t *term) matchesNote(notes []captures.Note) bool {
	want := captures.TextNote
	if t.key.name == "mark" {
		want = captures.MarkNote
	}
	return slices.ContainsFunc(notes, func(n captures.Note) bool { return n.Kind == want && t.matchesWord(n.Value) })
}

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

// matchesFrame evaluates a term of frames.
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
	// What is left is malformed.
	return f.Partial || f.Err != nil || f.Tree != nil && f.Tree.Err() != nil
}
