package transcript

import (
	"cmp"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/transcript/callshape"
	"unwire/decode/transcript/dialogue"
	"unwire/decode/transcript/event"
	"unwire/decode/transcript/failure"
	"unwire/decode/transcript/keyed"
	"unwire/decode/transcript/language"
	"unwire/decode/transcript/naming"
	"unwire/decode/transcript/part"
)

// Extract classifies the texts of ex and returns the transcript.
//
// Limits: see Options. The time is proportional to the size of ex.
func Extract(ex *decode.Exchange, o Options) *Transcript {
	o.MaxCandidates = cmp.Or(max(o.MaxCandidates, 0), 500)
	o.MaxText = cmp.Or(max(o.MaxText, 0), 8<<20)
	if o.Weights == nil {
		o.Weights = DefaultWeights()
	}
	ex = event.Reassemble(ex)
	// Collect the texts, join their pieces, and classify them. If variants were merged, classify again.
	c := collect(ex, o)
	streams := c.judgeStreams(ex, c.split(), o)
	if whole, changed := mergeVariants(streams); changed {
		streams = c.judgeStreams(ex, whole, o)
	}
	shaped := knownShapes(streams, callshape.Find(ex))
	c.shaped = len(shaped) > 0
	streams = c.setAsideCalls(ex, streams, shaped, o)
	c.markFlagged(streams)
	c.dropOther(ex, streams, o.Weights)
	t := transcript(streams, c.truncated)
	t.Tools = withShaped(c.toolCalls(streams), shaped)
	answer := t.Answer
	if len(streams) > 0 && answer != "" {
		t.takeWritten(&streams[0].pieces[len(streams[0].pieces)-1], streams[0].path)
	}
	t.Turns = turns(streams, t.Tools)
	for i := range t.Turns {
		if turn := &t.Turns[i]; turn.Role == Assistant && turn.Text == answer {
			turn.Text = t.Answer
		}
	}
	if len(streams) > 0 && streams[0].text == t.Answer && t.answeredQuestions() > 1 {
		t.Answer = t.joinedAnswers()
	}
	t.Usage = c.usage(ex, streams)
	t.Error = failure.Of(ex)
	if named := event.Named(ex, o.FrameType); named == nil || !t.applyMarks(named) {
		t.applyMarks(ex)
	}
	t.dropUnanswered(ex)
	return t
}

// takeWritten moves the calls that the model wrote into its answer to the tools. last is the last piece of the answer.
func (t *Transcript) takeWritten(last *textPiece, path string) {
	p := part.Join(&keyed.Pieces{List: []keyed.Piece{{Frame: last.frame, Seq: last.seq, Dir: captures.Down, Path: path, Text: t.Answer}}})
	if len(p.Calls) > 0 {
		t.Answer, t.Tools = p.Texts[0].Text, append(t.Tools, toolsOf(p.Calls)...)
	}
}

// dropUnanswered removes the user's turns if the server answered with messages that are not part of a conversation:
// the client sent a text to another service, such as one that computes embeddings.
func (t *Transcript) dropUnanswered(ex *decode.Exchange) {
	if t.Answer != "" || t.Thinking != "" || t.Error != nil || ex.Outcome != captures.Complete {
		return
	}
	for _, turn := range t.Turns {
		if turn.Dir == captures.Down.String() || turn.Tool > 0 {
			return
		}
	}
	for i := range ex.Frames {
		if f := &ex.Frames[i]; f.Dir == captures.Down && !isEnd(f) && len(f.Data) > 2 {
			t.Turns = nil
			for i := range t.Candidates {
				if c := &t.Candidates[i]; c.Role == User || c.Role == roleSystem {
					c.Role = Metadata
				}
			}
			return
		}
	}
}

// dropOther infers the roles of all streams again, with the feature noSigns, if the exchange is not a conversation
// but a call of another service. Most become metadata.
func (c *collection) dropOther(ex *decode.Exchange, streams []*stream, w *Weights) {
	if c.signs(ex, streams).Odds() >= 0 {
		return
	}
	for _, s := range streams {
		s.features[noSigns] = 1
		s.judge(w)
	}
}

// signs collects the evidence for and against a conversation in the exchange.
func (c *collection) signs(ex *decode.Exchange, streams []*stream) *dialogue.Signs {
	g := &dialogue.Signs{URL: ex.URL, Names: c.names(streams), Members: c.members(streams)}
	var sent [2]int // messages by direction
	for i := range ex.Frames {
		if f := &ex.Frames[i]; !isEnd(f) && len(f.Data) > 0 {
			sent[f.Dir&1]++
		}
	}
	g.Silent, g.Streamed = sent[captures.Up] == 0, sent[captures.Down] >= leastStreamed
	g.Spoken = sent[captures.Up] >= leastStreamed && clientSentNoWords(streams)
	g.Tokens = c.namedUsage(ex) != nil
	g.Counts = !g.Tokens && c.likelyUsage(ex, streams).countsTexts(streams)

	code := false
	g.Tools = c.shaped
	for _, s := range streams {
		s.addMarks(g)
		if s.dir == captures.Up && s.class == plain {
			s.addQuestion(g)
			code = code || dialogue.IsCode(s.text)
		}
	}

	g.Form = fillForm(streams)

	// The most likely answer, if there is one.
	if answer := addReplies(g, streams); answer != nil {
		g.Listed = answer.kind == separate || isListed(streams, answer)
		g.Replied, g.Length = !g.Listed, len(answer.text)
		g.Code = code && dialogue.IsCode(answer.text)
		g.Markup = dialogue.IsPage(answer.text) || answer.path == "" && answer.kind == single
		g.Rivals = rivals(streams, answer)
		g.Repeated = answer.isSentBefore(streams)
		if answer.name != "" {
			g.Field = naming.Fold(answer.name)
			for step := range strings.SplitSeq(naming.Enclosing(answer.path), ".") {
				g.Around = append(g.Around, naming.Fold(step))
			}
		}
	}
	return g
}

// addMarks adds to g the evidence for a conversation in s: roles, turns, names of models, calls of tools,
// templates.
func (s *stream) addMarks(g *dialogue.Signs) {
	f := &s.features
	for label := range strings.FieldsSeq(s.label) {
		g.Roles = g.Roles || roleWord(label) >= 0
	}
	if s.class == model {
		g.Models++
		g.ModelAsked = g.ModelAsked || s.dir == captures.Up
	}
	g.Turns = g.Turns || f[past] > 0 && s.whole || f[replayed] > 0
	g.Tools = g.Tools || s.role == toolCall && s.dir == captures.Down || s.role == toolResult && f[afterCall] >= 0.5
	g.Prompted = g.Prompted || s.role == system && s.dir == captures.Up
	g.Templated = g.Templated || f[thinkTag] > 0
}

// addQuestion adds to g the evidence for a conversation in s, a text of the client.
func (s *stream) addQuestion(g *dialogue.Signs) {
	g.Templated = g.Templated || dialogue.IsTemplate(s.text)
	text := strings.TrimSpace(s.text)
	if s.role != user {
		g.Mirrored = g.Mirrored || s.echoed && len(text) >= leastMirrored
		return
	}
	if !dialogue.IsCode(text) {
		g.Asked = max(g.Asked, s.features[languageLike]*s.score*clamp(float64(len(text))/surelyMessage))
	}
	g.Question = g.Question || language.EndsInQuestion(text)
}

// addReplies adds to g how the server's texts arrive, and returns the most likely answer, or nil.
func addReplies(g *dialogue.Signs, streams []*stream) *stream {
	var answer *stream
	arriving := 0
	for _, s := range streams {
		if s.dir != captures.Down || s.role != assistant && s.role != thinking || s.answerRank() > 0 {
			continue
		}
		if s.isGenerated() {
			arriving++
			g.Deltas = max(g.Deltas, s.features[deltas]*(1-s.features[lines]))
			g.Snapshots = max(g.Snapshots, s.features[snapshots])
		}
		if s.role == assistant && (answer == nil || s.sum > answer.sum) {
			answer = s
		}
	}
	g.Parallel = arriving > 1
	return answer
}

// isGenerated reports whether s arrived in pieces such as a model writes. Files come in blocks of one size, and
// logs in whole lines.
func (s *stream) isGenerated() bool {
	if s.kind != delta && s.kind != growing || len(s.seqs) < 2 {
		return false
	}
	if s.kind == growing {
		return true
	}
	if len(s.pieces) > 2 && len(unique(s.pieces)) < 3 {
		// Two values alternate.
		return false
	}
	size := len(s.pieces[0].text)
	block, lines := size >= leastBlock, true
	for i, p := range s.pieces {
		block = block && (len(p.text) == size || i == len(s.pieces)-1)
		line := strings.TrimSuffix(p.text, "\n")
		lines = lines && strings.TrimSpace(line) == line && strings.Count(line, " ") >= leastPhrase
	}
	return !block && !lines
}

const (
	// leastStreamed is the minimum number of messages in a direction that counts as streaming.
	leastStreamed = 3

	// leastMirrored is the minimum size in bytes of a text whose repetition by the server counts.
	leastMirrored = 4

	// leastBlock is the minimum size in bytes of a piece that may be a block of a file.
	leastBlock = 128

	// leastPhrase is the minimum number of spaces in a piece that is a whole line or phrase: tokens have fewer.
	leastPhrase = 2

	// surelyMessage is the size in bytes from which a text counts fully as a message and not as a word in a form.
	surelyMessage = 12
)

// fillForm reports whether the texts of the client are short values that are beside each other in one message.
func fillForm(streams []*stream) bool {
	beside := make(map[string]int)
	for _, s := range streams {
		if s.dir != captures.Up || s.role != user {
			continue
		}
		if s.kind != single || len(s.text) > longestValue {
			return false
		}
		beside[naming.Enclosing(s.path)]++
	}
	for _, n := range beside {
		if n >= leastValues {
			return true
		}
	}
	return false
}

const (
	// leastValues is the minimum number of values in a form.
	leastValues = 3

	// longestValue is the maximum size in bytes of a value in a form.
	longestValue = 40
)

// isListed reports whether a frame has several texts at the path of s: elements of a list.
func isListed(streams []*stream, s *stream) bool {
	frames := make(map[int]bool)
	for _, other := range streams {
		if other.dir != s.dir || other.path != s.path {
			continue
		}
		for _, p := range other.pieces {
			if frames[p.frame] {
				return true
			}
			frames[p.frame] = true
		}
	}
	return false
}

// rivals returns the number of the server's texts other than answer that are prose.
func rivals(streams []*stream, answer *stream) int {
	n := 0
	for _, s := range streams {
		if s != answer && s.dir == captures.Down && s.role != thinking && s.role != toolResult && s.class == plain && s.text != answer.text &&
			s.features[echo] < 0.5 && s.features[languageLike] >= 0.5 && len(s.text) >= leastWhole {
			n++
		}
	}
	return n
}

// isSentBefore reports whether the client sent each value of s as a value of its own.
func (s *stream) isSentBefore(streams []*stream) bool {
	sent := make(map[string]bool)
	for _, o := range streams {
		if o.dir == captures.Up {
			for _, p := range o.pieces {
				sent[p.text] = true
			}
		}
	}
	for _, p := range s.pieces {
		if !sent[p.text] {
			return false
		}
	}
	return true
}

// members returns the names of JSON members, in lower case, on the paths of texts and numbers.
func (c *collection) members(streams []*stream) map[string]bool {
	names := make(map[string]bool)
	add := func(path string) {
		for part := range strings.SplitSeq(path, ".") {
			names[strings.ToLower(part)] = true
		}
	}
	for _, s := range streams {
		if s.name != "" {
			add(s.path)
		}
	}
	for _, n := range c.numbers {
		if n.name != "" {
			add(n.path)
		}
	}
	return names
}

// names returns the names of JSON members, kinds (values of fields such as "type") and events, in lower case.
func (c *collection) names(streams []*stream) map[string]bool {
	names := c.members(streams)
	add := func(name string) {
		names[strings.ToLower(name)] = true
		for part := range strings.SplitSeq(name, ".") {
			names[strings.ToLower(part)] = true
		}
	}

	// Names are also the values of discriminators, and labels.
	for _, s := range streams {
		if s.class == word || s.discriminates {
			for _, p := range s.pieces[:min(len(s.pieces), maxLooked)] {
				add(p.text)
			}
		}
		for label := range strings.FieldsSeq(s.label) {
			add(label)
		}
	}
	return names
}
