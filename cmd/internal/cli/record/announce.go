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

// announceTime is how long a recording waits at its end for exchanges that are not reported yet.
const announceTime = 5 * time.Second

// interruptedAnnounceTime is announceTime after a signal.
const interruptedAnnounceTime = 200 * time.Millisecond

// An announcer prints each finished exchange once it is stored: as a line of text, or as a JSON event.
// It reads the exchange from the capture, where its secrets are redacted, and never slows the traffic
// down. A nil announcer reports nothing.
type announcer struct {
	app   *app.App
	json  bool
	lines *exchangeline.Printer

	// ctx ends when the end of recording waits no longer.
	ctx  context.Context
	stop context.CancelFunc

	// started is closed when the first exchange may be reported.
	started chan struct{}
	start   sync.Once

	mu      sync.Mutex
	waiting []endedExchange

	// idle is closed while nothing waits and the goroutine does nothing; nil before.
	idle chan struct{}
}

// An endedExchange identifies a finished exchange by its file and number.
type endedExchange struct {
	store *store.Store
	id    int64
}

// newAnnouncer returns an announcer that prints JSON events or, if json is false, lines of text.
func newAnnouncer(a *app.App, json bool) *announcer {
	n := &announcer{app: a, json: json, lines: exchangeline.NewPrinter(a.Err), started: make(chan struct{})}
	n.ctx, n.stop = context.WithCancel(context.Background())
	return n
}

// options makes a series of capture files report finished exchanges to the announcer.
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

// begin allows the first report: the event that recording has begun comes before.
func (n *announcer) begin() {
	if n != nil {
		n.start.Do(func() { close(n.started) })
	}
}

// add queues finished exchanges, and starts the goroutine that prints them unless it is running.
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

// run prints the queued exchanges until the queue is empty.
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

// wait waits until all has been reported, for a limited time.
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

// report prints an exchange. One that cannot be read is reported by those who read the file.
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
	_, _ = n.app.Err.Write([]byte(n.lines.Line(line, n.app.Err.Columns()) + "\n"))
}
