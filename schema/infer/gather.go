package infer

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
)

const (
	// framesBetweenProgress is how many frames of a call are read between two
	// reports of progress, and between two looks at the context.
	framesBetweenProgress = 512

	// maxRemarks bounds what a worker remarks on the exchanges of one capture.
	maxRemarks = 10_000
)

// GatherOptions are options of Gather. The zero value is the default.
type GatherOptions struct {
	// Exchange is the only exchange to read; of a conversation's head, the
	// conversation is read. Default: all of the capture.
	Exchange int64
	// Part reads the call with the number Exchange alone, and not the conversation.
	Part bool
	// Workers is how many exchanges are read at the same time. Default: GOMAXPROCS.
	Workers int
	// OnProgress, if set, is called while exchanges are read. Calls come from
	// several goroutines, and do not overlap.
	OnProgress func(Progress)
}

// Progress is how much was read so far.
type Progress struct{ Messages, Bytes int64 }

// Gathered is what Gather made of a capture.
type Gathered struct {
	// Evidence is of all exchanges that were read.
	Evidence *Evidence
	// Remarks are about exchanges of which something could not be read, in the
	// order of the capture.
	Remarks []Remark
	// JSONCalls counts the calls whose messages are JSON, which are no evidence;
	// FirstJSONCall is the exchange of the first of them.
	JSONCalls, FirstJSONCall int64
}

// A Remark says what of an exchange could not be read.
type Remark struct {
	Exchange int64
	// Undecoded is what the decoder reports of it, if anything.
	Undecoded error
	// Rejected is why messages of it are no evidence, if any are not.
	Rejected error

	// place is the exchange's place in the capture.
	place int
}

// Gather makes evidence of the exchanges of a capture, several at the same time.
// Calls that are parts of one conversation are joined first; what carries the
// parts counts too.
//
// Shape: each worker has evidence of its own; merged, they are the same whatever
// worker read which exchange.
// Limits: those of Evidence; a frame is held only while it is read.
// Errors: where src cannot be read, ctx's own, and captures.ErrDamaged. Gathered
// holds what was read until then, and of a damaged capture all that is readable.
func Gather(ctx context.Context, src captures.Capture, o GatherOptions) (*Gathered, error) {
	g := &gatherer{src: src, progress: progressMeter{report: o.OnProgress}}
	damage := g.findConversations(ctx, o.Exchange)
	if damage != nil && (o.Exchange != 0 || !errors.Is(damage, captures.ErrDamaged)) {
		return &Gathered{Evidence: NewEvidence()}, damage
	}

	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	jobs := make(chan gatherJob)
	workers := make([]*gatherWorker, max(1, cmp.Or(o.Workers, runtime.GOMAXPROCS(0))))
	var wg sync.WaitGroup
	for i := range workers {
		w := &gatherWorker{gatherer: g, evidence: NewEvidence()}
		workers[i] = w
		wg.Go(func() { w.run(reading, jobs, stop) })
	}
	if o.Exchange != 0 {
		select {
		case jobs <- gatherJob{exchange: o.Exchange, part: o.Part}:
		case <-reading.Done():
		}
	} else if err := g.list(reading, jobs); errors.Is(err, captures.ErrDamaged) {
		damage = cmp.Or(damage, err)
	} else if err != nil {
		stop(err)
	}
	close(jobs)
	wg.Wait()

	all := &Gathered{Evidence: NewEvidence()}
	for _, w := range workers {
		all.merge(w)
		damage = cmp.Or(damage, w.damage)
	}
	slices.SortStableFunc(all.Remarks, func(a, b Remark) int { return cmp.Compare(a.place, b.place) })
	if err := ctx.Err(); err != nil {
		return all, err
	}
	return all, cmp.Or(context.Cause(reading), damage)
}

// merge adds what a worker has read.
func (all *Gathered) merge(w *gatherWorker) {
	all.Evidence.Merge(w.evidence)
	all.Remarks = append(all.Remarks, w.remarks...)
	all.JSONCalls += w.jsonCalls
	if first := w.firstJSONCall; first > 0 && (all.FirstJSONCall == 0 || first < all.FirstJSONCall) {
		all.FirstJSONCall = first
	}
}

// A gatherer is what the workers of one Gather share.
type gatherer struct {
	src           captures.Capture
	conversations *conversation.Set
	progress      progressMeter
}

// A gatherJob is an exchange to read.
type gatherJob struct {
	exchange int64
	// part reads the call alone where it is the head of a conversation.
	part  bool
	place int
}

// findConversations looks for the conversations of the capture, or for the one of
// an exchange.
func (g *gatherer) findConversations(ctx context.Context, exchange int64) (err error) {
	if exchange != 0 {
		g.conversations, err = conversation.Find(ctx, g.src, exchange)
	} else {
		g.conversations, err = conversation.FindAll(ctx, g.src)
	}
	return err
}

// list hands out every exchange of the capture.
func (g *gatherer) list(ctx context.Context, jobs chan<- gatherJob) error {
	place := 0
	for rec, err := range g.src.Exchanges(ctx) {
		if err != nil {
			// Nothing follows an error, not even that of a damaged capture.
			return err
		}
		select {
		case jobs <- gatherJob{exchange: rec.ID, place: place}:
			place++
		case <-ctx.Done():
			// The iterator ends, as the context has.
		}
	}
	return nil
}

// A gatherWorker makes evidence of some of a capture's exchanges.
type gatherWorker struct {
	*gatherer
	evidence *Evidence
	remarks  []Remark

	// damage is the first that it met.
	damage error

	jsonCalls, firstJSONCall int64
}

// run reads exchanges until there are no more, and calls stop for an error that
// ends all reading.
func (w *gatherWorker) run(ctx context.Context, jobs <-chan gatherJob, stop context.CancelCauseFunc) {
	for j := range jobs {
		err := w.read(ctx, j)
		switch {
		case err == nil:
		case errors.Is(err, captures.ErrDamaged):
			w.damage = cmp.Or(w.damage, err)
		default:
			// Of several errors the first is kept.
			stop(err)
		}
	}
}

// read enters an exchange, and the conversation that it is the head of.
func (w *gatherWorker) read(ctx context.Context, j gatherJob) error {
	o := decode.Options{NoInner: true}
	head := w.conversations.Head(j.exchange) == j.exchange && !j.part
	if head {
		c, err := w.conversations.Decode(ctx, w.src, j.exchange, o)
		if err != nil {
			return err
		}
		size := int64(0)
		for i := range c.Frames {
			size += int64(len(c.Frames[i].Data))
		}
		w.progress.advance(int64(len(c.Frames)), size)
		w.finish(c.Exchange, w.evidence.AddExchange(c.Exchange), false, j.place)
	}
	return w.readCall(ctx, j, o, head)
}

// readCall enters one call, a frame at a time.
func (w *gatherWorker) readCall(ctx context.Context, j gatherJob, o decode.Options, head bool) error {
	var call *callEvidence
	frames, size := int64(0), int64(0)
	ex, err := decode.EachFrame(ctx, w.src, j.exchange, o, func(ex *decode.Exchange, f *decode.Frame) error {
		if call == nil {
			call = w.evidence.begin(ex)
		}
		call.Add(ex, f)
		size += int64(len(f.Data))
		if frames++; frames < framesBetweenProgress {
			return nil
		}
		w.progress.advance(frames, size)
		frames, size = 0, 0
		return ctx.Err()
	})
	w.progress.advance(frames, size)
	if ex == nil || err != nil && call == nil && !errors.Is(err, captures.ErrDamaged) {
		return err
	}
	if call == nil {
		call = w.evidence.begin(ex)
	}
	w.finish(ex, call.End(ex), head, j.place)
	return err
}

// finish notes the exchange as a source, and what of it could not be read. A call
// of which the conversation was read before has its own errors in that.
func (w *gatherWorker) finish(ex *decode.Exchange, rejected error, inConversation bool, place int) {
	undecoded := ex.Err
	if inConversation {
		undecoded = nil
	}
	if (undecoded != nil || rejected != nil) && len(w.remarks) < maxRemarks {
		w.remarks = append(w.remarks, Remark{Exchange: ex.ID, Undecoded: undecoded, Rejected: rejected, place: place})
	}
	w.evidence.sources.Add(exchangeHash(ex))
	if !inConversation && ex.Transport == captures.HTTP && ex.Service != "" && ex.RPC != "" && ex.Codec == "json" {
		if w.jsonCalls++; w.firstJSONCall == 0 || ex.ID < w.firstJSONCall {
			w.firstJSONCall = ex.ID
		}
	}
}

// A progressMeter counts what several workers read, and reports it.
type progressMeter struct {
	messages, bytes atomic.Int64

	// reporting is held during a report; who finds it taken does not wait.
	reporting sync.Mutex
	report    func(Progress)
}

// advance counts messages and bytes more.
func (p *progressMeter) advance(messages, bytes int64) {
	m, b := p.messages.Add(messages), p.bytes.Add(bytes)
	if p.report != nil && p.reporting.TryLock() {
		defer p.reporting.Unlock()
		p.report(Progress{m, b})
	}
}
