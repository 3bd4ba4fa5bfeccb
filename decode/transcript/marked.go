package transcript

import (
	"cmp"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/transcript/event"
	"unwire/decode/transcript/keyed"
	"unwire/decode/transcript/naming"
	"unwire/decode/transcript/part"
	"unwire/decode/transcript/tagged"
)

// applyMarks replaces what t infers from wording by what names and roles in the messages state explicitly (marks),
// if they mark a conversation: the author of a text, thinking, and the pieces of a call. Otherwise it returns false.
func (t *Transcript) applyMarks(ex *decode.Exchange) bool {
	p := part.Join(keyed.Find(event.Read(ex)))
	if !p.IsConversation() {
		return false
	}
	// Now the marks replace what was concluded from statistics.
	m := marked{parts: p}
	m.answer, m.tier = p.Answer()
	thoughts := m.thinking()
	if thoughts == "" && t.Thinking != "" && m.tier < 3 && m.usage() == nil && t.Answer != "" && len(m.answer) > len(t.Answer) && strings.Contains(m.answer, t.Thinking) && strings.Contains(m.answer, t.Answer) {
		// A number distinguishes thinking from the answer, which names do not show.
		return false
	}
	t.Thinking = thoughts
	var inTag string
	if inTag, t.Answer = tagged.Thinking(m.answer); inTag != "" {
		t.Thinking = strings.TrimSpace(inTag + "\n" + t.Thinking)
	}
	t.Tools = toolsOf(p.Calls)
	t.Turns = m.turns(t.Tools)
	if t.answeredQuestions() > 1 {
		t.Answer = t.joinedAnswers()
	}
	if u := m.usage(); u != nil {
		t.Usage = u
	}
	if t.Error == nil && len(p.Errors) > 0 {
		e := p.Errors[0]
		t.Error = &Failure{Code: e.Code, Message: e.Message, Dir: captures.Down.String(), Frame: e.Seq}
	}
	m.setRoles(t)
	return true
}

// A marked is a conversation whose texts and calls are marked by names and roles in the messages.
type marked struct {
	// parts are the joined texts and calls.
	parts *part.Parts

	// answer is the text of the model's answer; "" if there is none.
	answer string

	// tier says how explicitly names and roles in the messages mark the answer, from 0 (a name such as "value") to
	// 3 (a role).
	tier int
}

// thinking returns all texts of thinking that the server sent, in order.
func (m *marked) thinking() string {
	var texts []string
	for i := range m.parts.Texts {
		if t := &m.parts.Texts[i]; t.Thought && t.Dir == captures.Down && strings.TrimSpace(t.Text) != "" {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// turns returns the turns (texts and calls) in the order in which they were sent.
func (m *marked) turns(tools []Tool) []Turn {
	var out []Turn
	for i := range m.parts.Texts {
		t := &m.parts.Texts[i]
		role, ok := m.roleOf(t)
		if !ok || role == roleSystem || strings.TrimSpace(t.Text) == "" {
			continue
		}
		text := strings.ToValidUTF8(t.Text, "\uFFFD")
		// Blocks of one answer that follow each other are one turn.
		if n := len(out); n > 0 && out[n-1].Role == role && role != User && t.Dir == captures.Down && out[n-1].Dir == t.Dir.String() && out[n-1].Path == t.Path && !callBetween(tools, out[n-1].event, t.Event) {
			out[n-1].Text += text
			out[n-1].Frames = append(out[n-1].Frames, t.Frames...)
			continue
		}
		out = append(out, Turn{Role: role, Dir: t.Dir.String(), Path: t.Path, Frames: t.Frames, Text: text, frame: t.First, event: t.Event, order: t.Message})
	}
	// Calls have turns of their own, in their order among the texts.
	for i := range tools {
		turn := tools[i].turn(i + 1)
		turn.event = tools[i].event
		turn.order = m.parts.Calls[i].Message
		out = append(out, turn)
	}
	slices.SortStableFunc(out, func(a, b Turn) int {
		return cmp.Or(cmp.Compare(a.frame, b.frame), cmp.Compare(a.event, b.event), cmp.Compare(a.order, b.order))
	})
	return out
}

// callBetween reports whether one of the calls in tools began between the events with the indexes from and to.
func callBetween(tools []Tool, from, to int) bool {
	return slices.ContainsFunc(tools, func(t Tool) bool { return t.event >= from && t.event <= to && from != to })
}

// roleOf returns the role of a text; ok is false if it does not belong to the conversation.
func (m *marked) roleOf(t *part.Text) (role Role, ok bool) {
	switch {
	case t.Thought:
		return Thinking, true
	case t.Speaker == keyed.User:
		return User, true
	case t.Speaker == keyed.System:
		return roleSystem, true
	case m.parts.IsAnswer(t, m.tier):
		return Assistant, true
	case t.Dir == captures.Up && t.Speaker == keyed.Assistant:
		return Assistant, true
	}
	return "", false
}

// usage returns the token counts that the server reported, or nil if there are none.
func (m *marked) usage() *Usage {
	u := &Usage{Named: true}
	found := &m.parts.Usage
	if found[naming.Input] == nil && found[naming.Output] == nil {
		return nil
	}
	last := -1
	for i, to := range [...]**int64{&u.Input, &u.Output, &u.Cached, &u.Reasoning, &u.Total} {
		c := found[i]
		if c == nil {
			continue
		}
		v := c.Value
		*to = &v
		if c.Frame > last {
			last, u.Path, u.Frame = c.Frame, naming.Enclosing(c.Path), c.Seq
		}
	}
	return u
}

// markReason is the reason that a candidate reports for a role that names in the messages mark.
const markReason = "marked on the wire"

// setRoles gives the candidates of t the roles that names in the messages mark, and adds marked texts that are not
// candidates yet.
func (m *marked) setRoles(t *Transcript) {
	for i := range t.Candidates {
		c := &t.Candidates[i]
		if c.Dir == captures.Down.String() && (c.Role == Assistant || c.Role == Thinking) {
			c.Role = Metadata
		}
	}
	set := func(role Role, dir, path string, frames []int, text string) {
		found := false
		for i := range t.Candidates {
			c := &t.Candidates[i]
			if c.Dir == dir && c.Path == path && (strings.TrimSpace(c.Text) == strings.TrimSpace(text)) {
				c.Role, found = role, true
				c.addMark()
			}
		}
		if !found {
			c := candidate{Role: role, Dir: dir, Path: path, Frames: frames, Text: strings.ToValidUTF8(text, "\uFFFD")}
			c.addMark()
			t.Candidates = append(t.Candidates, c)
		}
	}

	// The answer as a whole comes first.
	for i := range m.parts.Texts {
		p := &m.parts.Texts[i]
		if role, ok := m.roleOf(p); ok {
			set(role, p.Dir.String(), p.Path, p.Frames, p.Text)
		}
	}
	for i := range m.parts.Calls {
		c := &m.parts.Calls[i]
		set(roleToolCall, c.Dir.String(), c.Path, c.Frames, c.Arguments)
		if r := c.Result; r != nil {
			set(roleToolResult, r.Dir.String(), r.Path, r.Frames, r.Text)
		}
	}

	answer := func(c *candidate) int {
		if c.Role == Assistant && c.Dir == captures.Down.String() {
			return 0
		}
		return 1
	}
	order := make(map[Role]int)
	for i, r := range roleOrder {
		order[r] = i
	}
	slices.SortStableFunc(t.Candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(order[a.Role], order[b.Role]), cmp.Compare(answer(&a), answer(&b)))
	})
	for i := range t.Candidates {
		t.Candidates[i].Rank = i + 1
	}
}

// addMark raises the score of a candidate whose meaning the message itself declares (for example by the member
// thought: true), and adds markReason as the first reason of the score.
func (c *candidate) addMark() {
	const surely = 0.999
	c.Score = max(c.Score, surely)
	if len(c.Reasons) == 0 || c.Reasons[0].Feature != markReason {
		c.Reasons = append([]Reason{{Feature: markReason, Weight: 10}}, c.Reasons...)
	}
}
