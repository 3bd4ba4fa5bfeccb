// Package loop connects the exchanges of one conversation with a stateless API, in which the client repeats everything
// that was said before in each request.
//
// Transcripts go into a Linker in the order of the capture. It pairs the calls and results that a request repeats with
// the calls of earlier exchanges, and marks the turns that the reader has seen already:
//
//	l := loop.New()
//	for ex, tr := range exchanges {
//		l.Add(ex.ID, tr) // sets tr.Continues, and the results of calls of earlier transcripts
//	}
//
// A call is known by its identifier, name and arguments; an answer by its text. Unanswered reports whether a later
// request may still bring results, so that a caller can wait for them before it prints.
package loop

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	"unwire/captures"
	"unwire/decode/transcript"
)

// maxKnown is the maximum number of tool calls, and of answers, that a Linker remembers. Later ones are not
// connected.
const maxKnown = 1 << 16

// A Linker connects the exchanges of one conversation: a client sends earlier answers, tool calls and results again
// with its next request. It remembers the calls and answers of the transcripts so far.
type Linker struct {
	// calls are the tool calls of earlier exchanges, by a hash of their content. A later call with the same key
	// replaces an earlier one.
	calls map[key]*made

	// answers maps a hash of each answer's text to the number of the latest exchange that gave it.
	answers map[key]int64
}

// A key is a hash of the properties that identify a call or an answer.
type key [sha256.Size]byte

// A made is a tool call that the model made in an earlier exchange.
type made struct {
	// exchange is the number of the exchange (one recorded request and its response) in which the model made the
	// call.
	exchange int64

	// tool is the call in the transcript of that exchange.
	tool *transcript.Tool
}

// New returns a Linker that remembers no calls or answers.
func New() *Linker {
	return &Linker{calls: make(map[key]*made), answers: make(map[key]int64)}
}

// Add connects the transcript t of an exchange with the earlier ones, and remembers it. It may add results to calls
// in earlier transcripts.
func (l *Linker) Add(exchange int64, t *transcript.Transcript) {
	for i := range t.Tools {
		if c := &t.Tools[i]; c.Earlier {
			l.pair(exchange, t, c)
		}
	}
	l.findAnswer(t)
	if t.Continues != 0 {
		markEarlier(t)
	}

	// From now on, this exchange is an earlier one.
	for i := range t.Tools {
		if c := &t.Tools[i]; !c.Earlier && len(c.Frames) > 0 && len(l.calls) < maxKnown {
			l.calls[callKey(c)] = &made{exchange, c}
		}
	}
	if text := strings.TrimSpace(t.Answer); text != "" && len(l.answers) < maxKnown {
		l.answers[hash("answer", text)] = exchange
	}
}

// pair connects c, a call that the client repeated in t, with the earlier call that it repeats.
func (l *Linker) pair(exchange int64, t *transcript.Transcript, c *transcript.Tool) {
	m := l.calls[callKey(c)]
	if m == nil {
		return
	}
	c.Exchange = m.exchange
	t.Continues = max(t.Continues, m.exchange)
	if m.tool.Paired == "" && c.Paired != "" {
		m.tool.Result, m.tool.ResultDir, m.tool.ResultPath, m.tool.ResultFrames = c.Result, c.ResultDir, c.ResultPath, c.ResultFrames
		m.tool.Paired, m.tool.ResultExchange = c.Paired, exchange
	}
}

// findAnswer sets t.Continues to the exchange whose answer the client repeated last.
func (l *Linker) findAnswer(t *transcript.Transcript) {
	for i := range t.Turns {
		turn := &t.Turns[i]
		if turn.Dir != captures.Up.String() || turn.Role != transcript.Assistant {
			continue
		}
		if from := l.answers[hash("answer", strings.TrimSpace(turn.Text))]; from != 0 {
			t.Continues = max(t.Continues, from)
		}
	}
}

// markEarlier marks the turns that the client repeated: all turns that it sent, up to the last one of the
// assistant.
func markEarlier(t *transcript.Transcript) {
	last := -1
	for i := range t.Turns {
		turn := &t.Turns[i]
		if turn.Dir == captures.Up.String() && (turn.Role == transcript.Assistant || turn.Tool > 0 && t.Tools[turn.Tool-1].Earlier) {
			last = i
		}
	}
	for i := 0; i <= last; i++ {
		t.Turns[i].Earlier = t.Turns[i].Dir == captures.Up.String()
	}
}

// Unanswered reports whether a tool call in the transcript has no result yet, so that a later request may contain
// it.
func Unanswered(t *transcript.Transcript) bool {
	for i := range t.Tools {
		if c := &t.Tools[i]; !c.Earlier && c.Paired == "" && len(c.Frames) > 0 {
			return true
		}
	}
	return false
}

// callKey returns the key of a tool call. Arguments in JSON are compared by value, not by spelling.
func callKey(c *transcript.Tool) key {
	args := c.Arguments
	var v any
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	if d.Decode(&v) == nil {
		if b, err := json.Marshal(v); err == nil {
			args = string(b)
		}
	}
	return hash("call", c.ID, c.Name, args)
}

// hash returns the key of a sequence of texts.
func hash(texts ...string) (k key) {
	h := sha256.New()
	for _, s := range texts {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	h.Sum(k[:0])
	return k
}
