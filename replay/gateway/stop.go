package gateway

import (
	"strings"

	"unwire/replay/agent/turn"
)

// A cutter ends an answer at a stop text or at a number of tokens, because the upstream server supports
// neither. Text that may be the beginning of a stop text is held back until more text arrives.
type cutter struct {
	// stops are the stop texts.
	stops []string

	// limit is the largest number of tokens; 0 for no limit.
	limit int64

	// tokens is the number of tokens that the model has written so far.
	tokens int64

	// held is the text that is held back.
	held string

	// over means that the answer has ended.
	over bool
}

// add processes an event of the answer, and returns the events to pass to the client. After it has
// returned an Ended event, it returns nothing.
func (c *cutter) add(event turn.Event) []turn.Event {
	if c.over {
		return nil
	}
	switch e := event.(type) {
	case turn.Tokens:
		c.tokens += e.N
		return []turn.Event{event}
	case turn.Ended:
		c.over = true
		return append(c.flush(), event)
	}
	if c.limit > 0 && c.tokens >= c.limit {
		c.over = true
		return append(c.flush(), turn.Ended{Reason: turn.Length})
	}
	text, ok := event.(turn.Text)
	if !ok {
		return append(c.flush(), event)
	}
	return c.addText(text.Text)
}

// addText is add for a Text event.
func (c *cutter) addText(text string) []turn.Event {
	if len(c.stops) == 0 {
		return []turn.Event{turn.Text{Text: text}}
	}
	c.held += text

	// The stop text that begins first ends the answer.
	at, found := -1, ""
	for _, stop := range c.stops {
		if i := strings.Index(c.held, stop); stop != "" && i >= 0 && (at < 0 || i < at) {
			at, found = i, stop
		}
	}
	if at >= 0 {
		c.held, c.over = c.held[:at], true
		return append(c.flush(), turn.Ended{Reason: turn.StoppedBy, Stop: found})
	}

	safe := len(c.held) - c.longestPrefix()
	if safe == 0 {
		return nil
	}
	text, c.held = c.held[:safe], c.held[safe:]
	return []turn.Event{turn.Text{Text: text}}
}

// longestPrefix returns how many bytes at the end of the held text may be the beginning of a stop text.
func (c *cutter) longestPrefix() int {
	longest := 0
	for _, stop := range c.stops {
		for n := min(len(stop)-1, len(c.held)); n > longest; n-- {
			if strings.HasSuffix(c.held, stop[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// flush returns the text that is held back as an event; nil if there is none.
func (c *cutter) flush() []turn.Event {
	if c.held == "" {
		return nil
	}
	text := c.held
	c.held = ""
	return []turn.Event{turn.Text{Text: text}}
}
