package transcript

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode/transcript/language"
	"unwire/decode/transcript/naming"
)

const (
	// maxCompared is the maximum number of texts that are compared with each other.
	maxCompared = 40

	// maxSearched is the maximum size in bytes of a text that is searched for another one.
	maxSearched = 1 << 16

	// minRepeat is the minimum size in bytes of a text whose occurrence in another text is not considered
	// accidental.
	minRepeat = 60
)

// findEchoes sets the features echo and echoed of texts that both sides sent: as whole values, and line by line.
// Short texts count less, because they may be equal by accident.
func findEchoes(streams []*stream) {
	seed := maphash.MakeSeed()
	hash := func(s string) uint64 { return maphash.String(seed, strings.TrimSpace(s)) }
	var values, lines [2]map[uint64]bool
	// first is the first frame of the server.
	first := math.MaxInt
	for _, s := range streams {
		if s.dir == captures.Down {
			first = min(first, s.pieces[0].frame)
		}
	}

	// asked are the values that the client sent before the server's first frame.
	asked := make(map[uint64]bool)
	// Collect the hashes of all texts and lines of both sides.
	for i := range values {
		values[i], lines[i] = make(map[uint64]bool), make(map[uint64]bool)
	}
	for _, s := range streams {
		if s.class != plain && s.class != word && s.class != number {
			continue
		}
		values[s.dir&1][hash(s.text)] = true
		if s.dir == captures.Up && s.pieces[0].frame < first {
			asked[hash(s.text)] = true
		}
		if s.kind == separate {
			for _, p := range s.pieces {
				values[s.dir&1][hash(p.text)] = true
			}
		}
		for line := range strings.SplitSeq(s.text, "\n") {
			lines[s.dir&1][hash(line)] = true
		}
	}
	// Then compare each text with those of the other side.
	for _, s := range streams {
		k := echo
		if s.dir == captures.Up {
			k = echoed
		}
		runes := float64(utf8.RuneCountInString(language.Sample(s.text)))
		if s.echoed = values[1-s.dir&1][hash(s.text)]; s.echoed {
			s.features[k] = clamp(runes / 20)
			if k == echo && asked[hash(s.text)] && s.features[k] == 1 {
				// The text is an echo, so it cannot be the result of a call.
				s.features[afterCall], s.features[afterFirstCall] = 0, 0
			}
		} else {
			s.features[k] = commonLines(s.text, lines[1-s.dir&1], hash) * clamp(runes/60)
		}
		if s.features[instruct] >= 0.6 {
			// Instructions that a client sends are usually not the user's.
			s.features[k] *= 0.3
		}
	}
}

// commonLines returns the share of a text, from 0 to 1, in lines that the other side sent as well. lines are their
// hashes.
func commonLines(text string, lines map[uint64]bool, hash func(string) uint64) float64 {
	common := 0
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && lines[hash(line)] {
			common += len(line)
		}
	}
	return float64(common) / float64(len(text))
}

// compare sets the features of each text that depend on the other texts, such as being the longest one.
func compare(streams []*stream, groups []group) {
	// With streamed text around, a single repeated value is an echo, however short.
	streaming := slices.ContainsFunc(streams, func(s *stream) bool { return len(s.seqs) > 2 && s.isModelText() })
	for _, s := range streams {
		if s.echoed && s.dir == captures.Down && len(s.seqs) == 1 && streaming {
			s.features[echo] = 1
		}
	}
	findRepeatedShort(streams)
	findReplays(streams)
	// Texts that a model may have written.
	var talkers []*stream
	longest, full := 0, 0
	for _, s := range streams {
		if s.isModelText() {
			talkers = append(talkers, s)
			longest = max(longest, len(s.text))
			if s.features[headline]+s.features[status] == 0 && s.features[asks] < 1 {
				full++
			}
		}
	}
	for _, s := range streams {
		if full == 0 && s.dir == captures.Down {
			// There is no text that it could be the headline of.
			s.features[headline] *= 0.3
		}
	}
	for _, s := range streams {
		if s.dir == captures.Down && len(s.text) > minRepeat && s.features[afterCall] > 0 && slices.ContainsFunc(talkers, func(t *stream) bool { return t != s && len(t.seqs) > len(s.seqs) && t.text == s.text }) {
			s.features[afterCall], s.features[afterFirstCall], s.features[repeats] = 0, 0, 1
		}
	}
	slices.SortStableFunc(talkers, func(a, b *stream) int { return cmp.Compare(len(b.text), len(a.text)) })
	talkers = talkers[:min(len(talkers), maxCompared)]
	findNamesakes(streams)

	// Compare each pair: size, repetition, isolation.
	for _, a := range talkers {
		a.features[largest] = float64(len(a.text)) / float64(longest)
		for _, b := range talkers {
			if a == b {
				continue
			}
			if len(a.seqs) < len(b.seqs) && (a.text == b.text || len(a.text) > minRepeat && len(b.text) < maxSearched && strings.Contains(b.text, a.text)) {
				a.features[repeats] = 1
			}
			if len(a.seqs) == 1 && len(b.seqs) > 2 {
				a.raiseFeature(alone, isolation(a, b))
			}
		}
	}
	sameLabels(talkers)
	findSigned(streams, talkers)
	findTrailing(talkers, groups)
	for _, a := range talkers {
		if a.features[headline] > 0 {
			continue
		}
		for _, b := range talkers {
			if a != b && b.features[trailing]+b.features[asks]+b.features[status]+b.features[headline] < 0.4 {
				a.raiseFeature(deliberating, clamp(a.deliberation-b.deliberation))
			}
		}
		if n := language.SelfTalk(a.text); full == 1 && a.deliberation >= 0.3 && (language.MentionsUser(a.text) || n >= 2 && len(a.seqs) > 1 || n == 1 && callsToolAfter(streams, a.lastNewFrame())) {
			a.raiseFeature(deliberating, 1) // thinking that came to no answer
			a.raiseFeature(beforeText, 0.8)
		}
	}

	// Thinking precedes an answer.
	for _, a := range talkers {
		for _, b := range talkers {
			if n := precedes(a, b); n > 0 && a.features[repeats]+b.features[repeats] == 0 {
				a.raiseFeature(beforeText, n)
				if a.path == b.path && a.label == b.label {
					// If both have the same name, the name is no evidence.
					for _, k := range [...]feature{saysRole + assistant, saysText, plainName} {
						a.features[k], b.features[k] = 0, 0
					}
				}
				b.raiseFeature(afterText, n)
			}
		}
	}
}

// sameLabels removes the evidence of a role in a label from texts that share the label: "assistant", for example,
// labels both thinking and answers.
func sameLabels(talkers []*stream) {
	for _, a := range talkers {
		if a.label == "" || a.features[saysRole+assistant] <= a.namedAssistant {
			continue
		}
		for _, b := range talkers {
			if b.label == a.label && (b.path != a.path || b.variant != a.variant) && a.features[headline]+b.features[headline] == 0 {
				a.features[saysRole+assistant] = a.namedAssistant
				b.features[saysRole+assistant] = b.namedAssistant
			}
		}
	}
}

// callsToolAfter reports whether the server calls a tool after the frame with index after.
func callsToolAfter(streams []*stream, after int) bool {
	return slices.ContainsFunc(streams, func(s *stream) bool {
		return s.dir == captures.Down && s.features[inCall] >= 0.5 && s.features[jsonText]+s.features[path] > 0 && s.pieces[0].frame > after
	})
}

// leastSignature is the minimum length in bytes of a value that may be the signature of a text.
const leastSignature = 40

// findSigned finds the text that is directly followed by a signature, and marks it as thinking. Services sign
// thinking, so that clients can return it unchanged. talkers are the streams that a model may have written.
func findSigned(streams, talkers []*stream) {
	for _, sign := range streams {
		if sign.dir != captures.Down || sign.class != token && sign.class != randomID && sign.class != hexID && sign.class != uuid || len(sign.text) < leastSignature || len(sign.seqs) > 4 {
			continue
		}
		for _, s := range talkers {
			last := s.lastNewFrame()
			if naming.Enclosing(s.path) != naming.Enclosing(sign.path) || s.path == sign.path || len(s.seqs) < 2 || sign.pieces[0].frame < last || sign.pieces[0].frame > last+2 {
				continue
			}
			if !slices.ContainsFunc(talkers, func(t *stream) bool { return t != s && t.pieces[0].frame < s.pieces[0].frame && len(t.seqs) > 1 }) {
				s.raiseFeature(deliberating, 1)
				s.raiseFeature(beforeText, 0.8)
			}
		}
	}
}

// isModelText reports whether a model on the server may have written s.
func (s *stream) isModelText() bool {
	f := &s.features
	return s.dir == captures.Down && (s.class == plain || f[bareJSON] > 0 && s.kind >= delta) && s.kind != separate && s.kind != same &&
		(f[languageLike] >= 0.2 || f[markdown] >= 0.7 || f[bareJSON] > 0) && f[inCall] < 0.5 && f[afterCall] < 0.5 && f[echo] < 0.6 && f[instruct] < 0.6 && f[replayed] == 0 && f[past] == 0 && f[lines]*f[afterFirstCall] < 0.5
}

// isolation scores, from 0 to 1, how unlikely it is that a, which has a single frame, is the answer while b is
// streamed. A short answer after long thinking is usual.
func isolation(a, b *stream) float64 {
	switch {
	case a.features[namesake] > 0:
		return 0
	case a.features[headline] > 0:
		return 1
	case naming.Siblings(a.path, b.path) && a.pieces[0].frame > b.pieces[len(b.pieces)-1].frame:
		return 0.1
	}
	return 0.6
}

// precedes scores, from 0 to 1, how certainly a is thinking that leads to b: a begins and ends before b, and both
// have similar paths.
func precedes(a, b *stream) float64 {
	if a.interleaved && b.interleaved && a.path == b.path || a.pieces[0].frame >= b.pieces[0].frame || a.lastNewFrame() >= b.lastNewFrame() {
		return 0
	}
	n := 1.0
	switch {
	case b.features[trailing]+b.features[status]+b.features[asks] >= 0.5 || a.features[status] > 0:
		return 0
	case a.path == b.path && b.features[namesake] > 0:
		return 1
	case len(a.seqs) == 1 && a.features[headline] > 0:
		return 0
	case len(b.seqs) == 1 && b.features[headline] > 0:
		n = 0.2
	case len(b.seqs) == 1 && !naming.Siblings(a.path, b.path):
		n = 0.3
	case len(b.seqs) == 1:
		n = 0.8
	case len(a.seqs) == 1:
		n = 0.4
	}

	if !naming.Siblings(a.path, b.path) {
		n *= 0.6
	}
	return n
}

// lastNewFrame returns the index of the frame with the last piece that differs from the previous one.
func (s *stream) lastNewFrame() int {
	i := len(s.pieces) - 1
	for s.kind == growing && i > 0 && s.pieces[i-1].text == s.pieces[i].text {
		i--
	}
	return s.pieces[i].frame
}

// findTrailing finds short texts after the end of the main text, such as further questions, a title or a summary,
// and sets their feature trailing. talkers are the streams that a model may have written.
func findTrailing(talkers []*stream, groups []group) {
	for _, b := range talkers {
		if len(b.seqs) > 4 || b.kind == growing {
			continue
		}
		for _, a := range talkers {
			if a == b || len(a.seqs) < 3 || len(a.seqs) <= len(b.seqs) || a.path == b.path {
				continue
			}
			if a.lastNewFrame() >= b.pieces[0].frame {
				continue
			}
			if b.isFault(a, len(groups[b.pieces[0].group].scalars) > 0) {
				b.raiseFeature(trailing, 1)
			} else if !naming.Alike(a.path, b.path) || b.features[asks] > 0 {
				b.raiseFeature(trailing, 1-clamp(2*(a.deliberation-b.deliberation)))
			}
		}
	}
}

// mostFault is the maximum size in bytes of a text that explains why a stream ended.
const mostFault = 300

// isFault reports whether s, which was sent in one frame, explains why text a ended. The evidence is its wording
// together with a number (numbered), or that a ends in the middle of a sentence.
func (s *stream) isFault(a *stream, numbered bool) bool {
	if len(s.seqs) > 1 || len(s.text) > mostFault || strings.Contains(s.text, "\n\n") {
		return false
	}
	worded := language.IsFault(s.text)
	return worded && (numbered || a.breaksOff()) || numbered && a.breaksOff() && language.EndsSentence(s.text)
}

// breaksOff reports whether s ends in the middle of a sentence, a word or a code block.
func (s *stream) breaksOff() bool {
	text := strings.TrimRight(s.text, " ")
	last, _ := utf8.DecodeLastRuneInString(text)
	return len(text) < len(s.text) || s.class == jsonPart || strings.Count(text, "```")%2 == 1 || len(text) > mostShort && (unicode.IsLetter(last) || last == ',')
}

// findNamesakes finds texts that share their path with another text and differ from it by a label or number, and
// sets their feature namesake.
func findNamesakes(streams []*stream) {
	texts := make(map[string]*stream)
	for _, s := range streams {
		if s.dir == captures.Down && (s.label != "" || s.variant != "") && s.isModelText() && len(s.seqs) > 1 && s.features[headline] == 0 {
			if texts[s.path] == nil || s.deliberation > texts[s.path].deliberation {
				texts[s.path] = s
			}
		}
	}
	for _, s := range streams {
		other := texts[s.path]
		if s.dir != captures.Down || other == nil || other == s || s.features[identifier] > 0 || s.features[status] > 0 {
			continue
		}
		s.features[namesake] = 0.1
		if s.class == word || s.class == number || s.features[headline] > 0 {
			s.features[namesake] = 1
		}
		if other.pieces[0].frame < s.pieces[0].frame && (s.class == word || s.class == number) {
			s.raiseFeature(afterText, 1)
			other.raiseFeature(beforeText, 1)
		}
	}
}

// findReplays finds conversations that are sent again: whole messages of two authors that alternate on one path.
// The author who begins is the user.
func findReplays(streams []*stream) {
	parts := make(map[string][]*stream)
	for _, s := range streams {
		if (s.dir == captures.Down && s.label != "" || s.variant != "") && s.class == plain {
			key := s.dir.String() + s.path
			parts[key] = append(parts[key], s)
		}
	}

	for _, list := range parts {
		if len(list) != 2 {
			continue
		}
		a, b := list[0], list[1]
		if a.dir == captures.Up {
			// The client sent the conversation together with its question, which is last.
			if comparePieces(a.pieces[len(a.pieces)-1], b.pieces[len(b.pieces)-1]) > 0 {
				a, b = b, a
			}
			if a.whole && alternations(a, b) == len(a.pieces)+len(b.pieces)-1 {
				a.features[past] = 1
			}
			continue
		}

		if a.pieces[0].frame > b.pieces[0].frame {
			a, b = b, a
		}
		if !a.whole && (a.kind != separate || b.kind != separate && b.kind != single) || a.deliberation > 0.5 {
			continue
		}
		if turns := alternations(a, b); turns >= 2 && turns >= len(a.pieces)+len(b.pieces)-2 {
			a.features[replayed], b.features[past] = 1, 0.4
		}
	}
}

// alternations returns how often the pieces of two streams alternate.
func alternations(a, b *stream) int {
	n, i, k := 0, 0, 0
	last := -1
	for i < len(a.pieces) || k < len(b.pieces) {
		now := 0
		if i == len(a.pieces) || k < len(b.pieces) && comparePieces(b.pieces[k], a.pieces[i]) < 0 {
			now = 1
			k++
		} else {
			i++
		}
		if last >= 0 && now != last {
			n++
		}
		last = now
	}
	return n
}

// asking scores, from 0 to 1, how certainly the pieces of s are separate questions and requests.
func (s *stream) asking() float64 {
	if len(s.pieces) > 6 || s.kind == growing {
		return 0
	}
	questions := 0
	for _, p := range s.pieces {
		text := strings.TrimSpace(p.text)
		switch {
		case len(text) > 200 || strings.Contains(text, "\n"):
			return 0
		case strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？") || strings.HasSuffix(text, "؟") || strings.HasSuffix(text, ";") && language.IsGreek(text):
			questions++
		case text != p.text || language.IsASCII(text) && strings.Count(text, " ") < 2:
			// It is not a whole request in words either.
			return 0
		}
	}
	switch {
	case questions*2 < len(s.pieces) || questions == 0:
		return 0
	case len(s.pieces) == 1:
		return 0.4
	}
	return 1
}

// reporting scores, from 0 to 1, how certainly s consists of short status lines of a program, such as "Searching…".
func (s *stream) reporting() float64 {
	if len(s.pieces) > 6 {
		return 0
	}
	best := 1.0
	for _, p := range s.pieces {
		text := strings.TrimSpace(p.text)
		first, rest, _ := strings.Cut(text, " ")
		switch {
		case len(text) > 80 || strings.Contains(text, "\n"):
			return 0
		case strings.HasSuffix(text, "…") || strings.HasSuffix(text, "..."):
		case strings.HasSuffix(first, "ing") && len(first) > 5 && first[0] >= 'A' && first[0] <= 'Z' && !language.EndsSentence(rest) && strings.Count(text, " ") < 6:
			best = min(best, 0.7)
		default:
			return 0
		}
	}
	return best
}
