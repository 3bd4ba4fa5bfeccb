package record

import (
	"context"
	"sync"
	"time"

	"unwire/captures/series"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/exchangeline"
	"unwire/decode/conversation"
)

// announceTime limits how long a recording waits at its end until all finished exchanges have been
// printed.
const announceTime = 5 * time.Second

// interruptedAnnounceTime is the limit instead of announceTime if the recording was ended by a signal.
const interruptedAnnounceTime = 200 * time.Millisecond

// An announcer prints each finished exchange once it is stored: as a line of text, or as a JSON event. It
// reads the exchange from the capture, where secrets are redacted. It works in its own goroutine, so that
// it does not slow down the recorded traffic. The methods of a nil announcer do nothing.
type announcer struct {
	// app is the running program, to whose output the exchanges are printed.
	app *app.App

	// json prints JSON events on stdout, instead of text on stderr.
	json bool

	// lines formats exchanges as lines of text.
	lines *exchangeline.Printer

	// ctx is cancelled, by stop, when the remaining exchanges are no longer to be printed.
	ctx context.Context

	// stop cancels ctx.
	stop context.CancelFunc

	// started is closed by begin; nothing is printed before.
	started chan struct{}

	// start closes started once.
	start sync.Once

	// mu guards the fields below.
	mu sync.Mutex

	// waiting are the exchanges that have not been printed yet.
	waiting []endedExchange

	// idle is closed when the running goroutine has printed all exchanges; nil if no goroutine is running.
	idle chan struct{}
}

// An endedExchange identifies a finished exchange by the capture that stores it and its number.
type endedExchange struct {
	// store is the capture that has the exchange.
	store *store.Store

	// id is the number of the exchange.
	id int64
}

// newAnnouncer returns an announcer that prints JSON events or, if json is false, lines of text.
func newAnnouncer(a *app.App, json bool) *announcer {
	n := &announcer{app: a, json: json, lines: exchangeline.NewPrinter(a.Err), started: make(chan struct{})}
	n.ctx, n.stop = context.WithCancel(context.Background())
	return n
}

// options makes a recording pass its finished exchanges to the announcer.
func (n *announcer) options(o *series.Options) {
	if n == nil {
		return
	}
	o.Ended = n.add
	closing := o.Closing
	o.Closing = func(s *store.Store) {
		n.wait()
		if closing != nil {
			closing(s)
		}
	}
}

// begin allows the first exchange to be printed. It is called after the start of the recording has been
// reported.
func (n *announcer) begin() {
	if n != nil {
		n.start.Do(func() { close(n.started) })
	}
}

// add queues finished exchanges for printing. ids are their numbers in s.
func (n *announcer) add(s *store.Store, ids []int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	running := len(n.waiting) > 0 || n.idle != nil
	for _, id := range ids {
		n.waiting = append(n.waiting, endedExchange{s, id})
	}
	if !running {
		n.idle = make(chan struct{})
		go n.run(n.idle)
	}
}

// run prints the queued exchanges until the queue is empty, and closes idle.
func (n *announcer) run(idle chan struct{}) {
	defer close(idle)
	select {
	case <-n.started:
	case <-n.ctx.Done():
	}
	for {
		n.mu.Lock()
		batch := n.waiting
		n.waiting = nil
		if len(batch) == 0 {
			n.idle = nil
			n.mu.Unlock()
			return
		}
		n.mu.Unlock()
		for _, e := range batch {
			if n.ctx.Err() == nil {
				n.report(e)
			}
		}
	}
}

// wait waits until all queued exchanges have been printed, for at most announceTime.
func (n *announcer) wait() {
	n.begin()
	n.mu.Lock()
	idle := n.idle
	n.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-time.After(n.app.Signals.Within(announceTime, interruptedAnnounceTime)):
		n.stop()
		<-idle // reading ends with the context
	}
}

// report prints one exchange. If the exchange cannot be read from the capture, it prints nothing.
func (n *announcer) report(e endedExchange) {
	listed, err := conversation.One(n.ctx, e.store, e.id)
	if err != nil && listed.Exchange == nil || n.ctx.Err() != nil {
		return
	}
	related, err := e.store.Relations(n.ctx, e.id)
	if err != nil {
		related = nil
	}
	line := contract.NewExchange(&listed, related)
	if n.json {
		// A broken pipe is reported at the end.
		_ = n.app.Print(contract.NewExchangeEnded(line))
		return
	}
	n.app.Err.Sayf("%s", n.lines.Heading())
	_, _ = n.app.Err.Write([]byte(n.lines.Line(line, n.app.Err.Columns()) + "\n"))
}
