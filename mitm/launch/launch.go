// Package launch runs a command with its traffic captured, passes signals on to it,
// and returns its exit status. Run gives the command an environment in which it uses
// a proxy and trusts the proxy's CA, and redirects the connections of Node programs.
// RunTransparent and RunPassive, on Linux, run it in a network namespace instead: the
// first hands its connections to a proxy, the second records its packets.
//
// Inspect tells which runtime a command has, such as Node or a static binary. In the
// network namespace (netns), rules of the kernel hand all packets to sockets of this
// program: TCP is forwarded to the proxy or to its server, datagrams are relayed, and
// packets are read from a socket. A control channel connects the process inside the
// namespace with the one outside. The package knows the proxy's address and its CA's
// file, and no captures; the commands capture and demo call it.
package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const (
	statusNotFound      = 127 // as shells have it
	statusNotExecutable = 126
	statusSignalled     = 128 // plus the signal's number

	// killDelay is what a command gets to end when the context does.
	killDelay = 5 * time.Second
)

// Options say what to run, and through what.
type Options struct {
	Argv     []string // the command and its arguments
	ProxyURL string   // http://host:port
	CAFile   string   // PEM, the proxy's CA
	Env      []string // nil: this process's

	// ControlToken is the proxy's mitm.Options.ControlToken. Run needs it; the
	// command gets it in its environment.
	ControlToken string

	// Begin, if set, is called when signals are caught for the command and before it is
	// started, and end when it has ended. The command is not started if Begin fails.
	Begin func() (end func(), err error)

	// QUIC says what becomes of QUIC (HTTP/3) in a namespace.
	QUIC QUIC

	Stdin          io.Reader
	Stdout, Stderr io.Writer

	Report *Report // if set, filled in when Run returns
}

// A QUIC says what becomes of connections by QUIC, which are not recorded: those to port
// 443 are refused, so that clients fall back to TCP, and others pass.
type QUIC struct {
	// Block refuses QUIC on all ports.
	Block bool

	// Report, if set, is called for the first connection to each address.
	Report func(to netip.AddrPort, refused bool)
}

// A Report is what was noticed about a command.
type Report struct {
	Runtime Runtime // what the command itself runs on
	Hooked  bool    // a Node, the command or one that it started, took the hook
	NoToken bool    // a Node took the hook without its token: it was not captured
}

// Run runs the command to its end and returns its exit status: 128 and the
// signal's number if a signal ended it, 127 if it was not found, 126 if it
// could not be run. Run forwards signals to the command; a second SIGINT, SIGTERM or
// SIGHUP kills it. When ctx ends, Run sends SIGTERM to the command.
//
// Errors: err is nil whenever the command ran, whatever its status.
func Run(ctx context.Context, o Options) (exit int, err error) {
	if len(o.Argv) == 0 {
		return statusNotFound, errors.New("launch: no command")
	}
	caught, stop, err := catchSignals(o.Begin)
	if err != nil {
		return statusNotExecutable, fmt.Errorf("launch: %w", err)
	}
	defer stop()
	dir, err := os.MkdirTemp("", "unwire-") // mode 0700
	if err != nil {
		return statusNotExecutable, fmt.Errorf("launch: %w", err)
	}
	defer os.RemoveAll(dir)
	if o.Report != nil {
		defer func() {
			_, hooked := os.Stat(filepath.Join(dir, hookLoadedFile))
			_, noToken := os.Stat(filepath.Join(dir, noTokenFile))
			*o.Report = Report{Runtime: Inspect(o.Argv[0]), Hooked: hooked == nil, NoToken: noToken == nil}
		}()
	}
	env, err := proxyEnvironment(ctx, o, dir)
	if err != nil {
		return statusNotExecutable, fmt.Errorf("launch: %w", err)
	}
	cmd := exec.CommandContext(ctx, o.Argv[0], o.Argv[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.Stdin, o.Stdout, o.Stderr
	return runCommand(cmd, caught, nil)
}

// catchSignals catches the signals that are passed on to a command, until stop is
// called, and calls begin then. It comes before all that prepares the command: whoever
// runs one leaves the signals to it, and none may be lost in between.
func catchSignals(begin func() (end func(), err error)) (caught <-chan os.Signal, stop func(), err error) {
	c := make(chan os.Signal, 16)
	signal.Notify(c, forwardedSignals()...)
	end := func() {}
	if begin != nil {
		if end, err = begin(); err != nil {
			signal.Stop(c)
			return nil, nil, err
		}
	}
	return c, func() { end(); signal.Stop(c) }, nil
}

// runCommand starts a command that was made with a context, passes on the signals that
// were caught, and waits for it. An error of started ends it.
func runCommand(cmd *exec.Cmd, caught <-chan os.Signal, started func() error) (exit int, err error) {
	cmd.Cancel = func() error { return terminate(cmd.Process) }
	cmd.WaitDelay = killDelay
	if err := cmd.Start(); err != nil {
		return startStatus(err), fmt.Errorf("launch: %w", err)
	}
	if started != nil {
		if err := started(); err != nil {
			_ = cmd.Process.Kill() // it may have ended by itself
			_ = cmd.Wait()
			return statusNotExecutable, fmt.Errorf("launch: %w", err)
		}
	}
	done := make(chan struct{})
	go func() {
		ending := false
		for {
			select {
			case s := <-caught:
				if sharesTerminalSignal(s) {
					continue
				}
				// Whoever asks for the end twice does not want to wait for the command.
				if ends := s == os.Interrupt || s == syscall.SIGTERM || s == syscall.SIGHUP; ends && ending {
					s = os.Kill
				} else if ends {
					ending = true
				}
				_ = cmd.Process.Signal(s) // it may just have ended
			case <-done:
				return
			}
		}
	}()
	err = cmd.Wait()
	close(done)
	return exitStatus(cmd.ProcessState, err)
}

func startStatus(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return statusNotFound
	}
	return statusNotExecutable
}

func exitStatus(state *os.ProcessState, err error) (int, error) {
	var exit *exec.ExitError
	if state == nil || err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return statusNotExecutable, fmt.Errorf("launch: %w", err)
	}
	if n := terminationSignal(state); n > 0 {
		return statusSignalled + n, nil
	}
	return state.ExitCode(), nil
}
