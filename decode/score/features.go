package score

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode"
)

const (
	smallFrame  = 24      // texts of a frame that are taken to belong together
	maxTalkers  = 40      // streams of text that are compared with each other
	maxSearched = 1 << 16 // bytes of a text in which another is looked for
	leastRepeat = 60      // bytes of a text that is no part of another by chance
	looked      = 200     // pieces of a stream whose neighbours are looked at
)

// A context is what stands beside a text: in its frame, if that is small, else
// in its message.
type context struct {
	id, json, word, filePath bool
	text                     bool // language
	ids                      []string
	first                    int // frame
}

// measure sets the features of all streams.
func (c *collection) measure(ex *decode.Exchange, streams []*stream) {
	texts := make(map[int]int) // of a frame
	for _, s := range streams {
		s.measure()
		s.hear()
		for _, p := range s.pieces {
			texts[p.frame]++
		}
	}
	contexts := make(map[[2]int]*context)
	get := func(frame, group int) *context {
		key := [2]int{frame, group}
		x := contexts[key]
		if x == nil {
			x = &context{first: frame}
			contexts[key] = x
		}
		return x
	}
	beside := func(p piece) *context { return get(p.frame, int(p.group)) }
	around := func(p piece) *context {
		if texts[p.frame] > smallFrame {
			return beside(p)
		}
		return get(p.frame, -1)
	}
	for _, s := range streams {
		for _, p := range s.pieces {
			x, y := around(p), beside(p)
			x.note(s, p)
			if x != y {
				y.note(s, p)
			}
		}
	}
	calls := make(map[string]int) // ids of calls, with the frame that made them
	firstCall := len(ex.Frames)
	for _, x := range contexts {
		if x.call() == 0 || ex.Frames[x.first].Dir != captures.Down {
			continue
		}
		for _, id := range x.ids {
			if first, ok := calls[id]; !ok || x.first < first {
				calls[id] = x.first
			}
		}
		firstCall = min(firstCall, x.first)
	}
	answered := slices.IndexFunc(ex.Frames, func(f decode.Frame) bool { return f.Dir == captures.Down })
	for _, s := range streams {
		s.neighbours(around, beside, calls)
		if s.dir == captures.Down && s.pieces[0].frame > firstCall && s.features[inCall] < 0.5 {
			s.features[inWake] = 1
		}
		if s.dir == captures.Up && answered >= 0 && s.pieces[0].frame > answered {
			s.features[later] = 1
		}
		if ex.Status >= 400 && s.dir == captures.Down {
			s.features[failed] = 1
		}
	}
	echoes(streams)
	compare(streams)
}

func (x *context) note(s *stream, p piece) {
	switch s.class {
	case uuid, hexID, randomID, token:
		x.id = true
		x.ids = append(x.ids, p.text)
	case jsonWhole, jsonPart:
		x.json = true
	case word:
		x.word = x.word || !s.telling && s.kind != same && s.features[saysRole+metadata] < 1
	case filePath:
		x.filePath = true
	case plain:
		x.text = x.text || s.features[wording] >= 0.5
	}
}

// call says how much x looks like a call of a tool.
func (x *context) call() float64 {
	switch {
	case x.json && (x.id || x.word):
		return 1
	case x.text:
		return 0 // names and ids beside a text are its metadata
	case x.id && x.word:
		return 0.7
	case x.id && x.filePath:
		return 0.9
	}
	return 0
}

// measure sets the features that s has by itself.
func (s *stream) measure() {
	f := &s.features
	f[always] = 1
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
		f[wording] = s.language()
		f[prose] = f[wording] * f[long]
		f[instruct] = instructions(s.text)
	}
	if text := strings.TrimSpace(s.text); s.kind == single && len(text) <= 90 && !strings.ContainsAny(text, "\n") && !endsSentence(text) {
		f[headline] = 1
	}
	if head := strings.TrimSpace(s.text[:min(len(s.text), 40)]); strings.HasPrefix(head, "<think") || strings.HasPrefix(head, "<reason") {
		f[thinkTag] = 1
	}
}

// language is how much the text, or each of separate values, reads as language.
func (s *stream) language() float64 {
	if s.kind != separate {
		return language(s.text)
	}
	pieces := s.pieces[:min(len(s.pieces), classified)]
	sum := 0.0
	for _, p := range pieces {
		sum += language(p.text)
	}
	return sum / float64(len(pieces))
}

// endsSentence reports whether the last rune stops a sentence.
func endsSentence(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return strings.ContainsRune(".!?…:。！？।؟", r) || unicode.Is(unicode.So, r)
}

// neighbours sets the features that come from what stands beside the pieces.
func (s *stream) neighbours(around, beside func(piece) *context, calls map[string]int) {
	f := &s.features
	pieces := s.pieces[:min(len(s.pieces), looked)]
	for _, p := range pieces {
		x, own := around(p), beside(p)
		f[inCall] += x.call()
		for _, id := range x.ids {
			if made, ok := calls[id]; ok && made < p.frame && (s.dir == captures.Up || f[jsonText] == 0) {
				f[afterCall]++
				break
			}
		}
		if s.dir == captures.Up && own.filePath && s.class != filePath {
			f[besidePath]++
		}
		if s.dir == captures.Up && own.json && f[jsonText] == 0 {
			f[besideJSON]++
		}
		if s.dir == captures.Up && own.id && f[identifier] == 0 {
			f[besideID]++
		}
	}
	for _, k := range [...]feature{inCall, afterCall, besidePath, besideJSON, besideID} {
		f[k] /= float64(len(pieces))
	}
	if s.dir == captures.Up {
		f[inCall] = 0
	}
}

// echoes compares both directions: whole values, and line by line. A short text
// is easily the same by chance.
func echoes(streams []*stream) {
	seed := maphash.MakeSeed()
	hash := func(s string) uint64 { return maphash.String(seed, strings.TrimSpace(s)) }
	var values, lines [2]map[uint64]bool
	for i := range values {
		values[i], lines[i] = make(map[uint64]bool), make(map[uint64]bool)
	}
	for _, s := range streams {
		if s.class != plain && s.class != word {
			continue
		}
		values[s.dir&1][hash(s.text)] = true
		if s.kind == separate {
			for _, p := range s.pieces {
				values[s.dir&1][hash(p.text)] = true
			}
		}
		for line := range strings.SplitSeq(s.text, "\n") {
			lines[s.dir&1][hash(line)] = true
		}
	}
	for _, s := range streams {
		k := echo
		if s.dir == captures.Up {
			k = echoed
		}
		runes := float64(utf8.RuneCountInString(sample(s.text)))
		if s.echoed = values[1-s.dir&1][hash(s.text)]; s.echoed {
			s.features[k] = clamp(runes / 20)
		} else {
			s.features[k] = commonLines(s.text, lines[1-s.dir&1], hash) * clamp(runes/60)
		}
		if s.features[instruct] >= 0.6 {
			s.features[k] *= 0.3 // not all that a client sends is the user's
		}
	}
}

// commonLines is which share of a text is in lines that the other side sent.
func commonLines(text string, lines map[uint64]bool, hash func(string) uint64) float64 {
	common := 0
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && lines[hash(line)] {
			common += len(line)
		}
	}
	return float64(common) / float64(len(text))
}

// compare sets the features that come from the server's other texts.
func compare(streams []*stream) {
	// A repetition, however short, that stands alone is one.
	streaming := slices.ContainsFunc(streams, func(s *stream) bool { return len(s.seqs) > 2 && s.talks() })
	for _, s := range streams {
		if s.echoed && s.dir == captures.Down && len(s.seqs) == 1 && streaming {
			s.features[echo] = 1
		}
	}
	var talkers []*stream
	longest, full := 0, 0
	for _, s := range streams {
		if s.talks() {
			talkers = append(talkers, s)
			longest = max(longest, len(s.text))
			if s.features[headline] == 0 {
				full++
			}
		}
	}
	for _, s := range streams {
		if full == 0 && s.dir == captures.Down {
			s.features[headline] *= 0.3 // there is nothing else that it could head
		}
	}
	slices.SortStableFunc(talkers, func(a, b *stream) int { return cmp.Compare(len(b.text), len(a.text)) })
	talkers = talkers[:min(len(talkers), maxTalkers)]
	for _, a := range talkers {
		a.features[largest] = float64(len(a.text)) / float64(longest)
		for _, b := range talkers {
			if a == b {
				continue
			}
			if len(a.seqs) < len(b.seqs) && (a.text == b.text || len(a.text) > leastRepeat && len(b.text) < maxSearched && strings.Contains(b.text, a.text)) {
				a.features[repeats] = 1
			}
			if len(a.seqs) == 1 && len(b.seqs) > 2 {
				a.raise(alone, loneliness(a, b))
			}
		}
	}
	for _, a := range talkers {
		for _, b := range talkers {
			if n := precedes(a, b); n > 0 && a.features[repeats]+b.features[repeats] == 0 {
				a.raise(beforeText, n)
				b.raise(afterText, n)
			}
		}
	}
}

// talks reports whether s may be text that the server's model wrote.
func (s *stream) talks() bool {
	f := &s.features
	return s.dir == captures.Down && s.class == plain && s.kind != separate && s.kind != same &&
		f[wording] >= 0.2 && f[inCall] < 0.5 && f[afterCall] < 0.5 && f[echo] < 0.6 && f[instruct] < 0.6 && f[lines]*f[inWake] < 0.5
}

// loneliness says how odd it is that a is in one frame while b streams: a short
// answer behind long thinking is not odd.
func loneliness(a, b *stream) float64 {
	switch {
	case a.features[headline] > 0:
		return 1
	case siblings(a.path, b.path) && a.pieces[0].frame > b.pieces[len(b.pieces)-1].frame:
		return 0.1
	}
	return 0.6
}

// precedes says how surely a is thinking that leads to b: it begins before and
// ends before, and both come in the same clothes.
func precedes(a, b *stream) float64 {
	first, last := a.pieces[0].frame, a.pieces[len(a.pieces)-1].frame
	if first >= b.pieces[0].frame || last >= b.pieces[len(b.pieces)-1].frame {
		return 0
	}
	n := 1.0
	switch {
	case len(a.seqs) == 1 && a.features[headline] > 0:
		return 0
	case len(b.seqs) == 1 && b.features[headline] > 0:
		n = 0.2
	case len(b.seqs) == 1:
		n = 0.8
	case len(a.seqs) == 1:
		n = 0.4
	}
	if !siblings(a.path, b.path) {
		n *= 0.6
	}
	return n
}

// siblings reports whether paths are as deep and differ in one of the last two
// steps.
func siblings(a, b string) bool {
	if strings.Count(a, ".") != strings.Count(b, ".") {
		return false
	}
	return enclosing(enclosing(a)) == enclosing(enclosing(b))
}

func enclosing(path string) string {
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}

// judge takes the most likely role, and notes why.
func (s *stream) judge() {
	var sums [len(roleOrder)]float64
	for f, v := range s.features {
		for role, w := range weights[f] {
			sums[role] += v * w
		}
	}
	for role, sum := range sums {
		if sum > sums[s.role] {
			s.role = role
		}
	}
	s.sum = sums[s.role]
	for f, v := range s.features {
		if w := v * weights[f][s.role]; w != 0 {
			s.reasons = append(s.reasons, Reason{featureNames[f], math.Round(w*1000) / 1000})
		}
	}
	slices.SortStableFunc(s.reasons, func(a, b Reason) int { return cmp.Compare(math.Abs(b.Weight), math.Abs(a.Weight)) })
}
