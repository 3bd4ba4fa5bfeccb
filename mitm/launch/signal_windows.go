package launch

import "os"

// forwardedSignals returns the signals that this process ignores: Ctrl-C reaches all processes of the console,
// including the command.
func forwardedSignals() []os.Signal { return []os.Signal{os.Interrupt} }

// sharesTerminalSignal reports whether the command has also received the signal, which is always so on Windows.
func sharesTerminalSignal(os.Signal) bool { return true }

// terminate ends a process.
func terminate(p *os.Process) error { return p.Kill() }

// terminationSignal returns 0, because Windows has no signals that end processes.
func terminationSignal(*os.ProcessState) int { return 0 }
