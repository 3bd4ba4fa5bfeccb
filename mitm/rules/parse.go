package rules

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/net/http/httpguts"

	"unwire/captures"
	"unwire/decode/envelope"
	"unwire/decode/filter"
	"unwire/decode/suggest"
	"unwire/replay/edit"
)

// Limits of a file.
const (
	// maxBytes is the size of a rules file in bytes.
	maxBytes = 1 << 20
	// maxRules is the number of rules in a file.
	maxRules = 1000
	// maxFaults is the number of errors that are reported for a file.
	maxFaults = 10
	// maxContent is the size in bytes of a file that a rules file names.
	maxContent = 16 << 20
	// maxDelay is the longest delay of a frame.
	maxDelay = 10 * time.Minute
	// maxDuplicate is the number of additional copies of a frame.
	maxDuplicate = 100
	// maxName is the length of a rule's name.
	maxName = 64 // bytes
)

// ErrRules is wrapped by the errors of a rules file.
var ErrRules = errors.New("the rules are invalid")

// Load reads the file at path.
//
// Limits: 1 MiB, 1,000 rules, no anchors, aliases or tags. Errors: ErrRules, with file and line of up to ten faults.
func Load(path string) (*Set, error) {
	data, err := readLimited(path, maxBytes)
	if err != nil {
		return nil, err
	}
	return parse(path, data)
}

// readLimited reads a file of at most limit bytes.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, err
}

// parse reads the content of a rules file. Other files that it names are relative to the folder of path.
func parse(path string, data []byte) (*Set, error) {
	p := &parser{set: &Set{Path: path, ofCalls: true}, now: time.Now()}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return p.set, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %s", ErrRules, syntaxFault(path, data, err))
	}
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %s has more than one document", ErrRules, path)
	}
	p.document(doc.Content[0])
	if len(p.faults) == 0 {
		p.checkLoops()
	}
	if len(p.faults) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrRules, errors.Join(p.faults...))
	}
	p.set.hasNames = p.set.HasNames()
	return p.set, nil
}

// syntaxFault describes a syntax error in the YAML of a file. Package yaml often names a line before that of the error.
func syntaxFault(path string, data []byte, err error) string {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]; bytes.ContainsRune(indent, '\t') {
			return fmt.Sprintf("%s:%d: the line is indented with a tab: YAML requires spaces", path, number)
		}
	}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if _, scanErr := fmt.Sscanf(text, "line %d:", &number); scanErr != nil {
		return path + ": this is not valid YAML: " + text
	}
	_, text, _ = strings.Cut(text, ": ")
	return fmt.Sprintf("%s:%d: this line or one below it is not valid YAML: %s; check the indentation and the quotes", path, number, text)
}

// A parser reads the YAML nodes of a rules file and collects the errors in them.
type parser struct {
	// set is the result.
	set *Set
	// now is the current time, to which relative times in filters refer.
	now time.Time
	// faults are the errors found so far, at most maxFaults.
	faults []error
}

// fault adds an error at the line of a node.
func (p *parser) fault(n *yaml.Node, format string, args ...any) {
	if len(p.faults) < maxFaults {
		p.faults = append(p.faults, fmt.Errorf("%s:%d: %s", p.set.Path, n.Line, fmt.Sprintf(format, args...)))
	}
}

// document reads the root node of the file.
func (p *parser) document(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		// The file has only comments.
		return
	}
	if !p.plain(n, yaml.MappingNode, "'rules:' and, below it, the list of rules") {
		return
	}
	p.members(n, map[string]func(*yaml.Node){"rules": func(n *yaml.Node) {
		if !p.plain(n, yaml.SequenceNode, "a list of rules") {
			return
		}
		if len(n.Content) > maxRules {
			p.fault(n, "the file has more than %d rules", maxRules)
			return
		}
		names := map[string]int{}
		for i, item := range n.Content {
			r := p.rule(item, i)
			if before := names[r.Name]; before > 0 {
				p.fault(item, "the rule in line %d has the same name, %q", before, r.Name)
			}
			names[r.Name] = item.Line
			p.set.rules = append(p.set.rules, r)
			p.set.maps = p.set.maps || r.mapTo != ""
			p.set.ofCalls = p.set.ofCalls && (r.ofCall || !r.changesFrames())
		}
	}})
}

// rule reads one rule; i is its index in the file, from 0.
func (p *parser) rule(n *yaml.Node, i int) *rule {
	r := &rule{Name: "rule " + strconv.Itoa(i+1), Line: n.Line}
	edits := func(op string) func(*yaml.Node) {
		return func(n *yaml.Node) { r.edits = append(r.edits, p.edits(n, op)...) }
	}
	p.members(n, map[string]func(*yaml.Node){
		"name": func(n *yaml.Node) {
			if r.Name = p.text(n); len(r.Name) > maxName || strings.ContainsFunc(r.Name, func(c rune) bool { return c < ' ' }) {
				p.fault(n, "a name must be one line of 1 to %d bytes", maxName)
			}
		},
		"match": func(n *yaml.Node) {
			r.match, r.matchesEnd = p.filter(n)
			r.ofCall, r.matchLine = dependsOnCall(n.Value), n.Line
		},
		"times":     func(n *yaml.Node) { r.times = p.number(n, 1, 1<<30) },
		"set":       edits("set"),
		"add":       edits("add"),
		"delete":    edits("del"),
		"retype":    edits("retype"),
		"set-raw":   edits("set-raw"),
		"replace":   func(n *yaml.Node) { r.replace = &content{p.content(n)} },
		"delay":     func(n *yaml.Node) { r.delay = p.duration(n) },
		"hold":      func(n *yaml.Node) { r.hold = p.yes(n) },
		"drop":      func(n *yaml.Node) { r.drop = p.yes(n) },
		"duplicate": func(n *yaml.Node) { r.duplicate = p.number(n, 1, maxDuplicate) },
		"answer":    func(n *yaml.Node) { r.answer = p.answer(n) },
		"fail":      func(n *yaml.Node) { r.fail = p.failure(n) },
		"reset":     func(n *yaml.Node) { r.reset = p.yes(n) },
		"map":       func(n *yaml.Node) { r.mapTo = p.server(n) },
	})
	if n.Kind != yaml.MappingNode || len(p.faults) > 0 {
		return r
	}
	switch ends := count(r.drop, r.answer != nil, r.fail != nil, r.reset); {
	case r.match == nil:
		p.fault(n, "%s has no match; to match everything, write match: \"\"", r.Name)
	case !r.changesFrames() && r.mapTo == "":
		p.fault(n, "%s has no action, such as set or delay", r.Name)
	case ends > 1:
		p.fault(n, "%s has more than one of drop, answer, fail and reset", r.Name)
	case r.mapTo != "":
		p.checkMap(n, r)
	}
	return r
}

// count returns how many of its arguments are true.
func count(all ...bool) (n int) {
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}

// checkMap checks that a rule with map depends on the server only, because it decides before the connection.
func (p *parser) checkMap(n *yaml.Node, r *rule) {
	if r.changesFrames() {
		p.fault(n, "%s has map, which cannot be combined with other actions", r.Name)
		return
	}
	for word := range strings.FieldsSeq(r.match.String()) {
		word = strings.TrimLeft(word, "(")
		if key, _, _ := strings.Cut(word, ":"); key != "host" && key != "or" && key != "and" && key != "not" {
			p.fault(n, "%s has map, so its match can contain only host: conditions, because unwire connects before it sees a request; found %q", r.Name, word)
			return
		}
	}
}

// checkLoops refuses servers that are mapped, by a chain of rules, to themselves.
func (p *parser) checkLoops() {
	for _, r := range p.set.rules {
		if r.mapTo == "" {
			continue
		}
		if next := p.set.server(r.mapTo); next != nil {
			p.fault(&yaml.Node{Line: r.Line}, "the rule %q maps to %s, which the rule %q maps again, so requests would loop", r.Name, r.mapTo, next.Name)
		}
	}
}

// members reads a mapping: for each key it calls the function in known, and reports unknown keys.
func (p *parser) members(n *yaml.Node, known map[string]func(*yaml.Node)) {
	if !p.plain(n, yaml.MappingNode, "a mapping, such as 'set: 1.7=fast'") {
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		read := known[name.Value]
		switch {
		case seen[name.Value]:
			p.fault(name, "the key %s is given twice", name.Value)
		case read != nil:
			read(value)
		default:
			p.fault(name, "%q is not a key of rules files%s", name.Value, similarWords(name.Value, known))
		}
		seen[name.Value] = true
	}
}

// similarWords returns the end of an error message that names the known words (keys or codes) similar to an unknown one, or all of them.
func similarWords[V any](name string, known map[string]V) string {
	var names, similar []string
	for k := range known {
		names = append(names, k)
		if suggest.Distance(strings.ToLower(name), k) <= max(1, (len(k)+1)/3) {
			similar = append(similar, k)
		}
	}
	slices.Sort(names)
	slices.Sort(similar)
	if len(similar) > 0 {
		return "; did you mean " + strings.Join(similar, " or ") + "?"
	}
	return "; the valid ones are " + strings.Join(names, ", ")
}

// plain reports whether a node has a kind and is written out, i.e. without alias, anchor or tag. Otherwise it reports
// an error that says what is wanted.
func (p *parser) plain(n *yaml.Node, kind yaml.Kind, want string) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		p.fault(n, "rules must not contain anchors or aliases")
	case n.Style&yaml.TaggedStyle != 0:
		p.fault(n, "rules must not contain tags")
	case n.Kind != kind:
		p.fault(n, "expected %s", want)
	default:
		return true
	}
	return false
}

// text returns the value of a string node.
func (p *parser) text(n *yaml.Node) string {
	if p.plain(n, yaml.ScalarNode, "a text") && n.Tag == "!!null" {
		p.fault(n, "a value is missing")
	}
	return n.Value
}

// yes reads the value of an action without parameters, which must be true.
func (p *parser) yes(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Value != "true" {
		p.fault(n, "the only value is true; instead of false, leave the key out")
	}
	return true
}

// number reads an integer from least to most.
func (p *parser) number(n *yaml.Node, least, most int) int {
	v, err := strconv.Atoi(n.Value)
	if err != nil || n.Tag != "!!int" || v < least || v > most {
		p.fault(n, "expected a number from %d to %d, not %q", least, most, n.Value)
	}
	return v
}

// duration reads a duration such as 2s, up to maxDelay.
func (p *parser) duration(n *yaml.Node) time.Duration {
	d, err := time.ParseDuration(p.text(n))
	if err != nil || d <= 0 || d > maxDelay {
		p.fault(n, "expected a duration with its unit up to %s, such as 500ms or 2s, not %q", maxDelay, n.Value)
	}
	return d
}

// filter reads a filter. matchesEnd means that the filter mentions the end of a stream.
func (p *parser) filter(n *yaml.Node) (f *filter.Filter, matchesEnd bool) {
	f, err := filter.Parse(p.text(n), p.now)
	if err != nil {
		p.fault(n, "match: %v", err)
		return nil, false
	}
	return f, strings.Contains(n.Value, "is:end")
}

// edits reads one edit, or a list of edits, of an action op such as "set".
func (p *parser) edits(n *yaml.Node, op string) (out []placedEdit) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		if !p.plain(item, yaml.ScalarNode, "an edit in one text, such as 1.7=fast, or a list of edits") {
			continue
		}
		e, err := edit.Parse(op, p.text(item))
		if err == nil {
			err = e.CheckValue()
		}
		// The edit's own errors name a flag.
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		if err == nil && e.Frame != edit.FirstFrame {
			err = errors.New("an edit cannot select a frame: select it in the rule's match, as in match: frame:2")
		}
		text := strings.Replace(op, "del", "delete", 1) + ": " + short(item.Value)
		if err != nil {
			p.fault(item, "%s: %v", text, err)
			continue
		}
		out = append(out, placedEdit{e, item.Line, text})
	}
	return out
}

// content reads the bytes of a message: a text, or a value with a prefix that says how it is given: hex:, base64:,
// json:, or file: for a file with the bytes.
func (p *parser) content(n *yaml.Node) []byte {
	if !p.plain(n, yaml.ScalarNode, `a message in one text, such as 'json:{"a":1}' with the quotes`) {
		return nil
	}
	text := p.text(n)
	form, rest, _ := strings.Cut(text, ":")
	var data []byte
	var err error
	switch form {
	case "hex":
		data, err = hex.DecodeString(strings.ReplaceAll(rest, " ", ""))
	case "base64":
		data, err = base64.StdEncoding.DecodeString(rest)
	case "json":
		if data = []byte(rest); !json.Valid(data) {
			err = errors.New("the text after json: is not valid JSON")
		}
	case "text":
		data = []byte(rest)
	case "file":
		if path := rest; !filepath.IsAbs(path) {
			rest = filepath.Join(filepath.Dir(p.set.Path), path)
		}
		data, err = readLimited(rest, maxContent)
	default:
		err = fmt.Errorf("a message must begin with text:, json:, hex:, base64: or file:, but found %q", short(text))
	}
	if err != nil {
		p.fault(n, "%v", err)
	}
	return data
}

// short returns the beginning of a text for an error message.
func short(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// answer reads the value of the action answer: a message, or a mapping with status, headers and body.
func (p *parser) answer(n *yaml.Node) *answer {
	a := &answer{status: http.StatusOK}
	if n.Kind == yaml.ScalarNode {
		a.body = p.content(n)
		return a
	}
	p.members(n, map[string]func(*yaml.Node){
		"status": func(n *yaml.Node) { a.status = p.number(n, 200, 599) },
		"body":   func(n *yaml.Node) { a.body = p.content(n) },
		"headers": func(n *yaml.Node) {
			if !p.plain(n, yaml.MappingNode, "a mapping of names to values") {
				return
			}
			for i := 0; i+1 < len(n.Content); i += 2 {
				h := captures.Header{Name: n.Content[i].Value, Value: p.text(n.Content[i+1])}
				switch {
				case !httpguts.ValidHeaderFieldName(h.Name) || !httpguts.ValidHeaderFieldValue(h.Value):
					p.fault(n.Content[i], "%q: %q is not a header field", h.Name, h.Value)
				case slices.Contains([]string{"connection", "content-length", "transfer-encoding", "trailer"}, strings.ToLower(h.Name)):
					p.fault(n.Content[i], "a rule cannot set the header %s, because unwire sets it", h.Name)
				}
				a.headers = append(a.headers, h)
			}
		},
	})
	return a
}

// failure reads the value of the action fail: an error code, or a mapping with the code and a message.
func (p *parser) failure(n *yaml.Node) *failure {
	f := &failure{}
	code := n
	if n.Kind == yaml.ScalarNode {
		f.Code = p.text(n)
	} else {
		p.members(n, map[string]func(*yaml.Node){
			"code":    func(n *yaml.Node) { code, f.Code = n, p.text(n) },
			"message": func(n *yaml.Node) { f.Message = p.text(n) },
		})
	}
	if number, ok := envelope.CodeNumber(f.Code); !ok || number == 0 {
		known := map[string]bool{}
		for _, name := range envelope.Codes()[1:] {
			known[name] = true
		}
		p.fault(code, "%q is not an error code%s", f.Code, similarWords(f.Code, known))
	}
	return f
}

// server reads the URL of a server.
func (p *parser) server(n *yaml.Node) string {
	u, err := url.Parse(p.text(n))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		p.fault(n, "expected the URL of a server, such as https://127.0.0.1:8443, not %q", n.Value)
		return ""
	}
	return u.Scheme + "://" + u.Host
}
