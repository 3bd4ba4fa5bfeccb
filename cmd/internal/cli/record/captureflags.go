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

// captureLong is the prose of the help of 'unwire capture'.
const captureLong = `capture starts a recording proxy on a loopback address, and writes
the traffic to the file F.uwc. If you give the command CMD, capture runs CMD so that its
traffic goes through the proxy. For this, capture sets proxy variables and CA variables
in CMD's environment, and loads a script into Node programs. capture ends when CMD ends,
with CMD's exit status. Without CMD, capture runs until you interrupt it, and records
all clients that use the proxy. Clients can use the proxy as an HTTP proxy or as a SOCKS
5 proxy (ALL_PROXY=socks5h://HOST:PORT).

Use --transparent (only on Linux) if CMD ignores proxy variables. capture then runs CMD
in a separate network namespace, and records all TCP connections of CMD. capture
forwards UDP packets, such as DNS queries, but does not record them. capture rejects UDP
packets to port 443, so that HTTP/3 clients use TCP instead. capture forwards QUIC
packets to other ports, and reports that they were not recorded; with --block-quic,
capture rejects these packets, too. capture rejects protocols other than TCP and UDP.
CMD can connect to servers on this machine at their loopback addresses, such as
127.0.0.1:8080. If CMD itself listens at this address, CMD connects to itself instead.

--browser URL starts Chromium, Chrome or Edge with the page at URL, in a temporary
profile. This browser uses the proxy, trusts unwire's CA, does not use QUIC, and sends
no background traffic. capture ends when you close the browser.

Use --passive (only on Linux) if CMD accepts no certificate except that of its server,
or if a proxy would disturb time measurements. capture then uses no proxy, but records
the packets of CMD in a separate network namespace. capture sets NODE_OPTIONS and
SSLKEYLOGFILE so that CMD writes its TLS keys to a file. Node, curl, Chromium, Firefox,
Python and many other programs do this. While CMD runs, capture decrypts the packets
with these keys, and writes the exchanges (requests with their answers) to F.uwc. At the
end, capture deletes the packets and the keys. If capture is killed before this, F.uwc
is incomplete. The next command that reads F.uwc, or the next run of capture, then
completes F.uwc, and deletes the packets and the keys. --packets FILE.pcapng keeps the
packets together with the TLS keys, for example for Wireshark.

If HTTPS_PROXY, HTTP_PROXY or ALL_PROXY is set, capture connects to servers through the
proxy that the variable names. capture connects directly to the hosts in NO_PROXY and to
servers on this machine. --upstream-proxy overrides the proxy variables. Write a proxy's
password into a variable: other users of this machine can read the values of flags.

If a server requests a client certificate, capture presents the certificate of
--client-cert. With --client-cert HOST=PEM, capture presents the certificate only to hosts
that match the pattern HOST, such as *.example.com. If several patterns match a host,
capture uses the first one.

With --reverse URL, capture is not a proxy but a server, which forwards each request to
URL. Each --also URL starts one more server, which forwards requests to that URL. Clients
can connect to the same port with HTTP/1.1 or HTTP/2, with or without TLS.

capture replaces secrets (authorization headers, cookies, tokens and API keys) by
placeholders before it stores the traffic, unless you give --keep-secrets. capture cannot
search some bodies for secrets, such as bodies with an unknown encoding. capture stores
these bodies unchanged, and reports them.

capture records WebSocket traffic as messages. For protocols other than HTTP, capture
records the bytes of both directions, as an exchange with the URL tls://HOST:PORT or
tcp://HOST:PORT.

On Linux, the proxy rejects connections of other users, also of root, except those of
programs that CMD started. With --share, the proxy accepts all users of this machine.
These users can then also use your upstream proxy and your client certificates.

If --only or --skip excludes a host, capture forwards the host's traffic without
decrypting or recording it. If a pattern contains a path, such as host/path*, capture
decrypts all traffic of this host, but records only the requests that the pattern selects.
In a pattern, * matches any characters, also dots and slashes.

With --max-size SIZE, capture writes several files (NAME-2.uwc, NAME-3.uwc and so on).
Each file has at most a sixteenth of SIZE. When all files together exceed SIZE, capture
deletes the oldest file. capture deletes a file with unfinished exchanges only if all
other files have such exchanges, too. capture also truncates each stored body to a
sixteenth of SIZE, or to the size of --max-body if this is smaller.

On a terminal, capture prints one line for each finished exchange: number, time, program,
call, result, bytes of the bodies, and duration. If CMD writes to the same terminal,
capture prints these lines only with -v. With -q, capture never prints them. With --json,
capture prints one JSON object for each exchange instead. When capture ends, it prints a
summary with the number of exchanges for each result, and with advice about failures.

--upload moves each finished file to an object store, such as s3://BUCKET/PREFIX or
gs://BUCKET/PREFIX, or to the folder file:///PATH. The name of the stored file is the hash
of its content, and a JSON file next to it describes it. Use --upload together with
--rotate, which finishes a file from time to time. capture uploads a file only if 'unwire
audit' finds no secrets in it, and deletes the local file after the upload. If capture
cannot reach the store, the files stay on disk, up to --max-size (default with --upload:
10GB). If capture ends before all files are uploaded, the next capture with the same -o
and --upload uploads them. capture reads the store's credentials from AWS_ACCESS_KEY_ID
and AWS_SECRET_ACCESS_KEY, from ~/.aws/credentials, or from the role of the machine. For a
store on another machine, give --live and --allow-host.

--rules FILE changes messages before capture forwards them. A rule can edit, delay, drop
or duplicate a message, or answer a request without the server. --intercept FILTER holds
back messages that match FILTER, until you release them with 'unwire intercept F.uwc'.
--hook passes each message to a program, which can change the message. --throttle limits
the speed of the traffic. The capture then contains both the data that unwire received
and the data that unwire forwarded. capture forwards all other traffic unchanged.

If capture can no longer write F.uwc, for example because the disk is full, capture
reports this at once. capture then continues to forward the traffic without recording it,
and at the end exits with status 3.`

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
	flags.StringVar(&f.Listen, "listen", "127.0.0.1:0", "loopback address at which the proxy listens, such as 127.0.0.1:8080, or only its port, such as 8080")
	flags.BoolVar(&f.share, "share", false, "accept connections to the proxy from all users of this machine, not only from you")
	flags.StringVar(&f.reverse, "reverse", "", "do not start a proxy; start a server instead, which forwards all requests to this URL")
	flags.StringArrayVar(&f.also, "also", nil, "with --reverse: also start a server, on another port, which forwards all requests to this URL")
	flags.StringVar(&f.browser, "browser", "", "record a browser: start Chromium, Chrome or Edge with the page at this URL, in a temporary profile; arguments after -- are flags for the browser")
	flags.BoolVar(&f.transparent, "transparent", false, "run CMD in a separate network namespace, and record all TCP connections of CMD (only on Linux)")
	flags.BoolVar(&f.passive, "passive", false, "record the packets of CMD without a proxy, and decrypt the packets with the TLS keys that CMD writes to a file (only on Linux)")
	flags.BoolVar(&f.blockQUIC, "block-quic", false, "with --transparent or --passive: reject QUIC packets to all ports, so that clients use TCP instead")
	flags.StringVar(&f.packets, "packets", "", "with --passive: write the packets, and the TLS keys that decrypt them, to this pcapng file")
	flags.StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file with the certificates of additional CAs that unwire trusts when it connects to servers")
	flags.BoolVar(&f.upstreamInsecure, "upstream-insecure", false, "do not verify the certificates of servers; the capture marks each exchange as unverified")
	f.upstreamFlags(cmd)
}

// recordingFlags adds the flags about the recorded data and its files.
func (f *CaptureFlags) recordingFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.Out, "output", "o", "", "capture file to create, or to append to if it exists (default capture-TIME.uwc)")
	flags.BoolVar(&f.ui, "ui", false, "show the recorded exchanges in your browser, like 'unwire ui'; capture then does not end before you interrupt it")
	flags.BoolVar(&f.noOpen, "no-open", false, "with --ui: print the URL of the page, but do not open a browser")
	flags.BoolVar(&f.json, "json", false, "print one JSON object for each event, such as a finished exchange, on stdout; the output that CMD writes to stdout goes to stderr")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "do not print a line for each exchange")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "always print one line for each exchange on stderr, also if stderr is not a terminal, or if CMD writes to the same terminal")
	flags.BoolVar(&f.keepSecrets, "keep-secrets", false, "record secrets, such as tokens, cookies and keys, instead of replacing them by placeholders")
	flags.StringSliceVar(&f.only, "only", nil, "record only hosts or requests that match this pattern, such as *.example.com or api.example.com/v1/*; capture forwards the traffic of other hosts without decrypting it")
	flags.StringSliceVar(&f.skip, "skip", nil, "do not record hosts or requests that match this pattern, such as *.example.com or api.example.com/health*; capture only forwards them")
	flags.StringVar(&f.maxBody, "max-body", "", "store only the beginning of each body, up to this size, such as 1MB; the capture marks exchanges with truncated bodies")
	flags.StringVar(&f.rotate, "rotate", "", "continue in a new file (NAME-2.uwc and so on) when the file has this size or age, such as 500MB or 1h")
	flags.StringVar(&f.maxSize, "max-size", "", "delete the oldest files when all recorded files together are larger than this size, such as 500MB")
	flags.StringVar(&f.keylog, "write-keylog", "", "write the TLS keys of all connections to this file (SSLKEYLOGFILE format), so that Wireshark can decrypt them")
	options.Alias(flags, "keylog", "write-keylog")
	flags.StringVar(&f.upload, "upload", "", "move each finished file to this object store or folder: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or file:///PATH")
	f.objects.AddTo(flags, true)
}

// upstreamFlags adds the flags about connections to servers.
func (f *CaptureFlags) upstreamFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.UpstreamProxy, "upstream-proxy", "", "URL of the proxy through which capture connects to servers: http://, https://, socks5:// or socks5h://[USER:PASSWORD@]HOST:PORT; the word none means no proxy (default: the proxy variables)")
	flags.StringArrayVar(&f.clientCerts, "client-cert", nil, "client certificate: a PEM file, which capture presents to servers that request a certificate; with HOST=PEM only to servers that match HOST")
	flags.StringArrayVar(&f.clientKeys, "client-key", nil, "private key: a PEM file (file mode 0600) with the key of --client-cert; HOST=PEM has the key of the --client-cert with the same HOST")
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
