package live

import (
	"fmt"
	"slices"
	"strings"

	"unwire/replay/edit"
	"unwire/replay/live/values"
)

// Short identifiers, such as counters, occur by chance anywhere in a text. The client sends one back if
// a place in its answers always has the value that a place in the question has, and each question has
// another one.

// Limits for short identifiers.
const (
	// leastShortIDs is the number of answers that must agree, unless the places are named as ids.
	leastShortIDs = 3
	// countedDigits is the number of digits up to which a number must be counted up from question to
	// question.
	countedDigits = 4
	// maxShortPlaces limits the number of places in answers that are examined.
	maxShortPlaces = 20_000
)

// A wordPlace is a place of words in messages: the path of a value and the position in it.
type wordPlace struct {
	// path is the path of the value, and at the position of the word in it.
	path, at string
}

// A carriedWord is a word in a client's message, with the server's message that it may come from.
type carriedWord struct {
	// up is the index of the client's message, and down that of the server's message that it answers.
	up, down int
	// word is the word, and leaf the value that contains it.
	word string
	leaf *values.Leaf
	// bound means that the word is in an identifier that has a binding.
	bound bool
}

// bindShortIDs adds bindings for short identifiers to the turns.
func (l *Links) bindShortIDs(turns []Turn) {
	var order []wordPlace
	found := map[wordPlace][]carriedWord{}
	issued := &issuedWords{links: l, words: map[int]map[string][]wordPlace{}, common: map[string]*commonPlaces{}}
	for i := range turns {
		j := questionOf(turns[i].Live)
		if j < 0 && turns[i].cause != nil {
			j = turns[i].cause.down
		}
		if j < 0 || turns[i].Beat || l.up[i].frame.Err != nil {
			continue
		}
		live := newBindingIndex(turns[i].Live)
		for k := range l.up[i].leaves {
			leaf := &l.up[i].leaves[k]
			of := live.of(leaf)
			for _, w := range leaf.Words() {
				at := wordPlace{leaf.Path, w.At}
				if len(found[at]) == 0 && len(order) >= maxShortPlaces {
					continue
				}
				if len(found[at]) == 0 {
					order = append(order, at)
				}
				found[at] = append(found[at], carriedWord{i, l.lastWith(w.Value, i, j, issued), w.Value, leaf, of.binds(leaf, w.Value)})
			}
		}
	}
	for _, at := range order {
		list := found[at]
		if !slices.ContainsFunc(list, func(c carriedWord) bool { return !c.bound }) {
			continue
		}
		if from, ok := issued.at(at, list); ok {
			for _, c := range list {
				if c.bound {
					continue
				}
				turns[c.up].Live = append(turns[c.up].Live, Binding{
					Path: at.path, From: l.from(&l.down[c.down]), FromPath: from.path, Part: from.at, json: l.up[c.up].frame.Tree == nil,
					value: c.leaf.Value, word: c.word, wordAt: at.at, source: *l.target(c.down, from.path),
				})
			}
		}
	}
}

// lastWith returns the index of the last server message that has a word, from message j back to the client's message before
// message i; j if none has it. issued caches the words of the server's messages.
func (l *Links) lastWith(word string, i, j int, issued *issuedWords) int {
	const most = 16
	first := 0
	if i > 0 {
		first = l.before[i-1]
	}
	for k := j; k >= max(first, j-most); k-- {
		if issued.in(k)[word] != nil {
			return k
		}
	}
	return j
}

// A bindingIndex has the bindings of a client frame by their paths.
type bindingIndex struct {
	// whole has the paths of values that come from the server as a whole.
	whole map[string]bool
	// parts are the indexes in list of the bindings for parts of values, by their paths.
	list  []Binding
	parts map[string][]int
	// lengths are the lengths of all paths, in ascending order and without duplicates.
	lengths []int
}

// newBindingIndex returns the index of a list of bindings.
func newBindingIndex(list []Binding) *bindingIndex {
	x := &bindingIndex{whole: map[string]bool{}, list: list, parts: map[string][]int{}}
	for i := range list {
		b := &list[i]
		if b.isWhole() {
			x.whole[b.Path] = true
		} else {
			x.parts[b.Path] = append(x.parts[b.Path], i)
		}
		x.lengths = append(x.lengths, len(b.Path))
	}
	slices.Sort(x.lengths)
	x.lengths = slices.Compact(x.lengths)
	return x
}

// leafBindings are the bindings for a value, and for the messages that contain it.
type leafBindings struct {
	// whole means that the whole value comes from the server.
	whole bool
	// parts are the bindings for parts of the value, in their order.
	parts []*Binding
}

// of returns the bindings for a value.
func (x *bindingIndex) of(leaf *values.Leaf) (out leafBindings) {
	var parts []int
	for _, n := range x.lengths {
		switch path := leaf.Path; {
		case n > len(path), n < len(path) && path[n] != '.' && path[n] != '[':
		case x.whole[path[:n]]:
			return leafBindings{whole: true}
		default:
			parts = append(parts, x.parts[path[:n]]...)
		}
	}
	slices.Sort(parts)
	for _, i := range parts {
		out.parts = append(out.parts, &x.list[i])
	}
	return out
}

// binds reports whether one of the bindings for the value leaf replaces the part of it that contains the word.
func (o *leafBindings) binds(leaf *values.Leaf, word string) bool {
	if o.whole || len(o.parts) == 0 {
		return o.whole
	}
	rest, parts := leaf.Text(), false
	for _, b := range o.parts {
		if strings.Contains(b.token, word) {
			rest, parts = strings.ReplaceAll(rest, b.token, " "), true
		}
	}
	return parts && !strings.Contains(rest, word)
}

// issuedWords are the words of the server's messages.
type issuedWords struct {
	// links are the relations between the messages.
	links *Links
	// words caches the places of the words in a message, by its index.
	words map[int]map[string][]wordPlace
	// common caches the places that several messages have in common, by commonKey.
	common map[string]*commonPlaces
}

// commonPlaces are places that have given words in several of the server's messages.
type commonPlaces struct {
	// list are the places, in the order in which the first message has them.
	list []wordPlace
	// is has the elements of list.
	is map[wordPlace]bool
	// named means that one of them is named as an id.
	named bool
}

// in returns the places of the words in server message j.
func (w *issuedWords) in(j int) map[string][]wordPlace {
	if w.words[j] == nil {
		w.words[j] = w.links.wordsIn(j)
	}
	return w.words[j]
}

// at returns the place in the server's messages from which the client takes the words in list, which are at one place in
// its messages; ok is false if there is none.
func (w *issuedWords) at(at wordPlace, list []carriedWord) (from wordPlace, ok bool) {
	if !areIDs(list, true) {
		return from, false
	}
	places := w.commonOf(list)
	if len(places.list) == 0 || !areIDs(list, isNamed(at) && places.named) {
		return from, false
	}
	for _, p := range [...]wordPlace{{at.path, ""}, at} {
		if places.is[p] {
			return p, true
		}
	}
	return places.list[0], true
}

// isNamed reports whether a place is named as that of an id.
func isNamed(p wordPlace) bool { return isIDName(p.path + " " + p.at) }

// commonOf returns the places at which the server's messages in list have the words in it.
func (w *issuedWords) commonOf(list []carriedWord) *commonPlaces {
	var b strings.Builder
	for _, c := range list {
		fmt.Fprintf(&b, "%d %q ", c.down, c.word)
	}
	key := b.String()
	if known := w.common[key]; known != nil {
		return known
	}
	places := &commonPlaces{is: map[wordPlace]bool{}}
	for i, c := range list {
		same := map[wordPlace]bool{}
		for _, p := range w.in(c.down)[c.word] {
			if i == 0 {
				places.list = append(places.list, p)
			}
			same[p] = i == 0 || places.is[p]
		}
		places.is = same
	}
	places.list = slices.DeleteFunc(places.list, func(p wordPlace) bool { return !places.is[p] })
	places.named = slices.ContainsFunc(places.list, isNamed)
	w.common[key] = places
	return places
}

// wordsIn returns the places of the words in server message j. A word that is the whole value has that place first: a
// generated name may begin with characters that separate words.
func (l *Links) wordsIn(j int) map[string][]wordPlace {
	out := map[string][]wordPlace{}
	if !l.down[j].shape.IsFrame() {
		return out
	}
	for k := range l.down[j].leaves {
		v := &l.down[j].leaves[k]
		for _, w := range v.Words() {
			if w.At != "" && w.Value == v.Text() {
				out[w.Value] = append(out[w.Value], wordPlace{v.Path, ""})
			}
			out[w.Value] = append(out[w.Value], wordPlace{v.Path, w.At})
		}
	}
	return out
}

// areIDs reports whether words may be identifiers of the questions that they come from: each question
// has another one, and small numbers are counted up. named means that the places are named as ids.
func areIDs(list []carriedWord, named bool) bool {
	byQuestion, seen := map[int]string{}, map[string]bool{}
	counted, last, generated := true, "", 0
	for _, c := range list {
		if was, ok := byQuestion[c.down]; ok {
			if was != c.word {
				return false
			}
			continue
		}
		if seen[c.word] {
			return false
		}
		small := values.IsDigits(c.word) && len(c.word) <= countedDigits
		counted = counted && (!small || last == "" || less(last, c.word))
		if values.IsDigits(c.word) || values.IsGenerated(c.word) || values.ClassOf(c.word) != "" || isMixed(c.word) {
			generated++
		}
		byQuestion[c.down], seen[c.word], last = c.word, true, c.word
	}
	return counted && 2*generated > len(seen) && (named || len(seen) >= leastShortIDs)
}

// less compares two numbers in decimal digits.
func less(a, b string) bool {
	return len(a) < len(b) || len(a) == len(b) && a < b
}

// isIDName reports whether the last name of a path is that of an identifier, such as id or callId.
func isIDName(path string) bool {
	name := strings.TrimRight(edit.WithoutIndexes(path), " ")
	name = name[strings.LastIndexAny(name, ". ")+1:]
	return name == "id" || strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "Id") || strings.HasSuffix(name, "ID")
}

// Both sides of a conversation use values such as states, prices, models and dimensions, so that the client
// sends some of them by chance after the server did. A place in the client's messages is its own if the
// client also sends values there that no server message had before. A value is not issued if both sides
// return to earlier values, and the client does not follow the server.

// longID is the number of digits from which a number is an identifier wherever it occurs.
const longID = 15

// maxCompared is the number of client messages whose values are compared.
const maxCompared = 10_000

// isOwn reports whether a value at path in a client frame is the client's own, although the server sent it
// before at the path from: it does not have the format of an identifier, and its place is the client's own,
// or both places have a small vocabulary.
func (l *Links) isOwn(value, path, from string) bool {
	return !hasIDFormat(value) && (l.isOwnPlace(path) || l.isVocabulary(path, from))
}

// hasIDFormat reports whether a text has the format of an identifier, or of a random name.
func hasIDFormat(s string) bool {
	return values.ClassOf(s) != "" || values.IsRandomName(s) || values.IsDigits(s) && len(s) >= longID
}

// isOwnPlace reports whether the client also sends values at a path of which no earlier server message had any
// part.
func (l *Links) isOwnPlace(path string) bool {
	if l.ownPlaces == nil {
		l.ownPlaces = map[string]bool{}
		for i := range l.up[:min(len(l.up), maxCompared)] {
			l.addOwnPlaces(i)
		}
	}
	return l.ownPlaces[edit.WithoutIndexes(path)]
}

// addOwnPlaces adds the paths of those values of client frame i to ownPlaces of which no server message before
// had any part, if there was one. Values with the format of an identifier say nothing about their place.
func (l *Links) addOwnPlaces(i int) {
	if l.causesOf(i).number == 0 {
		return
	}
	// partly are the values that have a part of a server message: by their index, and by their path.
	partly, partlyAt := map[int]bool{}, map[string]bool{}
	for _, n := range l.inside[i] {
		partly[n.leaf] = true
	}
	for term, path := range l.up[i].termsOf() {
		partlyAt[path] = partlyAt[path] || l.wasTermIssued(term, l.before[i])
	}
	for k := range l.up[i].leaves {
		v := &l.up[i].leaves[k]
		if v.IsMessage() || v.Value == "t" || v.Value == zero || partly[k] || partlyAt[v.Path] || hasIDFormat(v.Text()) || l.wasIssued(v.Value, l.before[i]) {
			continue
		}
		l.ownPlaces[edit.WithoutIndexes(v.Path)] = true
	}
}

// wasTermIssued reports whether one of the first server messages has a term; before is their number. It is
// true if there are too many terms to tell.
func (l *Links) wasTermIssued(term string, before int) bool {
	if l.firstTerm == nil {
		l.firstTerm = map[string]int{}
		for j := range l.down {
			for term := range l.down[j].termsOf() {
				if _, known := l.firstTerm[term]; !known && len(l.firstTerm) < maxTokens {
					l.firstTerm[term] = j
				}
			}
		}
	}
	at, ok := l.firstTerm[term]
	return ok && at < before || len(l.firstTerm) >= maxTokens
}

// isVocabulary reports whether the client's values at path and the server's values at from are words of a
// vocabulary that both use independently: one of the two returns to an earlier value after another one, and
// the client does not always send what the server sent last. Elements of lists are not compared.
func (l *Links) isVocabulary(path, from string) bool {
	if edit.WithoutIndexes(from) != from {
		return false
	}
	up, down := l.index()
	key := histories{up.History(path), down.History(from)}
	if known, ok := l.vocabularies[key]; ok {
		return known
	}
	var client, server []string
	follows := true
	compared := min(len(l.up), maxCompared)
	issued := down.Firsts(from, l.before[compared-1])
	for _, p := range up.Firsts(path, compared) {
		for len(server) < len(issued) && int(issued[len(server)].Message) < l.before[p.Message] {
			server = append(server, down.Value(issued[len(server)]))
		}
		if len(server) == 0 {
			continue
		}
		client = append(client, up.Value(p))
		follows = follows && up.Value(p) == server[len(server)-1]
	}
	for _, p := range issued[len(server):] {
		server = append(server, down.Value(p))
	}
	l.vocabularies[key] = !follows && (returns(client) || returns(server))
	return l.vocabularies[key]
}

// returns reports whether a list has a value again after another one.
func returns(list []string) bool {
	last := map[string]int{}
	for i, v := range list {
		if at, ok := last[v]; ok && at < i-1 {
			return true
		}
		last[v] = i
	}
	return false
}
