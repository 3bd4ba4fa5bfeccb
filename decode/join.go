package decode

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"unwire/captures"
	"unwire/decode/envelope"
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
	*Exchange
	RequestID string
	Heads     []int64   // exchanges, in the order of their beginning; never empty
	Appends   []int64   // as Heads; never empty
	Origins   []Origin  // of Frames, one each
	Anomalies []Anomaly // in the order of the frames that they are about

	s *Stream // decodes the messages that are carried, and keeps what is wrong
}

// OriginOf is where a frame of the conversation comes from.
func (c *Conversation) OriginOf(f *Frame) Origin {
	return c.Origins[slices.IndexFunc(c.Frames, func(g Frame) bool { return g.Dir == f.Dir && g.Seq == f.Seq })]
}

// AnomaliesAt are the anomalies that are about a frame of the conversation.
func (c *Conversation) AnomaliesAt(f *Frame) (list []Anomaly) {
	for _, a := range c.Anomalies {
		if a.Dir == f.Dir && a.Seq == f.Seq {
			list = append(list, a)
		}
	}
	return list
}

// An Origin is where a frame of a Conversation comes from.
type Origin struct {
	Exchange int64
	Seq      int   // of the frame there
	Number   int64 // the one that the protocol gives the message; -1 where it gives none
	Form     Form
}

// An AnomalyKind says what is not as in a stream.
type AnomalyKind string

const (
	Gap       AnomalyKind = "gap"       // numbers before this one are missing: Count of them
	Duplicate AnomalyKind = "duplicate" // the same message again, left out
	Conflict  AnomalyKind = "conflict"  // another message with the number of one that came before, left out
	Overtook  AnomalyKind = "overtook"  // it arrived before one with a lower number
	Declined  AnomalyKind = "declined"  // the server answered the append with an error
	Unread    AnomalyKind = "unread"    // the message inside could not be decoded
)

// An Anomaly is something that Frames do not show.
type Anomaly struct {
	Kind     AnomalyKind
	Dir      captures.Direction
	Seq      int   // of the frame in the conversation: itself, the one it repeats, the one behind the gap
	Exchange int64 // that shows it
	Number   int64 // the protocol's
	Count    int64 // of missing numbers
}

// String says it in words.
func (a Anomaly) String() string {
	switch a.Kind {
	case Gap:
		if a.Count == 1 {
			return fmt.Sprintf("gap: number %d is missing", a.Number-1)
		}
		return fmt.Sprintf("gap: numbers %d to %d are missing", a.Number-a.Count, a.Number-1)
	case Duplicate:
		return fmt.Sprintf("duplicate: number %d again in exchange %d", a.Number, a.Exchange)
	case Conflict:
		return fmt.Sprintf("conflict: another message with number %d in exchange %d", a.Number, a.Exchange)
	case Overtook:
		return fmt.Sprintf("overtook: number %d arrived before a lower one", a.Number)
	case Declined:
		return fmt.Sprintf("declined: the server answered number %d with an error", a.Number)
	}
	return fmt.Sprintf("unread: the message in number %d of exchange %d", a.Number, a.Exchange)
}

// A passed message is one of a half, before the halves are put together.
type passed struct {
	frame  Frame
	origin Origin
	at     time.Time // when it passed
	due    time.Time // when it could be understood: not before those that precede it
	failed bool      // the server declined it
	place  int       // of its exchange in the order of their beginning
}

// Join finds the conversations among exchanges and puts them together.
//
// Shape: a conversation needs a head and an append with the same request id;
// what has none of its own is left out, as are exchanges of other kinds. The
// exchanges are not changed, and their bytes are shared.
// Limits: Options' MaxFrames, and of the messages carried MaxTotal and MaxNodes,
// of a conversation.
func Join(exchanges []*Exchange, o Options) []*Conversation {
	if o.MaxFrames <= 0 {
		o.MaxFrames = defaultMaxFrames
	}
	t := newThreads()
	byID := make(map[int64]*Exchange, len(exchanges))
	for _, ex := range exchanges {
		if ex != nil && byID[ex.ID] == nil {
			byID[ex.ID] = ex
			t.add(ex)
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
func (th *thread) join(byID map[int64]*Exchange, o Options) *Conversation {
	first := byID[th.heads[0]]
	ex := &Exchange{Exchange: first.Exchange, Call: first.Call}
	ex.RPC, ex.Err = th.rpc, nil
	c := &Conversation{s: messages(ex.Call, o), Exchange: ex, RequestID: th.id, Heads: slices.Clone(th.heads), Appends: slices.Clone(th.appends)}
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
		c.fault(part.Err)
	}
	last := c.conclude(byID)
	if ex.Outcome != captures.InFlight {
		ex.Duration = end.Sub(ex.Started)
	}
	up := c.order(c.appended(byID, o), true)
	down := c.order(c.answered(byID, last, o))
	c.merge(up, down, o)
	c.Err = errors.Join(c.s.errs...)
	if c.s.more > 0 {
		c.Err = fmt.Errorf("%w\nand %d more", c.Err, c.s.more)
	}
	return c
}

func (c *Conversation) fault(err error) {
	if err != nil {
		c.s.recordError(err)
	}
}

// conclude takes over how the conversation ended: from the last head that has
// messages, or the last one, which it returns.
func (c *Conversation) conclude(byID map[int64]*Exchange) int64 {
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
func (c *Conversation) appended(byID map[int64]*Exchange, o Options) []passed {
	var out []passed
	for i, id := range c.Appends {
		ex := byID[id]
		f := requestOf(ex)
		if f == nil || len(out) == o.MaxFrames {
			continue
		}
		m := appended(f, c.s.sealed())
		out = append(out, passed{
			frame:  c.s.message(f, m),
			origin: Origin{Exchange: id, Seq: f.Seq, Number: m.number, Form: m.form},
			at:     ex.Started.Add(f.T), place: i,
			failed: ex.Code != "" && ex.Code != "ok",
		})
	}
	return out
}

// answered are the server's messages and its end, and whether the protocol numbers them.
func (c *Conversation) answered(byID map[int64]*Exchange, last int64, o Options) (out []passed, numbered bool) {
	for i, id := range c.Heads {
		ex := byID[id]
		h := headOf(ex.Call)
		numbered = numbered || h.data != 0
		for k := range ex.Frames {
			f := &ex.Frames[k]
			// Of several heads one tells the end.
			if f.Dir != captures.Down || len(out) == o.MaxFrames || f.End != nil && id != last {
				continue
			}
			p := passed{frame: *f, origin: Origin{Exchange: id, Seq: f.Seq, Number: -1}, at: ex.Started.Add(f.T), place: i}
			if h.data != 0 && f.End == nil && f.Tree != nil {
				m, ok := h.polled(f, c.s.sealed())
				if !ok {
					continue
				}
				p.frame, p.origin.Number, p.origin.Form = c.s.message(f, m), m.number, m.form
			}
			out = append(out, p)
		}
	}
	return out, numbered
}

// messages returns a Stream that decodes carried messages of a call, within the
// bounds of one exchange.
func messages(c Call, o Options) *Stream {
	s := NewStream(&captures.Exchange{}, o)
	s.call = c
	return s
}

// sealed reports whether no more is to be decompressed.
func (s *Stream) sealed() bool { return s.inflated >= s.o.MaxTotal }

// message makes the frame of a message that a frame carried.
func (s *Stream) message(f *Frame, p piece) Frame {
	m := Frame{Dir: f.Dir, Frame: envelope.Frame{Len: len(p.data), Raw: p.data, Data: p.data, Partial: f.Partial, Err: f.Err}}
	if p.err != nil {
		m.Err = fmt.Errorf("%s frame %d: %w", f.Dir, f.Seq, p.err)
		return m
	}
	if p.form.Gzip {
		m.Encoding = "gzip"
	}
	if s.inflated+int64(len(p.data)) > s.o.MaxTotal && len(p.data) > keptOfTooLarge {
		m.Data = bytes.Clone(p.data[:keptOfTooLarge])
		m.Raw = m.Data
		m.Err = fmt.Errorf("%s frame %d: %w of %d bytes", f.Dir, f.Seq, errTotal, s.o.MaxTotal)
		return m
	}
	s.inflated += int64(len(p.data))
	if s.nodes >= s.o.MaxNodes {
		m.Err = fmt.Errorf("%s frame %d: %w of %d", f.Dir, f.Seq, errNodes, s.o.MaxNodes)
		return m
	}
	m.Tree = s.parse(p.data)
	if err := m.Tree.Err(); err != nil && m.Err == nil {
		m.Err = err
	}
	m.Inner = s.inner(&m)
	return m
}

// order sorts a half by its numbers, leaves repeated messages out, and says
// what was out of order. What has no number comes in its turn: at its time.
func (c *Conversation) order(half []passed, numbered bool) []passed {
	if !numbered {
		slices.SortStableFunc(half, func(a, b passed) int { return a.at.Compare(b.at) })
		return due(half)
	}
	slices.SortStableFunc(half, func(a, b passed) int {
		return cmp.Or(
			cmp.Compare(rank(&a), rank(&b)),
			compareBool(a.failed, b.failed),
			a.at.Compare(b.at),
			cmp.Compare(a.place, b.place),
		)
	})
	var out []passed
	next := int64(0)
	var latest time.Time
	for _, p := range half {
		n := p.origin.Number
		if len(out) > 0 && n >= 0 && out[len(out)-1].origin.Number == n {
			kind := Duplicate
			if !bytes.Equal(out[len(out)-1].frame.Data, p.frame.Data) {
				kind = Conflict
			}
			c.remark(kind, p, len(out)-1, 0)
			continue
		}
		if n > next {
			c.remark(Gap, p, len(out), n-next)
		}
		if n >= 0 && p.at.Before(latest) {
			c.remark(Overtook, p, len(out), 0)
		}
		if p.at.After(latest) {
			latest = p.at
		}
		if p.failed {
			c.remark(Declined, p, len(out), 0)
		}
		if p.frame.Tree == nil && p.frame.End == nil {
			c.remark(Unread, p, len(out), 0)
		}
		if n >= next && n < 1<<62 {
			next = n + 1
		}
		out = append(out, p)
	}
	return due(out)
}

// rank is what a half is sorted by: the end comes last.
func rank(p *passed) int64 {
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

func (c *Conversation) remark(kind AnomalyKind, p passed, seq int, count int64) {
	c.Anomalies = append(c.Anomalies, Anomaly{kind, p.frame.Dir, seq, p.origin.Exchange, p.origin.Number, count})
}

// due sets when each could be understood.
func due(half []passed) []passed {
	for i := range half {
		half[i].due = half[i].at
		if i > 0 && half[i-1].due.After(half[i].due) {
			half[i].due = half[i-1].due
		}
	}
	return half
}

// merge interleaves the halves.
func (c *Conversation) merge(up, down []passed, o Options) {
	for len(up)+len(down) > 0 {
		if len(c.Frames) == o.MaxFrames {
			c.fault(fmt.Errorf("decode: conversation %d: more than %d frames, the rest is left out", c.ID, o.MaxFrames))
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
		f.Seq, f.at = seq[f.Dir], int64(i)
		seq[f.Dir]++
		if c.Origins[i].Number >= 0 && f.Err != nil {
			c.fault(fmt.Errorf("decode: exchange %d: %w", c.Origins[i].Exchange, f.Err))
		}
	}
	c.sortAnomalies()
}

func (c *Conversation) push(p passed) {
	p.frame.T = p.at.Sub(c.Started)
	c.Frames = append(c.Frames, p.frame)
	c.Origins = append(c.Origins, p.origin)
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
	slices.SortStableFunc(c.Anomalies, func(a, b Anomaly) int {
		return cmp.Compare(place[[2]int{int(a.Dir), a.Seq}], place[[2]int{int(b.Dir), b.Seq}])
	})
}

// requestOf is the one message that a unary request is.
func requestOf(ex *Exchange) *Frame {
	for i := range ex.Frames {
		if f := &ex.Frames[i]; f.Dir == captures.Up && f.End == nil && f.Tree != nil {
			return f
		}
	}
	return nil
}
