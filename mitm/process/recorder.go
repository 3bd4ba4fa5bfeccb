package process

import (
	"time"

	"unwire/captures"
)

// A Recorder is a captures.Recorder that adds the client program to the exchanges of one connection.
type Recorder struct {
	// to is the recorder that stores the exchanges.
	to captures.Recorder
	// lookup is the search for the client program of the connection.
	lookup *lookup
	// products caches the products that the requests' User-Agent headers name.
	products products
}

// Begin starts recording an exchange, as captures.Recorder does.
func (r *Recorder) Begin(ex captures.Exchange) (captures.Recording, error) { return r.begin(ex, r.to) }

// begin starts the recording of an exchange in the recorder to, with the client program if it is known already.
func (r *Recorder) begin(ex captures.Exchange, to captures.Recorder) (captures.Recording, error) {
	if ex.Started.IsZero() {
		ex.Started = time.Now()
	}
	client := r.products.clientOf(ex.RequestHeaders)
	p, done := r.lookup.found()
	ex.Process = captures.Process{PID: p.PID, Name: p.Name, Client: client.name, Version: client.version}
	rec, err := to.Begin(ex)
	if done || err != nil {
		return rec, err
	}
	r.lookup.then(func(p captures.Process) {
		if p != (captures.Process{}) {
			p.Client, p.Version = client.name, client.version
			rec.Process(p)
		}
	})
	return &waiting{Recording: rec, lookup: r.lookup, began: ex.Started}, nil
}

// Then calls f with the client program, now or when it is found; the value is zero if it is unknown.
func (r *Recorder) Then(f func(captures.Process)) { r.lookup.then(f) }

// A waiting is a Recording whose end is delayed until the client program is found.
type waiting struct {
	// Recording is the recording of the exchange in the wrapped recorder.
	captures.Recording
	// lookup is the search for the client program of the connection.
	lookup *lookup

	// began is when the exchange began.
	began time.Time
}

// End records the outcome once the program is known.
func (w *waiting) End(o captures.Outcome, errText string) {
	if _, done := w.lookup.found(); done {
		w.Recording.End(o, errText)
		return
	}
	w.EndAt(time.Since(w.began), o, errText)
}

// EndAt records the outcome of an exchange that lasted d.
func (w *waiting) EndAt(d time.Duration, o captures.Outcome, errText string) {
	w.lookup.then(func(captures.Process) { w.Recording.EndAt(d, o, errText) })
}
