package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/captures/store"
	"unwire/decode/secret"
)

// A formFile is a list of exchanges in testdata. Its first lines describe its format.
type formFile struct {
	name string

	// least is how many of its values of a thousand are at least as they should be: masked in
	// forms of secrets, kept in harmless exchanges.
	least int
}

// A valueForm is one line of a list: an exchange and the values in it to look at.
type valueForm struct {
	class, source string

	// exchange is the exchange without its bodies, which are in bodies by direction.
	exchange captures.Exchange
	bodies   [2][]byte

	// messages are those of a WebSocket, each with its direction.
	messages []captures.Chunk

	// values are the made-up values that the lists mark.
	values []string
}

// readForms reads a list.
func readForms(t *testing.T, path string) (all []*valueForm) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		parts := strings.Split(line, " ¦ ")
		if len(parts) < 3 {
			t.Fatalf("%s: no form: %q", path, line)
		}
		f := &valueForm{class: parts[0], source: parts[1]}
		h := fnv.New64a()
		h.Write([]byte(line))
		e := &expander{rnd: rand.New(rand.NewPCG(h.Sum64(), 7))}
		for _, p := range parts[2:] {
			f.add(e.expand(p))
		}
		f.values = e.values
		if len(f.values) == 0 {
			t.Fatalf("%s: no value in %q", path, line)
		}
		all = append(all, f)
	}
	return all
}

// add adds a part of a line to the exchange: a request line, a header field (> or <), a body
// (>> or <<), or a message of a WebSocket (W> or W<).
func (f *valueForm) add(part string) {
	ex := &f.exchange
	switch {
	case strings.HasPrefix(part, ">>"):
		f.setBody(captures.Up, part[2:], &ex.RequestHeaders)
	case strings.HasPrefix(part, "<<"):
		f.setBody(captures.Down, part[2:], &ex.ResponseHeaders)
	case strings.HasPrefix(part, "W>"):
		f.messages = append(f.messages, captures.Chunk{Dir: captures.Up, Data: []byte(part[2:])})
	case strings.HasPrefix(part, "W<"):
		f.messages = append(f.messages, captures.Chunk{Dir: captures.Down, Data: []byte(part[2:])})
	case strings.HasPrefix(part, ">"):
		ex.RequestHeaders = append(ex.RequestHeaders, headerOf(part[1:]))
	case strings.HasPrefix(part, "<"):
		ex.ResponseHeaders = append(ex.ResponseHeaders, headerOf(part[1:]))
	default:
		ex.Method, ex.URL, _ = strings.Cut(part, " ")
		if strings.HasPrefix(ex.URL, "ws") {
			ex.Transport = captures.WebSocket
		}
	}
}

func headerOf(s string) captures.Header {
	name, value, _ := strings.Cut(s, ": ")
	return captures.Header{Name: name, Value: value}
}

// setBody sets the body of a direction, with the content type that its text suggests if no
// field before it says one.
func (f *valueForm) setBody(dir captures.Direction, text string, h *captures.Headers) {
	text, xml := strings.CutPrefix(text, "$XML")
	f.bodies[dir] = []byte(text)
	if h.Get("content-type") != "" {
		return
	}
	kind := "text/plain"
	switch {
	case xml:
		kind = "text/xml"
	case strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["), strings.HasPrefix(text, `"`):
		kind = "application/json"
	case dir == captures.Up && strings.Contains(text, "=") && !strings.ContainsAny(text, " \n"):
		kind = "application/x-www-form-urlencoded"
	}
	*h = append(*h, captures.Header{Name: "Content-Type", Value: kind})
}

// An expander replaces what the lists write for values by made-up ones.
type expander struct {
	rnd    *rand.Rand
	values []string
}

// literals are texts that the lists name because they are long; they are not looked at.
var literals = map[string]string{"LITa": "5f3a1c", "LITc": "xMZ0zR6c", "LITh": "abcdef1234567890abcdef12"}

// expand returns a part of a line with its values, and adds them to those to look at.
func (e *expander) expand(s string) string {
	s = strings.NewReplacer(`\\n`, `\n`, `\n`, "\n", `\r`, "\r", `\t`, "\t").Replace(s)
	var out strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "$«")
		if i < 0 {
			break
		}
		out.WriteString(s[:i])
		s = s[i:]
		if rest, ok := strings.CutPrefix(s, "«"); ok {
			value, after, _ := strings.Cut(rest, "»")
			value = strings.ReplaceAll(value, "$$", "$")
			e.values = append(e.values, value)
			out.WriteString(value)
			s = after
			continue
		}
		value, n := e.value(s)
		out.WriteString(value)
		s = s[n:]
	}
	out.WriteString(s)
	return out.String()
}

// value returns the value for what s begins with, and the length of that in s.
func (e *expander) value(s string) (string, int) {
	for name, text := range literals {
		if strings.HasPrefix(s[1:], name) {
			return text, 1 + len(name)
		}
	}
	switch {
	case strings.HasPrefix(s, "$$"):
		return "$", 2
	case strings.HasPrefix(s, "$XML"):
		return "$XML", 4
	case strings.HasPrefix(s, "$b("):
		n := closing(s, 2)
		return e.keep(base64.StdEncoding.EncodeToString([]byte(e.expand(s[3:n])))), n + 1
	case strings.HasPrefix(s, "$C3"):
		return e.keep(e.chars("0123456789", 3)), 3
	}
	open := strings.IndexByte(s, '(')
	if open > 1 && open <= 4 && isKindWithLength(s[1:open]) {
		end := open + strings.IndexByte(s[open:], ')')
		n, _ := strconv.Atoi(s[open+1 : end])
		return e.keep(e.ofLength(s[1:open], n)), end + 1
	}
	return e.keep(e.plain(s[1])), 2
}

func isKindWithLength(kind string) bool {
	return slices.Contains([]string{"P", "H", "U", "D", "HC", "b64"}, kind)
}

// closing returns the index of the parenthesis that closes the one at index i.
func closing(s string, i int) int {
	depth := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(s) - 1
}

func (e *expander) keep(v string) string {
	e.values = append(e.values, v)
	return v
}

func (e *expander) chars(set string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = set[e.rnd.IntN(len(set))]
	}
	return string(b)
}

func (e *expander) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(e.rnd.Uint32())
	}
	return b
}

const (
	lowerLetters = "abcdefghijklmnopqrstuvwxyz"
	upperLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	allDigits    = "0123456789"
)

// ofLength returns a value of n letters, digits or bytes.
func (e *expander) ofLength(kind string, n int) string {
	switch kind {
	case "H":
		return hex.EncodeToString(e.bytes((n + 1) / 2))[:n]
	case "U":
		return e.chars(upperLetters+allDigits, n)
	case "D":
		return e.chars("123456789", n)
	case "HC":
		return strings.TrimSuffix(strings.ReplaceAll(fmt.Sprintf("% x", e.bytes(n)), " ", ":"), ":")
	case "b64":
		return base64.StdEncoding.EncodeToString(e.bytes(n))
	}
	return e.chars(lowerLetters+upperLetters+allDigits, n)
}

// plain returns a value of a kind without a length.
func (e *expander) plain(kind byte) string {
	switch kind {
	case 'W':
		return e.chars(lowerLetters, 5) + "-" + e.chars(lowerLetters, 6)
	case 'C':
		return e.chars(allDigits, 6)
	case 'N':
		return e.chars("123456789", 5)
	case 'B':
		return base64.StdEncoding.EncodeToString(e.bytes(32))
	case 'J':
		encode := base64.RawURLEncoding.EncodeToString
		return encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(`{"sub":"`+e.ofLength("P", 20)+`"}`)) + "." + encode(e.bytes(32))
	case 'G':
		h := hex.EncodeToString(e.bytes(16))
		return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
	}
	panic("no such value: " + string(kind))
}

// recordForms writes the exchanges of a list to a new capture.
func recordForms(t *testing.T, path string, options store.Options, forms []*valueForm) {
	t.Helper()
	s, err := store.Create(path, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range forms {
		ex := f.exchange
		answer := ex.ResponseHeaders
		ex.ResponseHeaders = nil
		rec, err := s.Begin(ex)
		if err != nil {
			t.Fatal(err)
		}
		if f.bodies[captures.Up] != nil {
			rec.Chunk(captures.Up, f.bodies[captures.Up])
		}
		if ex.Transport == captures.WebSocket {
			rec.Response(101, answer)
		} else {
			rec.Response(200, answer)
		}
		if f.bodies[captures.Down] != nil {
			rec.Chunk(captures.Down, f.bodies[captures.Down])
		}
		for _, m := range f.messages {
			rec.Message(m.Dir, captures.OpText|captures.OpFinal, m.Data)
		}
		rec.End(captures.Complete, "")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// texts returns what a capture has of each exchange: URL, header fields, bodies.
func texts(t *testing.T, path string) []string {
	t.Helper()
	s, err := store.Open(path, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var all []string
	for ex, err := range s.Exchanges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		b.WriteString(ex.URL + "\n")
		for _, h := range slices.Concat(ex.RequestHeaders, ex.ResponseHeaders) {
			b.WriteString(h.Name + ": " + h.Value + "\n")
		}
		for c, err := range s.Chunks(t.Context(), ex.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			b.Write(c.Data)
		}
		all = append(all, b.String())
	}
	return all
}

// leaks reports whether at least half of a value is in a text.
func leaks(text, value string) bool {
	n := max(min(len(value), 6), len(value)/2)
	for i := 0; i+n <= len(value); i++ {
		if strings.Contains(text, value[i:i+n]) {
			return true
		}
	}
	return false
}

// placeholder matches what replaces a secret. Its digits are random, so they can contain a short value by chance.
var placeholder = regexp.MustCompile(`redacted[:-][0-9a-f]+`)

// leftIn returns the forms with a value that is left in the texts of a capture.
func leftIn(texts []string, forms []*valueForm) map[*valueForm]bool {
	left := make(map[*valueForm]bool)
	for i, f := range forms {
		text := placeholder.ReplaceAllString(texts[i], "redacted")
		if slices.ContainsFunc(f.values, func(v string) bool { return leaks(text, v) }) {
			left[f] = true
		}
	}
	return left
}

// Of the secrets in the lists, the recorder masks at least as many as each list says, and what it
// masks is nowhere in the file. A copy of a capture that has them leaves out the same.
func TestForms(t *testing.T) {
	for _, file := range []formFile{{"a", 970}, {"b", 925}, {"c", 960}, {"d", 970}, {"e", 920}, {"f", 940}, {"g", 930}, {"h", 910}, {"i", 890}, {"j", 900}, {"k", 895}, {"l", 885}, {"m", 895}} {
		t.Run(file.name, func(t *testing.T) {
			forms := readForms(t, filepath.Join("testdata", "forms", file.name+".txt"))
			path := filepath.Join(t.TempDir(), "a.uwc")
			recordForms(t, path, store.Options{Redactor: redact.New(redact.Options{})}, forms)
			recorded := texts(t, path)
			left := leftIn(recorded, forms)
			count(t, forms, left, recorded, file.least)
			checkBytes(t, path, forms, left)
			checkCopy(t, forms, left)
		})
	}
}

// count logs how many forms of each class are masked, and those that are not.
func count(t *testing.T, forms []*valueForm, left map[*valueForm]bool, recorded []string, least int) {
	t.Helper()
	classes := make(map[string][2]int)
	for i, f := range forms {
		n := classes[f.class]
		n[1]++
		if left[f] {
			t.Logf("left: %s: %s: %s", f.class, f.source, shorten(recorded[i]))
		} else {
			n[0]++
		}
		classes[f.class] = n
	}
	for class, n := range classes {
		t.Logf("%-10s %3d of %3d", class, n[0], n[1])
	}
	t.Logf("all        %3d of %3d, %.1f %%", len(forms)-len(left), len(forms), 100-100*float64(len(left))/float64(len(forms)))
	if 1000*(len(forms)-len(left)) < least*len(forms) {
		t.Errorf("%d of %d are masked, want %d of 1000", len(forms)-len(left), len(forms), least)
	}
}

func shorten(s string) string {
	if len(s) > 600 {
		return s[:600]
	}
	return s
}

// checkBytes reports masked values that are in the bytes of a file.
func checkBytes(t *testing.T, path string, forms []*valueForm, left map[*valueForm]bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range forms {
		for _, v := range f.values {
			if !left[f] && len(v) >= 11 && bytes.Contains(data, []byte(v)) {
				t.Errorf("%s: %s: %q is in the file", f.class, f.source, v)
			}
		}
	}
}

// checkCopy reports values that the recorder masks, but an audit or a copy without secrets does
// not.
func checkCopy(t *testing.T, forms []*valueForm, left map[*valueForm]bool) {
	t.Helper()
	path, out := filepath.Join(t.TempDir(), "b.uwc"), filepath.Join(t.TempDir(), "clean.uwc")
	recordForms(t, path, store.Options{KeepSecrets: true}, forms)
	from, err := store.Open(path, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	rules := &secret.Rules{}
	found, err := secret.Audit(t.Context(), from, redact.New(redact.Options{}), rules)
	if err != nil {
		t.Fatal(err)
	}
	reported := make(map[int64]bool)
	for _, f := range found {
		reported[f.Exchange] = true
	}
	to, err := store.Create(out, store.Options{Redactor: redact.New(redact.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := secret.Clean(t.Context(), to, from, rules); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	leftInCopy := leftIn(texts(t, out), forms)
	for i, f := range forms {
		if !left[f] && leftInCopy[f] {
			t.Errorf("%s: %s: left in a copy", f.class, f.source)
		}
		if !left[f] && !reported[int64(i+1)] {
			t.Errorf("%s: %s: masked, but not in the audit", f.class, f.source)
		}
	}
}

// Of the values in harmless exchanges, the recorder keeps nearly all.
func TestHarmless(t *testing.T) {
	for _, file := range []formFile{{"a", 990}, {"b", 970}, {"c", 995}, {"d", 990}, {"e", 995}} {
		t.Run(file.name, func(t *testing.T) {
			forms := readForms(t, filepath.Join("testdata", "harmless", file.name+".txt"))
			path := filepath.Join(t.TempDir(), "a.uwc")
			recordForms(t, path, store.Options{Redactor: redact.New(redact.Options{})}, forms)
			values, masked, hit := 0, 0, 0
			for i, text := range texts(t, path) {
				bad := false
				for _, v := range forms[i].values {
					values++
					if !strings.Contains(text, v) {
						masked++
						bad = true
						t.Logf("masked: %s: %s: %q in %s", forms[i].class, forms[i].source, v, shorten(text))
					}
				}
				if bad {
					hit++
				}
			}
			t.Logf("%d of %d values are masked, in %d of %d exchanges", masked, values, hit, len(forms))
			if 1000*(values-masked) < file.least*values {
				t.Errorf("%d of %d values are masked, want at most %d of 1000", masked, values, 1000-file.least)
			}
		})
	}
}
