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
	"unwire/schema/infer/sources"
)

const (
	// framesBetweenProgress is the number of frames of a call between two progress reports, and between two
	// checks of the context.
	framesBetweenProgress = 512

	// maxRemarks is the maximum number of remarks that one worker collects.
	maxRemarks = 10_000
)

// GatherOptions configures Gather. The zero value reads all exchanges of the capture.
type GatherOptions struct {
	// Exchange is the number of the only exchange to read. If a conversation begins with it, the whole
	// conversation is read. Default: 0, which reads all exchanges.
	Exchange int64
	// Part restricts reading to the call with the number Exchange, without the other calls of its conversation.
	Part bool
	// Workers is the number of exchanges that are read concurrently. Default: GOMAXPROCS.
	Workers int
	// OnProgress, if set, is called during the reading. Calls come from several goroutines, but not
	// concurrently.
	OnProgress func(Progress)
	// PartOf, if set, assigns exchanges to parts of the traffic (for example by client version and day), whose
	// evidence is kept separate in Gathered.Parts. It is called concurrently.
	PartOf func(*decode.Exchange) sources.Part
}

// Progress is how much was read so far.
type Progress struct {
	// Messages is the number of messages read.
	Messages int64
	// Bytes is the total size of their content in bytes.
	Bytes int64
}

// Gathered is the result of Gather: the evidence and remarks about its sources.
type Gathered struct {
	// Evidence summarizes all messages that were read, except those in Parts.
	Evidence *Evidence
	// Parts has the evidence of each part, if GatherOptions.PartOf is set.
	Parts map[sources.Part]*Evidence
	// Remarks list exchanges that were not read completely, in the order of the capture.
	Remarks []Remark
	// JSONCalls is the number of calls whose messages are JSON, which add nothing to the evidence.
	// FirstJSONCall is the number of the first such exchange, or 0.
	JSONCalls, FirstJSONCall int64
}

// A Remark reports that an exchange was not read completely.
type Remark struct {
	// Exchange is the number of the exchange.
	Exchange int64
	// Undecoded is the error with which decoding stopped, or nil.
	Undecoded error
	// Rejected is the reason why messages were not added to the evidence, or nil.
	Rejected error

	// place is the position of the exchange in the capture, for sorting remarks.
	place int
}

// Gather collects evidence from the exchanges of a capture, several of them concurrently. Calls that are parts
// of one conversation are joined first; the calls themselves are counted, too, because the messages that carry
// the parts have types of their own.
//
// Shape: each worker has its own Evidence. The merged result does not depend on which worker read which
// exchange.
// Limits: those of Evidence. Each frame is released after it is read.
// Errors: src cannot be read, the context's error, and captures.ErrDamaged. The result is valid nevertheless: it
// has everything that was read, and for a damaged capture everything that is readable.
func Gather(ctx context.Context, src captures.Capture, o GatherOptions) (*Gathered, error) {
	g := &gatherer{src: src, partOf: o.PartOf, progress: progressMeter{report: o.OnProgress}}
	damage := g.findConversations(ctx, o.Exchange)

	// A damaged capture is still read as far as possible.
	if damage != nil && (o.Exchange != 0 || !errors.Is(damage, captures.ErrDamaged)) {
		return &Gathered{Evidence: NewEvidence()}, damage
	}

	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	jobs := make(chan gatherJob)
	workers := make([]*gatherWorker, max(1, cmp.Or(o.Workers, runtime.GOMAXPROCS(0))))
	var wg sync.WaitGroup
	for i := range workers {
		w := &gatherWorker{gatherer: g, evidence: NewEvidence(), parts: map[sources.Part]*Evidence{}}
		workers[i] = w
		wg.Go(func() { w.run(reading, jobs, stop) })
	}

	// The jobs are sent by this goroutine, so that a slow reader limits how far it reads ahead.
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

	// Merging is commutative, so that the order of the workers does not matter. The remarks are sorted.
	all := &Gathered{Evidence: NewEvidence(), Parts: map[sources.Part]*Evidence{}}
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

// merge adds the results of one worker to the total.
func (all *Gathered) merge(w *gatherWorker) {
	all.Evidence.Absorb(w.evidence)
	for part, ev := range w.parts {
		if have := all.Parts[part]; have != nil {
			have.Absorb(ev)
		} else {
			all.Parts[part] = ev
		}
	}
	all.Remarks = append(all.Remarks, w.remarks...)
	all.JSONCalls += w.jsonCalls
	if first := w.firstJSONCall; first > 0 && (all.FirstJSONCall == 0 || first < all.FirstJSONCall) {
		all.FirstJSONCall = first
	}
}

// A gatherer is the state shared by the concurrent workers of one call of Gather.
type gatherer struct {
	// src is the capture that is being read.
	src captures.Capture

	// partOf assigns an exchange to the part of the traffic (for example one client version and day) whose evidence
	// is kept separate; nil for no division.
	partOf func(*decode.Exchange) sources.Part
	// conversations are the conversations of the capture.
	conversations *conversation.Set
	// progress reports the totals of all workers.
	progress progressMeter
}

// A gatherJob is an exchange that a worker has to read.
type gatherJob struct {
	// exchange is the number of the exchange.
	exchange int64

	// part restricts reading to this call, even if its stream was split over several calls.
	part bool
	// place is the position of the exchange in the capture.
	place int
}

// findConversations finds all conversations in the capture or, if exchange is not 0, only the one that
// contains that exchange.
func (g *gatherer) findConversations(ctx context.Context, exchange int64) (err error) {
	if exchange != 0 {
		g.conversations, err = conversation.Find(ctx, g.src, exchange)
	} else {
		g.conversations, err = conversation.FindAll(ctx, g.src)
	}
	return err
}

// list sends a job for every exchange of the capture to the workers.
func (g *gatherer) list(ctx context.Context, jobs chan<- gatherJob) error {
	place := 0
	for rec, err := range g.src.Exchanges(ctx) {
		if err != nil {
			// The iterator yields nothing after an error, not even for a damaged capture.
			return err
		}
		select {
		case jobs <- gatherJob{exchange: rec.ID, place: place}:
			place++
		case <-ctx.Done():
			// The iterator has the same context, so it ends by itself.
		}
	}
	return nil
}

// A gatherWorker collects evidence from some of the exchanges of a capture.
type gatherWorker struct {
	// gatherer is the state that all workers share, such as the capture and the options.
	*gatherer
	// evidence summarizes the messages that this worker read, except those in parts.
	evidence *Evidence

	// parts has the evidence of each part of the traffic (for example one client version and day), if the traffic
	// is divided.
	parts map[sources.Part]*Evidence
	// remarks are about exchanges that were not read completely.
	remarks []Remark

	// damage is the first error of reading a damaged exchange.
	damage error

	// jsonCalls is the number of calls, read by this worker, whose messages are JSON and add nothing to the
	// evidence.
	jsonCalls int64

	// firstJSONCall is the smallest exchange number of such a call; 0 if there is none.
	firstJSONCall int64
}

// run does jobs until the channel is closed. It calls stop with an error that makes further reading pointless.
func (w *gatherWorker) run(ctx context.Context, jobs <-chan gatherJob, stop context.CancelCauseFunc) {
	for j := range jobs {
		err := w.read(ctx, j)
		switch {
		case err == nil:
		case errors.Is(err, captures.ErrDamaged):
			w.damage = cmp.Or(w.damage, err)
		default:
			// The first error that reaches stop wins.
			stop(err)
		}
	}
}

// read adds to the evidence the exchange of a job, and the conversation that begins with that exchange.
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
		w.finish(c.Exchange, w.evidenceOf(c.Exchange).AddExchange(c.Exchange), false, j.place)
	}
	return w.readCall(ctx, j, o, head)
}

// readCall adds one exchange frame by frame, so that a long call need not fit in memory. head is set if the
// exchange begins a conversation.
func (w *gatherWorker) readCall(ctx context.Context, j gatherJob, o decode.Options, head bool) error {
	var call *callEvidence
	frames, size := int64(0), int64(0)
	ex, err := decode.EachFrame(ctx, w.src, j.exchange, o, func(ex *decode.Exchange, f *decode.Frame) error {
		if call == nil {
			call = w.evidenceOf(ex).beginCall(ex)
		}
		call.Add(ex, f)
		size += int64(len(f.Data))
		// Reporting each frame would make the workers contend for the counters.
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
		call = w.evidenceOf(ex).beginCall(ex)
	}
	w.finish(ex, call.End(ex), head, j.place)
	return err
}

// finish records that an exchange was read, and its errors. rejected is the reason why messages were not added.
// If the exchange was read before as part of a conversation, its decoding errors were reported there.
func (w *gatherWorker) finish(ex *decode.Exchange, rejected error, inConversation bool, place int) {
	undecoded := ex.Err
	if inConversation {
		undecoded = nil
	}
	if (undecoded != nil || rejected != nil) && len(w.remarks) < maxRemarks {
		w.remarks = append(w.remarks, Remark{Exchange: ex.ID, Undecoded: undecoded, Rejected: rejected, place: place})
	}
	w.evidenceOf(ex).sources.Add(exchangeHash(ex))
	if !inConversation && ex.Transport == captures.HTTP && ex.Service != "" && ex.RPC != "" && ex.Codec == "json" {
		if w.jsonCalls++; w.firstJSONCall == 0 || ex.ID < w.firstJSONCall {
			w.firstJSONCall = ex.ID
		}
	}
}

// evidenceOf returns the Evidence to which an exchange is added: that of its part, if there are parts.
func (w *gatherWorker) evidenceOf(ex *decode.Exchange) *Evidence {
	if w.partOf == nil {
		return w.evidence
	}
	part := w.partOf(ex)
	ev := w.parts[part]
	if ev == nil {
		ev = NewEvidence()
		w.parts[part] = ev
	}
	return ev
}

// A progressMeter adds up and reports the progress of all workers.
type progressMeter struct {
	// messages and bytes are the totals so far.
	messages, bytes atomic.Int64

	// reporting is locked during a report. A worker that finds it locked continues without a report.
	reporting sync.Mutex
	// report is called with the totals; nil reports nothing.
	report func(Progress)
}

// advance adds to the totals and reports them, unless another report is in progress.
func (p *progressMeter) advance(messages, bytes int64) {
	m, b := p.messages.Add(messages), p.bytes.Add(bytes)
	if p.report != nil && p.reporting.TryLock() {
		defer p.reporting.Unlock()
		p.report(Progress{m, b})
	}
}
