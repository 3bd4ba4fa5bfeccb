package conversation

import (
	"cmp"
	"fmt"
	"slices"

	"unwire/captures"
	"unwire/decode"
)

// An anomalyKind is a kind of irregularity found while the messages of a split stream are put into order, such as a
// missing sequence number.
type anomalyKind string

const (
	// Gap: the anomaly.Count sequence numbers before this message are missing.
	Gap anomalyKind = "gap"

	// duplicate: the same message occurs again and is omitted.
	duplicate anomalyKind = "duplicate"

	// conflict: a different message with the number of an earlier one, which is omitted.
	conflict anomalyKind = "conflict"

	// overtook: the message was recorded before one with a lower sequence number.
	overtook anomalyKind = "overtook"

	// declined: the server answered the call that carried this client message with an error.
	declined anomalyKind = "declined"

	// unread: the carried message could not be decoded.
	unread anomalyKind = "unread"
)

// An anomaly is an irregularity, such as a gap or a repeated message, that was found while a conversation was
// assembled. The list of its frames does not show it.
type anomaly struct {
	// Kind is the kind of irregularity, such as a gap.
	Kind anomalyKind

	// Dir is the direction of the affected frame.
	Dir captures.Direction

	// Seq is the number, within Dir, of the affected frame in the conversation. This is the frame itself, for a
	// repeated message the frame that was kept, and for a gap the frame after it.
	Seq int

	// Exchange is the number of the exchange that carried the message.
	Exchange int64

	// Number is the sequence number that the message has in the protocol.
	Number int64

	// Count is the number of messages missing in a gap.
	Count int64
}

// String describes the irregularity in words.
func (a anomaly) String() string {
	switch a.Kind {
	case Gap:
		if a.Count == 1 {
			return fmt.Sprintf("the client's message number %d is missing", a.Number-1)
		}
		return fmt.Sprintf("the client's messages with the numbers %d to %d are missing", a.Number-a.Count, a.Number-1)
	case duplicate:
		return fmt.Sprintf("exchange %[2]d repeats the client's message number %[1]d", a.Number, a.Exchange)
	case conflict:
		return fmt.Sprintf("exchange %[2]d contains another message with the number %[1]d", a.Number, a.Exchange)
	case overtook:
		return fmt.Sprintf("message number %d arrived before one with a lower number", a.Number)
	case declined:
		return fmt.Sprintf("the server answered message number %d with an error", a.Number)
	}
	return fmt.Sprintf("the message with the number %d in exchange %d could not be decoded", a.Number, a.Exchange)
}

// AnomaliesAt returns the anomalies that affect a frame of the conversation.
func (c *Conversation) AnomaliesAt(f *decode.Frame) (list []anomaly) {
	for _, a := range c.Anomalies {
		if a.Dir == f.Dir && a.Seq == f.Seq {
			list = append(list, a)
		}
	}
	return list
}

// remark records an anomaly of message p. seq is the number of the affected frame, and count the number of missing
// messages (only for a Gap).
func (c *Conversation) remark(kind anomalyKind, p timedMessage, seq int, count int64) {
	c.Anomalies = append(c.Anomalies, anomaly{kind, p.frame.Dir, seq, p.origin.Exchange, p.origin.Number, count})
}

// sortAnomalies sorts the irregularities by the frames that they affect.
func (c *Conversation) sortAnomalies() {
	if len(c.Anomalies) == 0 {
		return
	}
	place := map[[2]int]int{}
	for i := range c.Frames {
		place[[2]int{int(c.Frames[i].Dir), c.Frames[i].Seq}] = i
	}
	slices.SortStableFunc(c.Anomalies, func(a, b anomaly) int {
		return cmp.Compare(place[[2]int{int(a.Dir), a.Seq}], place[[2]int{int(b.Dir), b.Seq}])
	})
}
