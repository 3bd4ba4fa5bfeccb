package decode

import (
	"iter"

	"unwire/captures"
)

// A Watcher has the functions that Watch calls while exchanges are recorded. Each of them may be nil. An error of
// one ends Watch.
type Watcher struct {
	// Split is the format in which messages follow each other in a byte stream without HTTP, such as
	// length-prefixed; "" means that such bytes are not divided into messages.
	Split Splitting

	// NoTrees omits the decoding of fields, and everything found inside frames.
	NoTrees bool

	// Began is called when the request's headers have been recorded.
	Began func(ex *captures.Exchange, call Call) error

	// Responded is called when the response's headers have been recorded.
	Responded func(ex *captures.Exchange, call Call) error

	// Frame is called with each frame as soon as it is complete.
	Frame func(ex *captures.Exchange, call Call, f *Frame) error

	// Ended is called after the exchange's last frame, with the Stream, which has the call's status.
	Ended func(ex *captures.Exchange, s *Stream) error
}

// Watch decodes the events of a recording as they arrive and calls w's functions. If id is not 0, it follows
// only that exchange until its end. Otherwise it follows all exchanges until the events end.
//
// Errors: the first error among the events, and the first error of a function of w.
func Watch(events iter.Seq2[captures.Event, error], id int64, w Watcher) error {
	running := map[int64]*watchedExchange{}
	for e, err := range events {
		if err != nil {
			return err
		}
		of := e.Chunk.Exchange
		if e.Exchange != nil {
			of = e.Exchange.ID
		}
		if id != 0 && of != id {
			continue
		}
		if err := w.event(running, of, e); err != nil {
			return err
		}
		if e.Kind == captures.Ended && id != 0 {
			return nil
		}
	}
	return nil
}

// A watchedExchange is an exchange that is still being recorded.
type watchedExchange struct {
	// Exchange is the metadata recorded so far.
	*captures.Exchange

	// stream decodes the frames of the exchange.
	stream *Stream
}

// event processes event e of exchange id. running has the exchanges that are being recorded, by number.
func (w Watcher) event(running map[int64]*watchedExchange, id int64, e captures.Event) error {
	ex := running[id]
	if ex == nil {
		if e.Exchange == nil {
			// A late chunk of an exchange that has ended.
			return nil
		}
		ex = &watchedExchange{e.Exchange, NewStream(e.Exchange, Options{Split: w.Split, NoTrees: w.NoTrees})}
		running[id] = ex
	}
	if e.Exchange != nil {
		ex.Exchange = e.Exchange
	}

	// The functions are optional; without one, its event has no effect.
	switch e.Kind {
	case captures.Began:
		if w.Began != nil {
			return w.Began(ex.Exchange, ex.stream.Call())
		}
	case captures.Responded:
		ex.stream.Update(ex.Exchange)
		if w.Responded != nil {
			return w.Responded(ex.Exchange, ex.stream.Call())
		}
	case captures.Received:
		return w.frames(ex, ex.stream.Feed(e.Chunk))
	case captures.Ended:
		ex.stream.Update(ex.Exchange)
		if err := w.frames(ex, ex.stream.Close()); err != nil {
			return err
		}
		delete(running, id)
		if w.Ended != nil {
			return w.Ended(ex.Exchange, ex.stream)
		}
	}
	return nil
}

// frames calls w.Frame for each frame in list.
func (w Watcher) frames(ex *watchedExchange, list []Frame) error {
	if w.Frame == nil {
		return nil
	}
	for i := range list {
		if err := w.Frame(ex.Exchange, ex.stream.Call(), &list[i]); err != nil {
			return err
		}
	}
	return nil
}
