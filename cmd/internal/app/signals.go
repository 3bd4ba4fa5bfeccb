package app

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Every command ends within a second of SIGINT, SIGTERM or SIGHUP. These are the shares
// of that second.
const (
	// interruptGrace is how long a command may take to end by itself after a
	// signal. A command that is still busy then is abandoned: it may be blocked in
	// a system call, such as a write to a pipe that nobody reads.
	interruptGrace = 800 * time.Millisecond

	// GoodbyeTime bounds the writing of the last error message, because stderr may
	// be blocked as well.
	GoodbyeTime = 100 * time.Millisecond

	// InterruptedDrain is how long running streams may go on after a signal.
	InterruptedDrain = 300 * time.Millisecond

	// interruptedIndexing is how long summaries are derived after a signal.
	interruptedIndexing = 200 * time.Millisecond
)

// A SignalHandler cancels the command's context at the first SIGINT, SIGTERM or SIGHUP.
// While a child runs, the signals are the child's: package launch forwards them, and the
// command ends when the child does.
type SignalHandler struct {
	received chan os.Signal

	// overdue starts the grace period of a signal that a child received.
	overdue chan struct{}

	// mu guards the fields below: a signal is either the command's or a child's.
	mu       sync.Mutex
	children int
	caught   bool
}

// NewSignalHandler catches signals until stop is called. SIGHUP stays ignored if it was,
// as nohup has it.
func NewSignalHandler() (in *SignalHandler, stop func()) {
	in = &SignalHandler{received: make(chan os.Signal, 4), overdue: make(chan struct{}, 1)}
	signal.Notify(in.received, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(in.received, syscall.SIGHUP)
	}
	return in, func() { signal.Stop(in.received) }
}

// Run calls command and returns its exit status. It returns abandoned instead if
// the command does not end within interruptGrace of a signal, or at the second
// signal. The command's goroutine is left behind then, so the process has to exit.
func (in *SignalHandler) Run(command func(context.Context) int) (code int, abandoned bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- command(ctx) }()

	var deadline <-chan time.Time
	for {
		select {
		case code := <-ended:
			return code, false
		case <-deadline:
			return ExitInterrupted, true
		case <-in.overdue:
			deadline = time.After(interruptGrace)
		case <-in.received:
			switch {
			case in.receive():
				continue
			case deadline != nil:
				return ExitInterrupted, true
			}
			cancel()
			deadline = time.After(interruptGrace)
		}
	}
}

// receive records a signal, and reports whether it is SIGCHLD.
func (in *SignalHandler) receive() (childs bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.caught = true
	return in.children > 0
}

// Caught reports whether the program has received an interrupt or termination signal.
func (in *SignalHandler) Caught() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.caught
}

// ChildRuns leaves the signals to a child process until ended is called. It is called
// after whoever starts the child has begun to catch signals, and before the child starts:
// otherwise a signal in between reaches nobody.
//
// Errors: context.Canceled if a signal was caught before. The child must not start then.
func (in *SignalHandler) ChildRuns() (ended func(), err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.caught {
		return nil, context.Canceled
	}
	in.children++
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.children--
	}, nil
}

// StartGrace starts the grace period if a signal was caught while a child ran. What
// the command still has to do then has to be safe to abandon.
func (in *SignalHandler) StartGrace() {
	if in.Caught() {
		in.overdue <- struct{}{}
	}
}

// Within returns normal, or interrupted if a signal was caught.
func (in *SignalHandler) Within(normal, interrupted time.Duration) time.Duration {
	if in.Caught() {
		return interrupted
	}
	return normal
}

// An interruptibleReader reads from a terminal or a pipe until its context is
// done. A read(2) that waits for input cannot be interrupted, so it runs in a
// goroutine of its own, which stays behind if the context ends first.
type interruptibleReader struct {
	ctx  context.Context
	from io.Reader

	// waiting receives the result of the read into buffer that is running; nil if none is.
	waiting chan readResult
	buffer  []byte

	// unread is the part of buffer that was read from the input and not yet returned to the caller.
	unread []byte

	// err is the error of the input. It is returned once unread is empty.
	err error
}

type readResult struct {
	n   int
	err error
}

// readSize is the size of one read from standard input, in bytes.
const readSize = 64 << 10

// Interruptible reads a file until the command is interrupted. Reading a regular
// file does not wait, so it needs no goroutine.
func (a *App) Interruptible(f *os.File) io.Reader {
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		return f
	}
	return &interruptibleReader{ctx: a.Ctx, from: f}
}

func (r *interruptibleReader) Read(p []byte) (int, error) {
	for len(r.unread) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if r.waiting == nil {
			r.startRead()
		}
		select {
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		case result := <-r.waiting:
			r.waiting, r.unread, r.err = nil, r.buffer[:result.n], result.err
		}
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}

func (r *interruptibleReader) startRead() {
	if r.buffer == nil {
		r.buffer = make([]byte, readSize)
	}
	result := make(chan readResult, 1)
	r.waiting = result
	go func() {
		n, err := r.from.Read(r.buffer)
		result <- readResult{n, err}
	}()
}
