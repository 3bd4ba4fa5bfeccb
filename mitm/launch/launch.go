// Package launch runs a command with its traffic captured, forwards signals to it, and returns its exit status.
//
//	exit, err := launch.Run(ctx, launch.Options{Argv: []string{"curl", url}, ProxyURL: proxy, CAFile: file, ControlToken: token})
//
// Run sets up the command's environment so that it uses a proxy and trusts the proxy's CA, and redirects the
// connections of Node programs. On Linux, RunTransparent and RunPassive run it in a network namespace instead:
// RunTransparent passes its connections to a proxy, and RunPassive records its packets.
//
// Inspect detects the runtime of a command, such as Node or a static binary. In the network namespace, rules of
// the kernel pass all packets to sockets of this program: TCP is forwarded to the proxy or the server, datagrams
// are relayed, and packets are read from a packet socket. A control socket connects the process inside the
// namespace with the one outside. This package does not know captures; the commands capture and demo use it.
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
	// statusNotFound and statusNotExecutable are exit statuses as shells use them: for a command that was not
	// found, and for one that could not be started.
	statusNotFound      = 127
	statusNotExecutable = 126
	// statusSignalled plus the signal's number is the exit status for a command that was killed by a
	// signal.
	statusSignalled = 128

	// killDelay is how long a command may take to end after the context has ended.
	killDelay = 5 * time.Second
)

// Options describe the command to run, and how its traffic is captured.
type Options struct {
	// Argv is the command line to run.
	Argv []string
	// ProxyURL is the URL of the recording proxy, http://host:port.
	ProxyURL string
	// CAFile is the path of the proxy's CA certificate in PEM.
	CAFile string
	// Env is the environment for the command, before changes; nil means that of this process.
	Env []string

	// ControlToken is the proxy's mitm.Options.ControlToken. Run requires it and passes it to the command.
	ControlToken string

	// Begin, if set, is called after signals are caught and before the command is started; end, which it
	// returns, is called when the command has ended. If Begin fails, the command is not started.
	Begin func() (end func(), err error)

	// QUIC controls how QUIC (HTTP/3) is treated if the command runs in a network namespace.
	QUIC QUIC

	// Stdin is the standard input of the command.
	Stdin io.Reader
	// Stdout is the standard output of the command.
	Stdout io.Writer
	// Stderr is the standard error of the command.
	Stderr io.Writer

	// Report, if not nil, receives observations about the command before Run returns.
	Report *Report
}

// QUIC controls how QUIC connections are treated, which cannot be recorded. Those to port 443 are always
// refused, so that clients fall back to TCP; others are forwarded.
type QUIC struct {
	// Block refuses QUIC on all UDP ports. Default: only on port 443.
	Block bool

	// Report, if set, is called for the first connection to each address; refused means that it was refused.
	Report func(to netip.AddrPort, refused bool)
}

// A Report contains observations about the command, for hints to the user.
type Report struct {
	// Runtime is the detected runtime of the command, such as Node.
	Runtime Runtime
	// Hooked means that a Node process, the command or a descendant, loaded the hook.
	Hooked bool
	// NoToken means that a Node process loaded the hook but did not find the access token, so that its traffic
	// was not recorded.
	NoToken bool
}

// Run runs the command and returns its exit status: 128 plus the signal's number if a signal ended it, 127 if it
// was not found, 126 if it could not be started. Signals are forwarded to the command; a second SIGINT, SIGTERM
// or SIGHUP kills it. When ctx ends, the command receives SIGTERM.
//
// Errors: err is nil if the command ran, whatever its exit status.
func Run(ctx context.Context, o Options) (exit int, err error) {
	if len(o.Argv) == 0 {
		return statusNotFound, errors.New("launch: no command is given")
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

	// The hooks leave marker files, from which the report is built after the command has ended.
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

// catchSignals starts catching the signals that are forwarded to a command, and calls begin (see
// Options.Begin). It is called before the command is prepared, so that no signal is lost in between. stop ends
// the catching.
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

// SameSignal is the time in which further signals do not count as a second one, with which a user ends the waiting.
// timeout(1), for example, sends its signal to the command and then to the process group of the command.
const SameSignal = 200 * time.Millisecond

// runCommand starts a command, forwards the caught signals to it, and waits for its end. started is called
// after the start; its error ends the command. exit is the exit status.
func runCommand(cmd *exec.Cmd, caught <-chan os.Signal, started func() error) (exit int, err error) {
	cmd.Cancel = func() error { return terminate(cmd.Process) }
	cmd.WaitDelay = killDelay
	if err := cmd.Start(); err != nil {
		return startStatus(err), fmt.Errorf("launch: %w", err)
	}
	if started != nil {
		if err := started(); err != nil {
			// It may have ended already.
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return statusNotExecutable, fmt.Errorf("launch: %w", err)
		}
	}
	done := make(chan struct{})
	go func() {
		var ending time.Time // when the first signal that ends the command arrived
		for {
			select {
			case s := <-caught:
				if sharesTerminalSignal(s) {
					continue
				}
				// A second signal means that the user does not want to wait.
				switch ends := s == os.Interrupt || s == syscall.SIGTERM || s == syscall.SIGHUP; {
				case ends && ending.IsZero():
					ending = time.Now()
				case ends && time.Since(ending) < SameSignal:
					continue
				case ends:
					s = os.Kill
				}
				// It may just have ended.
				_ = cmd.Process.Signal(s)
			case <-done:
				return
			}
		}
	}()
	err = cmd.Wait()
	close(done)
	return exitStatus(cmd.ProcessState, err)
}

// startStatus returns the exit status for a command that could not be started because of err.
func startStatus(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return statusNotFound
	}
	return statusNotExecutable
}

// exitStatus returns the exit status of a command that has ended; err is the result of waiting for it.
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
