package transcript

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode/transcript/language"
)

const surelyAsked = 0.9 // score of the text that the user sent

// chooseShortAnswer finds the answer of a word or a number, which by itself looks like
// metadata: the likeliest value that is left, where the user asked something and nothing
// else answers it, or only a title, a list of steps, or the thinking that led to it.
func (c *collection) chooseShortAnswer(streams []*stream, w *Weights) {
	var said *stream // text that may be the thinking that led to the answer
	var question, heard *stream
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
			short = true // it is weighed with the others
		case said == nil:
			said = s
		default:
			settled = true
		}
	}
	if question == nil && !settled && clientSentNoWords(streams) {
		if heard == nil && said != nil && said.kind == growing {
			heard, said, weak = said, nil, true
		}
		question = heard
	}
	if question == nil || settled {
		return
	}
	var best, second *stream
	least, most, next := 0.0, math.Inf(-1), math.Inf(-1)
	script := scriptOf(question.text)
	for _, s := range streams {
		n, ok := c.answerLikelihood(s, said)
		if ok && script != nil && scriptOf(s.text) == script {
			n++ // the language that was asked in
		}
		switch {
		case !ok:
		case best != nil && best.text == s.text:
			most = max(most, n) // said twice: what came first is it
		case n > most:
			second, next = best, most
			best, most = s, n
		case n > next:
			second, next = s, n
		}
	}
	if second == nil && said == nil && !weak && !short {
		least = -1 // it is the only one
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

// markTranscription takes the text that streams first where the client sent no words, and
// ended before another begins, for what was heard of the user: speech goes up, and
// comes down as text.
func markTranscription(streams []*stream, w *Weights) {
	if !clientSentNoWords(streams) || !slices.ContainsFunc(streams, func(s *stream) bool { return s.dir == captures.Up }) {
		return
	}
	var first *stream
	for _, s := range streams {
		if s.dir == captures.Down && (s.isSpoken() || s.class == jsonWhole && s.kind >= delta && s.kind != separate) && (first == nil || s.pieces[0].frame < first.pieces[0].frame) {
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

// clientSentNoWords reports whether the client sent nothing in words: then what the server
// tells first, as it understands it better and better, may be what it heard.
func clientSentNoWords(streams []*stream) bool {
	return !slices.ContainsFunc(streams, func(s *stream) bool {
		return s.dir == captures.Up && s.features[languageLike] >= 0.4 && s.class == plain
	})
}

// keepOneAnswer takes what streams beside the answer, and ends before it does, for the
// thinking that led to it: a server does not answer twice.
func keepOneAnswer(streams []*stream, w *Weights) {
	var answer *stream
	for _, s := range streams {
		if s.role == assistant && s.isSpoken() && (answer == nil || s.sum > answer.sum) {
			answer = s
		}
	}
	for _, s := range streams {
		if s == answer || s.role != assistant || !s.isSpoken() || s.path == answer.path || !alike(s.path, answer.path) {
			continue
		}
		if s.lastNewFrame() < answer.lastNewFrame() && s.features[repeats]+s.features[saysRole+assistant] == 0 && s.deliberation >= answer.deliberation {
			s.raiseFeature(beforeText, 1)
			s.judge(w)
		}
	}
}

// isSpoken reports whether s came in pieces of one text.
func (s *stream) isSpoken() bool {
	return s.dir == captures.Down && (s.kind == delta || s.kind == growing) && s.features[headline]+s.features[past]+s.features[trailing] < 0.4
}

// isWeak reports whether s, which was taken for the answer, may as well be a title
// or a list of steps or of further questions.
func (s *stream) isWeak() bool {
	if s.asking() > 0 || s.reporting() > 0 || s.features[trailing]+s.features[headline] >= 0.4 || s.kind == separate && s.areHeadings() {
		return len(s.seqs) <= 6
	}
	if s.kind == separate && (len(s.seqs) == 1 || len(s.seqs) <= 6 && !slices.ContainsFunc(s.pieces, func(p piece) bool { return len(p.text) > 200 || strings.Contains(p.text, "\n") })) {
		return true // a list that is sent whole, or line by line
	}
	text := strings.TrimSpace(s.text)
	if len(text) <= 200 && strings.HasSuffix(text, "?") && !strings.Contains(text, "\n") {
		return true // what was heard, or a question back
	}
	return s.kind == single && len(text) <= 90 && !strings.Contains(text, "\n") && !endsSentence(text)
}

const leastWhole = 24 // bytes of a text that is no property of something

// chooseLongestAnswer takes the longest text of the server for the answer where nothing answers
// and no tool was called: code without a word around it, for one. It takes what
// looks like a call's, or else any.
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

const leastLead = 0.5 // of the likeliest value before the next

// answerLikelihood says whether a short value may be all of an answer, and how likely it
// is to be that, where said is what was said before.
func (c *collection) answerLikelihood(s, said *stream) (likely float64, ok bool) {
	f := &s.features
	text := strings.TrimSpace(s.text)
	switch {
	case s.dir != captures.Down || s.role == user || s.kind == same && len(s.pieces) > maxShortRepeats || s.kind == separate || s.discriminates || s.stored:
		return 0, false
	case s.kind == delta && len(unique(s.pieces)) == 1:
		return 0, false // one value, again and again
	case f[failed]+f[status]+f[asks]+f[trailing]+f[inCall]+f[afterCall] >= 0.5, s.echoed:
		return 0, false
	case f[saysRole+metadata] >= 1 || f[saysRole+idRole] >= 1, isFinish(text):
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
	switch s.class {
	case number:
		likely = 1
	case version, filePath:
		likely = -0.5
	case word:
		if likely = -1; s.kind == same && !isShortReply(text) {
			return 0, false
		}
	case plain:
		if slices.ContainsFunc(strings.Fields(text), language.IsGarbled) {
			return 0, false
		}
	default:
		return 0, false
	}
	r, _ := utf8.DecodeRuneInString(text)
	switch {
	case isShortReply(text):
		likely += 2
	case isState(text):
		if likely++; s.class == word {
			likely++
		}
	case unicode.IsUpper(r) || r >= utf8.RuneSelf:
		likely += 0.5
	}
	if endsSentence(text) {
		likely += 0.5
	}
	if len(s.pieces) > 1 {
		likely += 1.5
	}
	if f[plainName] > 0 {
		likely += 2
	}
	if said != nil && siblings(s.path, said.path) {
		likely += 2
	}
	if f[twice] > 0 || f[namesake] > 0 {
		likely += 2
	}
	here := c.groups[s.pieces[0].group]
	if said != nil {
		if there := c.groups[said.pieces[0].group]; here.texts != there.texts || len(here.scalars) != len(there.scalars) {
			likely-- // in other clothes
		}
	}
	return likely - 0.15*float64(min(here.texts-1, 3)), true
}

// scripts are those that tell one language from most others.
var scripts = [...]*unicode.RangeTable{unicode.Cyrillic, unicode.Greek, unicode.Arabic, unicode.Hebrew, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Han, unicode.Thai, unicode.Devanagari}

// scriptOf is the first of scripts that occurs in text, or nil.
func scriptOf(text string) *unicode.RangeTable {
	for _, r := range language.Sample(text) {
		for _, script := range scripts {
			if r >= utf8.RuneSelf && unicode.Is(script, r) {
				return script
			}
		}
	}
	return nil
}

const maxShortRepeats = 3 // times that a short answer is sent

const mostShort = 24 // bytes of an answer that does not look like one

// isShortReply reports whether text is what an answer may be all of, and a name or a
// title is not: yes, no and the like.
func isShortReply(text string) bool {
	return slices.Contains(shortReplies, strings.ToLower(strings.TrimRight(text, ".!。 ")))
}

var shortReplies = strings.Fields(`yes no sure yep nope thanks hello hi ja nein oui non sí si sim não sì da nu tak nie ano ne evet hayır
	да нет так ні не ναι όχι כן לא نعم لا हाँ नहीं vâng không có ya tidak ใช่ ไม่ 是 是的 不 不是 好 好的 对 はい いいえ 네 아니요`)

// isState reports whether text may as well be what a program says of itself.
func isState(text string) bool {
	switch strings.ToLower(strings.TrimRight(text, ".!")) {
	case "ok", "okay", "true", "false", "none":
		return true
	}
	return false
}

// isFinish reports whether text is a word for how a call has ended.
func isFinish(text string) bool {
	switch strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(text)) {
	case "stop", "stopped", "endturn", "length", "maxtokens", "done", "complete", "completed", "finish", "finished", "finishedsuccessfully", "success", "succeeded", "end", "eos", "toolcalls", "tooluse", "contentfilter", "running", "inprogress", "pending", "started", "cancelled", "canceled", "failed", "error":
		return true
	}
	return false
}

// findRepeatedShort finds short values that the server sends twice, at two places: an
// answer and its repetition in the end.
func findRepeatedShort(streams []*stream) {
	type place struct {
		s     *stream
		frame int
	}
	first := make(map[string]place)
	for _, s := range streams {
		if s.dir != captures.Down || len(s.text) > mostShort || isFinish(s.text) || s.class != plain && s.class != number && s.class != word || s.kind == same || s.kind == separate || s.discriminates {
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
