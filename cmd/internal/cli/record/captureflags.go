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

// CaptureFlags are the values of the flags of 'unwire capture'. Other commands that record set the
// exported ones.
type CaptureFlags struct {
	// Out is the capture to write or append to (--output); "" for the default.
	Out string

	// Listen is the address of the proxy.
	Listen string

	// reverse is the URL of the server to forward to (--reverse); "" to run as a proxy.
	reverse string

	// UpstreamCA is a PEM file of additional CAs to trust for servers; "" for none.
	UpstreamCA string

	// json prints events as JSON Lines.
	json bool

	// keepSecrets records without redaction.
	keepSecrets bool

	// transparent records all TCP connections of the command, in its own network namespace.
	transparent bool

	// passive records packets instead of using a proxy.
	passive bool

	// upstreamInsecure does not verify servers' certificates.
	upstreamInsecure bool

	// share accepts connections from other users of this machine.
	share bool

	// blockQUIC rejects all QUIC.
	blockQUIC bool

	// UpstreamProxy is the URL of the proxy through which servers are reached; "none" connects directly,
	// and "" uses the proxy in the environment.
	UpstreamProxy string

	// clientCerts are the files of client certificates, each optionally preceded by HOST=.
	clientCerts []string

	// clientKeys are the files of their keys, each optionally preceded by HOST=.
	clientKeys []string

	// packets is the file that gets the recorded packets (--passive); "" for none.
	packets string

	// only are the hosts and paths to record; empty for all.
	only []string

	// skip are the hosts and paths not to record.
	skip []string

	// also are the URLs of additional servers for --reverse.
	also []string

	// maxBody is the size to which stored bodies are truncated, as text; "" for no limit.
	maxBody string

	// rotate is the size or time after which the recording continues in a new file; "" for none.
	rotate string

	// maxSize limits the files on disk to this size, as text; "" for no limit.
	maxSize string

	// keylog is the key log file to write; "" for none.
	keylog string

	// browser is the URL that is opened in a browser and recorded; "" for none.
	browser string

	// quiet prints no line for each exchange.
	quiet bool

	// verbose always prints a line for each exchange.
	verbose bool

	// rewrite has the flags that change traffic.
	rewrite rewriteFlags

	// ui shows the recording on a web page.
	ui bool

	// noOpen does not open the page in a browser.
	noOpen bool

	// run executes unwire commands for the web page of --ui.
	run workbench.Runner

	// upload is the URL of the object store to which finished capture files are moved; "" for none.
	upload string

	// objects are the options for the connection to the object store.
	objects app.ObjectStore

	// uploads is the queue of files to be moved to the object store; nil for none. It is not a flag.
	uploads *uploading

	// Unsearched counts the data that could not be searched for secrets. It is not a flag.
	Unsearched *UnsearchedLog

	// announcer prints finished exchanges; nil prints none. It is not a flag.
	announcer *announcer
}

// modeFlags adds the flags that choose how traffic reaches the recorder: proxy, reverse proxy,
// transparent, passive.
func (f *CaptureFlags) modeFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Listen, "listen", "127.0.0.1:0", "loopback address, such as 127.0.0.1:8080, or only a port, at which the proxy listens")
	flags.BoolVar(&f.share, "share", false, "let other users of this machine use the proxy, too")
	flags.StringVar(&f.reverse, "reverse", "", "instead of a proxy, start a server that forwards all requests to this URL")
	flags.StringArrayVar(&f.also, "also", nil, "with --reverse: start another server, on another port, that forwards to this URL")
	flags.StringVar(&f.browser, "browser", "", "start Chromium with this page, in a temporary profile; arguments after -- are flags for Chromium")
	flags.BoolVar(&f.transparent, "transparent", false, "run CMD in its own network namespace, and record all its TCP connections (Linux)")
	flags.BoolVar(&f.passive, "passive", false, "record the packets of CMD without a proxy, and decrypt them with the TLS keys that CMD logs (Linux)")
	flags.BoolVar(&f.blockQUIC, "block-quic", false, "with --transparent or --passive: reject QUIC on all ports, so that clients fall back to TCP")
	flags.StringVar(&f.packets, "packets", "", "with --passive: keep the packets in this pcapng file, with the TLS keys that decrypt them")
	flags.StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file of additional CAs to trust for servers")
	flags.BoolVar(&f.upstreamInsecure, "upstream-insecure", false, "do not verify servers' certificates; each exchange is marked as unverified")
	f.upstreamFlags(cmd)
}

// recordingFlags adds the flags about the recorded data and its files.
func (f *CaptureFlags) recordingFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.Out, "output", "o", "", "capture file to create, or to append to if it exists (default capture-TIME.uwc)")
	flags.BoolVar(&f.ui, "ui", false, "show the recording in a browser (see 'unwire ui'); the page stays until you interrupt capture")
	flags.BoolVar(&f.noOpen, "no-open", false, "with --ui: print the URL, but do not open a browser")
	flags.BoolVar(&f.json, "json", false, "print events as JSON Lines on stdout (CMD's stdout goes to stderr)")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "do not print a line for each exchange")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print one line for each exchange on stderr, even without a terminal or if CMD uses the same terminal")
	flags.BoolVar(&f.keepSecrets, "keep-secrets", false, "record tokens, cookies and keys without redaction")
	flags.StringSliceVar(&f.only, "only", nil, "record only hosts or requests that match this glob, such as *.example.com or api.example.com/v1/*; traffic of other hosts is not decrypted")
	flags.StringSliceVar(&f.skip, "skip", nil, "do not record hosts or requests that match this glob, such as *.example.com or api.example.com/health*")
	flags.StringVar(&f.maxBody, "max-body", "", "truncate stored bodies to this size, such as 1MB; truncated exchanges are marked")
	flags.StringVar(&f.rotate, "rotate", "", "start a new file (NAME-2.uwc and so on) after this size or time, such as 500MB or 1h")
	flags.StringVar(&f.maxSize, "max-size", "", "limit the total size of the recorded files, such as 500MB, by deleting the oldest files")
	flags.StringVar(&f.keylog, "write-keylog", "", "write the TLS keys of all connections to this file (SSLKEYLOGFILE format), so that Wireshark can decrypt them")
	options.Alias(flags, "keylog", "write-keylog")
	flags.StringVar(&f.upload, "upload", "", "move finished files to this object store or folder: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or file:///PATH")
	f.objects.AddTo(flags, true)
}

// upstreamFlags adds the flags about connections to servers.
func (f *CaptureFlags) upstreamFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.UpstreamProxy, "upstream-proxy", "", "connect to servers through this proxy instead of the one in proxy variables: http://, https://, socks5:// or socks5h://[USER:PASSWORD@]HOST:PORT; none connects directly")
	flags.StringArrayVar(&f.clientCerts, "client-cert", nil, "client certificate, [HOST=]PEM, to present to servers that request one")
	flags.StringArrayVar(&f.clientKeys, "client-key", nil, "private key, [HOST=]PEM, of the --client-cert with the same HOST (file mode 0600)")
}

// reachServers sets in o how servers are reached: client certificates and the upstream proxy. own is the
// HOST:PORT of the recording proxy, to which it must not connect itself.
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
		return app.Usagef("--upstream-proxy is the address of this proxy itself: use another proxy, or none")
	}
	o.UpstreamProxies = upstream.Always(proxy)
	return nil
}
