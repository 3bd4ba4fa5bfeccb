package capturetext

import (
	"errors"
	"fmt"

	"unwire/mitm/launch"
)

// UnreachedHint explains why no traffic of a command reached the proxy, and which way of recording works
// for the command's language runtime.
func UnreachedHint(r launch.Report) string {
	const (
		others  = "\n'unwire capture --transparent -- CMD' records any program (Linux)"
		passive = ",\n'unwire capture --passive -- CMD' records programs that pin certificates but log TLS keys (Linux)"
		reverse = ",\n'unwire capture --reverse URL' records programs whose server address can be configured"
	)
	switch {
	case r.Hooked:
		return "CMD loaded unwire's Node hook, but opened no TCP connection (QUIC and Unix sockets are not recorded)" + others
	case r.Runtime == launch.Node:
		return "CMD is a Node program, but did not use NODE_OPTIONS: it may clear the variable for its child processes, or it ended too early; run the script as 'node FILE', without its launcher" + others + passive + reverse
	case r.Runtime == launch.NodeSEA:
		return "CMD contains its own Node runtime, which ignores NODE_OPTIONS" + others + reverse
	case r.Runtime == launch.Bun:
		return "CMD runs on Bun, which ignores NODE_OPTIONS, and whose HTTP/2 client ignores HTTPS_PROXY; if CMD is a script, try to run it on Node" + others + reverse
	case r.Runtime == launch.Deno:
		return "CMD runs on Deno, which ignores NODE_OPTIONS; fetch in Deno uses HTTPS_PROXY, but node:http2 does not" + others + reverse
	case r.Runtime == launch.Electron:
		return "CMD is an Electron program: packaged Electron programs ignore NODE_OPTIONS, and their windows use Chromium's network stack; run CMD with --proxy-server=ADDR (the --listen address), and install the CA for Chromium ('unwire ca install --store nss')" + others + passive
	case r.Runtime == launch.Go || r.Runtime == launch.Static:
		return "CMD is a static binary: either it made no request, or it ignored HTTPS_PROXY, as Go programs do for servers on this machine" + others + reverse
	}
	return "CMD may ignore HTTPS_PROXY and NODE_OPTIONS" + others + passive + reverse
}

// PartlyReachedHint explains which traffic of a language runtime may have bypassed the proxy although
// other traffic was recorded.
func PartlyReachedHint(r launch.Runtime) string {
	what := "unwire cannot redirect Deno's workers: their traffic is not recorded"
	if r == launch.Bun {
		what = "Bun's node:http2 and node:https ignore the proxy: only requests by fetch are recorded"
	}
	return what + "\n'unwire capture --transparent -- CMD' records all traffic (Linux)"
}

// MissingKeyHint explains why the TLS keys of n connections are missing. on is the language runtime of
// the command that opened them.
func MissingKeyHint(n int, on launch.Runtime) string {
	why := "CMD uses neither SSLKEYLOGFILE nor NODE_OPTIONS"
	switch on {
	case launch.Go, launch.Static:
		why = "a Go program logs keys only if its code does so (tls.Config.KeyLogWriter)"
	case launch.NodeSEA, launch.Bun, launch.Deno, launch.Electron:
		why = fmt.Sprintf("CMD runs on %s, which ignores NODE_OPTIONS", on)
	case launch.Node:
		why = "CMD clears NODE_OPTIONS for child processes, or another program opened the connection"
	}
	return fmt.Sprintf("CMD logged no TLS key for %d of its connections: %s.\n"+
		"'unwire capture -- CMD' and 'unwire capture --transparent -- CMD' decrypt with a proxy instead, and need no keys", n, why)
}

// LaunchHint returns a hint for the error that a command could not be run in the chosen way; "" for other
// errors.
func LaunchHint(err error) string {
	var unsupported *launch.UnsupportedError
	if !errors.As(err, &unsupported) {
		return ""
	}
	if unsupported.Mode != "" {
		return passiveHint
	}
	return "without --transparent, unwire records Node programs and programs that use HTTPS_PROXY; --reverse URL records programs whose server address can be configured"
}

// passiveHint explains how to record packets by hand on systems without capture --passive.
const passiveHint = "record the packets with tcpdump or Wireshark while the command runs with " +
	"SSLKEYLOGFILE=/tmp/keys.txt NODE_OPTIONS=--tls-keylog=/tmp/keys.txt, then " +
	"'unwire import x.pcapng --keylog /tmp/keys.txt -o F.uwc'; or use 'unwire capture' without --passive, which decrypts with a proxy"
