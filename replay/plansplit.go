package replay

import (
	"fmt"

	"unwire/captures"
	"unwire/decode"
)

// buildSplit plans the calls of a split stream, i.e. of one stream that the client sent as several HTTP
// calls: one that requests the server's half, possibly polls that continue it, and an append call for
// each of the client's frames.
func (p *planner) buildSplit(r *refresher) error {
	c, pieces := p.request.conversation, p.request.pieces
	p.split = &splitting{id: r.id(c.RequestID), appends: map[int]*Append{}}
	p.refreshed("request id")
	head := pieces[c.ID]
	p.shown.RPC = head.RPC
	var err error
	if p.split.head, err = p.carrier(head, 0); err != nil {
		return err
	}

	// The other heads poll for the rest of the server's half.
	for _, id := range c.Heads {
		if id == c.ID {
			continue
		}
		a, err := p.call(pieces[id], 0, r)
		if err != nil {
			return fmt.Errorf("the poll call in exchange %d cannot be sent again: %w", id, err)
		}
		p.split.polls = append(p.split.polls, a)
	}

	// Only frames of the client become append calls; the server's are compared later.
	for i := range c.Frames {
		f, o := &c.Frames[i], c.Origins[i]
		if f.Dir != captures.Up {
			continue
		}
		a, err := p.call(pieces[o.Exchange], o.Seq, r)
		if err != nil {
			return fmt.Errorf("exchange %d, which appends to the stream, cannot be sent again: %w", o.Exchange, err)
		}
		p.split.appends[f.Seq] = a
	}
	return nil
}

// call plans one further call of a split stream, a poll or an append. ex is the captured call, and seq
// the number of its message.
func (p *planner) call(ex *decode.Exchange, seq int, r *refresher) (a *Append, err error) {
	a = &Append{Exchange: ex.ID, Method: ex.Method}
	if a.carrier, err = p.carrier(ex, seq); err != nil {
		return nil, err
	}
	a.headers, a.Headers, a.kept = p.section(ex.RequestHeaders, r)
	a.trailers, a.shown, _ = p.section(ex.RequestTrailers, r)
	if a.url, err = p.targetOf(ex.URL); err != nil {
		return nil, err
	}
	a.URL = a.url.String()
	a.url, err = p.fillURL(a.url)
	return a, err
}

// carrier returns the captured call ex and the message number seq that it carries, to be rebuilt when
// it is sent.
func (p *planner) carrier(ex *decode.Exchange, seq int) (carrier, error) {
	c := carrier{call: ex.Call, http: ex.HTTP}
	f := ex.Frame(captures.Up, seq)
	if f == nil || f.Tree == nil {
		return c, fmt.Errorf("the request has no message")
	}
	c.frame = PlanFrame{Seq: f.Seq, Flags: uint8(f.Flags), Data: f.Data, framed: f.Framed, encoding: f.Encoding}
	return c, nil
}

// number assigns sequence numbers to the append calls, from 0 without gaps, although frames may be
// missing in the capture or deleted by edits.
func (p *planner) number() error {
	for i := range p.shown.Frames {
		f := &p.shown.Frames[i]
		if f.Append = p.split.appends[f.Seq]; f.Append == nil {
			return fmt.Errorf("the capture lacks the call that sent client frame %d", f.Seq)
		}
		f.Append.Number = int64(i)
	}
	return nil
}
