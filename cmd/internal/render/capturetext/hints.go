package capturetext

import (
	"errors"
	"fmt"

	"unwire/mitm/launch"
)

// UnreachedHint says why a command's traffic may not have come to the proxy, and
// which mode works for what it runs on.
func UnreachedHint(r launch.Report) string {
	const (
		others  = "\n'unwire capture --transparent -- CMD' captures any program (Linux)"
		passive = ", and\n'unwire capture --passive -- CMD' one that trusts no other CA but logs its keys (Linux)"
		reverse = ", and\n'unwire capture --reverse URL' one whose endpoint can be set"
	)
	switch {
	case r.Hooked:
		return "it took the hook for Node, so it made no TCP connection\nto record (QUIC and Unix sockets are not)" + others
	case r.Runtime == launch.Node:
		return "it is a Node program, but took no NODE_OPTIONS: it may\nclear them for its children, or have ended before it began;\nstart its script as 'node FILE', not through its launcher" + others + passive + reverse
	case r.Runtime == launch.NodeSEA:
		return "it holds a Node of its own that refuses NODE_OPTIONS" + others + reverse
	case r.Runtime == launch.Bun:
		return "it runs on Bun, which takes no NODE_OPTIONS, and whose\nHTTP/2 ignores HTTPS_PROXY; if it is a script, try it on Node" + others + reverse
	case r.Runtime == launch.Deno:
		return "it runs on Deno, which takes no NODE_OPTIONS; its fetch\nhonours HTTPS_PROXY, its node:http2 does not" + others + reverse
	case r.Runtime == launch.Electron:
		return "it is an Electron program: packaged ones ignore NODE_OPTIONS,\nand their windows use Chromium's network stack; start it with --proxy-server=ADDR\n(the --listen address) and, as that has no CA variable, 'unwire ca' for its trust" + others + passive
	case r.Runtime == launch.Go || r.Runtime == launch.Static:
		return "it is a static program: it made no call, or it\nignores HTTPS_PROXY, as those in Go do for this machine's own addresses" + others + reverse
	}
	return "it may not honour HTTPS_PROXY or\nNODE_OPTIONS" + others + passive + reverse
}

// PartlyReachedHint says what a runtime sends past the proxy though some of its traffic came.
func PartlyReachedHint(r launch.Runtime) string {
	what := "Deno's workers take no hook: what they sent is not recorded"
	if r == launch.Bun {
		what = "Bun's node:http2 and node:https ignore the proxy: only its fetch is recorded"
	}
	return what + "\n'unwire capture --transparent -- CMD' records all of it (Linux)"
}

// MissingKeyHint says what to do about connections whose keys the command did not write.
func MissingKeyHint(n int, on launch.Runtime) string {
	why := "it reads neither SSLKEYLOGFILE nor NODE_OPTIONS"
	switch on {
	case launch.Go, launch.Static:
		why = "a Go program does so only if it was written to (tls.Config.KeyLogWriter)"
	case launch.NodeSEA, launch.Bun, launch.Deno, launch.Electron:
		why = fmt.Sprintf("it runs on %s, which takes no NODE_OPTIONS", on)
	case launch.Node:
		why = "it clears NODE_OPTIONS for a Node that it starts, or that is another program's connection"
	}
	return fmt.Sprintf("the command wrote no key for %d of its connections: %s.\n"+
		"'unwire capture -- CMD' or 'unwire capture --transparent -- CMD' stands in the middle instead,\nwhich needs no keys", n, why)
}

// LaunchHint says what works where a command could not be run.
func LaunchHint(err error) string {
	var unsupported *launch.UnsupportedError
	if !errors.As(err, &unsupported) {
		return ""
	}
	if unsupported.Mode != "" {
		return passiveHint
	}
	return "without --transparent, programs that honour HTTPS_PROXY and Node programs are captured;\n--reverse URL is for programs whose endpoint can be set"
}

// passiveHint says how packets are recorded where --passive cannot.
const passiveHint = `record the packets with tcpdump or Wireshark while the command runs with
SSLKEYLOGFILE=/tmp/keys.txt NODE_OPTIONS=--tls-keylog=/tmp/keys.txt, then
'unwire import x.pcapng --keylog /tmp/keys.txt -o F.uwc'; or without --passive, where the
proxy stands in the middle`
