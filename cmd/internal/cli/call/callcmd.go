// Package callcmd has the command call, which calls a method of a server by its definition.
//
// The definitions come from what --proto names, from the capture of --like, or from the
// server's own reflection. Messages are read as JSON, one after the other, and answers are
// printed as JSON, one in a line. The work is done by package replay/call.
package callcmd

import (
	"time"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
)

// Commands returns the command call.
func Commands(a *app.App) []*cobra.Command { return []*cobra.Command{callCommand(a)} }

// callFlags are the values of the flags of 'unwire call'.
type callFlags struct {
	// Target has the flags about the server and the credentials.
	app.Target

	// data are the messages as JSON, @FILE, or - for stdin; "" for the default.
	data string

	// proto names the definitions; "" for the default.
	proto string

	// protocol is connect, grpc or grpc-web; "" for the default.
	protocol string

	// codec is proto or json; "" for the default.
	codec string

	// like is the address of the exchange to copy the method, server, headers and protocol from; "" for none.
	like string

	// out is the capture file to which unwire adds a record of the call; "" for none.
	out string

	// headers are the values of --header, each NAME=VALUE.
	headers []string

	// http2 uses HTTP/2 over http://.
	http2 bool

	// noAuth sends no credentials.
	noAuth bool

	// dryRun prints the request without sending it.
	dryRun bool

	// timeout limits the time of the call.
	timeout time.Duration

	// source is the flag, with a space behind it, with which 'unwire schema print' uses the definitions of
	// the call: "--proto reflect:URL "; "" if it uses them without a flag.
	source string
}

const callExamples = `  # Call a method with one message
  unwire call shop.v1.Orders/PlaceOrder --data '{"customerId":"c1"}' --to http://127.0.0.1:8080
  # Send a message from a file, to a server with a private CA
  unwire call shop.v1.Orders/Track --data @request.json --to https://127.0.0.1:9440 --upstream-ca ca.pem --proto proto/
  # Stream several messages over gRPC, and record the call
  unwire call talk.v1.Talk/Chat --data - --protocol grpc --to http://127.0.0.1:8080 -o F.uwc < messages.jsonl
  # Call the method of exchange 7 with another message
  unwire call --like F.uwc#7 --data '{"orderId":"o2"}' --to http://127.0.0.1:8080`

// callCommand returns the command 'unwire call', which calls an RPC method.
func callCommand(a *app.App) *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "call [METHOD]",
		Short: "Call a method of a server with messages in JSON",
		Long: `call sends messages to the RPC method METHOD, such as pkg.Service/Method, and
prints each message of the answer as JSON on one line. If the server answers with an
error, call prints the error as JSON on stderr. The exit status is then 64 plus the
number of the error code.

--data contains the message as JSON; @FILE reads the message from the file FILE, and -
from stdin. For a client-streaming method, write several messages one after the other.
Without --data, call sends an empty message; for a client-streaming method, call then
reads the messages from stdin. For a bidirectional method, call sends each message as
soon as it has read the message, and prints each message of the server as soon as it
arrives.

call needs the .proto definition of the method. call looks for it in --proto, in
UNWIRE_PROTO, in the capture of --like, and in unwire.yaml, in this order. If the
definition is in none of these, call asks the server for the definition by gRPC server
reflection. With -o, call writes the call and its answer to a capture (a file with
recorded traffic). If this capture has no definition of the method, call also copies the
definitions from --proto or from the server to the capture.

With --like F.uwc#ID, call uses the method, the server, the headers and the protocol of
this recorded exchange. call rejects a secret, such as a token, that you write on the
command line, because other users of this machine can read it there. call reads secrets
from the environment (UNWIRE_TOKEN, UNWIRE_HEADER_X_API_KEY), from --credentials, or
from the source that --header names: NAME=env:VARIABLE, NAME=file:FILE or
NAME=keyring:SERVICE/ACCOUNT. If you give the secret for the header authorization with
--header, the secret must begin with the scheme, as in 'Bearer TOKEN'. If this secret
comes from UNWIRE_TOKEN or --credentials and has no scheme, call adds 'Bearer '.

call sends requests only to servers on this machine. To call another host, give --live
and --allow-host.`,
		Example: callExamples,
		Args:    app.ArgsBetween(0, "METHOD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			method := ""
			if len(args) > 0 {
				method = args[0]
			}
			return runCall(cmd.Context(), a, method, cmd.Flags().Changed("data"), &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "message that call sends: JSON, @FILE for the content of FILE, or - for stdin (default: an empty message; for a client-streaming method, stdin)")
	flags.StringVar(&f.like, "like", "", "use the method, server, headers and protocol of this recorded exchange, F.uwc#ID")
	flags.StringVar(&f.proto, "proto", "", ".proto definitions that contain the method (default: UNWIRE_PROTO, else the capture of --like, else unwire.yaml, else call asks the server by server reflection)")
	flags.StringVar(&f.codec, "codec", "", "encoding of the messages: json or proto (default: the encoding in the exchange of --like, else proto)")
	flags.StringArrayVar(&f.headers, "header", nil, "send this header: NAME=VALUE; for a secret, NAME=env:VARIABLE, NAME=file:FILE or NAME=keyring:SERVICE/ACCOUNT, from which call reads the value")
	flags.StringVarP(&f.out, "output", "o", "", "write the call and its answer to this capture file; if the file exists, append them")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the request without sending it")
	f.serverFlags(cmd)
	return cmd
}

// serverFlags adds the flags about the server and the connection to it.
func (f *callFlags) serverFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.To, "to", "", "URL of the server; if the URL has a path, call puts this path before the path of the method (default: the server of --like)")
	flags.StringVar(&f.protocol, "protocol", "", "protocol of the call: connect, grpc or grpc-web (default: the protocol in the exchange of --like, else connect)")
	flags.BoolVar(&f.http2, "http2", false, "use HTTP/2 without TLS for a http:// URL; gRPC and bidirectional methods always use HTTP/2")
	flags.StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file with the certificates of additional CAs that unwire trusts when it connects to the server")
	flags.BoolVar(&f.Insecure, "upstream-insecure", false, "do not verify the server's certificate; the capture of -o marks the exchange as unverified")
	flags.BoolVar(&f.Live, "live", false, "allow requests to other machines; --allow-host must name each machine")
	flags.StringSliceVar(&f.Allow, "allow-host", nil, "with --live: a host, HOST or HOST:PORT, to which unwire may send requests")
	flags.DurationVar(&f.timeout, "max-time", time.Minute, "stop the call after this time")
	flags.StringVar(&f.Credentials, "credentials", "", app.CredentialsUsage())
	flags.BoolVar(&f.noAuth, "no-auth", false, "send no credentials, such as tokens, with the call")
}
