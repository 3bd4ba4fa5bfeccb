package live

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/decode/transcript/ident"
)

// A question is a captured frame of the server that frames up answered: they
// carry on an id that came with it. The answer to it belongs to what it asks,
// not to its place in the stream.
type question struct {
	kind    *questionType
	down    int   // which of Links.down
	answers []int // which of Links.up
	args    arguments
	nth     int // from 1, among captured questions of the kind that fit it
	exact   int // the same among those that ask the same to the letter
	// the answer says nothing but ids: it fits any question of the kind
	counted bool
	alone   bool // no other asks the same but for its identifiers
	only    bool // no other asks the same but for ids that its answer repeats
}

// A questionType describes the server's requests that share a shape.
type questionType struct {
	shape shape
	mask  map[string]bool // paths of the ids that answers carry on
	// mask, and paths of other values that answers repeat
	echo map[string]bool
	// by path, which parts of a value answers carry on
	parts map[string]map[string]bool
}

// arguments are what a question says besides its ids: values by path, exactly,
// with identifiers replaced by their class, and without what answers repeat.
type arguments struct {
	exact, loose, rest string
	repeated           []string // path and value of what rest leaves out
}

// findQuestions finds the captured questions. bound are the bindings of each frame up.
//
// Shape: a frame is a question where every frame of its shape that came before
// the last frame up was answered: one that is answered now and then is not.
func (l *Links) findQuestions(bound [][]Binding) {
	at := map[int]int{} // by number in down: which of questions
	for i, list := range bound {
		j := questionOf(list)
		if j < 0 {
			continue
		}
		q, ok := at[j]
		if !ok {
			q = len(l.questions)
			at[j] = q
			l.questions = append(l.questions, question{kind: l.kindOf(l.down[j].shape), down: j})
		}
		l.questions[q].answers = append(l.questions[q].answers, i)
	}
	if len(l.before) == 0 {
		return
	}
	unanswered := map[*questionType]bool{}
	for j := range l.before[len(l.before)-1] {
		d := &l.down[j]
		if _, answered := at[j]; answered || d.heartbeat || d.shape.isHeaders() {
			continue
		}
		for _, k := range l.kinds {
			unanswered[k] = unanswered[k] || d.shape.matches(k.shape)
		}
	}
	l.questions = slices.DeleteFunc(l.questions, func(q question) bool { return unanswered[q.kind] })
	l.kinds = slices.DeleteFunc(l.kinds, func(k *questionType) bool { return unanswered[k] })
	for q := range l.questions {
		l.describe(&l.questions[q], bound)
	}
	l.count()
	for q := range l.questions {
		l.asked[l.questions[q].down] = &l.questions[q]
	}
}

// kindOf is what questions of a shape have in common, as far as it is known.
func (l *Links) kindOf(s shape) *questionType {
	for _, k := range l.kinds {
		if k.shape.matches(s) {
			return k
		}
	}
	k := &questionType{shape: s, mask: map[string]bool{}, echo: map[string]bool{}, parts: map[string]map[string]bool{}}
	l.kinds = append(l.kinds, k)
	return k
}

// count finds the place of each question among those that are like it.
func (l *Links) count() {
	type key struct {
		kind *questionType
		what string
	}
	kinds, exact, loose := map[*questionType]int{}, map[key]int{}, map[key]int{}
	sameLoose, sameRest := map[key]map[string]bool{}, map[key]map[string]bool{}
	note := func(m map[key]map[string]bool, k key, v string) {
		if m[k] == nil {
			m[k] = map[string]bool{}
		}
		m[k][v] = true
	}
	for i := range l.questions {
		q := &l.questions[i]
		q.args = l.argumentsOf(&l.down[q.down], q.kind)
		e, o := key{q.kind, q.args.exact}, key{q.kind, q.args.loose}
		kinds[q.kind]++
		exact[e]++
		loose[o]++
		if q.nth, q.exact = loose[o], exact[e]; q.counted {
			q.nth, q.exact = kinds[q.kind], kinds[q.kind]
		}
		note(sameLoose, o, q.args.exact)
		note(sameRest, key{q.kind, q.args.rest}, q.args.exact)
	}
	for i := range l.questions {
		q := &l.questions[i]
		q.alone = len(sameLoose[key{q.kind, q.args.loose}]) == 1
		q.only = len(sameRest[key{q.kind, q.args.rest}]) == 1
	}
}

// questionOf is the last frame down that a frame up carries an id of; -1 where
// there is none.
func questionOf(list []Binding) int {
	j := -1
	for i := range list {
		if s := &list[i].source; !s.shape.isHeaders() {
			j = max(j, s.down)
		}
	}
	return j
}

// describe notes what the answers to a question carry on, and what else they say.
func (l *Links) describe(q *question, bound [][]Binding) {
	q.counted = true
	for _, i := range q.answers {
		carried := map[string]bool{}
		for b := range bound[i] {
			bind := &bound[i][b]
			if bind.token == "" || "t"+bind.token == bind.value {
				carried[bind.Path] = true
			}
			switch {
			case bind.source.down != q.down:
			case bind.Part == "":
				q.kind.repeat(l.down[q.down].leaves, bind.FromPath)
			case !spelling(bind.How).isDigest():
				// what is hashed may well be what is asked
				q.kind.addPart(bind.FromPath, bind.Part)
			}
			l.findDigest(q, bind)
		}
		for k := range l.up[i].leaves {
			v := &l.up[i].leaves[k]
			if v.inner == 0 && len(v.data) > 0 && !carried[v.path] || v.number && !carried[v.path] {
				q.counted = false
			}
			if carried[v.path] {
				continue
			}
			sum := sha256.Sum256(v.data)
			if at := digestAt(&l.down[q.down], sum[:]); len(v.data) > 0 && at != "" {
				q.counted = false
			}
		}
	}
}

// addPart notes that answers carry on a part of what stands at path.
func (a *questionType) addPart(path, part string) {
	if a.parts[path] == nil {
		a.parts[path] = map[string]bool{}
	}
	a.parts[path][part] = true
}

// without is a leaf without the parts that answers carry on.
func (a *questionType) without(v *leaf) *leaf {
	parts := a.parts[v.path]
	if parts == nil {
		return v
	}
	s := string(v.data)
	all := partsOf(v.data)
	for _, p := range all {
		if !parts[p.at] {
			continue
		}
		// the text around it has the code
		if around, _, coded := strings.Cut(p.at, "base64"); coded {
			at := strings.TrimSuffix(around, " ")
			p = all[max(0, slices.IndexFunc(all, func(p part) bool { return p.at == at }))]
		}
		s = strings.ReplaceAll(s, p.value, "<carried>")
	}
	out := leaf{path: v.path, depth: v.depth, inner: v.inner}
	out.setText([]byte(s))
	return &out
}

// repeat notes that answers repeat what stands at path: all of a message.
func (a *questionType) repeat(leaves []leaf, path string) {
	for k := range leaves {
		v := &leaves[k]
		if v.path != path {
			continue
		}
		all := leaves[k : k+1]
		if v.inner > 0 && !isPrintable(v.data) {
			all = leaves[k+1 : k+1+v.inner]
		}
		for i := range all {
			a.echo[all[i].path] = true
			if isIDLike(all[i].value) {
				a.mask[all[i].path] = true
			}
		}
	}
}

// isIDLike reports whether a leaf's value may be an id rather than something
// that the question is about: a number, an identifier, or a short word with
// digits in it.
func isIDLike(value string) bool {
	const longest = 64
	text, ok := strings.CutPrefix(value, "t")
	switch {
	case !ok || classOf(text) != "" || ident.IsBytes([]byte(text)):
		return true
	case len(text) > longest || strings.ContainsAny(text, " /\\.\n"):
		return false
	}
	return strings.ContainsAny(text, "0123456789")
}

// findDigest notes where a question has the hash of a value that its answer carries on.
func (l *Links) findDigest(q *question, b *Binding) {
	if b.Part != "" || b.How != "" {
		return
	}
	d := &l.down[b.source.down]
	for k := range d.leaves {
		if v := &d.leaves[k]; v.path == b.FromPath && len(v.data) > 0 {
			sum := sha256.Sum256(v.data)
			b.digest = digestAt(&l.down[q.down], sum[:])
		}
	}
}

// digestAt is the path at which a frame has a SHA-256, as bytes or in hex.
func digestAt(h *parsedMessage, sum []byte) string {
	for k := range h.leaves {
		if v := &h.leaves[k]; string(v.data) == string(sum) || string(v.data) == hex.EncodeToString(sum) {
			return v.path
		}
	}
	return ""
}

// argumentsOf writes down what a frame asks. Numbers that are zero are not on
// the wire, so none counts as zero.
func (l *Links) argumentsOf(h *parsedMessage, kind *questionType) arguments {
	if h.asks == kind {
		return h.args
	}
	var exact, loose, rest strings.Builder
	var repeated []string
	for k := 0; k < len(h.leaves); k++ {
		v := &h.leaves[k]
		text := !v.number && len(v.data) > 0 && isPrintable(v.data)
		if kind.mask[v.path] || v.value == zero {
			if !v.number {
				k += v.inner
			}
			continue
		}
		if v.inner > 0 && !text {
			continue
		}
		v = kind.without(v)
		value := v.value
		if text || !v.number && ident.IsBytes(v.data) {
			value = classes(v.data)
			k += v.inner
		}
		if n, err := strconv.ParseUint(strings.TrimPrefix(value, "n"), 10, 64); v.number && err == nil && ident.IsTime(n) {
			value = string(ident.Time)
		}
		fmt.Fprintf(&exact, "%s=%q\n", v.path, v.value)
		fmt.Fprintf(&loose, "%s=%q\n", v.path, value)
		if kind.echo[v.path] {
			repeated = append(repeated, v.path+"="+v.value)
		} else {
			fmt.Fprintf(&rest, "%s=%q\n", v.path, value)
		}
	}
	h.asks, h.args = kind, arguments{exact.String(), loose.String(), rest.String(), repeated}
	return h.args
}

// classes is a value with its identifiers replaced by what kind they are.
func classes(b []byte) string {
	if ident.IsBytes(b) {
		return fmt.Sprintf("<%d bytes>", len(b))
	}
	s := string(b)
	for w := range wordsOf(s) {
		c := classOf(w)
		if n, err := strconv.ParseUint(w, 10, 64); err == nil && ident.IsTime(n) {
			c = ident.Time
		}
		if c != "" {
			s = strings.ReplaceAll(s, w, "<"+string(c)+">")
		}
	}
	return s
}

// fits reports whether a frame asks what a captured question does. Where all
// that differs is what the answer repeats, it does if that may be an id and no
// other question has the same rest.
func (l *Links) fits(q *question, h *parsedMessage) bool {
	if !h.shape.matches(q.kind.shape) {
		return false
	}
	if q.counted {
		return true
	}
	args := l.argumentsOf(h, q.kind)
	return args.loose == q.args.loose ||
		q.only && args.rest != "" && args.rest == q.args.rest && slices.EqualFunc(args.repeated, q.args.repeated, sameForm)
}

// shortestForm is the length below which a word is no id that a server made up.
const shortestForm = 6

// sameForm reports whether two values are the same, or words of one length, as
// ids of one maker are: what a question is about is another word, or a path.
func sameForm(a, b string) bool {
	pathA, valueA, _ := strings.Cut(a, "=")
	pathB, valueB, _ := strings.Cut(b, "=")
	return a == b || pathA == pathB && len(valueA) == len(valueB) && len(valueA) >= shortestForm && !strings.ContainsAny(valueA+valueB, " /\\.\n")
}

// describeLive describes a live question for an error.
func (l *Links) describeLive(h *parsedMessage, kind *questionType) string {
	var list []string
	for k := 0; k < len(h.leaves); k++ {
		v := &h.leaves[k]
		text := !v.number && len(v.data) > 0 && isPrintable(v.data)
		switch {
		case kind.mask[v.path]:
		case v.number && v.value != zero:
			list = append(list, v.path+"="+v.value[1:])
		case text || v.inner == 0 && len(v.data) > 0:
			list = append(list, fmt.Sprintf("%s=%q", v.path, cut(string(v.data), 120)))
			k += v.inner
		}
	}
	text := cut(strings.Join(list, ", "), 240)
	return fmt.Sprintf("%s/%d (%s)", captures.Down, h.frame.Seq, text)
}

// cut shortens a text to about most bytes.
func cut(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
