package app

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

func TestInterruptibleReaderReturnsAllBytes(t *testing.T) {
	text := strings.Repeat("some bytes ", 20_000)
	for name, from := range map[string]io.Reader{
		"whole":           strings.NewReader(text),
		"one byte":        iotest.OneByteReader(strings.NewReader(text)),
		"data with error": iotest.DataErrReader(strings.NewReader(text)),
	} {
		got, err := io.ReadAll(&interruptibleReader{ctx: t.Context(), from: from})
		if err != nil || string(got) != text {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	failed := errors.New("read failed")
	got, err := io.ReadAll(&interruptibleReader{ctx: t.Context(), from: io.MultiReader(strings.NewReader(text), iotest.ErrReader(failed))})
	if !errors.Is(err, failed) || string(got) != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestInterruptibleReaderEndsWithItsContext(t *testing.T) {
	r, w := io.Pipe() // a read waits for ever
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(&interruptibleReader{ctx: ctx, from: r})
		read <- err
	}()
	cancel()
	if err := <-read; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestSignalReachesEitherCommandOrChild sends signals around the start of a child: the
// command's context ends, or the child runs and gets them, and never neither.
func TestSignalReachesEitherCommandOrChild(t *testing.T) {
	for range 200 {
		in := &SignalHandler{received: make(chan os.Signal, 1), starvation: processorWait}
		go func() { in.received <- os.Interrupt }()
		code, _ := in.Run(func(ctx context.Context) int {
			childs := make(chan os.Signal, 1) // what package launch catches gets every signal, too
			ended, err := in.ChildRuns()
			if err != nil {
				<-ctx.Done()
				return 1
			}
			defer ended()
			go func() {
				for !in.Caught() {
					runtime.Gosched()
				}
				childs <- os.Interrupt
			}()
			select {
			case <-childs:
				return 2
			case <-ctx.Done():
				return 3
			}
		})
		if code != 1 && code != 2 {
			t.Fatalf("status %d: the child started, and the signal went to the command", code)
		}
	}
}

// A command that is blocked is abandoned after interruptGrace. One whose process waits for processors has the time that it
// needs, up to starvedGrace.
func TestGrace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		needs   time.Duration
		starved float64 // share of the time
		code    int
		took    time.Duration
	}{
		"in time":           {700 * time.Millisecond, 0, 7, 700 * time.Millisecond},
		"blocked":           {time.Hour, 0, ExitInterrupted, interruptGrace},
		"usual waits":       {time.Hour, 0.02, ExitInterrupted, interruptGrace},
		"starved":           {3 * time.Second, 0.8, 7, 3 * time.Second},
		"starved, too long": {time.Hour, 1, ExitInterrupted, starvedGrace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				in := &SignalHandler{received: make(chan os.Signal, 1), starvation: func() time.Duration {
					return time.Duration(c.starved * float64(time.Since(began)))
				}}
				in.received <- os.Interrupt
				release := make(chan struct{})
				code, abandoned := in.Run(func(context.Context) int {
					select {
					case <-time.After(c.needs):
					case <-release:
					}
					return 7
				})
				close(release)
				if took := time.Since(began); code != c.code || abandoned != (code == ExitInterrupted) || took != c.took {
					t.Errorf("status %d after %v, want %d after %v", code, took, c.code, c.took)
				}
			})
		})
	}
}

// A signal that arrives twice at once, as from timeout(1), is one signal; a later one ends the waiting.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	for delay, want := range map[time.Duration]int{0: 7, 500 * time.Millisecond: ExitInterrupted} {
		synctest.Test(t, func(t *testing.T) {
			in := &SignalHandler{received: make(chan os.Signal, 2), starvation: func() time.Duration { return 0 }}
			in.received <- os.Interrupt
			release := make(chan struct{})
			go func() {
				time.Sleep(delay)
				in.received <- os.Interrupt
			}()
			code, _ := in.Run(func(context.Context) int {
				select {
				case <-time.After(700 * time.Millisecond):
				case <-release:
				}
				return 7
			})
			close(release)
			if code != want {
				t.Errorf("a second signal after %v: status %d, want %d", delay, code, want)
			}
		})
	}
}

// More threads than processors wait for them.
func TestProcessorWait(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skipf("this system does not count the time: %v", err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4 * runtime.NumCPU()))
	before := processorWait()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for range 4 * runtime.NumCPU() {
		go func() {
			for ctx.Err() == nil {
			}
		}()
	}
	for processorWait()-before < negligibleStarvation {
		if ctx.Err() != nil {
			t.Fatalf("waited %v", processorWait()-before)
		}
	}
}
