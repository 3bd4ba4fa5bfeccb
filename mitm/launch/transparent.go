package launch

import (
	"cmp"
	"context"
	"fmt"
	"net"

	"unwire/mitm/process"
)

// A Namespace says how a command is run in a network namespace of its own.
type Namespace struct {
	// Init is how this program starts NamespaceInit: its path and first arguments.
	Init []string
	// Serve is given the TCP connections that are opened in the namespace:
	// where they were meant to go is their local address. It may be given more
	// than one listener, and returns when that is closed. Their clients are among the
	// sockets; nil: the system does not tell.
	Serve func(net.Listener, *process.Sockets)
}

// An UnsupportedError says what a system lacks for a namespace.
type UnsupportedError struct {
	Mode    string // what was asked for; "" is a transparent capture
	Missing string
	Err     error // what was refused; nil if nothing was tried
}

func (e *UnsupportedError) Error() string {
	mode := cmp.Or(e.Mode, "transparent capture")
	if e.Err == nil {
		return mode + ": " + e.Missing
	}
	return fmt.Sprintf("%s: %s: %v", mode, e.Missing, e.Err)
}

func (e *UnsupportedError) Unwrap() error { return e.Err }

// RunTransparent is Run for a command that may know nothing of proxies: it runs
// in a network namespace of its own, in which the kernel hands every TCP
// connection to n.Serve, whatever its address. Datagrams are carried to where
// they were meant to go and back, DNS with them, except those to port 443: a
// client that is refused HTTP/3 there falls back to TCP, as with Options.QUIC on any
// port. Anything else (ICMP,
// SCTP) is refused with an ICMP error. A loopback address stays in the
// namespace where something listens there, and is the host's otherwise.
//
// No privilege is needed where the system allows user namespaces; root does
// without. Proxy variables are taken from the command's environment.
//
// Limits: Linux with nf_tables, nft_tproxy and nft_socket. Programs that gain
// privileges (sudo, ping) cannot in a user namespace. Abstract Unix sockets of
// the host are out of reach. A connection is accepted before the server is
// asked, so that one that the server refuses is reset instead.
//
// Errors: *UnsupportedError where the system cannot do it; the command has not
// run then.
//
// Source: mitm/README.md#transparent-capture
func RunTransparent(ctx context.Context, o Options, n Namespace) (exit int, err error) {
	return runTransparent(ctx, o, n)
}

// NamespaceInit is what the process does that RunTransparent starts: it sets
// the namespace up that it is in, and runs the command there. The arguments are
// those behind Namespace.Init, and begin is as Options.Begin; the exit status is the
// command's.
func NamespaceInit(args []string, begin func() (end func(), err error)) int {
	return namespaceInit(args, begin)
}
