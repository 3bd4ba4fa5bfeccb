package term

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// defaultPager exits at once if the text fits on the screen, and keeps colours.
const defaultPager = "less -FRX"

// PagerCommand returns the command line of the user's pager: UNWIRE_PAGER, or else PAGER, or else less.
// It returns "" for no pager if the variable is empty or "cat". lookup reads an environment variable.
func PagerCommand(lookup func(string) (string, bool)) string {
	for _, name := range []string{"UNWIRE_PAGER", "PAGER"} {
		if command, ok := lookup(name); ok {
			if command == "cat" {
				return ""
			}
			return command
		}
	}
	return defaultPager
}

// errPagerEnded is returned by a write to a pager that has exited.
var errPagerEnded = errors.New("the pager has ended")

// ErrStopped is returned by Page if SIGTERM or SIGHUP ended the pager.
var ErrStopped = errors.New("a signal stopped the pager")

// Page calls write, and sends its output through a pager if it is longer than the screen. If o is not a
// terminal, or command is "", the output is printed directly. running is called when the pager starts,
// which then handles the terminal's signals; the function that it returns is called when the pager has
// exited.
//
// The context of write is cancelled when the pager exits. That is not an error, unless SIGTERM or SIGHUP
// ended the pager: then Page returns ErrStopped.
func (o *Output) Page(ctx context.Context, command string, running func() (ended func(), err error), write func(context.Context, *Output) error) error {
	if !o.TTY || o.Height <= 0 || command == "" {
		return write(ctx, o)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &pager{out: o, command: command, running: running, cancel: cancel}
	paged := *o
	paged.Writer = p
	err := write(ctx, &paged)
	quit, closeErr := p.close()
	switch {
	case p.stopped.Load():
		return ErrStopped
	case quit:
		return nil
	}
	return errors.Join(err, closeErr)
}

// A pager buffers output until it is longer than the screen, and then starts the pager command and writes
// to it.
type pager struct {
	// out is the terminal.
	out *Output

	// command is the command line of the pager.
	command string

	// running is called when the command starts; see Output.Page.
	running func() (ended func(), err error)

	// cancel cancels the context of the function that writes the output.
	cancel context.CancelFunc

	// held is the output that was buffered before the command started, and rows the number of screen rows
	// that it takes.
	held bytes.Buffer

	// rows is the number of screen rows of the buffered output.
	rows int

	// direct means that the command could not be started, so that output goes to the terminal.
	direct bool

	// to is the standard input of the command; nil before it starts.
	to io.WriteCloser

	// ended is closed when the command has exited.
	ended chan struct{}

	// quit means that the command exited before it had read all output.
	quit bool

	// stopped means that SIGTERM or SIGHUP was passed on to the command.
	stopped atomic.Bool
}

// Write buffers b or, once the output is longer than the screen, writes it to the pager command.
func (p *pager) Write(b []byte) (int, error) {
	switch {
	case p.direct:
		return p.out.Writer.Write(b)
	case p.to == nil:
		// Count screen rows, with long lines folded, until the output exceeds the screen.
		p.held.Write(b)
		for line := range bytes.Lines(b) {
			p.rows += 1 + max(0, Cells(string(line))-1)/max(p.out.Width, 1)
		}
		if p.rows < p.out.Height {
			return len(b), nil
		}

		// Without a usable pager, the output goes to the terminal directly.
		if err := p.start(); errors.Is(err, context.Canceled) {
			return 0, err
		} else if err != nil {
			p.direct = true
		}
		held := bytes.Clone(p.held.Bytes())
		p.held.Reset()
		if _, err := p.Write(held); err != nil {
			return 0, err
		}
		return len(b), nil
	}

	// The user quit the pager: the rest of the output is not needed.
	if _, err := p.to.Write(b); err != nil {
		p.quit = true
		p.cancel()
		return 0, errPagerEnded
	}
	return len(b), nil
}

// start starts the pager command.
func (p *pager) start() error {
	cmd := exec.Command("sh", "-c", p.command)
	cmd.Stdout, cmd.Stderr = p.out.Writer, os.Stderr

	// These are git's defaults: quit if the text fits on the screen, keep colours, do not clear the
	// screen.
	cmd.Env = os.Environ()
	for _, v := range [][2]string{{"LESS", "FRX"}, {"LESSCHARSET", "utf-8"}} {
		if _, ok := os.LookupEnv(v[0]); !ok {
			cmd.Env = append(cmd.Env, v[0]+"="+v[1])
		}
	}
	to, err := cmd.StdinPipe()
	if err != nil {
		return err
	}

	// Signals to unwire are passed on to the pager, so that the terminal is restored.
	caught := make(chan os.Signal, 4)
	signal.Notify(caught, syscall.SIGTERM, syscall.SIGHUP)
	ended := func() {}
	if p.running != nil {
		if ended, err = p.running(); err != nil {
			signal.Stop(caught)
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		signal.Stop(caught)
		ended()
		return err
	}
	p.to, p.ended = to, make(chan struct{})
	go func() {
		defer close(p.ended)
		// How a pager ended says nothing about what it showed.
		_ = cmd.Wait()
		p.cancel()
		signal.Stop(caught)
		ended()
	}()
	go func() {
		for {
			select {
			case s := <-caught:
				p.stopped.Store(true)
				_ = cmd.Process.Signal(s) // it may just have ended
			case <-p.ended:
				return
			}
		}
	}()
	return nil
}

// close writes the buffered output if the command was not started, and otherwise waits until it exits.
// quit means that it exited before it had read all output.
func (p *pager) close() (quit bool, err error) {
	if p.to == nil {
		_, err := p.out.Writer.Write(p.held.Bytes())
		return false, err
	}
	select {
	case <-p.ended: // before its input did
		p.quit = true
	default:
	}
	_ = p.to.Close() // the command may have closed it
	<-p.ended
	return p.quit, nil
}
