//go:build unix

package launch

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// forwardedSignals are the signals passed on to the command. SIGHUP is not among them if
// it is ignored, as nohup has it: the command then ignores it too.
func forwardedSignals() []os.Signal {
	signals := []os.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT,
	}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// sharesTerminalSignal reports whether the command got the signal as well: it
// stays in this process's group, so that it can read from the terminal and is
// stopped and resumed with it, and the terminal signals the whole group. There
// is no telling whether the terminal sent it, so a signal that the terminal
// sends is taken for its own as long as this process is in its foreground.
func sharesTerminalSignal(s os.Signal) bool {
	switch s {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGWINCH:
	default:
		return false
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false // no terminal: somebody signalled this process alone
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

func terminationSignal(state *os.ProcessState) int {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return int(w.Signal())
	}
	return 0
}
