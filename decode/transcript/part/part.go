// Package part is the last of three steps that read a conversation from what the wire itself marks: it joins pieces
// into the parts of the conversation: texts, thinking, calls with their results, and the number of tokens.
//
// Pieces of package keyed go in, and Parts come out:
//
//	parts := part.Join(keyed.Find(event.Read(ex)))
//	fmt.Println(parts.Answer(), parts.Calls)
//
// Pieces with the same keys are joined first: deltas are concatenated, however often one repeats, and of snapshots that
// grow the last counts. Only then are whole texts compared: one that an event repeats under another path, or when it
// has ended, counts once. The text of the first of several alternative answers is the answer.
package part

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode/transcript/keyed"
	"unwire/decode/transcript/naming"
)

// A Text is a text of one speaker, joined from its pieces.
type Text struct {
	// Dir is the direction in which the text was sent.
	Dir captures.Direction

	// Path is the path of the pieces: the names of JSON members, or the protobuf field numbers, joined by dots,
	// without indexes.
	Path string

	// Speaker is the author of the text.
	Speaker keyed.Speaker

	// Thought means that the text is thinking before the answer.
	Thought bool

	// Tier says how explicitly names and roles in the messages mark the text, from 0 to 3.
	Tier int

	// Frames are the numbers, in their direction, of the frames that contain the text, without repetition.
	Frames []int

	// First is the index in the exchange of the first of these frames, counted over both directions.
	First int

	// Event is the index of the first event (one JSON message or text) that contains a piece.
	Event int

	// Message is the number of the message in a list that the client sent, or 0.
	Message int

	// Text is the joined text.
	Text string

	// Pieces is the number of pieces from which the text was joined.
	Pieces int

	// Events is the number of events (JSON messages or texts) that contain the pieces.
	Events int

	// Tokens means that the pieces are plain text events of a few letters each.
	Tokens bool

	// Delta means that names or types in the messages declare the pieces parts of a text.
	Delta bool

	// choice is the alternative answer to which the text belongs, or "".
	choice string

	// at are the indexes of the events that contain the pieces.
	at []int

	// last is the last piece, as sent, and grows means that each piece begins with the previous one.
	last  string
	grows bool

	// types are the values of the discriminators around the first piece.
	types string
}

// Parts are the texts and tool calls of a conversation, joined from the pieces in its messages.
type Parts struct {
	// Texts are the texts in the order in which they began, without repetitions and alternatives.
	Texts []Text

	// Calls are the calls of tools in the order in which they began.
	Calls []Call

	// Usage are the token counts that the server reported, indexed by the constants of package naming; nil if not
	// sent.
	Usage [naming.UsageFields]*keyed.Count

	// Errors are the errors that the server sent.
	Errors []keyed.Error

	// Messages is the number of messages with a role that the client sent.
	Messages int

	// Model means that the client sent settings of a model, such as its name or a temperature.
	Model bool

	// Asked means that the client sent a text under a name such as "prompt".
	Asked bool

	// Finished means that the server reported why the model stopped.
	Finished bool

	// ModelStopped means that the reason is one that only models have, such as "tool_use".
	ModelStopped bool

	// asked is the index of the event in which the user first spoke, if a text of the server follows; otherwise 0.
	asked int
}

// Join joins the pieces of each text and each call.
func Join(in *keyed.Pieces) *Parts {
	out := &Parts{Errors: in.Errors, Messages: in.Messages, Model: in.Model, Asked: in.Asked, Finished: in.Finished, ModelStopped: in.ModelStopped}
	var texts, calls []keyed.Piece
	for _, p := range in.List {
		switch p.Channel {
		case keyed.Call, keyed.Result:
			calls = append(calls, p)
		case keyed.Unmarked, keyed.Thought:
			if p.Replaces && p.Dir == captures.Down {
				texts = slices.DeleteFunc(texts, func(o keyed.Piece) bool { return o.Dir == p.Dir && o.Channel == p.Channel })
			}
			texts = append(texts, p)
		}
	}
	markCoded(texts)
	joinOpenings(texts)
	joined := dropProgress(joinTexts(texts))
	chooseSnapshots(joined)
	out.Texts = distinct(joined)
	out.Calls = joinCalls(lastSnapshots(calls))
	out.takeWritten()
	out.findQuestion()
	for _, c := range in.Counts {
		// The last number counts, and of several in one frame the outermost.
		old := out.Usage[c.Field]
		if old == nil || c.Frame > old.Frame || c.Frame == old.Frame && strings.Count(c.Path, ".") <= strings.Count(old.Path, ".") {
			out.Usage[c.Field] = &c
		}
	}
	return out
}

// markCoded marks thinking among texts that only codes distinguish: the code that comes first, if there are several.
func markCoded(pieces []keyed.Piece) {
	codes := make(map[string]bool)
	first := ""
	for _, p := range pieces {
		if p.Coded && p.Channel == keyed.Thought {
			return
		}
		if p.Coded {
			if len(codes) == 0 {
				first = p.Type
			}
			codes[p.Type] = true
		}
	}
	for i := range pieces {
		if p := &pieces[i]; p.Coded && p.Type == first && len(codes) > 1 {
			p.Channel = keyed.Thought
		}
	}
}

// joinOpenings gives the first words of a text, which the server sends when it announces the text, the marks of the
// parts that continue them. Both have the same indexes, or the type of the first says that it is a start.
func joinOpenings(pieces []keyed.Piece) {
	var before *keyed.Piece
	for i := range pieces[:max(len(pieces)-1, 0)] {
		p, next := &pieces[i], &pieces[i+1]
		continued := before != nil && before.Delta && haveSameIndexes(before, p)
		before = p
		if continued || p.Dir != captures.Down || next.Dir != p.Dir || p.Delta || !next.Delta || p.Event == next.Event || p.Speaker != next.Speaker || p.Channel != next.Channel ||
			!haveSameIndexes(p, next) || indexesOf(p) == "" && !isStart(p.Type) {
			continue
		}
		if isRepeatedBy(p, pieces[i+1:]) {
			p.Text = ""
		}
		p.Path, p.Type, p.Keys, p.Tier, p.Delta = next.Path, next.Type, next.Keys, next.Tier, true
	}
}

// isStart reports whether the innermost of the types of a piece says that something begins.
func isStart(types string) bool {
	words := naming.Parts(types[strings.LastIndexByte(types, '/')+1:])
	return words["start"] || words["started"] || words["begin"] || words["added"] || words["created"]
}

// indexesOf returns the indexes around a piece, without the identifiers.
func indexesOf(p *keyed.Piece) string {
	out := ""
	for _, k := range p.Keys {
		if k.Index {
			out += k.Name + "=" + k.Value + " "
		}
	}
	return out
}

// haveSameIndexes reports whether the same indexes are around two pieces.
func haveSameIndexes(a, b *keyed.Piece) bool { return indexesOf(a) == indexesOf(b) }

// isRepeatedBy reports whether the parts in list, joined, begin with the text of p, which is too long for chance.
func isRepeatedBy(p *keyed.Piece, list []keyed.Piece) bool {
	rest := p.Text
	for i := range list {
		q := &list[i]
		if !q.Delta || len(rest) <= len(q.Text) {
			return len(p.Text) > shortText && q.Delta && strings.HasPrefix(q.Text, rest)
		}
		if !strings.HasPrefix(rest, q.Text) {
			return false
		}
		rest = rest[len(q.Text):]
	}
	return false
}

// A family has the properties that all pieces of one text have in common, except for keys. Pieces of several texts
// may be of the same family.
type family struct {
	// dir is the direction of the pieces.
	dir captures.Direction

	// speaker is the author of the pieces, for example the user or the model.
	speaker keyed.Speaker

	// channel is the part of the conversation that the pieces belong to: a text, thinking, a tool call or its
	// result.
	channel keyed.Channel

	// path is the path of the pieces: the names of JSON members, or the protobuf field numbers, joined by dots,
	// without indexes.
	path string

	// types are the values of the discriminators (members such as "type") in the objects around the pieces.
	types string

	// choice identifies one of several alternative answers; "" for none.
	choice string

	// message is the number of the chat message, from 1, in a list of messages; 0 outside of lists.
	message int

	// turn is the number of whole texts of the user that the server sent before.
	turn int
}

// joinTexts joins the pieces of each text.
func joinTexts(pieces []keyed.Piece) []Text {
	// Keys are compared within a family only, since an index means something else in another kind of event.
	families := make(map[family][]keyed.Piece)
	var order []family
	heard := make(map[string]bool)
	for _, p := range pieces {
		if p.Dir == captures.Down && p.Speaker == keyed.User && !p.Delta && p.Message == 0 {
			heard[p.Text] = true
		}
		k := family{p.Dir, p.Speaker, p.Channel, p.Path, p.Type, p.Choice, p.Message, 0}
		if p.Dir == captures.Down && p.Speaker != keyed.User {
			k.turn = len(heard)
		}
		if p.Dir == captures.Down && p.Message > 0 {
			// A list of messages in an answer is often a list with one message, in each event.
			k.message = 0
		}
		if families[k] == nil {
			order = append(order, k)
		}
		families[k] = append(families[k], p)
	}

	var out []Text
	for _, k := range order {
		out = append(out, joinFamily(families[k])...)
	}
	slices.SortStableFunc(out, func(a, b Text) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Event, b.Event)) })
	return out[:min(len(out), maxTexts)]
}

// maxTexts is the maximum number of texts of an exchange.
const maxTexts = 4096

// joinFamily joins the pieces of one family to texts. The keys that identify texts distinguish them.
func joinFamily(pieces []keyed.Piece) []Text {
	telling := tellingKeys(pieces)
	groups := make(map[string][]keyed.Piece)
	var order []string
	for _, p := range pieces {
		key := ""
		for _, k := range p.Keys {
			if telling[k.Name] {
				key += k.Name + "=" + k.Value + " "
			}
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], p)
	}
	var out []Text
	for _, key := range order {
		for _, run := range splitSnapshots(groups[key]) {
			out = append(out, joinGroup(run))
		}
	}
	return out
}

// splitSnapshots divides pieces, most of which are snapshots that begin with the previous one, into those of one text
// each.
func splitSnapshots(pieces []keyed.Piece) [][]keyed.Piece {
	var out [][]keyed.Piece
	start, grown := 0, 0
	for i := 1; i < len(pieces); i++ {
		before, text := pieces[i-1].Text, pieces[i].Text
		if strings.HasPrefix(text, before) && (len(text) > len(before) || len(text) > shortText) {
			grown++
			continue
		}
		out, start = append(out, pieces[start:i]), i
	}
	if len(pieces) < leastSnapshots || 3*grown < 2*(len(pieces)-1) || pieces[0].Delta {
		return [][]keyed.Piece{pieces}
	}
	return append(out, pieces[start:])
}

// leastSnapshots is the minimum number of pieces from which on snapshots of several texts are
// distinguished from deltas.
const leastSnapshots = 4

// tellingKeys returns the names of keys that identify texts and not single pieces: their values repeat.
func tellingKeys(pieces []keyed.Piece) map[string]bool {
	values := make(map[string]map[string]bool)
	for _, p := range pieces {
		for _, k := range p.Keys {
			if values[k.Name] == nil {
				values[k.Name] = make(map[string]bool)
			}
			values[k.Name][k.Value] = true
		}
	}
	out := make(map[string]bool)
	// An identifier that each piece has for itself identifies the event, not the text.
	for name, v := range values {
		out[name] = len(v) > 1 && len(v)*2 <= len(pieces)
	}
	return out
}

// joinGroup joins the pieces of one text.
func joinGroup(pieces []keyed.Piece) Text {
	first := pieces[0]
	t := Text{
		Dir: first.Dir, Path: first.Path, Speaker: first.Speaker, Thought: first.Channel == keyed.Thought,
		First: first.Frame, Event: first.Event, Message: first.Message, Pieces: len(pieces), choice: first.Choice, Delta: first.Delta, grows: !first.Delta && len(pieces) > 1, types: first.Type,
	}
	runes := 0
	texts := make([]string, 0, len(pieces))
	for _, p := range pieces {
		t.Tier = max(t.Tier, p.Tier)
		if n := len(t.Frames); n == 0 || t.Frames[n-1] != p.Seq {
			t.Frames = append(t.Frames, p.Seq)
		}
		if len(t.at) == 0 || t.at[len(t.at)-1] != p.Event {
			t.Events++
		}
		t.grows = t.grows && (len(texts) == 0 || strings.HasPrefix(p.Text, texts[len(texts)-1]))
		runes += utf8.RuneCountInString(p.Text)
		texts = append(texts, p.Text)
		t.at = append(t.at, p.Event)
	}
	t.Tokens = first.Bare && len(pieces) >= leastTokens && runes <= largestToken*len(pieces)
	last := &pieces[len(pieces)-1]
	t.Text, t.last = concat(texts, first.Delta, last.Final && !first.Delta || first.Delta && !last.Delta), last.Text
	return t
}

const (
	// leastTokens is the minimum number of events that may be tokens.
	leastTokens = 8

	// largestToken is the maximum average size of tokens in characters. Lines of logs are longer.
	largestToken = 16
)

// concat joins the pieces of a text: of growing snapshots the last counts, other pieces continue each other. delta
// means that the messages declare the pieces parts, so that they are not snapshots. ended means that the last one comes
// with the end of the text, or is not declared a part although the others are.
func concat(texts []string, delta, ended bool) string {
	n := len(texts)
	if n == 1 {
		return texts[0]
	}
	if areGrowing(texts, delta) {
		return texts[n-1]
	}
	whole := strings.Join(texts[:n-1], "")
	// The last piece may repeat the whole text.
	if last := texts[n-1]; last == whole && (ended || n > 2 && len(last) > shortText) {
		return whole
	}
	if delta {
		return whole + texts[n-1]
	}

	// A message that several events repeat as a whole counts once.
	var b strings.Builder
	seen := make(map[string]bool)
	for _, s := range texts {
		if len(s) > shortText && (strings.Contains(strings.TrimSpace(s), " ") || utf8.RuneCountInString(s) < len(s)) {
			if seen[s] {
				continue
			}
			seen[s] = true
		}
		b.WriteString(s)
	}
	return b.String()
}

// shortText is the maximum size in bytes of a text whose repetition may be chance.
const shortText = 24

// areGrowing reports whether the texts are growing snapshots: each begins with the previous one, and the last is
// longer than the first. If delta is true, i.e. the messages declare them parts, more texts are required, since a
// part such as "ha" may begin the next one by chance.
func areGrowing(texts []string, delta bool) bool {
	for i := 1; i < len(texts); i++ {
		if !strings.HasPrefix(texts[i], texts[i-1]) {
			return false
		}
	}
	first, last := texts[0], texts[len(texts)-1]
	if delta {
		return len(texts) > 2 && len(last) >= len(first)+len(texts)
	}
	return len(last) > len(first) && (len(texts) > 2 || len(first) > 1)
}

// Answer returns the answer, joined from the texts of the server that are marked most explicitly, in order, and
// their tier.
func (p *Parts) Answer() (text string, tier int) {
	tier = p.answerTier()
	var b strings.Builder
	for i := range p.Texts {
		if t := &p.Texts[i]; p.IsAnswer(t, tier) {
			b.WriteString(t.Text)
		}
	}
	return b.String(), tier
}

// answerTier returns the highest tier of a text that may be the answer, or -1.
func (p *Parts) answerTier() int {
	tier := -1
	for i := range p.Texts {
		if t := &p.Texts[i]; p.IsAnswer(t, -1) && strings.TrimSpace(t.Text) != "" {
			tier = max(tier, t.Tier)
		}
	}
	return tier
}

// IsAnswer reports whether t belongs to the answer; tier is the highest tier of such texts.
func (p *Parts) IsAnswer(t *Text, tier int) bool {
	return t.Dir == captures.Down && !t.Thought && (t.Speaker == keyed.Assistant || t.Speaker == keyed.Nobody) && t.Tier >= min(tier, 2) && t.Event >= p.asked
}

// Spoken reports whether a text is marked as the user's and, in a later event, the server sent one that is marked as the
// assistant's, or a call of a tool.
func (p *Parts) Spoken() bool {
	asked := false
	for i := range p.Texts {
		t := &p.Texts[i]
		if t.Tier < 2 {
			continue
		}
		if asked && t.Dir == captures.Down && t.Speaker == keyed.Assistant && t.Event > p.asked {
			return true
		}
		asked = asked || t.Speaker == keyed.User
	}
	return asked && p.calledAfter(p.asked)
}

// IsNamed reports whether the name of the text, such as "answerText", is used for answers and hardly for anything else.
func (t *Text) IsNamed() bool {
	words := naming.Parts(t.Path[strings.LastIndexByte(t.Path, '.')+1:])
	return words["answer"] || words["completion"] || words["reply"] || words["generated"]
}

// findQuestion sets the event in which the user first spoke, if that is known and something was said after it. A
// greeting before it is no answer.
func (p *Parts) findQuestion() {
	var first *Text
	for i := range p.Texts {
		if t := &p.Texts[i]; t.Speaker == keyed.User && (first == nil || t.Tier > first.Tier) {
			first = t
		}
	}
	if first != nil && (p.calledAfter(first.Event) || slices.ContainsFunc(p.Texts, func(t Text) bool {
		return t.Dir == captures.Down && t.Speaker != keyed.User && !t.Thought && t.Event > first.Event
	})) {
		p.asked = first.Event
	}
}

// calledAfter reports whether the server called a tool after the event with that index.
func (p *Parts) calledAfter(event int) bool {
	return slices.ContainsFunc(p.Calls, func(c Call) bool { return c.Dir == captures.Down && c.Event > event })
}
