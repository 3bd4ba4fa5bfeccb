package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"unwire/mitm/process"
)

// A Passive says how a command's packets are recorded.
type Passive struct {
	// Init is how this program starts NamespaceInit: its path and first arguments.
	Init []string
	// KeyLog is the file that the command is told to write the secrets of its
	// TLS sessions to: an absolute path that it may append to.
	KeyLog string
	// Packet is given each packet that the command sends or receives, as an
	// Ethernet frame, in order, by one goroutine. data is valid until it
	// returns; length is that of the whole packet.
	Packet func(t time.Time, data []byte, length int)

	// Connection, if set, is given each TCP connection of the command before anything passes
	// over it, and the sockets of the command's network. Its remote address is the command's.
	Connection func(conn net.Conn, sockets *process.Sockets)
}

// Packets counts what was recorded.
type Packets struct {
	Recorded int64
	Dropped  int64 // by the kernel, as they were not taken in time
	Cut      int64 // of which the kernel gave only the beginning
}

// RunPassive is Run for a command whose connections nobody is to stand in: it
// runs in a network namespace of its own, as with RunTransparent, and its TCP is
// carried to where it was meant to go, byte for byte. What passes over the
// namespace's device is given to p.Packet. NODE_OPTIONS and SSLKEYLOGFILE have
// the command write its TLS secrets to p.KeyLog; proxy and CA variables stay.
//
// Limits: those of RunTransparent. The kernel holds 64 MiB of packets that were
// not taken yet; what does not fit is counted as dropped.
//
// Errors: *UnsupportedError where the system cannot do it; the command has not
// run then.
//
// Source: mitm/README.md#passive-capture
func RunPassive(ctx context.Context, o Options, p Passive) (exit int, n Packets, err error) {
	exit, n, err = runPassive(ctx, o, p)
	var unsupported *UnsupportedError
	if errors.As(err, &unsupported) {
		unsupported.Mode = "passive capture"

		// Made anew: an error around the old one has the other mode in its text.
		err = fmt.Errorf("launch: %w", unsupported)
	}
	return exit, n, err
}

// keyLogEnvironment is that of a command which is to write its TLS secrets to a file.
func keyLogEnvironment(list []string, keyLog string) []string {
	env := newEnv(list)
	env.set("SSLKEYLOGFILE", keyLog)
	env.set("NODE_OPTIONS", strings.TrimSpace("--tls-keylog="+quoteNodeOption(keyLog)+" "+env.get("NODE_OPTIONS")))
	return env.list
}
