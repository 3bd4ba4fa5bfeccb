package app

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"unwire/mitm/launch"
)

// Every command ends within a second of SIGINT, SIGTERM or SIGHUP. These are the shares
// of that second.
const (
	// interruptGrace is how long a command may take to end by itself after a
	// signal. A command that is still busy then is abandoned: it may be blocked in
	// a system call, such as a write to a pipe that nobody reads. Time in which the
	// process waits for a processor does not count; see grace.
	interruptGrace = 800 * time.Millisecond

	// starvedGrace limits the same time on a machine that is too busy to run the process.
	starvedGrace = 10 * time.Second

	// GoodbyeTime bounds the writing of the last error message, because stderr may
	// be blocked as well.
	GoodbyeTime = 100 * time.Millisecond

	// InterruptedDrain is how long running streams may go on after a signal.
	InterruptedDrain = 300 * time.Millisecond

	// interruptedIndexing is how long summaries are derived after a signal.
	interruptedIndexing = 200 * time.Millisecond
)

// A SignalHandler cancels the command's context at the first SIGINT, SIGTERM or SIGHUP. While a child
// process runs (see ChildRuns), it does not: package launch forwards the signals to the child, and the
// command ends when the child does.
type SignalHandler struct {
	// received delivers the signals from os/signal.
	received chan os.Signal

	// overdue makes Run start the grace period although the signal went to a child process; see
	// StartGrace.
	overdue chan struct{}

	// starvation returns how long this process has waited for processors.
	starvation func() time.Duration

	// mu guards the fields below.
	mu sync.Mutex

	// children is the number of child processes that currently get the signals.
	children int

	// caught is true once any signal has arrived.
	caught bool
}

// NewSignalHandler catches signals until stop is called. If SIGHUP was ignored when unwire started, as
// under nohup, it stays ignored.
func NewSignalHandler() (in *SignalHandler, stop func()) {
	in = &SignalHandler{received: make(chan os.Signal, 4), overdue: make(chan struct{}, 1), starvation: processorWait}
	signal.Notify(in.received, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(in.received, syscall.SIGHUP)
	}
	return in, func() { signal.Stop(in.received) }
}

// Run calls command and returns its exit status. If the command does not end within interruptGrace of a
// signal, or before a second signal, Run returns with abandoned set; the command's goroutine is still
// running then, so the process must exit.
func (in *SignalHandler) Run(command func(context.Context) int) (code int, abandoned bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- command(ctx) }()

	var left grace
	for {
		select {
		case code := <-ended:
			return code, false
		case <-left.over:
			if !left.extend() {
				return ExitInterrupted, true
			}
		case <-in.overdue:
			left = newGrace(in.starvation)
		case <-in.received:
			switch {
			case in.receive():
				continue
			case left.over != nil && time.Since(left.began) < launch.SameSignal:
				continue
			case left.over != nil:
				return ExitInterrupted, true
			}
			cancel()
			left = newGrace(in.starvation)
		}
	}
}

// receive records that a signal has arrived, and reports whether it is for a running child process and
// not for the command.
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

// ChildRuns leaves all signals to a child process until ended is called. Call it before the child starts,
// but after the code that forwards signals has begun to catch them; otherwise a signal in between would
// be lost.
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

// StartGrace starts the grace period after which Run abandons the command, if a signal arrived while a
// child process ran. Call it after the child has ended; the command's remaining work must be safe to
// abandon.
func (in *SignalHandler) StartGrace() {
	if in.Caught() {
		in.overdue <- struct{}{}
	}
}

// Within returns the duration normal or, if a signal has arrived, the shorter one interrupted.
func (in *SignalHandler) Within(normal, interrupted time.Duration) time.Duration {
	if in.Caught() {
		return interrupted
	}
	return normal
}

// negligibleStarvation is a wait for processors that every process has.
const negligibleStarvation = 20 * time.Millisecond

// A grace is the time in which a command must end after a signal: interruptGrace, without the time in which the process
// waited for a processor, but at most starvedGrace. So a busy machine does not make a command abandon its work, while a
// command that is blocked ends in time.
type grace struct {
	// began is the start of the grace.
	began time.Time

	// over is the time of the next check; nil before a signal.
	over <-chan time.Time

	// starvation returns how long the process has waited for processors.
	starvation func() time.Duration

	// counted is the starvation that is part of the grace already.
	counted time.Duration

	// latest is the end of the grace, however long the process waits.
	latest time.Time
}

// newGrace starts the grace.
func newGrace(starvation func() time.Duration) grace {
	return grace{began: time.Now(), over: time.After(interruptGrace), starvation: starvation, counted: starvation(), latest: time.Now().Add(starvedGrace)}
}

// extend prolongs the grace by the time in which the process has waited for a processor since the last call. It returns
// false if the grace is over.
func (g *grace) extend() bool {
	now := g.starvation()
	more := min(now-g.counted, time.Until(g.latest))
	g.counted, g.over = now, time.After(more)
	return more > negligibleStarvation
}

// processorWait returns how long this process has waited for processors while it could have run; 0 on systems other than
// Linux. The waits of threads at the same time count once, i.e. the sum is divided by the number of threads that may run
// at once.
//
// Source: Documentation/scheduler/sched-stats.rst of Linux, /proc/<pid>/schedstat
func processorWait() (total time.Duration) {
	// Other systems have no such folder, and a thread may have ended.
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		data, _ := os.ReadFile("/proc/self/task/" + thread.Name() + "/schedstat")
		if fields := strings.Fields(string(data)); len(fields) == 3 {
			waited, _ := strconv.ParseInt(fields[1], 10, 64)
			total += time.Duration(waited)
		}
	}
	return total / time.Duration(runtime.GOMAXPROCS(0))
}

// An interruptibleReader reads from a terminal or a pipe until its context is done. Since a blocked
// read(2) cannot be interrupted, it runs in a goroutine, which is left behind if the context ends first.
type interruptibleReader struct {
	// ctx ends all reads when it is done.
	ctx context.Context

	// from is the terminal or pipe.
	from io.Reader

	// waiting receives the result of the read that is in progress; nil if there is none.
	waiting chan readResult

	// buffer is where the goroutine reads to.
	buffer []byte

	// unread is the part of buffer that was read from the input and not yet returned to the caller.
	unread []byte

	// err is the error of the input. It is returned once unread is empty.
	err error
}

// A readResult is what one call of Read returned.
type readResult struct {
	// n is the number of bytes.
	n int

	// err is the error that Read returned.
	err error
}

// readSize is the size of one read from standard input, in bytes.
const readSize = 64 << 10

// Interruptible returns a reader of f whose reads fail when the command is interrupted. A regular file is
// returned as it is, since reading it does not block.
func (a *App) Interruptible(f *os.File) io.Reader {
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		return f
	}
	return &interruptibleReader{ctx: a.Ctx, from: f}
}

// Read implements io.Reader. It returns the context's error as soon as the context is done.
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

// startRead starts one read into buffer in a goroutine.
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
