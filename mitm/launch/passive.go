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

// A Passive contains the options of RunPassive.
type Passive struct {
	// Init is the beginning of the command line that makes this program call NamespaceInit.
	Init []string
	// KeyLog is the absolute path of the file to which the command must append its TLS secrets.
	KeyLog string
	// Packet is called for each packet that the command sends or receives, with the Ethernet frame, in order
	// and by one goroutine. data is valid during the call; length is the packet's original length, which may be
	// larger.
	Packet func(t time.Time, data []byte, length int)

	// Connection, if set, is called for each TCP connection before any data is forwarded. The remote address of
	// conn is the command's; sockets gives access to the sockets in its network namespace.
	Connection func(conn net.Conn, sockets *process.Sockets)
}

// Packets counts recorded and lost packets.
type Packets struct {
	// Recorded is the number of packets that were recorded.
	Recorded int64
	// Dropped is the number of packets lost because the ring buffer was full.
	Dropped int64
	// Cut is the number of packets of which the kernel delivered only the beginning.
	Cut int64
}

// RunPassive runs a command without any proxy: in a network namespace of its own, as with RunTransparent, but
// its TCP connections are forwarded to their destinations unchanged. The packets on the namespace's network
// device are passed to p.Packet. NODE_OPTIONS and SSLKEYLOGFILE make the command write its TLS secrets to
// p.KeyLog; proxy and CA variables are unchanged.
//
// Limits: those of RunTransparent. The ring buffer has 64 MiB; packets that do not fit are dropped and counted.
//
// Errors: *UnsupportedError if the system does not support it. The command was not started then.
//
// Source: mitm/README.md#passive-capture
func RunPassive(ctx context.Context, o Options, p Passive) (exit int, n Packets, err error) {
	exit, n, err = runPassive(ctx, o, p)
	var unsupported *UnsupportedError
	if errors.As(err, &unsupported) {
		unsupported.Mode = "passive capture"

		// Wrap it again, because the text of the old error names the other mode.
		err = fmt.Errorf("launch: %w", unsupported)
	}
	return exit, n, err
}

// keyLogEnvironment returns a copy of an environment in which variables make the command log its TLS keys to
// the file keyLog.
func keyLogEnvironment(list []string, keyLog string) []string {
	env := newEnv(list)
	env.set("SSLKEYLOGFILE", keyLog)
	env.set("NODE_OPTIONS", strings.TrimSpace("--tls-keylog="+quoteNodeOption(keyLog)+" "+env.get("NODE_OPTIONS")))
	return env.list
}
