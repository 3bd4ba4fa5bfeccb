package transcript

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/transcript/language"
)

// measureAll sets the features of all streams.
func (c *collection) measureAll(ex *decode.Exchange, streams []*stream) {
	texts := make(map[int]int) // of a frame
	for _, s := range streams {
		s.measure()
		s.addNameFeatures(c.common)
		if s.class == word && s.dir == captures.Down && c.groups[s.pieces[0].group].texts > 2 {
			// Of a message, not of its properties.
			s.features[saysRole+assistant] = min(s.features[saysRole+assistant], max(s.namedAssistant, 0.3))
		}
		for _, p := range s.pieces {
			texts[p.frame]++
		}
	}
	findStandingValues(streams)
	findModelTitles(streams)
	contexts := make(map[[2]int]*neighbourhood)
	get := func(frame, group int) *neighbourhood {
		key := [2]int{frame, group}
		x := contexts[key]
		if x == nil {
			x = &neighbourhood{first: frame}
			contexts[key] = x
		}
		return x
	}
	beside := func(p piece) *neighbourhood { return get(p.frame, int(p.group)) }
	around := func(p piece) *neighbourhood {
		if texts[p.frame] > smallFrame {
			return beside(p)
		}
		return get(p.frame, -1)
	}
	for _, s := range streams {
		for _, p := range s.pieces {
			x, y := around(p), beside(p)
			x.addNeighbour(s, p)
			if x != y {
				y.addNeighbour(s, p)
				if texts[p.frame] <= smallFrame {
					y.frame = x
				}
			}
		}
	}
	calls := make(map[string]int) // ids of calls, with the frame that made them
	texted := c.textIDs(streams)
	firstCall := len(ex.Frames)
	for _, x := range contexts {
		if x.callLikelihood(0) == 0 || ex.Frames[x.first].Dir != captures.Down {
			continue
		}
		for _, id := range x.ids {
			if texted[id] && x.callLikelihood(0) < surelyCall {
				continue
			}
			if first, ok := calls[id]; !ok || x.first < first {
				calls[id] = x.first
			}
			firstCall = min(firstCall, x.first)
		}
		if len(x.ids) == 0 {
			firstCall = min(firstCall, x.first)
		}
	}
	answered := slices.IndexFunc(ex.Frames, func(f decode.Frame) bool { return f.Dir == captures.Down })
	for _, s := range streams {
		s.addNeighbourFeatures(around, beside, calls)
		if s.dir == captures.Down && s.pieces[0].frame > firstCall && s.features[inCall] < 0.5 {
			s.features[afterFirstCall] = 1
		}
		if s.dir == captures.Up && answered >= 0 && s.pieces[0].frame > answered {
			s.features[later] = 1
		}
		if ex.Status >= 400 && s.dir == captures.Down {
			s.features[failed] = 1
		}
	}
	c.findReturnedHandles(streams)
	c.findAnswerJSON(ex, streams)
	findEchoes(streams)
	compare(streams, c.groups)
}

const (
	minHandle       = 6  // bytes of a value that is handed back
	maxHandle       = 64 // bytes
	maxHandleFrames = 3  // frames of the server that have it at most
)

// findReturnedHandles finds what the client sends beside a value without a space that the
// server had sent shortly, in a few frames: the result of what that value names,
// whether it looks like an identifier or not.
func (c *collection) findReturnedHandles(streams []*stream) {
	isHandle := func(text string) bool {
		return len(text) >= minHandle && len(text) <= maxHandle && strings.IndexFunc(text, unicode.IsSpace) < 0
	}
	first := make(map[string]int) // frame of a value
	times := make(map[string]int)
	for _, s := range streams {
		if s.dir != captures.Down || s.kind >= delta && s.kind != separate || s.inMostFrames || s.discriminates {
			continue
		}
		for _, p := range s.pieces {
			if isHandle(p.text) {
				if at, ok := first[p.text]; !ok || p.frame < at {
					first[p.text] = p.frame
				}
				times[p.text]++
			}
		}
	}
	handed := make(map[int32]bool)
	for _, s := range streams {
		if s.dir != captures.Up || s.class != word && s.features[identifier] == 0 {
			continue
		}
		for _, p := range s.pieces {
			if at, ok := first[p.text]; ok && at < p.frame && times[p.text] <= maxHandleFrames {
				handed[p.group] = true
			}
		}
	}
	for _, s := range streams {
		f := &s.features
		if f[later] == 0 || f[afterCall] > 0 || s.class == word || f[identifier] > 0 {
			continue
		}
		n := 0
		for _, p := range s.pieces[:min(len(s.pieces), maxLooked)] {
			if handed[p.group] || handed[c.groups[p.group].parent] {
				n++
			}
		}
		f[afterCall] = float64(n) / float64(min(len(s.pieces), maxLooked))
	}
}

// Frames of the server before the arguments that may name the tool.
const namedBefore = 3

// findAnswerJSON finds the server's JSON that no name of a tool is near: an answer that is
// JSON, and no call. The name stands beside the arguments or, where these come in
// pieces, beside an identifier in a frame shortly before. Where the client goes on
// after it, that is what came of the call.
func (c *collection) findAnswerJSON(ex *decode.Exchange, streams []*stream) {
	named := make(map[int]bool)    // frames
	beside := make(map[int32]bool) // messages
	within := make(map[int32]bool) // messages with one that holds a name
	asked := make(map[string]bool) // identifiers that the client sent
	worded, prosed := besideProse(streams)
	for _, s := range streams {
		if s.dir == captures.Up && s.features[identifier] > 0 {
			for _, p := range s.pieces {
				asked[p.text] = true
			}
		}
		if s.dir != captures.Down || s.class != word && s.class != plain || s.inMostFrames {
			continue
		}
		for _, p := range s.pieces {
			if g := c.groups[p.group]; s.discriminates && (g.id == "" || g.texts != 2) {
				continue // the name of a kind, not of what has the identifier
			}
			if isToolName(p.text) && !worded[s.path+" "+p.text] && !isFinish(p.text) && roleWord(p.text) < 0 {
				beside[p.group] = true
				if id, _ := c.idOf(p.group); id != "" {
					named[p.frame] = true
				}
				if parent := c.groups[p.group].parent; parent >= 0 {
					within[parent] = true
				}
			}
		}
	}
	lastUp := -1
	for i := range ex.Frames {
		if ex.Frames[i].Dir == captures.Up && len(ex.Frames[i].Data) > 0 {
			lastUp = i
		}
	}
	for _, s := range streams {
		f := &s.features
		if s.dir != captures.Down || f[jsonText] == 0 || s.pieces[len(s.pieces)-1].frame < lastUp || f[saysRole+toolCall]+f[saysRole+toolResult]+f[afterCall] > 0 {
			continue
		}
		isNamed := func(p piece) bool {
			g := c.groups[p.group]
			return beside[p.group] || within[p.group] || within[g.parent] || beside[g.parent] && !prosed[s.path] || asked[g.id]
		}
		if s.hasCallID() {
			continue
		}
		if !slices.ContainsFunc(s.pieces[:min(len(s.pieces), maxLooked)], isNamed) && (len(s.seqs) == 1 || !namedNear(ex, named, s.pieces[0].frame)) {
			f[bareJSON], f[inCall] = 1, 0
		}
	}
}

// hasCallID reports whether the JSON that s is has a member with the id of a
// call, as arguments have and answers do not.
func (s *stream) hasCallID() bool {
	var text strings.Builder
	for _, p := range s.pieces[:min(len(s.pieces), maxLooked)] {
		text.WriteString(p.text)
	}
	return strings.Contains(strings.ReplaceAll(strings.ToLower(text.String()), "_", ""), `"toolcallid"`)
}

// besideProse are the server's values that stand beside language in a message, so
// that they name no tool, and the paths that have language.
func besideProse(streams []*stream) (beside, prosed map[string]bool) {
	said := make(map[int32]string) // messages, with the path of a text
	beside, prosed = make(map[string]bool), make(map[string]bool)
	for _, s := range streams {
		if s.dir == captures.Down && s.class == plain && s.features[languageLike] >= 0.5 && s.features[afterCall] == 0 {
			prosed[s.path] = true
			for _, p := range s.pieces {
				said[p.group] = s.path
			}
		}
	}
	for _, s := range streams {
		if s.dir != captures.Down || s.class != word {
			continue
		}
		for _, p := range s.pieces {
			if path, ok := said[p.group]; ok && path != s.path {
				beside[s.path+" "+p.text] = true
			}
		}
	}
	return beside, prosed
}

// namedNear reports whether the frame at, or one of the server's last before it,
// is in named.
func namedNear(ex *decode.Exchange, named map[int]bool, at int) bool {
	for n := 0; at >= 0 && n <= namedBefore; at-- {
		if ex.Frames[at].Dir != captures.Down {
			break // what was called before has been answered
		}
		if named[at] {
			return true
		}
		n++
	}
	return false
}

const surelyCall = 0.9 // of a context that has more than an id and a word

// textIDs are the identifiers that stand beside the deltas of a text: they are
// those of the text, and of no call.
func (c *collection) textIDs(streams []*stream) map[string]bool {
	ids := make(map[string]bool)
	for _, s := range streams {
		f := &s.features
		if s.dir != captures.Down || s.class != plain || s.kind != delta && s.kind != growing || len(s.seqs) < 3 || f[lines] > 0.5 {
			continue
		}
		for _, p := range s.pieces[:min(len(s.pieces), maxLooked)] {
			if id := c.groups[p.group].id; id != "" {
				ids[id] = true
			}
		}
	}
	return ids
}

// findModelTitles finds short values that a model's name beside them begins with: they are
// what a program calls it to its user.
func findModelTitles(streams []*stream) {
	models := make(map[int32][]string)
	for _, s := range streams {
		if s.class != model {
			continue
		}
		for _, p := range s.pieces[:min(len(s.pieces), maxClassified)] {
			models[p.group] = append(models[p.group], foldName(p.text))
		}
	}
	for _, s := range streams {
		if s.class != plain && s.class != word || len(s.text) > mostShort {
			continue
		}
		name := foldName(s.text)
		if slices.ContainsFunc(models[s.pieces[0].group], func(m string) bool { return name != "" && strings.HasPrefix(m, name) }) {
			s.features[modelName] = 1
		}
	}
}

// foldName is the letters and digits of a name in lower case.
func foldName(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

const leastStanding = 5 // frames of a value that stands in most of them

// findStandingValues finds the values that most of the server's frames repeat.
func findStandingValues(streams []*stream) {
	frames := make(map[int]bool)
	first := math.MaxInt
	for _, s := range streams {
		if s.dir != captures.Down {
			continue
		}
		for _, p := range s.pieces {
			frames[p.frame] = true
			first = min(first, p.frame)
		}
	}
	for _, s := range streams {
		s.inMostFrames = s.dir == captures.Down && s.kind == same && s.pieces[0].frame == first && len(s.seqs) >= leastStanding && len(s.seqs)*5 >= len(frames)*3
	}
}

// measure sets the features that s has by itself.
func (s *stream) measure() {
	f := &s.features
	f[prior] = 1
	if s.dir == captures.Down {
		f[down] = 1
	} else {
		f[up] = 1
	}
	if s.stored {
		f[storedText] = 1
	}
	f[frames] = clamp(math.Log2(float64(len(s.seqs))) / 8)
	switch s.kind {
	case delta:
		f[deltas] = clamp(float64(len(s.pieces))/5) * s.open
	case growing:
		f[snapshots] = clamp(float64(len(s.pieces)) / 4)
	case separate:
		f[values] = 1
	case same:
		f[constant] = clamp(float64(len(s.seqs)-1) / 2)
	}
	ends := 0
	for _, p := range s.pieces {
		if strings.HasSuffix(p.text, "\n") {
			ends++
		}
	}
	f[lines] = clamp(2*float64(ends)/float64(len(s.pieces)) - 0.8)
	f[long] = clamp(math.Log10(float64(len(s.text))) / 4)
	switch s.class {
	case uuid, hexID, randomID, token:
		f[identifier] = 1
	case number:
		f[numeric] = 1
	case url:
		f[address] = 1
	case filePath:
		f[path] = 1
	case jsonWhole:
		f[jsonText] = 1
	case jsonPart:
		f[jsonText] = 0.8
	case model:
		f[modelName] = 1
	case timestamp, version, mime, setting, header, email, tag:
		f[detail] = 1
	case word:
		f[name] = 1
	}
	if s.class == plain || s.class == word {
		f[languageLike] = s.likeness()
		f[prose] = f[languageLike] * f[long]
		f[instruct] = language.Instructions(s.text)
		if s.dir == captures.Down {
			s.deliberation = language.Deliberation(s.text)
			f[markdown] = language.MarkdownLike(s.text) * (1 - f[languageLike])
			f[asks] = s.asking()
			f[status] = s.reporting()
		}
	}
	if text := strings.TrimSpace(s.text); s.kind == single && len(text) <= 90 && !strings.ContainsAny(text, "\n") && !endsSentence(text) {
		f[headline] = 1
	}
	if s.kind == separate && s.areHeadings() {
		f[headline] = 1
	}
	if head := strings.TrimSpace(s.text[:min(len(s.text), 40)]); strings.HasPrefix(head, "<think") || strings.HasPrefix(head, "<reason") {
		f[thinkTag] = 1
	}
}

// likeness is how much the text, or each of separate values, reads as language.
func (s *stream) likeness() float64 {
	if s.kind != separate {
		return language.Likeness(s.text)
	}
	pieces := s.pieces[:min(len(s.pieces), maxClassified)]
	sum := 0.0
	for _, p := range pieces {
		sum += language.Likeness(p.text)
	}
	return sum / float64(len(pieces))
}

// areHeadings reports whether all pieces are short lines without a stop: a list of names.
func (s *stream) areHeadings() bool {
	for _, p := range s.pieces[:min(len(s.pieces), maxClassified)] {
		text := strings.TrimSpace(p.text)
		if len(text) > 60 || strings.Contains(text, "\n") || endsSentence(text) {
			return false
		}
	}
	return true
}

// endsSentence reports whether the last rune stops a sentence.
func endsSentence(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return strings.ContainsRune(".!?…:。！？।؟", r) || r != utf8.RuneError && unicode.Is(unicode.So, r)
}

// judge takes the most likely role, and notes why.
func (s *stream) judge(w *Weights) {
	s.role, s.reasons = 0, nil
	var sums [len(roleOrder)]float64
	for f, v := range s.features {
		for role, x := range w.table[f] {
			sums[role] += v * x
		}
	}
	for role, sum := range sums {
		if sum > sums[s.role] {
			s.role = role
		}
	}
	s.sum = sums[s.role]
	s.score = softmax(sums, w.temperature)[s.role]
	for f, v := range s.features {
		if x := v * w.table[f][s.role]; x != 0 {
			s.reasons = append(s.reasons, Reason{featureNames[f], math.Round(x*1000) / 1000})
		}
	}
	slices.SortStableFunc(s.reasons, func(a, b Reason) int { return cmp.Compare(math.Abs(b.Weight), math.Abs(a.Weight)) })
}

func clamp(x float64) float64 { return min(max(x, 0), 1) }
