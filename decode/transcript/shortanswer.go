package transcript

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode/transcript/language"
	"unwire/decode/transcript/naming"
)

// surelyAsked is the minimum score of the user's text for it to count as a question that needs an answer.
const surelyAsked = 0.9

// chooseShortAnswer finds an answer that is one word or number and therefore looks like metadata. It chooses the
// most likely value of the server if the user asked something and no other text answers it, apart from a title, a
// list of steps or the thinking before the answer.
func (c *collection) chooseShortAnswer(streams []*stream, w *Weights) {
	// said is text that may be the thinking before the answer.
	var said *stream
	var question, heard *stream
	// settled: there is another answer. weak: the answer found so far may be a title or a
	// list. short: the answer found so far is itself short.
	settled, weak, short := false, false, false
	for _, s := range streams {
		switch {
		case s.dir == captures.Up:
			if s.role == user && s.score >= surelyAsked && (question == nil || s.score > question.score) {
				question = s
			}
		case s.role == thinking:
			settled = settled || said != nil && said.role == assistant
			if said == nil || said.lastNewFrame() < s.lastNewFrame() {
				said = s
			}
		case s.role != assistant:
		case s.isWeak():
			if weak = true; s.kind == growing && heard == nil {
				heard = s
			}
		case len(strings.TrimSpace(s.text)) <= mostShort && s.kind <= delta:
			// It competes with the other values.
			short = true
		case said == nil:
			said = s
		default:
			settled = true
		}
	}

	// Speech: the question is what the server understood.
	if question == nil && !settled && clientSentNoWords(streams) {
		if heard == nil && said != nil && said.kind == growing {
			heard, said, weak = said, nil, true
		}
		question = heard
	}
	if question == nil || settled {
		return
	}

	// Find the two most likely values.
	var best, second *stream
	least, most, next := 0.0, math.Inf(-1), math.Inf(-1)
	script := language.ScriptOf(question.text)
	for _, s := range streams {
		n, ok := c.answerLikelihood(s, said)
		if ok && script != nil && language.ScriptOf(s.text) == script {
			// The answer is in the script of the question.
			n++
		}
		switch {
		case !ok:
		case best != nil && best.text == s.text:
			// The value was sent twice; the first one counts.
			most = max(most, n)
		case n > most:
			second, next = best, most
			best, most = s, n
		case n > next:
			second, next = s, n
		}
	}

	// The threshold depends on what else may be the answer.
	if second == nil && said == nil && !weak && !short {
		// There is no other value.
		least = -1
	}
	if said != nil && said.role == assistant {
		if least = 1; said.deliberation < 0.5 {
			least = 2.4
		}
	} else if weak {
		least = 0.5
	}
	if best == nil || most < least || most-next < leastLead {
		return
	}
	best.features[onlyChoice] = 1
	best.judge(w)
	if question.dir == captures.Down {
		question.features[replayed] = 1
		question.judge(w)
	}
	if said != nil && said.role == assistant {
		said.raiseFeature(beforeText, 1)
		said.raiseFeature(deliberating, max(said.deliberation, 0.5))
		if said.label == best.label {
			said.features[saysRole+assistant] = said.namedAssistant
		}
		said.judge(w)
	}
}

// markTranscription marks the transcription of the user's speech: if the client sent no words, text that the server
// streams first, and completes before another text begins, repeats what the user said.
func markTranscription(streams []*stream, w *Weights) {
	if !clientSentNoWords(streams) || !slices.ContainsFunc(streams, func(s *stream) bool { return s.dir == captures.Up }) {
		return
	}
	var first *stream
	for _, s := range streams {
		if s.dir == captures.Down && (s.isStreamed() || s.class == jsonWhole && s.kind >= delta && s.kind != separate) && (first == nil || s.pieces[0].frame < first.pieces[0].frame) {
			first = s
		}
	}
	if first == nil || first.kind != growing || first.role != assistant && first.role != thinking || first.deliberation > 0.3 || first.features[saysRole+thinking]+first.features[saysRole+assistant] > 0 {
		return
	}
	for _, s := range streams {
		if s != first && s.dir == captures.Down && s.pieces[0].frame > first.lastNewFrame() && (s.role == assistant || s.path == first.path && s.name == first.name) {
			first.features[replayed] = 1
			first.features[beforeText] = 0
			first.judge(w)
			return
		}
	}
}

// clientSentNoWords reports whether the client sent no natural language. Then the first
// text of the server may be what it understood of the user's speech.
func clientSentNoWords(streams []*stream) bool {
	return !slices.ContainsFunc(streams, func(s *stream) bool {
		return s.dir == captures.Up && s.features[languageLike] >= 0.4 && s.class == plain
	})
}

// keepOneAnswer gives the role of thinking to texts that are streamed next to the answer and end before it: a
// server does not answer twice.
func keepOneAnswer(streams []*stream, w *Weights) {
	var answer *stream
	for _, s := range streams {
		if s.role == assistant && s.isStreamed() && (answer == nil || s.sum > answer.sum) {
			answer = s
		}
	}
	for _, s := range streams {
		if s == answer || s.role != assistant || !s.isStreamed() || s.path == answer.path || !naming.Alike(s.path, answer.path) {
			continue
		}
		if s.lastNewFrame() < answer.lastNewFrame() && s.features[repeats]+s.features[saysRole+assistant] == 0 && s.deliberation >= answer.deliberation {
			s.raiseFeature(beforeText, 1)
			s.judge(w)
		}
	}
}

// isStreamed reports whether s is one text of the server that was sent in pieces.
func (s *stream) isStreamed() bool {
	return s.dir == captures.Down && (s.kind == delta || s.kind == growing) && s.features[headline]+s.features[past]+s.features[trailing] < 0.4
}

// isWeak reports whether s, which has the role of the answer, may be a title, a list of
// steps or a list of further questions.
func (s *stream) isWeak() bool {
	if s.asking() > 0 || s.reporting() > 0 || s.features[trailing]+s.features[headline] >= 0.4 || s.kind == separate && s.areHeadings() {
		return len(s.seqs) <= 6
	}
	if s.kind == separate && (len(s.seqs) == 1 || len(s.seqs) <= 6 && !slices.ContainsFunc(s.pieces, func(p textPiece) bool { return len(p.text) > 200 || strings.Contains(p.text, "\n") })) {
		// A list that is sent whole, or line by line.
		return true
	}
	text := strings.TrimSpace(s.text)
	if len(text) <= 200 && strings.HasSuffix(text, "?") && !strings.Contains(text, "\n") {
		// The transcribed question of the user, or a question to the user.
		return true
	}
	return s.kind == single && len(text) <= 90 && !strings.Contains(text, "\n") && !language.EndsSentence(text)
}

// leastWhole is the minimum size in bytes of a text that can be the longest answer; shorter ones are properties of
// something.
const leastWhole = 24

// chooseLongestAnswer chooses the longest text of the server as the answer if no other text answers and no tool was
// called, for example code without any prose. If called is true, it considers only texts that look like a call's
// arguments, otherwise any text.
func chooseLongestAnswer(streams []*stream, w *Weights, called bool) {
	var best *stream
	for _, s := range streams {
		f := &s.features
		switch {
		case s.role == assistant && s.answerRank() == 0, s.role == toolCall && s.dir == captures.Down && (f[jsonText] > f[bareJSON] || s.class == filePath), f[failed] > 0:
			return
		case s.dir != captures.Down || s.class != plain || len(s.text) < leastWhole || s.kind == same || s.kind == separate || s.discriminates || s.stored:
		case f[echo]+f[afterCall]+f[instruct]+f[status]+f[asks]+f[trailing] >= 0.5 || f[saysRole+metadata] >= 1 || f[saysRole+thinking] > 0 || s.role == thinking || s.role == user:
		case called && s.role != toolCall:
		case best == nil || len(s.text) > len(best.text):
			best = s
		}
	}
	if best != nil {
		best.features[onlyChoice] = 1
		best.judge(w)
	}
}

// leastLead is the minimum difference of likelihood between the chosen value and the next best one.
const leastLead = 0.5

// answerLikelihood returns how likely the short value s is the whole answer, on an open scale around 0. ok is false
// if it cannot be the answer. said is the text that the server sent before, which may be thinking; it may be nil.
func (c *collection) answerLikelihood(s, said *stream) (likely float64, ok bool) {
	f := &s.features
	text := strings.TrimSpace(s.text)
	switch {
	case s.dir != captures.Down || s.role == user || s.kind == same && len(s.pieces) > maxShortRepeats || s.kind == separate || s.discriminates || s.stored:
		return 0, false
	case s.kind == delta && len(unique(s.pieces)) == 1:
		// One value that is repeated.
		return 0, false
	case f[failed]+f[status]+f[asks]+f[trailing]+f[inCall]+f[afterCall] >= 0.5, s.echoed:
		return 0, false
	case f[saysRole+metadata] >= 1 || f[saysRole+idRole] >= 1, language.IsFinish(text):
		return 0, false
	case said != nil && s.pieces[0].frame <= said.lastNewFrame():
		return 0, false
	case s.class == jsonWhole && s.kind >= delta && len(s.pieces) > 2:
		return 2, f[afterFirstCall]+f[inCall]+f[saysRole+toolCall]+f[saysRole+toolResult] == 0
	case s.class == jsonWhole && f[bareJSON] > 0:
		return 1.5, f[afterFirstCall]+f[saysRole+metadata] == 0
	case len(text) > mostShort || strings.Count(text, " ") >= 2:
		return 0, false
	}

	// Short values: the score depends on the form of the text and on its surroundings.
	switch s.class {
	case number:
		likely = 1
	case version, filePath:
		likely = -0.5
	case word:
		if likely = -1; s.kind == same && !language.IsShortReply(text) {
			return 0, false
		}
	case plain:
		if slices.ContainsFunc(strings.Fields(text), language.IsGarbled) {
			return 0, false
		}
	default:
		return 0, false
	}

	// A word that can be an answer by itself counts most.
	r, _ := utf8.DecodeRuneInString(text)
	switch {
	case language.IsShortReply(text):
		likely += 2
	case language.IsState(text):
		if likely++; s.class == word {
			likely++
		}
	case unicode.IsUpper(r) || r >= utf8.RuneSelf:
		likely += 0.5
	}
	if language.EndsSentence(text) {
		likely += 0.5
	}
	if len(s.pieces) > 1 {
		likely += 1.5
	}

	// Names and neighbours that suggest an answer.
	if f[plainName] > 0 {
		likely += 2
	}
	if said != nil && naming.Siblings(s.path, said.path) {
		likely += 2
	}
	if f[twice] > 0 || f[namesake] > 0 {
		likely += 2
	}
	here := c.groups[s.pieces[0].group]
	if said != nil {
		if there := c.groups[said.pieces[0].group]; here.texts != there.texts || len(here.scalars) != len(there.scalars) {
			// It is in a message of another form.
			likely--
		}
	}
	return likely - 0.15*float64(min(here.texts-1, 3)), true
}

// maxShortRepeats is the maximum number of times that the server sends a short answer.
const maxShortRepeats = 3

// mostShort is the maximum size in bytes of a short answer.
const mostShort = 24

// findRepeatedShort sets the feature named twice on short values that the server sends at two different paths: an answer,
// and its repetition at the end.
func findRepeatedShort(streams []*stream) {
	type place struct {
		s     *stream
		frame int
	}
	first := make(map[string]place)
	for _, s := range streams {
		if s.dir != captures.Down || len(s.text) > mostShort || language.IsFinish(s.text) || s.class != plain && s.class != number && s.class != word || s.kind == same || s.kind == separate || s.discriminates {
			continue
		}
		if was, ok := first[s.text]; ok && was.s.path != s.path && was.frame != s.pieces[0].frame {
			earlier := was.s
			if s.pieces[0].frame < was.frame {
				earlier = s
			}
			earlier.features[twice] = 1
			continue
		}
		first[s.text] = place{s, s.pieces[0].frame}
	}
}
