package conversation

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"unwire/captures"
	"unwire/decode"
)

// A Conversation is a bidirectional stream that was split across calls. The server's messages are the responses
// of one or several calls (heads), and each message of the client is a call of its own (appends).
//
// Shape: Exchange is what the stream would have been in one piece. Its ID, URL, headers and TLS state are those
// of the first head, and RPC is the bidirectional method. Frames has each message once. Each direction is sorted
// by the messages' numbers, and both are interleaved by the time at which a receiver could process the message.
// T counts from the beginning of the first piece. Status and end are those of the last head with messages.
type Conversation struct {
	// Exchange is the joined stream, as if it had been recorded in one call.
	*decode.Exchange

	// RequestID is the id that all calls of the split stream carry in their requests.
	RequestID string

	// Heads are the exchanges that carry the server's messages, in order of their start; never empty.
	Heads []int64

	// Appends are the exchanges that carry the client's messages, in order of their start; never empty.
	Appends []int64

	// Origins has, for each element of Frames, the call in which it was transported.
	Origins []origin

	// Anomalies are irregularities such as gaps, sorted by the frames that they affect.
	Anomalies []anomaly

	// messages decodes the client's messages, which are fields of other messages.
	messages *decode.Messages

	// faults collects the errors of decoding.
	faults faults
}

// OriginOf returns the call in which a frame of the conversation was transported.
func (c *Conversation) OriginOf(f *decode.Frame) origin {
	return c.Origins[slices.IndexFunc(c.Frames, func(g decode.Frame) bool { return g.Dir == f.Dir && g.Seq == f.Seq })]
}

// An origin identifies the call in which a frame of a Conversation was transported.
type origin struct {
	// Exchange is the number of the call's exchange.
	Exchange int64

	// Seq is the number of the frame in that call.
	Seq int

	// Number is the sequence number that the message has in the protocol, or -1.
	Number int64

	// Form describes how the message was wrapped in its call, for example as hex.
	Form wrapping
}

// A timedMessage is one message of a conversation with its times, before both directions are interleaved.
type timedMessage struct {
	// frame is the decoded message.
	frame decode.Frame

	// origin describes the call that carried the message: the number of its exchange, the frame in it, and the
	// message's own sequence number.
	origin origin

	// at is when the message was recorded.
	at time.Time

	// due is when a receiver that needs the messages in order could process this one: the latest at of it and all
	// earlier messages of its direction.
	due time.Time

	// failed means that the server rejected the call with the message.
	failed bool

	// place is the index of the message's exchange in Conversation.Heads or Appends, which are in the order of
	// their start.
	place int
}

// Join finds the conversations (streams split over several calls) among exchanges and joins each into one.
//
// Shape: a conversation needs a head and an append with the same request id. Other exchanges are ignored. The
// exchanges are not changed, and the result shares their bytes.
//
// Limits: MaxFrames of the options, and MaxTotal and MaxNodes for carried messages, each per conversation.
func Join(exchanges []*decode.Exchange, o decode.Options) []*Conversation {
	o = o.Bounded()
	t := newThreads(o.Profile)
	byID := make(map[int64]*decode.Exchange, len(exchanges))
	for _, ex := range exchanges {
		if ex != nil && byID[ex.ID] == nil {
			byID[ex.ID] = ex
			t.addPiece(ex)
		}
	}
	var out []*Conversation

	// A stream without one of its halves is not a conversation.
	for _, th := range t.list {
		if len(th.heads) > 0 && len(th.appends) > 0 {
			out = append(out, th.join(byID, o))
		}
	}
	return out
}

// join assembles the calls of one split stream to a Conversation. byID has the decoded exchanges by their numbers.
func (th *splitStream) join(byID map[int64]*decode.Exchange, o decode.Options) *Conversation {
	// The first head is the template of the joined exchange.
	first := byID[th.heads[0]]
	ex := &decode.Exchange{Exchange: first.Exchange, Call: first.Call, Profile: o.Profile}
	ex.RPC, ex.Err = th.rpc, nil
	c := &Conversation{messages: decode.NewMessages(ex.Call, o), Exchange: ex, RequestID: th.id, Heads: slices.Clone(th.heads), Appends: slices.Clone(th.appends)}

	// Sizes and times cover all pieces.
	ex.BytesUp, ex.BytesDown = 0, 0
	end := first.Started
	for _, id := range slices.Concat(th.heads, th.appends) {
		part := byID[id]
		ex.BytesUp += part.BytesUp
		ex.BytesDown += part.BytesDown
		if part.Started.Before(ex.Started) {
			ex.Started = part.Started
		}
		if t := part.Started.Add(part.Duration); t.After(end) {
			end = t
		}
		c.faults.note(part.Err)
	}

	// Status and messages.
	last := c.conclude(byID)
	if ex.Outcome != captures.InFlight {
		ex.Duration = end.Sub(ex.Started)
	}
	up := c.order(c.appended(byID, o), true)
	down := c.order(c.answered(byID, last, o))
	c.merge(up, down, o)
	c.Err = c.faults.err()
	return c
}

// maxFaults is the maximum number of errors that a conversation keeps.
const maxFaults = 20

// faults collects up to maxFaults errors in errs, and counts further ones in more.
type faults struct {
	// errs are the first errors, at most maxFaults.
	errs []error

	// more is the number of errors that were dropped because errs was full.
	more int
}

// note adds an error; nil is ignored.
func (f *faults) note(err error) {
	switch {
	case err == nil:
	case len(f.errs) < maxFaults:
		f.errs = append(f.errs, err)
	default:
		f.more++
	}
}

// err returns the collected errors joined as one, or nil.
func (f *faults) err() error {
	err := errors.Join(f.errs...)
	if f.more > 0 {
		err = fmt.Errorf("%w\nand %d more errors", err, f.more)
	}
	return err
}

// conclude sets status, trailers and duration of c from its last head (call with the server's messages) that has
// messages, or from the last head if none has any. It returns the number of that exchange.
func (c *Conversation) conclude(byID map[int64]*decode.Exchange) int64 {
	last := byID[c.Heads[len(c.Heads)-1]]
	for _, id := range c.Heads {
		for i := range byID[id].Frames {
			if f := &byID[id].Frames[i]; f.Dir == captures.Down && f.End == nil {
				last = byID[id]
				break
			}
		}
	}
	c.Status, c.Code, c.Message, c.Outcome = last.Status, last.Code, last.Message, last.Outcome
	c.Exchange.Error, c.ResponseHeaders, c.ResponseTrailers = last.Error, last.ResponseHeaders, last.ResponseTrailers
	c.Duration = last.Duration
	return last.ID
}

// appended decodes the client's messages of the stream, one from each call in c.Appends.
func (c *Conversation) appended(byID map[int64]*decode.Exchange, o decode.Options) []timedMessage {
	var out []timedMessage
	for i, id := range c.Appends {
		ex := byID[id]
		f := requestOf(ex)
		if f == nil || len(out) == o.MaxFrames {
			continue
		}

		// Each append has exactly one message.
		m := appended(&o.Profile.Split.Append, f, c.messages.Full())
		out = append(out, timedMessage{
			frame:  m.decode(c.messages, f),
			origin: origin{Exchange: id, Seq: f.Seq, Number: m.number, Form: m.form},
			at:     ex.Started.Add(f.T), place: i,
			failed: ex.Code != "" && ex.Code != "ok",
		})
	}
	return out
}

// answered decodes the server's messages from the calls in c.Heads, and the frame that ends exchange last. numbered
// reports whether the protocol numbers these messages.
func (c *Conversation) answered(byID map[int64]*decode.Exchange, last int64, o decode.Options) (out []timedMessage, numbered bool) {
	for i, id := range c.Heads {
		ex := byID[id]
		h := headOf(o.Profile, ex.Call)
		numbered = numbered || h.Data != 0
		for k := range ex.Frames {
			f := &ex.Frames[k]
			// Several heads may have an end; only the last one counts.
			if f.Dir != captures.Down || len(out) == o.MaxFrames || f.End != nil && id != last {
				continue
			}
			p := timedMessage{frame: *f, origin: origin{Exchange: id, Seq: f.Seq, Number: -1}, at: ex.Started.Add(f.T), place: i}
			if h.Data != 0 && f.End == nil && f.Tree != nil {
				m, ok := polled(h, f, c.messages.Full())
				if !ok {
					continue
				}
				p.frame, p.origin.Number, p.origin.Form = m.decode(c.messages, f), m.number, m.form
			}
			out = append(out, p)
		}
	}
	return out, numbered
}

// decode decodes p and returns its frame. carrier is the frame in whose field p was transported.
func (p *carriedMessage) decode(messages *decode.Messages, carrier *decode.Frame) decode.Frame {
	encoding := ""
	if p.form.Gzip {
		encoding = "gzip"
	}
	return messages.Decode(carrier, p.data, encoding, p.err)
}

// order sorts the messages of one direction by sequence number, removes repeated ones, and records anomalies. If
// numbered is false, it sorts by time.
func (c *Conversation) order(half []timedMessage, numbered bool) []timedMessage {
	// Without sequence numbers, the time of recording is the only order.
	if !numbered {
		slices.SortStableFunc(half, func(a, b timedMessage) int { return a.at.Compare(b.at) })
		return due(half)
	}

	// Of two messages with the same number, a successful one comes first, then the earlier one.
	slices.SortStableFunc(half, func(a, b timedMessage) int {
		return cmp.Or(
			cmp.Compare(sortKey(&a), sortKey(&b)),
			compareBool(a.failed, b.failed),
			a.at.Compare(b.at),
			cmp.Compare(a.place, b.place),
		)
	})

	// Compare each message with the expected number and with the latest time so far.
	var out []timedMessage
	next := int64(0)
	var latest time.Time
	for _, p := range half {
		n := p.origin.Number
		if len(out) > 0 && n >= 0 && out[len(out)-1].origin.Number == n {
			kind := duplicate
			if !bytes.Equal(out[len(out)-1].frame.Data, p.frame.Data) {
				kind = conflict
			}
			c.remark(kind, p, len(out)-1, 0)
			continue
		}
		if n > next {
			c.remark(Gap, p, len(out), n-next)
		}
		if n >= 0 && p.at.Before(latest) {
			c.remark(overtook, p, len(out), 0)
		}
		if p.at.After(latest) {
			latest = p.at
		}
		if p.failed {
			c.remark(declined, p, len(out), 0)
		}
		if p.frame.Tree == nil && p.frame.End == nil {
			c.remark(unread, p, len(out), 0)
		}
		if n >= next && n < 1<<62 {
			next = n + 1
		}
		out = append(out, p)
	}
	return due(out)
}

// sortKey returns the sequence number by which p is sorted. A message without a number, such as the end of the
// stream, comes last.
func sortKey(p *timedMessage) int64 {
	if p.origin.Number < 0 {
		return 1<<63 - 1
	}
	return p.origin.Number
}

// compareBool returns -1, 0 or +1 as a sorts before, with or after b; false sorts before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// due sets the due time of each message: the latest time at which it or one before it in the list was recorded.
func due(half []timedMessage) []timedMessage {
	for i := range half {
		half[i].due = half[i].at
		if i > 0 && half[i-1].due.After(half[i].due) {
			half[i].due = half[i-1].due
		}
	}
	return half
}

// merge appends the messages of both directions to the conversation's frames, interleaved by their due times, and
// numbers the frames again.
func (c *Conversation) merge(up, down []timedMessage, o decode.Options) {
	for len(up)+len(down) > 0 {
		if len(c.Frames) == o.MaxFrames {
			c.faults.note(fmt.Errorf("decode: conversation %d has more than %d frames; the rest is not decoded", c.ID, o.MaxFrames))
			break
		}
		// Of two messages at the same time, the client's comes first.
		half := &down
		if len(down) == 0 || len(up) > 0 && !down[0].due.Before(up[0].due) {
			half = &up
		}
		c.push((*half)[0])
		*half = (*half)[1:]
	}

	// Number the frames anew, because repeated messages were removed.
	var seq [2]int
	for i := range c.Frames {
		f := &c.Frames[i]
		f.Seq = seq[f.Dir]
		seq[f.Dir]++
		if c.Origins[i].Number >= 0 && f.Err != nil {
			c.faults.note(fmt.Errorf("decode: exchange %d: %w", c.Origins[i].Exchange, f.Err))
		}
	}
	c.sortAnomalies()
}

// push appends a message to the conversation's frames.
func (c *Conversation) push(p timedMessage) {
	p.frame.T = p.at.Sub(c.Started)
	c.Frames = append(c.Frames, p.frame)
	c.Origins = append(c.Origins, p.origin)
}

// requestOf returns the first decoded message of the client, or nil.
func requestOf(ex *decode.Exchange) *decode.Frame {
	for i := range ex.Frames {
		if f := &ex.Frames[i]; f.Dir == captures.Up && f.End == nil && f.Tree != nil {
			return f
		}
	}
	return nil
}
