package live

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"unwire/decode/transcript/ident"
	"unwire/replay/credential"
	"unwire/replay/live/values"
)

// A question is a captured server frame that the client responded to; the response repeats an id of the
// question. In a replay, the response is sent when the live server asks the same, even if that is at
// another position in the stream.
type question struct {
	// kind is the type of the question, which it shares with similar ones.
	kind *questionType
	// down is the index of the question's frame in Links.down.
	down int
	// answers are the indexes in Links.up of the client frames that respond to it.
	answers []int

	// args are the values that distinguish the question from others of its type.
	args arguments
	// nth is the position of the question, from 1, among the captured questions that ask the same
	// except for identifiers.
	nth int
	// exact is the position of the question, from 1, among the captured questions that ask exactly the
	// same.
	exact int
	// counted means that the client's response contains only ids of the question, so that it fits any
	// question of the type.
	counted bool
	// alone means that all captured questions that ask the same except for identifiers are exactly
	// equal.
	alone bool
	// only means that all captured questions that ask the same except for identifiers and for values
	// that the response repeats are exactly equal.
	only bool
}

// A questionType describes all server questions that have the same shape.
type questionType struct {
	// shape is the shape of the questions.
	shape values.Shape
	// mask has the paths of the ids that the client's responses repeat.
	mask map[string]bool
	// echo has the paths of all values that the responses repeat, including those in mask.
	echo map[string]bool
	// parts has, by path, the parts of longer values that the responses repeat.
	parts map[string]map[string]bool
	// words has, by path, the positions of short identifiers that the responses repeat.
	words map[string]map[string]bool
}

// arguments are the paths and values in a question, without the ids that the response repeats. In
// exact, values are unchanged; in loose, identifiers are replaced by their class, such as UUID; rest is
// like loose, but also without the other values that responses repeat.
type arguments struct {
	// exact, loose and rest are texts with one line PATH=VALUE for each value: exact has all values
	// unchanged, loose has identifiers replaced by their class, and rest is loose without the values
	// that the response repeats.
	exact, loose, rest string
	// repeated are the paths and values that rest lacks.
	repeated []string
}

// findQuestions determines which server frames are questions. bound are the bindings of each client
// frame.
//
// Shape: frames of a shape are only questions if the client responded to all of them that came before
// its last frame.
func (l *Links) findQuestions(bound [][]Binding) {
	// indexes in questions by index in down
	at := map[int]int{}
	// the shapes of l.kinds
	kinds := &values.ShapeIndex{}
	for i, list := range bound {
		j := questionOf(list)
		if j < 0 {
			continue
		}
		q, ok := at[j]
		if !ok {
			q = len(l.questions)
			at[j] = q
			l.questions = append(l.questions, question{kind: l.kindOf(l.down[j].shape, kinds), down: j})
		}
		l.questions[q].answers = append(l.questions[q].answers, i)
	}
	if len(l.before) == 0 {
		return
	}

	// Drop the types that the client answered only sometimes.
	unanswered := map[*questionType]bool{}
	for j := range l.before[len(l.before)-1] {
		d := &l.down[j]
		if _, answered := at[j]; answered || d.heartbeat || !d.shape.IsFrame() {
			continue
		}
		for _, k := range kinds.Matching(d.shape) {
			unanswered[l.kinds[k]] = true
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

// kindOf returns the type of questions with this shape, and creates it if needed. kinds are the shapes of l.kinds.
func (l *Links) kindOf(s values.Shape, kinds *values.ShapeIndex) *questionType {
	if known := kinds.Matching(s); len(known) > 0 {
		return l.kinds[known[0]]
	}
	kinds.Add(s, len(l.kinds))
	k := &questionType{shape: s, mask: map[string]bool{}, echo: map[string]bool{}, parts: map[string]map[string]bool{}, words: map[string]map[string]bool{}}
	l.kinds = append(l.kinds, k)
	return k
}

// count computes args, nth, exact, alone and only of all questions.
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

		// The two keys differ in random values: exact includes them, loose has only their class.
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

	// A question is unique if all questions with the same key are equal.
	for i := range l.questions {
		q := &l.questions[i]
		q.alone = len(sameLoose[key{q.kind, q.args.loose}]) == 1
		q.only = len(sameRest[key{q.kind, q.args.rest}]) == 1
	}
}

// questionOf returns the index in Links.down of the last server message whose values are in list, the
// bindings of a client frame; -1 if there is none.
func questionOf(list []Binding) int {
	j := -1
	for i := range list {
		if s := &list[i].source; s.shape.IsFrame() {
			j = max(j, s.down)
		}
	}
	return j
}

// describe determines which values of a question its responses repeat, and whether they contain
// anything else. bound are the bindings of each client frame.
func (l *Links) describe(q *question, bound [][]Binding) {
	q.counted = true
	_, down := l.index()
	digests := digestsIn(&l.down[q.down])
	repeated := map[string]bool{}
	for _, i := range q.answers {
		carried := map[string]bool{}
		for b := range bound[i] {
			bind := &bound[i][b]
			if bind.isWhole() {
				carried[bind.Path] = true
			}
			if bind.source.down == q.down && !(bind.repeatsWhole() && repeated[bind.FromPath]) {
				q.kind.addBinding(bind, l.down[q.down].leaves, down.In(bind.FromPath, q.down))
				repeated[bind.FromPath] = repeated[bind.FromPath] || bind.repeatsWhole()
			}
			l.findDigest(digests, bind)
		}

		// An answer with other values than ids belongs to this question only.
		for k := 0; k < len(l.up[i].leaves); k++ {
			v := &l.up[i].leaves[k]
			if v.Opaque && carried[v.Path] {
				k += v.Inner
			}
			if v.Inner == 0 && len(v.Data) > 0 && !carried[v.Path] || v.Number && !carried[v.Path] {
				q.counted = false
			}
			if carried[v.Path] {
				continue
			}
			if q.counted && len(v.Data) > 0 && digests.of(v.Data) != "" {
				q.counted = false
			}
		}
	}
}

// repeatsWhole reports whether the client repeats the server's whole value, and not a part of it.
func (b *Binding) repeatsWhole() bool { return b.word == "" && b.Part == "" }

// addBinding records that responses repeat the server's value of a binding. leaves are the values of the
// question, and places the positions of those at the path of the binding.
func (a *questionType) addBinding(b *Binding, leaves []values.Leaf, places []values.Position) {
	switch {
	case b.word != "":
		addTo(a.words, b.FromPath, b.Part)
	case b.repeatsWhole():
		for _, p := range places {
			a.repeat(leaves, int(p.Leaf))
		}
	case !values.Spelling(b.How).IsDigest():
		// What is hashed may be the subject of the question.
		addTo(a.parts, b.FromPath, b.Part)
	}
}

// addTo adds a part of the value at path to the parts by path.
func addTo(parts map[string]map[string]bool, path, part string) {
	if parts[path] == nil {
		parts[path] = map[string]bool{}
	}
	parts[path][part] = true
}

// repeat records that responses repeat value k of a question, with everything nested in it. leaves are the
// values of the question.
func (a *questionType) repeat(leaves []values.Leaf, k int) {
	v := &leaves[k]
	all := leaves[k : k+1]
	switch {
	case v.Opaque:
		all = leaves[k : k+1+v.Inner]
	case v.IsMessage():
		all = leaves[k+1 : k+1+v.Inner]
	}
	for i := range all {
		a.echo[all[i].Path] = true
		if isIDLike(all[i].Value) {
			a.mask[all[i].Path] = true
		}
	}
}

// isIDLike reports whether a leaf's value may be an id, and not what the question is about: a number,
// an identifier, or a short word with digits.
func isIDLike(value string) bool {
	const longest = 64
	text, ok := strings.CutPrefix(value, "t")
	switch {
	case !ok || values.ClassOf(text) != "" || credential.IsRedacted(text) || ident.IsBytes([]byte(text)) || !values.IsPrintable([]byte(text)):
		return true
	case len(text) <= longest && isBase64ID(text):
		return true
	case len(text) > longest || strings.ContainsAny(text, " /\\.\n"):
		return false
	}
	return strings.ContainsAny(text, "0123456789")
}

// isBase64ID reports whether a text is base64 of at least 8 bytes that are not text.
func isBase64ID(s string) bool {
	b, _ := values.FromBase64(s)
	return len(b) >= values.ShortText && !values.IsPrintable(b)
}

// findDigest sets b.digest if the question with these digests contains the SHA-256 of the value that its response
// sends.
func (l *Links) findDigest(digests digests, b *Binding) {
	if b.Part != "" || b.How != "" || len(digests) == 0 {
		return
	}
	_, down := l.index()
	for _, p := range slices.Backward(down.In(b.FromPath, b.source.down)) {
		if v := &l.down[b.source.down].leaves[p.Leaf]; len(v.Data) > 0 {
			b.digest = digests.of(v.Data)
			return
		}
	}
}

// digests maps each SHA-256 that a message may contain, in hexadecimal, to its path.
type digests map[string]string

// digestsIn returns the values of a message that may be a SHA-256, as bytes or in hexadecimal.
func digestsIn(h *parsedMessage) digests {
	out := digests{}
	for k := range h.leaves {
		v := &h.leaves[k]
		digits := string(v.Data)
		switch len(digits) {
		case sha256.Size:
			digits = hex.EncodeToString(v.Data)
		case hex.EncodedLen(sha256.Size):
		default:
			continue
		}
		if _, known := out[digits]; !known {
			out[digits] = v.Path
		}
	}
	return out
}

// of returns the path of the SHA-256 of data; "" if the message does not contain it.
func (d digests) of(data []byte) string {
	if len(d) == 0 {
		return ""
	}
	sum := sha256.Sum256(data)
	return d[hex.EncodeToString(sum[:])]
}

// argumentsOf returns the arguments of the message h as a question of this type. Zero values are left
// out, because protobuf omits them.
func (l *Links) argumentsOf(h *parsedMessage, kind *questionType) arguments {
	if h.asks == kind {
		return h.args
	}
	var exact, loose, rest strings.Builder
	var repeated []string
	for k := 0; k < len(h.leaves); k++ {
		v := &h.leaves[k]
		if kind.mask[v.Path] || v.Value == zero {
			k += v.Inner
			continue
		}
		if v.IsMessage() || v.Opaque && !values.IsBinaryID(v.Data) {
			continue
		}
		k += v.Inner
		words := kind.words[v.Path]
		unworded, left := v.WithoutWords(words)
		v, unworded = v.Without(kind.parts[v.Path]), unworded.Without(kind.parts[v.Path])

		// A random value is replaced by its class, such as UUID, so that equal questions match.
		value := looseValue(v)
		fmt.Fprintf(&exact, "%s=%q\n", v.Path, v.Value)
		fmt.Fprintf(&loose, "%s=%q\n", v.Path, value)
		if words != nil {
			fmt.Fprintf(&rest, "%s=%q\n", v.Path, values.Classes(unworded.Data))
			for _, w := range left {
				repeated = append(repeated, v.Path+" "+w.At+"="+w.Value)
			}
		} else if kind.echo[v.Path] {
			repeated = append(repeated, v.Path+"="+v.Value)
		} else {
			fmt.Fprintf(&rest, "%s=%q\n", v.Path, value)
		}
	}
	h.asks, h.args = kind, arguments{exact.String(), loose.String(), rest.String(), repeated}
	return h.args
}

// looseValue returns the value v for comparison, with identifiers and times replaced by their class.
func looseValue(v *values.Leaf) string {
	text := values.IsPrintable(v.Data) || values.IsBinaryID(v.Data)
	switch n, err := strconv.ParseUint(strings.TrimPrefix(v.Value, "n"), 10, 64); {
	case !v.Number && len(v.Data) > 0 && text:
		return values.Classes(v.Data)
	// Numbers of protobuf are texts in JSON.
	case v.Number && values.ClassOf(string(v.Data)) != "":
		return values.Classes(v.Data)
	// Times differ in each run.
	case v.Number && err == nil && ident.IsTime(n):
		return string(ident.Time)
	}
	return v.Value
}

// fits reports whether the live message h asks the same as the captured question q, except for
// identifiers and edited values that it repeats.
func (l *Links) fits(q *question, h *parsedMessage) bool {
	if !h.shape.Matches(q.kind.shape) {
		return false
	}
	if q.counted || l.asksSame(q, h) {
		return true
	}
	u := l.withoutEdits(h)
	return u != nil && l.asksSame(q, u)
}

// fitsExactly reports whether the live message h asks exactly the same as the captured question q,
// except for edited values that it repeats.
func (l *Links) fitsExactly(q *question, h *parsedMessage) bool {
	if q.counted || l.argumentsOf(h, q.kind).exact == q.args.exact {
		return true
	}
	u := l.withoutEdits(h)
	return u != nil && l.argumentsOf(u, q.kind).exact == q.args.exact
}

// withoutEdits returns a live message with values from edits replaced by the captured ones; nil if it
// contains none.
func (l *Links) withoutEdits(h *parsedMessage) *parsedMessage {
	if !h.isUndone {
		h.undone, h.isUndone = l.echo.undo(h), true
	}
	return h.undone
}

// asksSame reports whether a live message asks the same as a captured question, except for identifiers.
// Values that the response repeats may also differ, if they may be ids and no other question has the
// same remaining arguments.
func (l *Links) asksSame(q *question, h *parsedMessage) bool {
	args := l.argumentsOf(h, q.kind)
	return args.loose == q.args.loose ||
		args.rest != "" && args.rest == q.args.rest && slices.EqualFunc(args.repeated, q.args.repeated, sameForm) && (q.only || l.isClosest(q, &args))
}

// isClosest reports whether more of the short identifiers in args are those of the question q than of
// any other question with the same remaining arguments.
func (l *Links) isClosest(q *question, args *arguments) bool {
	same := func(o *question) (n int) {
		for i, r := range o.args.repeated {
			if i < len(args.repeated) && args.repeated[i] == r {
				n++
			}
		}
		return n
	}
	for i := range l.questions {
		o := &l.questions[i]
		if o.kind == q.kind && o.args.rest == q.args.rest && o.args.exact != q.args.exact && same(o) >= same(q) {
			return false
		}
	}
	return len(q.kind.words) > 0
}

// shortestForm is the least length of a word that may be a generated id.
const shortestForm = 6

// sameForm reports whether two texts PATH=VALUE are equal, or have values that may be ids from the same
// generator, i.e. words of the same length.
func sameForm(a, b string) bool {
	pathA, valueA, _ := strings.Cut(a, "=")
	pathB, valueB, _ := strings.Cut(b, "=")
	return a == b || pathA == pathB && values.IsDigits(valueA) && values.IsDigits(valueB) || pathA == pathB && len(valueA) == len(valueB) && len(valueA) >= shortestForm && !strings.ContainsAny(valueA+valueB, " /\\.\n")
}

// describeLive describes a live question with its values, for an error message.
func (l *Links) describeLive(h *parsedMessage, kind *questionType) string {
	var list []string
	for k := 0; k < len(h.leaves); k++ {
		v := &h.leaves[k]
		text := !v.Number && !v.Object && len(v.Data) > 0 && values.IsPrintable(v.Data)
		switch {
		case kind.mask[v.Path]:
			k += v.Inner
		case v.Number && v.Value != zero:
			list = append(list, v.Path+"="+v.Value[1:])
		case text || v.Inner == 0 && len(v.Data) > 0:
			list = append(list, fmt.Sprintf("%s=%q", v.Path, cut(string(v.Data), 120)))
			k += v.Inner
		}
	}
	text := cut(strings.Join(list, ", "), 240)
	return fmt.Sprintf("%s (%s)", l.roles.received(h.frame.Seq), text)
}

// cut truncates a text to about most bytes.
func cut(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
