package query

import (
	"cmp"
	"context"
	"errors"
	"path"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/contract"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/filter"
	"unwire/decode/search"
	"unwire/schema"
)

// A Search is a search in a capture: the query, which parts are searched, and callbacks for the result.
type Search struct {
	// Query is the text, bytes, number or path that is searched for.
	search.Query

	// Headers also searches URLs and headers.
	Headers bool

	// Dir is "up" or "down" to search one direction only; "" for both.
	Dir string

	// Method selects calls: Run, or pkg.Service/Run, with * for any text; "" for all.
	Method string

	// Filter, if set, selects frames. URLs, headers and notes are searched only if the filter's result
	// does not depend on a frame.
	Filter *filter.Filter

	// Definitions are the definitions for message types in Filter; nil for none.
	Definitions *schema.Schema

	// Names loads the definitions for the field names of matches, at the first match; nil for no names.
	Names func() (*schema.Schema, error)

	// Match is called with each match. If it returns false, the rest of the exchange is not searched.
	Match func(*contract.Match) (more bool, err error)

	// Searched, if set, is called after each exchange with the number of its matches.
	Searched func(exchange Address, matches int) error

	// notes are the notes in the capture, by exchange.
	notes map[int64][]captures.Note

	// selector evaluates Filter.
	selector *Selector

	// listed are the exchanges of the capture by number, for Filter.
	listed map[int64]*conversation.Listed
}

// Search searches a capture, or the one exchange or frame that the address names.
//
// Errors: those of the callbacks, which stop it. A damaged capture is searched as far as it can be read,
// and the damage is returned.
func (c *Capture) Search(ctx context.Context, at Address, s Search) error {
	if _, err := path.Match(s.Method, ""); err != nil {
		return err
	}

	// Conversations and notes are needed for every exchange, so they are read once.
	all, damage := conversation.FindAll(ctx, c.Store)
	if damage != nil && !errors.Is(damage, captures.ErrDamaged) {
		return damage
	}
	notes, err := c.Notes(ctx, 0)
	if err != nil && !errors.Is(err, captures.ErrDamaged) {
		return err
	}
	damage = cmp.Or(damage, err)
	s.notes = map[int64][]captures.Note{}
	for _, n := range notes {
		s.notes[n.Exchange] = append(s.notes[n.Exchange], n)
	}
	if s.Filter != nil {
		if err := s.list(ctx, c); err != nil && !errors.Is(err, captures.ErrDamaged) {
			return err
		}
	}
	if at.Exchange != 0 {
		rec, err := c.Exchange(ctx, at.Exchange)
		if err != nil {
			return err
		}
		return c.searchExchange(ctx, rec, all, at, &s)
	}

	// A damaged exchange does not end the search.
	for rec, err := range c.Exchanges(ctx) {
		if err == nil {
			at.Exchange = rec.ID
			err = c.searchExchange(ctx, rec, all, at, &s)
		}
		if err != nil && !errors.Is(err, captures.ErrDamaged) {
			return err
		}
		damage = cmp.Or(damage, err)
	}
	return damage
}

// searchExchange searches one exchange while it is read. all has the conversations that were split over
// several exchanges.
func (c *Capture) searchExchange(ctx context.Context, rec *captures.Exchange, all *conversation.Set, at Address, s *Search) error {
	call := decode.Classify(rec)
	if !methodMatches(s.Method, call) {
		return nil
	}
	selected, whole := s.selection(rec)
	if selected == nil {
		return nil
	}
	wanted := at
	// its frames are numbered apart from the conversation's
	at.Part = all.Head(rec.ID) == rec.ID

	found, stopped := 0, false
	var failed error
	scope := search.Scope{Split: c.Splitting, Headers: s.Headers && wanted.Frame < 0 && whole, Frames: func(f *decode.Frame) bool {
		return (s.Dir == "" || f.Dir.String() == s.Dir) && (wanted.Frame < 0 || f.Dir == wanted.Dir && f.Seq == wanted.Frame) && selected(f)
	}}
	damage := search.Exchange(ctx, c.Store, rec, s.Query, scope, func(m search.Match) (more bool) {
		if s.Dir != "" && m.Dir.String() != s.Dir {
			return true
		}
		found++
		line := newMatch(at, &m)
		if line.Name, failed = s.nameOf(call, &m); failed == nil {
			more, failed = s.Match(line)
		}
		stopped = !more || failed != nil
		return !stopped
	})
	for _, m := range s.inNotes(wanted, at.Part) {
		if stopped || !whole {
			break
		}
		var more bool
		found++
		more, failed = s.Match(m)
		stopped = !more || failed != nil
	}
	if failed == nil && s.Searched != nil {
		at.Frame, at.Part = -1, false
		failed = s.Searched(at, found)
	}
	return cmp.Or(failed, damage)
}

// list lists the exchanges of the capture, and creates the selector for the filter.
func (s *Search) list(ctx context.Context, c *Capture) error {
	list, damage := c.List(ctx)
	s.listed = map[int64]*conversation.Listed{}
	for i := range list.Exchanges {
		s.listed[list.Exchanges[i].ID] = &list.Exchanges[i]
	}
	var err error
	s.selector, err = c.NewSelector(ctx, s.Filter, s.Definitions)
	return cmp.Or(damage, err)
}

// selection returns a function that reports whether the filter selects a frame of an exchange; nil if it
// selects none. whole means that it selects the exchange with all its frames.
func (s *Search) selection(rec *captures.Exchange) (frames func(*decode.Frame) bool, whole bool) {
	if s.Filter == nil {
		return func(*decode.Frame) bool { return true }, true
	}
	l := s.listed[rec.ID]
	if l == nil { // it began meanwhile
		l = &conversation.Listed{Exchange: rec, Call: decode.Classify(rec)}
	}
	x := s.selector.exchange(l)
	x.Exchange, x.Missing = rec, 0
	switch s.Filter.Exchange(x) {
	case filter.No:
		return nil, false
	case filter.Yes:
		return func(*decode.Frame) bool { return true }, true
	}
	return func(f *decode.Frame) bool { return s.Filter.Frame(x, s.selector.frame(x.Call, f)) == filter.Yes }, false
}

// nameOf returns the path of a match in field names; "" if they are not known.
func (s *Search) nameOf(call decode.Call, m *search.Match) (string, error) {
	if s.Names == nil || m.Frame < 0 || call.Service == "" {
		return "", nil
	}
	defs, err := s.Names()
	if err != nil {
		return "", err
	}
	_, name := namer{root: defs.FrameType(call, m.Dir)}.field(m.Path)
	return name, nil
}

// inNotes returns the matches in the notes on the exchange or frame at an address. part means that the
// exchange begins a conversation of several exchanges, so that its own frames are addressed with /part.
func (s *Search) inNotes(at Address, part bool) (list []*contract.Match) {
	if s.Text == nil || s.Path != nil {
		return nil
	}
	for _, n := range s.notes[at.Exchange] {
		ofFrame := n.Frame != captures.NoFrame
		if s.Dir != "" && (!ofFrame || n.Dir.String() != s.Dir) || at.Frame >= 0 && (n.Frame != at.Frame || n.Dir != at.Dir) {
			continue
		}
		lo, hi, ok := s.Text.Find(n.Value)
		if !ok {
			continue
		}
		place := Address{File: at.File, Exchange: n.Exchange, Part: part && ofFrame, Dir: n.Dir, Frame: n.Frame}
		m := &contract.Match{
			Address: place.String(), Exchange: n.Exchange, Path: n.Path, Kind: string(n.Kind),
			Match: n.Value[lo:hi], Before: n.Value[:lo], After: n.Value[hi:],
		}
		if ofFrame {
			m.Dir, m.Frame = n.Dir.String(), &n.Frame
		}
		list = append(list, m)
	}
	return list
}

// newMatch converts a match in the exchange at an address to the object for JSON output.
func newMatch(at Address, m *search.Match) *contract.Match {
	at.Dir, at.Frame = m.Dir, m.Frame
	line := &contract.Match{
		Exchange: at.Exchange, Dir: m.Dir.String(), Frames: m.Frames, Path: m.Path, Kind: m.Kind,
		Match: m.Value[m.Start:m.End], Before: m.Value[:m.Start], After: m.Value[m.End:],
	}
	if m.Frame >= 0 {
		line.Frame = &m.Frame
	} else {
		at.Part = false // headers are those of the call
	}
	line.Address = at.String()
	return line
}

// methodMatches reports whether a call is of the method that a pattern such as Run or pkg.Service/*
// describes; always true for "".
func methodMatches(pattern string, c decode.Call) bool {
	if pattern == "" {
		return true
	}
	pattern = strings.TrimPrefix(pattern, "/")
	name := c.RPC
	if strings.Contains(pattern, "/") {
		name = c.Service + "/" + c.RPC
	}
	ok, err := path.Match(pattern, name)
	return err == nil && ok && c.RPC != ""
}
