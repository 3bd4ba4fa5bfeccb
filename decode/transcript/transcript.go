// Package transcript finds the conversation in an exchange whose schema is unknown: what
// the user asked, what the assistant thought and answered, which tools were called, and
// which strings are only identifiers and metadata. A decode.Exchange goes in; a
// Transcript with turns, tools, usage of tokens or a failure comes out. Command unwire
// chat uses it, and package follow while an exchange is still running.
//
// A collection groups strings and numbers by direction and field path over all frames, as
// streams; events in JSON count as fields. A stream is split by labels and variants if
// fields next to it distinguish several texts, some of them interleaved. Its pieces are
// joined: deltas are concatenated, of growing snapshots the last counts, separate values
// each get a line. Pieces that were sent again are removed.
//
// Then each role is a hypothesis whose log odds are the sum of weighted features
// (multinomial logistic regression,
// https://en.wikipedia.org/wiki/Multinomial_logistic_regression). Features come from the
// stream's own text, from hints in names, from its neighbourhood in the message, and from
// comparison with the other streams (crossfeatures.go). weights.go has the table of
// weights, which can be fitted to labels and kept in a file. The most likely role is
// chosen, and its features are the candidate's reasons. A short answer, of a word or a
// number, is chosen last. Nothing depends on field numbers.
//
// Source: decode/transcript/README.md
package transcript

import (
	"cmp"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/transcript/event"
	"unwire/decode/transcript/failure"
	"unwire/decode/transcript/tagged"
)

// A Role is the function of a text in the conversation, such as answer or question.
type Role string

const (
	// Assistant is the role of the model's answer.
	Assistant Role = "assistant"

	// Thinking is the role of text that the model writes before it answers.
	Thinking Role = "thinking"

	// User is the role of text that the user writes.
	User Role = "user"

	// roleSystem is the role of prompts, rules and descriptions of tools.
	roleSystem     Role = "system"
	roleToolCall   Role = "tool_call"
	roleToolResult Role = "tool_result"

	// ID is an identifier.
	ID Role = "id"

	// Metadata is any other text, such as names of models, titles and states.
	Metadata Role = "metadata"
)

// A Transcript is the conversation that was found in an exchange.
type Transcript struct {
	// Answer is the text of the best candidate for the assistant, without thinking in a
	// <think> tag; "" if there is none.
	Answer string `json:"answer"`

	// Thinking is the text of all candidates for thinking, and of a <think> tag at the
	// start of the answer.
	Thinking string `json:"thinking,omitempty"`

	// Turns are the texts and calls of the conversation with their authors, in order.
	Turns []Turn `json:"turns,omitempty"`

	// Tools are the calls of tools in the order in which the model made them.
	Tools []Tool `json:"tools,omitempty"`

	// Usage has the token counts; nil if none were found.
	Usage *Usage `json:"usage,omitempty"`

	// Error is the failure that the server reported; nil if none was found.
	Error *Failure `json:"error,omitempty"`

	// Continues is the number of the earlier exchange whose answer or calls the client repeated; 0 if there is
	// none.
	Continues int64 `json:"continues,omitempty"`

	// Candidates are all texts by role, the most certain first in each role.
	Candidates []candidate `json:"candidates"`

	// Truncated means that a limit of Options was reached.
	Truncated bool `json:"truncated,omitempty"`
}

// Found reports whether the exchange is a conversation and not a call of some other
// service.
func (t *Transcript) Found() bool { return t.Answer != "" || len(t.Turns) > 0 }

// A Failure is the error with which an exchange ended, as the server or the transport reported it.
type Failure = failure.Failure

// A candidate is the text of one path, with its most likely role. If a path carries several kinds of text,
// distinguished by a field next to them, each is a candidate.
type candidate struct {
	// Rank is the position in Transcript.Candidates, from 1.
	Rank int `json:"rank"`

	// Role is the most likely role.
	Role Role `json:"role"`

	// Dir is "up" or "down".
	Dir string `json:"dir"`

	// Path consists of field numbers or member names joined by dots, without indexes.
	Path string `json:"path"`

	// Frames are the numbers, in the direction Dir, of the frames that contain the text.
	Frames []int `json:"frames"`

	// Score is the probability of Role, from 0 to 1, according to the weights.
	Score float64 `json:"score"`

	// Text is the joined text, at most Options.MaxText bytes.
	Text string `json:"text"`

	// Reasons are the features that contributed to Role, the greatest weight first.
	Reasons []Reason `json:"reasons"`

	// kind distinguishes candidates of one path by the value, such as a type, that is next to their texts.
	kind string

	// features are the measured properties of the text from which Role is inferred.
	features [featureCount]float64
}

// A Reason is the contribution of one feature to the log odds of a candidate's role.
type Reason struct {
	// Feature is the name of the feature, a measured property of the text such as whether it arrives in pieces.
	Feature string `json:"feature"`

	// Weight is the feature's value times its weight for the role, in log odds.
	Weight float64 `json:"weight"`
}

// Options limits the work of Extract and selects the model. The zero value means the defaults.
type Options struct {
	// MaxCandidates is the maximum number of paths that are scored; those with the most
	// text are kept. Default 500.
	MaxCandidates int

	// MaxText is the maximum size in bytes of a path's text. Default 8 MiB.
	MaxText int

	// Weights are the parameters of the model; the default is DefaultWeights.
	Weights *Weights

	// FrameType returns the type of the protobuf messages of a call in one direction, or nil if it is not known. Names
	// of members mark a conversation better than wording. By default, no type is known.
	FrameType event.FrameType
}

// judgeStreams joins the pieces of each stream, measures its features and chooses its role. It returns the streams
// that have text, at most Options.MaxCandidates.
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

	// The first scores use each stream alone; the corrections below compare streams.
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

// reset removes all results from s and keeps the input: its pieces and labels.
func (s *stream) reset() {
	*s = stream{dir: s.dir, path: s.path, name: s.name, stored: s.stored, discriminates: s.discriminates, label: s.label, variant: s.variant, ascending: s.ascending, whole: s.whole, interleaved: s.interleaved, pieces: s.pieces}
}

// roleOrder is the order of candidates and of the columns of the weights table.
var roleOrder = [...]Role{Assistant, Thinking, roleToolCall, roleToolResult, User, roleSystem, Metadata, ID}

// transcript returns the Transcript for streams whose roles are known. truncated is Transcript.Truncated.
func transcript(streams []*stream, truncated bool) *Transcript {
	// The order of candidates: by role, then by score; the rest makes it deterministic.
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
	asked := askedBefore(streams)
	for i, s := range streams {
		role := roleOrder[s.role]
		if role == Thinking && s.repeats(asked) {
			role = User
		}
		if i == 0 && role == Assistant && s.dir == captures.Down {
			t.Thinking, t.Answer = tagged.Thinking(s.answer())
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

// askedBefore returns the texts that the client sent, without surrounding white space, with the first frame of each.
func askedBefore(streams []*stream) map[string]int {
	asked := make(map[string]int)
	for _, s := range streams {
		text := strings.TrimSpace(s.text)
		if first, ok := asked[text]; s.dir == captures.Up && (!ok || s.pieces[0].frame < first) {
			asked[text] = s.pieces[0].frame
		}
	}
	return asked
}

// repeats reports whether the server repeats in s a text that the client sent before.
func (s *stream) repeats(asked map[string]int) bool {
	first, ok := asked[strings.TrimSpace(s.text)]
	return ok && s.dir == captures.Down && first < s.pieces[0].frame
}

// answeredQuestions returns the number of questions of the user that were answered in the
// exchange.
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

// joinedAnswers returns the answers to all questions, separated by an empty line.
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

// answerRank orders answers: 0 is an answer to a question of this exchange, 1 an earlier answer that the server
// repeats, and 2 an earlier one that the client sends.
func (s *stream) answerRank() int {
	switch {
	case s.role != assistant || s.features[past] == 0 && s.dir == captures.Down:
		return 0
	case s.dir == captures.Down:
		return 1
	}
	return 2
}

// answer returns the text of s, which has the role of the answer. If s repeats the conversation, that is its last
// message.
func (s *stream) answer() string {
	if s.answerRank() > 0 && s.whole {
		return strings.ToValidUTF8(s.pieces[len(s.pieces)-1].text, "\uFFFD")
	}
	return s.text
}

// A stream has the texts (pieces) of one path in one direction with one label, and the role that is inferred for
// them.
type stream struct {
	// dir is the direction of the texts.
	dir captures.Direction

	// path is the field path of the texts: field numbers or names of JSON members joined by dots, without indexes.
	path string

	// name is the last member name of a JSON path; "" for field numbers.
	name string

	// stored means that the text is from a message of the conversation that is stored as JSON in a field.
	stored bool

	// discriminates means that the values name the kind of the texts next to them, as those of a field "type" do.
	discriminates bool

	// deliberation scores, from 0 to 1, how much the text is worded like a model's thinking.
	deliberation float64

	// namedAssistant scores, from 0 to 1, how much the member names alone indicate the assistant.
	namedAssistant float64

	// echoed means that the text is a value that the other side sent, too.
	echoed bool

	// label is the name of the kind that a field next to the text has, such as its type or role; "" if there is
	// none.
	label string

	// variant is the number next to the text that distinguishes it from others of its path; "" if there is none.
	variant string

	// whole means that each piece is a complete message that alternates with others of its path.
	whole bool

	// ascending means that the variants of the path ascend: then they number blocks of text and do not name kinds.
	ascending bool

	// interleaved means that variant distinguishes texts that were sent at the same time.
	interleaved bool

	// hasOffsets means that a number next to each piece gives its position in the text.
	hasOffsets bool

	// pieces are the texts in the order in which they were sent.
	pieces []textPiece

	// seqs are the sequence numbers of the frames, without repetition.
	seqs []int

	// bytes is the size of all pieces in bytes.
	bytes int

	// inMostFrames means that the path is in most frames of its direction, from the first on.
	inMostFrames bool

	// ownIDs means that each piece has its own identifier next to it.
	ownIDs bool

	// kind is how the pieces form the text: each may continue the previous one, repeat it in a longer form, or be a
	// value of its own.
	kind joining

	// text is the text that results from joining the pieces.
	text string

	// open is the share, from 0 to 1, of the borders between consecutive pieces that are inside a sentence.
	open float64

	// class is the form of the text, such as natural language, a UUID or a URL.
	class class

	// features are the properties from which the role is inferred.
	features [featureCount]float64

	// role is an index into roleOrder.
	role int

	// sum is the log odds of the role.
	sum float64

	// score is the probability of the role, from 0 to 1.
	score float64

	// reasons are the features that contributed to the role, with their weights.
	reasons []Reason
}

// A textPiece is one string value at a path of the exchange's messages.
type textPiece struct {
	// frame is an index into the exchange's frames.
	frame int

	// seq is the frame's sequence number in its direction.
	seq int

	// group is the index in collection.groups of the message that contains the piece.
	group int32

	// text is the string value, as sent.
	text string
}
