package record

import "unwire/mitm/launch"

// unreachedHint says why a command's traffic may not have come to the proxy, and
// which mode works for what it runs on.
func unreachedHint(r launch.Report) string {
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

// partlyReachedHint says what a runtime sends past the proxy though some of its traffic came.
func partlyReachedHint(r launch.Runtime) string {
	what := "Deno's workers take no hook: what they sent is not recorded"
	if r == launch.Bun {
		what = "Bun's node:http2 and node:https ignore the proxy: only its fetch is recorded"
	}
	return what + "\n'unwire capture --transparent -- CMD' records all of it (Linux)"
}
