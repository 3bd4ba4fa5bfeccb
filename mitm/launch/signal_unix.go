//go:build unix

package launch

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// forwardedSignals returns the signals that are forwarded to the command. If SIGHUP is ignored, as under nohup,
// it is not forwarded: the command ignores it too.
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

// sharesTerminalSignal reports whether the command has also received the signal s from the terminal, so that it
// must not be forwarded. The command is in the same process group, and the terminal signals the whole group.
// The sender of a signal is unknown, so signals that terminals send count as the terminal's while this process
// is in its foreground.
func sharesTerminalSignal(s os.Signal) bool {
	switch s {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGWINCH:
	default:
		return false
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		// There is no terminal, so somebody signalled only this process.
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// terminate asks a process to end (SIGTERM).
func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// terminationSignal returns the number of the signal that ended a process, or 0.
func terminationSignal(state *os.ProcessState) int {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return int(w.Signal())
	}
	return 0
}
