package launch

import "os"

// forwardedSignals are the signals to be ignored here: Ctrl-C reaches all processes of the console, including
// the command.
func forwardedSignals() []os.Signal { return []os.Signal{os.Interrupt} }

func sharesTerminalSignal(os.Signal) bool { return true }

func terminate(p *os.Process) error { return p.Kill() }

func terminationSignal(*os.ProcessState) int { return 0 }
