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

// A Conversation is a bidirectional exchange that was carried in pieces: the
// server's half as the answer to one call or several (heads), each message of
// the client as a call of its own (appends).
//
// Shape: Exchange is what it would have been as one stream: its ID, URL,
// headers and TLS are those of the first head, RPC is the bidirectional method,
// Frames holds each message once, the client's in the order of their numbers,
// the server's in theirs, and one against the other by the time at which they
// could be understood; T is when each passed, since the first piece began. The
// status and the end are those of the last head that had anything to say.
type Conversation struct {
	*decode.Exchange
	RequestID string
	Heads     []int64   // exchanges, in the order of their beginning; never empty
	Appends   []int64   // as Heads; never empty
	Origins   []origin  // of Frames, one each
	Anomalies []anomaly // in the order of the frames that they are about

	messages *decode.Messages // decodes the messages that are carried
	faults   faults
}

// OriginOf is where a frame of the conversation comes from.
func (c *Conversation) OriginOf(f *decode.Frame) origin {
	return c.Origins[slices.IndexFunc(c.Frames, func(g decode.Frame) bool { return g.Dir == f.Dir && g.Seq == f.Seq })]
}

// An origin is where a frame of a Conversation comes from.
type origin struct {
	Exchange int64
	Seq      int // of the frame there

	// the one that the protocol gives the message; -1 where it gives none
	Number int64
	Form   wrapping
}

// A timedMessage is one of a half, before the halves are put together.
type timedMessage struct {
	frame  decode.Frame
	origin origin
	at     time.Time // when it passed

	// when it could be understood: not before those that precede it
	due    time.Time
	failed bool // the server declined it
	place  int  // of its exchange in the order of their beginning
}

// Join finds the conversations among exchanges and puts them together.
//
// Shape: a conversation needs a head and an append with the same request id;
// what has none of its own is left out, as are exchanges of other kinds. The
// exchanges are not changed, and their bytes are shared.
// Limits: Options' MaxFrames, and of the messages carried MaxTotal and MaxNodes,
// of a conversation.
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
	for _, th := range t.list {
		if len(th.heads) > 0 && len(th.appends) > 0 {
			out = append(out, th.join(byID, o))
		}
	}
	return out
}

// join puts one conversation together.
func (th *splitStream) join(byID map[int64]*decode.Exchange, o decode.Options) *Conversation {
	first := byID[th.heads[0]]
	ex := &decode.Exchange{Exchange: first.Exchange, Call: first.Call, Profile: o.Profile}
	ex.RPC, ex.Err = th.rpc, nil
	c := &Conversation{messages: decode.NewMessages(ex.Call, o), Exchange: ex, RequestID: th.id, Heads: slices.Clone(th.heads), Appends: slices.Clone(th.appends)}
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

// maxFaults is how many errors a conversation keeps.
const maxFaults = 20

// faults are what is wrong with a conversation.
type faults struct {
	errs []error
	more int
}

func (f *faults) note(err error) {
	switch {
	case err == nil:
	case len(f.errs) < maxFaults:
		f.errs = append(f.errs, err)
	default:
		f.more++
	}
}

func (f *faults) err() error {
	err := errors.Join(f.errs...)
	if f.more > 0 {
		err = fmt.Errorf("%w\nand %d more", err, f.more)
	}
	return err
}

// conclude takes over how the conversation ended: from the last head that has
// messages, or the last one, which it returns.
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

// appended are the client's messages.
func (c *Conversation) appended(byID map[int64]*decode.Exchange, o decode.Options) []timedMessage {
	var out []timedMessage
	for i, id := range c.Appends {
		ex := byID[id]
		f := requestOf(ex)
		if f == nil || len(out) == o.MaxFrames {
			continue
		}
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

// answered are the server's messages and its end, and whether the protocol numbers them.
func (c *Conversation) answered(byID map[int64]*decode.Exchange, last int64, o decode.Options) (out []timedMessage, numbered bool) {
	for i, id := range c.Heads {
		ex := byID[id]
		h := headOf(o.Profile, ex.Call)
		numbered = numbered || h.Data != 0
		for k := range ex.Frames {
			f := &ex.Frames[k]
			// Of several heads one tells the end.
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

// decode makes the frame of the message out of the one that carried it.
func (p *piece) decode(messages *decode.Messages, carrier *decode.Frame) decode.Frame {
	encoding := ""
	if p.form.Gzip {
		encoding = "gzip"
	}
	return messages.Decode(carrier, p.data, encoding, p.err)
}

// order sorts a half by its numbers, leaves repeated messages out, and says
// what was out of order. What has no number comes in its turn: at its time.
func (c *Conversation) order(half []timedMessage, numbered bool) []timedMessage {
	if !numbered {
		slices.SortStableFunc(half, func(a, b timedMessage) int { return a.at.Compare(b.at) })
		return due(half)
	}
	slices.SortStableFunc(half, func(a, b timedMessage) int {
		return cmp.Or(
			cmp.Compare(rank(&a), rank(&b)),
			compareBool(a.failed, b.failed),
			a.at.Compare(b.at),
			cmp.Compare(a.place, b.place),
		)
	})
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

// rank is what a half is sorted by: the end comes last.
func rank(p *timedMessage) int64 {
	if p.origin.Number < 0 {
		return 1<<63 - 1
	}
	return p.origin.Number
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// due sets when each could be understood.
func due(half []timedMessage) []timedMessage {
	for i := range half {
		half[i].due = half[i].at
		if i > 0 && half[i-1].due.After(half[i].due) {
			half[i].due = half[i-1].due
		}
	}
	return half
}

// merge interleaves the halves.
func (c *Conversation) merge(up, down []timedMessage, o decode.Options) {
	for len(up)+len(down) > 0 {
		if len(c.Frames) == o.MaxFrames {
			c.faults.note(fmt.Errorf("decode: conversation %d: more than %d frames, the rest is left out", c.ID, o.MaxFrames))
			break
		}
		half := &down
		if len(down) == 0 || len(up) > 0 && !down[0].due.Before(up[0].due) {
			half = &up
		}
		c.push((*half)[0])
		*half = (*half)[1:]
	}
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

func (c *Conversation) push(p timedMessage) {
	p.frame.T = p.at.Sub(c.Started)
	c.Frames = append(c.Frames, p.frame)
	c.Origins = append(c.Origins, p.origin)
}

// requestOf is the one message that a unary request is.
func requestOf(ex *decode.Exchange) *decode.Frame {
	for i := range ex.Frames {
		if f := &ex.Frames[i]; f.Dir == captures.Up && f.End == nil && f.Tree != nil {
			return f
		}
	}
	return nil
}
