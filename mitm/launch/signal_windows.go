package launch

import "os"

// forwarded are the signals to survive: Ctrl-C reaches every process of the
// console, the command too.
func forwardedSignals() []os.Signal { return []os.Signal{os.Interrupt} }

func sharesTerminalSignal(os.Signal) bool { return true }

func terminate(p *os.Process) error { return p.Kill() }

func terminationSignal(*os.ProcessState) int { return 0 }
