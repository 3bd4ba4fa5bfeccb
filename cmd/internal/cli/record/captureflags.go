package record

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/cli/workbench"
	"unwire/cmd/internal/options"
	"unwire/mitm"
	"unwire/mitm/clientcert"
	"unwire/mitm/upstream"
)

// CaptureFlags are the flags of capture that other commands set too.
type CaptureFlags struct {
	// Out, Listen and UpstreamCA are the values of --out, --listen and --upstream-ca; reverse is the
	// origin of --reverse.
	Out, Listen, reverse, UpstreamCA string
	json, keepSecrets, transparent   bool
	passive, upstreamInsecure        bool
	share, blockQUIC                 bool
	// UpstreamProxy is the value of --upstream-proxy.
	UpstreamProxy                    string
	clientCerts, clientKeys          []string
	packets                          string
	only, skip, also                 []string
	maxBody, rotate, maxSize, keylog string
	browser                          string
	quiet, verbose                   bool
	rewrite                          rewriteFlags
	ui, noOpen                       bool

	// run executes unwire commands for the web page of --ui.
	run workbench.Runner

	// upload is the URL of the object store to which finished files are moved, objects the options for
	// the connection to it, and uploads the queue of files.
	upload  string
	objects app.ObjectStore
	uploads *uploading

	// Unsearched reports bytes that could not be searched for secrets.
	Unsearched *UnsearchedLog
	announcer  *announcer // of exchanges that have ended; nil reports none
}

// modeFlags adds the flags that choose how traffic reaches the recorder: proxy, reverse proxy,
// transparent, passive.
func (f *CaptureFlags) modeFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Listen, "listen", "127.0.0.1:0", "address of the proxy on loopback, or a port of 127.0.0.1")
	flags.BoolVar(&f.share, "share", false, "accept connections from other users of this machine")
	flags.StringVar(&f.reverse, "reverse", "", "run as a server that forwards to this URL, instead of as a proxy")
	flags.StringArrayVar(&f.also, "also", nil, "with --reverse: also run a server, on another port, that forwards to this URL")
	flags.StringVar(&f.browser, "browser", "", "start Chromium with this page, in a temporary profile; arguments after -- are flags for Chromium")
	flags.BoolVar(&f.transparent, "transparent", false, "run CMD in its own network namespace, and record all its TCP connections (Linux)")
	flags.BoolVar(&f.passive, "passive", false, "run CMD in its own network namespace, record its packets, and decrypt them with the TLS keys that CMD logs (Linux)")
	flags.BoolVar(&f.blockQUIC, "block-quic", false, "with --transparent or --passive: reject QUIC on all ports, so that clients fall back to TCP")
	flags.StringVar(&f.packets, "packets", "", "with --passive: keep the packets in this pcapng file, with the TLS keys that decrypt them")
	flags.StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file of additional CAs to trust for servers")
	flags.BoolVar(&f.upstreamInsecure, "upstream-insecure", false, "do not verify servers' certificates; each exchange is marked as unverified")
	f.upstreamFlags(cmd)
}

// recordingFlags adds the flags about the recorded data and its files.
func (f *CaptureFlags) recordingFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.Out, "output", "o", "", "capture file to write or append to (default capture-TIME.uwc)")
	flags.BoolVar(&f.ui, "ui", false, "show the recording in a browser (see 'unwire ui'); the page stays until you interrupt capture")
	flags.BoolVar(&f.noOpen, "no-open", false, "with --ui: print the URL, but do not open a browser")
	flags.BoolVar(&f.json, "json", false, "print events as JSON Lines on stdout (CMD's stdout goes to stderr)")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print no lines for exchanges")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print one line for each exchange on stderr, even without a terminal or if CMD uses the same terminal")
	flags.BoolVar(&f.keepSecrets, "keep-secrets", false, "record tokens, cookies and keys without redaction")
	flags.StringSliceVar(&f.only, "only", nil, "record only these hosts (globs) or HOST/PATH globs; other hosts are forwarded undecrypted")
	flags.StringSliceVar(&f.skip, "skip", nil, "forward these hosts (globs) undecrypted, and requests that match HOST/PATH globs unrecorded")
	flags.StringVar(&f.maxBody, "max-body", "", "truncate stored bodies to this size, such as 1MB; truncated exchanges are marked")
	flags.StringVar(&f.rotate, "rotate", "", "continue in NAME-2.uwc and so on after this size or time, such as 500MB or 1h")
	flags.StringVar(&f.maxSize, "max-size", "", "limit the files on disk to this size, such as 500MB, by deleting the oldest traffic")
	flags.StringVar(&f.keylog, "write-keylog", "", "write the TLS keys to this file (SSLKEYLOGFILE format), for Wireshark")
	options.Alias(flags, "keylog", "write-keylog")
	flags.StringVar(&f.upload, "upload", "", "move finished files to this object store or folder: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or file:///PATH")
	f.objects.AddTo(flags, true)
}

// upstreamFlags adds the flags about connections to servers.
func (f *CaptureFlags) upstreamFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.UpstreamProxy, "upstream-proxy", "", "connect to servers through this proxy, and ignore proxy variables: http://, https://, socks5:// or socks5h://[USER:PASSWORD@]HOST:PORT; none connects directly")
	flags.StringArrayVar(&f.clientCerts, "client-cert", nil, "certificate file, [HOST=]PEM, to present to servers that ask for one")
	flags.StringArrayVar(&f.clientKeys, "client-key", nil, "key file, [HOST=]PEM, for the --client-cert with the same HOST (file mode 0600)")
}

// reachServers sets the options for connections to servers. own is the proxy's own address, to which it
// must not connect.
func (f *CaptureFlags) reachServers(a *app.App, o *mitm.Options, own string) error {
	var err error
	if o.ClientCertificates, err = clientcert.Load(f.clientCerts, f.clientKeys); err != nil {
		return app.Fail(app.ExitInput, err, "")
	}
	switch f.UpstreamProxy {
	case "none":
		return nil
	// The environment may point to this proxy itself, from an outer capture.
	case "":
		var ignored []string
		if o.UpstreamProxies, ignored, err = upstream.FromEnvironment(os.Getenv, own); err != nil {
			return app.Fail(app.ExitUsage, err, "correct the variable, or ignore it with --upstream-proxy URL or --upstream-proxy none")
		}
		if len(ignored) > 0 {
			a.Say("unwire: warning: %s is ignored because it names this proxy itself: unwire connects to servers directly", strings.Join(ignored, ", "))
		}
		return nil
	}
	proxy, err := upstream.Parse(f.UpstreamProxy)
	if err != nil {
		return app.Usagef("--upstream-proxy: %v", err)
	}
	if upstream.IsListener(proxy, own) {
		return app.Usagef("--upstream-proxy names this proxy itself: use another proxy, or none")
	}
	o.UpstreamProxies = upstream.Always(proxy)
	return nil
}
