package launch

import (
	"cmp"
	"context"
	"fmt"
	"net"

	"unwire/mitm/process"
)

// A Namespace contains the options of RunTransparent.
type Namespace struct {
	// Init is the beginning of the command line that makes this program call NamespaceInit.
	Init []string
	// Serve serves the TCP connections that programs in the namespace open. The local address of each
	// connection is its original destination. Serve may be called for several listeners, and returns when its
	// listener is closed. sockets is for finding the client program of a connection; nil if the system does not
	// support that.
	Serve func(net.Listener, *process.Sockets)
}

// An UnsupportedError reports a feature that the operating system lacks for running a command in a
// network namespace.
type UnsupportedError struct {
	// Mode is the requested capture mode, for the error text; "" means transparent capture.
	Mode string
	// Missing describes the missing feature.
	Missing string
	// Err is the error of the operation that failed; nil if none was tried.
	Err error
}

// Error describes the mode and the missing feature.
func (e *UnsupportedError) Error() string {
	mode := cmp.Or(e.Mode, "transparent capture")
	if e.Err == nil {
		return mode + ": " + e.Missing
	}
	return fmt.Sprintf("%s: %s: %v", mode, e.Missing, e.Err)
}

// Unwrap returns the error of the operation that failed.
func (e *UnsupportedError) Unwrap() error { return e.Err }

// RunTransparent runs a command that may not support proxies, in a network namespace of its own. The kernel
// passes every TCP connection, whatever its destination, to n.Serve. Datagrams, including DNS, are forwarded in
// both directions, except those to port 443: clients that cannot use HTTP/3 fall back to TCP. Options.QUIC
// extends this to all ports. Other protocols (ICMP, SCTP) are refused with an ICMP error. A loopback address is
// the namespace's if a program there listens, and the host's otherwise.
//
// It needs no privileges if the system permits user namespaces; root needs none. Proxy variables are removed
// from the command's environment.
//
// Limits: Linux with nf_tables, nft_tproxy and nft_socket. In a user namespace, programs cannot gain privileges
// (sudo, ping). Abstract Unix sockets of the host are unreachable. Connections are accepted before the server is
// contacted, so a refused connection appears as a reset.
//
// Errors: *UnsupportedError if the system does not support it. The command was not started then.
//
// Source: mitm/README.md#transparent-capture
func RunTransparent(ctx context.Context, o Options, n Namespace) (exit int, err error) {
	return runTransparent(ctx, o, n)
}

// NamespaceInit is the main function of the child process that RunTransparent and RunPassive start inside the
// network namespace: it sets up the namespace and runs the command. args are the arguments after
// Namespace.Init, begin is like Options.Begin, and the result is the command's exit status.
func NamespaceInit(args []string, begin func() (end func(), err error)) int {
	return namespaceInit(args, begin)
}
