package conversation

import (
	"cmp"
	"fmt"
	"slices"

	"unwire/captures"
	"unwire/decode"
)

// An anomalyKind says what is not as in a stream.
type anomalyKind string

const (
	// Gap is for numbers before this one that are missing: Count of them.
	Gap anomalyKind = "gap"

	// duplicate is for the same message again, left out.
	duplicate anomalyKind = "duplicate"

	// conflict is for another message with the number of one before, left out.
	conflict anomalyKind = "conflict"

	// overtook is for a message that arrived before one with a lower number.
	overtook anomalyKind = "overtook"

	// declined is for an append that the server answered with an error.
	declined anomalyKind = "declined"

	// unread is for a message inside that could not be decoded.
	unread anomalyKind = "unread"
)

// An anomaly is something that Frames do not show.
type anomaly struct {
	Kind anomalyKind
	Dir  captures.Direction

	// of the frame in the conversation: itself, the one it repeats, the one behind
	// the gap
	Seq      int
	Exchange int64 // that shows it
	Number   int64 // the protocol's
	Count    int64 // of missing numbers
}

// String says it in words.
func (a anomaly) String() string {
	switch a.Kind {
	case Gap:
		if a.Count == 1 {
			return fmt.Sprintf("gap: number %d is missing", a.Number-1)
		}
		return fmt.Sprintf("gap: numbers %d to %d are missing", a.Number-a.Count, a.Number-1)
	case duplicate:
		return fmt.Sprintf("duplicate: number %d again in exchange %d", a.Number, a.Exchange)
	case conflict:
		return fmt.Sprintf("conflict: another message with number %d in exchange %d", a.Number, a.Exchange)
	case overtook:
		return fmt.Sprintf("overtook: number %d arrived before a lower one", a.Number)
	case declined:
		return fmt.Sprintf("declined: the server answered number %d with an error", a.Number)
	}
	return fmt.Sprintf("unread: the message in number %d of exchange %d", a.Number, a.Exchange)
}

// AnomaliesAt are the anomalies that are about a frame of the conversation.
func (c *Conversation) AnomaliesAt(f *decode.Frame) (list []anomaly) {
	for _, a := range c.Anomalies {
		if a.Dir == f.Dir && a.Seq == f.Seq {
			list = append(list, a)
		}
	}
	return list
}

func (c *Conversation) remark(kind anomalyKind, p timedMessage, seq int, count int64) {
	c.Anomalies = append(c.Anomalies, anomaly{kind, p.frame.Dir, seq, p.origin.Exchange, p.origin.Number, count})
}

// sortAnomalies puts them into the order of the frames.
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
