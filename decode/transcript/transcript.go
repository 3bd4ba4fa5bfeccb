// Package transcript finds the conversation in an exchange whose schema is unknown: what
// the user asked, what the assistant thought and answered, which tools were called, and
// which strings are only identifiers and metadata. An exchange goes in, a Transcript with
// turns, tools, usage of tokens or a failure comes out.
//
// A collection pools strings and numbers by direction and field path over all frames, as
// streams; events in JSON count as fields. A stream is split by labels and variants if
// fields beside it distinguish several texts, some of them interleaved. Its pieces are
// joined: deltas one behind the other, of growing snapshots the last, of separate values
// each on a line. Pieces that were resent are dropped.
//
// Then each role is a hypothesis whose log odds are the sum of weighted features. Features
// come from the stream's own text, from hints in names, from its neighbourhood in the
// message, and across streams, from comparison with the others (crossfeatures.go).
// weights.go has the table, which can be fitted to labels and kept in a file. The most
// likely role is taken, and its features are the candidate's reasons. A short answer, of a
// word or a number, is chosen last. Nothing depends on field numbers.
//
// Source: decode/transcript/README.md
package transcript

import (
	"cmp"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode"
)

// A Role is what a text is in the conversation, in the contract's words.
type Role string

const (
	Assistant      Role = "assistant"
	Thinking       Role = "thinking"
	User           Role = "user"
	roleSystem     Role = "system" // prompts, rules, descriptions of tools
	roleToolCall   Role = "tool_call"
	roleToolResult Role = "tool_result"
	ID             Role = "id"
	Metadata       Role = "metadata"
)

// A Transcript is what was found.
//
// Shape: Answer is the text of the best assistant path, "" if there is none,
// and Thinking that of all thinking paths. An answer that begins with thinking
// in a <think> tag is parted; its candidate is not. Candidates are in the order of
// roles above, the surest first in each.
type Transcript struct {
	Answer     string      `json:"answer"`
	Thinking   string      `json:"thinking,omitempty"`
	Turns      []Turn      `json:"turns,omitempty"` // who said what, in order
	Tools      []Tool      `json:"tools,omitempty"` // in the order of the calls
	Usage      *Usage      `json:"usage,omitempty"`
	Error      *Failure    `json:"error,omitempty"`
	Candidates []candidate `json:"candidates"`

	// A limit of Options was met.
	Truncated bool `json:"truncated,omitempty"`
}

// A candidate is the text of one path.
//
// Shape: Path is field numbers or member names joined by dots, without indexes;
// where one path carries several kinds of text, told apart by a field beside it,
// each is a candidate. Score is the probability of Role by the weights.
type candidate struct {
	Rank    int      `json:"rank"` // from 1
	Role    Role     `json:"role"`
	Dir     string   `json:"dir"` // "up" or "down"
	Path    string   `json:"path"`
	Frames  []int    `json:"frames"` // sequence numbers in the direction
	Score   float64  `json:"score"`
	Text    string   `json:"text"`
	Reasons []Reason `json:"reasons"` // greatest weight first

	kind     string
	features [featureCount]float64
}

// A Reason is what a feature adds to a candidate's log odds.
type Reason struct {
	Feature string  `json:"feature"`
	Weight  float64 `json:"weight"`
}

// Options bounds the work. The zero value is the default.
type Options struct {
	// Paths that are scored; the fullest are kept; default 500.
	MaxCandidates int
	MaxText       int      // bytes of a path's text that are kept; default 8 MiB
	Weights       *Weights // default: those that are built in
}

// Extract scores the texts of ex.
//
// Limits: see Options. Time is proportional to the bytes and fields of ex.
func Extract(ex *decode.Exchange, o Options) *Transcript {
	if o.MaxCandidates <= 0 {
		o.MaxCandidates = 500
	}
	if o.MaxText <= 0 {
		o.MaxText = 8 << 20
	}
	if o.Weights == nil {
		o.Weights = DefaultWeights()
	}
	c := collect(ex, o)
	streams := c.judgeStreams(ex, c.split(), o)
	if whole, changed := mergeVariants(streams); changed {
		streams = c.judgeStreams(ex, whole, o)
	}
	t := transcript(streams, c.truncated)
	t.Tools = c.toolCalls(streams)
	t.Turns = turns(streams, t.Tools)
	if len(streams) > 0 && streams[0].text == t.Answer && t.answeredQuestions() > 1 {
		t.Answer = t.joinedAnswers()
	}
	t.Usage = c.usage(ex, streams)
	t.Error = failure(ex)
	return t
}

// judgeStreams joins, measures and judges streams.
func (c *collection) judgeStreams(ex *decode.Exchange, streams []*stream, o Options) []*stream {
	for _, s := range streams {
		s.reset()
		c.dropResent(s)
		s.join(c)
	}
	streams = slices.DeleteFunc(streams, func(s *stream) bool { return s.text == "" })
	if len(streams) > o.MaxCandidates {
		slices.SortStableFunc(streams, func(a, b *stream) int { return cmp.Compare(len(b.text), len(a.text)) })
		streams = streams[:o.MaxCandidates]
		c.truncated = true
	}
	c.measureAll(ex, streams)
	for _, s := range streams {
		s.judge(o.Weights)
	}
	keepOneAnswer(streams, o.Weights)
	markTranscription(streams, o.Weights)
	chooseLongestAnswer(streams, o.Weights, true)
	c.chooseShortAnswer(streams, o.Weights)
	chooseLongestAnswer(streams, o.Weights, false)
	return streams
}

// reset forgets what was concluded of s, and keeps what it is made of.
func (s *stream) reset() {
	*s = stream{dir: s.dir, path: s.path, name: s.name, stored: s.stored, discriminates: s.discriminates, label: s.label, variant: s.variant, ascending: s.ascending, whole: s.whole, interleaved: s.interleaved, pieces: s.pieces}
}

// roleOrder is the order of candidates, and of the columns of the weights.
var roleOrder = [...]Role{Assistant, Thinking, roleToolCall, roleToolResult, User, roleSystem, Metadata, ID}

func transcript(streams []*stream, truncated bool) *Transcript {
	slices.SortStableFunc(streams, func(a, b *stream) int {
		return cmp.Or(
			cmp.Compare(a.role, b.role),
			cmp.Compare(a.answerRank(), b.answerRank()),
			compareInterleaved(a, b),
			cmp.Compare(b.sum, a.sum),
			cmp.Compare(a.pieces[0].frame, b.pieces[0].frame),
			cmp.Compare(a.path, b.path),
			cmp.Compare(a.label, b.label),
		)
	})
	t := &Transcript{Candidates: make([]candidate, 0, len(streams)), Truncated: truncated}
	var thoughts []*stream
	for i, s := range streams {
		role := roleOrder[s.role]
		if i == 0 && role == Assistant && s.dir == captures.Down {
			t.Thinking, t.Answer = cutThinking(s.answer())
		}
		if role == Thinking {
			thoughts = append(thoughts, s)
		}
		t.Candidates = append(t.Candidates, candidate{
			Rank: i + 1, Role: role, Dir: s.dir.String(), Path: s.path, Frames: s.seqs,
			Score: s.score, Text: s.text, Reasons: s.reasons,
			kind: strings.TrimSpace(s.label + " " + s.variant), features: s.features,
		})
	}
	slices.SortStableFunc(thoughts, func(a, b *stream) int { return cmp.Compare(a.pieces[0].frame, b.pieces[0].frame) })
	for _, s := range thoughts {
		if t.Thinking != "" {
			t.Thinking += "\n"
		}
		t.Thinking += s.text
	}
	return t
}

// answeredQuestions is how often the user said something in the exchange that was answered.
func (t *Transcript) answeredQuestions() int {
	n, open := 0, false
	for i := range t.Turns {
		switch turn := &t.Turns[i]; {
		case turn.Role == User && turn.Dir == captures.Up.String():
			open = true
		case turn.Role == Assistant && turn.Dir == captures.Down.String() && open:
			n, open = n+1, false
		}
	}
	return n
}

// joinedAnswers are the answers to all that was asked, with an empty line between.
func (t *Transcript) joinedAnswers() string {
	var b strings.Builder
	open := false
	for i := range t.Turns {
		switch turn := &t.Turns[i]; {
		case turn.Role == User && turn.Dir == captures.Up.String():
			open = b.Len() > 0
		case turn.Role == Assistant && turn.Dir == captures.Down.String():
			if open {
				b.WriteString("\n\n")
			}
			open = false
			b.WriteString(turn.Text)
		}
	}
	return b.String()
}

// answerRank is 0 for an answer to what was asked in the exchange, and more for what
// was answered before: told again by the server, or sent by the client.
func (s *stream) answerRank() int {
	switch {
	case s.role != assistant || s.features[past] == 0 && s.dir == captures.Down:
		return 0
	case s.dir == captures.Down:
		return 1
	}
	return 2
}

// answer is what s says as the answer: of a conversation that is told again, the
// last message.
func (s *stream) answer() string {
	if s.answerRank() > 0 && s.whole {
		return strings.ToValidUTF8(s.pieces[len(s.pieces)-1].text, "\uFFFD")
	}
	return s.text
}

// cutThinking parts an answer that begins with thinking in a tag of its own, as
// models without a field for it send. A tag that is still open parts nothing:
// what follows may be about the tag.
func cutThinking(text string) (thoughts, answer string) {
	rest := strings.TrimLeft(text, " \n")
	for _, tag := range [...]string{"think", "thinking"} {
		inner, ok := strings.CutPrefix(rest, "<"+tag+">")
		if !ok {
			continue
		}
		if inner, after, ok := strings.Cut(inner, "</"+tag+">"); ok {
			return strings.TrimSpace(inner), strings.TrimLeft(after, " \n")
		}
	}
	return "", text
}

// A stream is the texts of one path in one direction, with one label.
type stream struct {
	dir           captures.Direction
	path          string
	name          string // the last member name of a JSON path
	stored        bool   // from the JSON of a message inside a field
	discriminates bool   // its values tell what the texts beside them are
	deliberation  float64

	// How much its members' names alone say that it is the assistant's.
	namedAssistant float64
	echoed         bool   // its text is a value that the other side sent
	label          string // what a field beside it says it is; "" for none

	// The number beside it that tells it from others of its path; "" for none.
	variant string

	whole       bool // each piece is a message, between others of its path
	ascending   bool // that number goes up: of a block, not of a kind
	interleaved bool // it tells texts apart that were sent at the same time
	hasOffsets  bool // a number beside each piece says where in the text it stands

	pieces []piece
	seqs   []int
	bytes  int

	// it stands in most frames of its direction, from the first on
	inMostFrames bool
	ownIDs       bool // each piece has an identifier of its own beside it
	kind         joining
	text         string

	// Share of the borders between deltas that run through a sentence.
	open  float64
	class class

	features [featureCount]float64
	role     int // in roleOrder
	sum      float64
	score    float64 // the probability of the role
	reasons  []Reason
}

// A piece is one value of a path.
type piece struct {
	frame int   // index into the exchange's frames
	seq   int   // its number in its direction
	group int32 // the message that holds it
	text  string
}
