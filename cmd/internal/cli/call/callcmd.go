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

// callCommand returns the command 'unwire call', which calls an RPC method.
func callCommand(a *app.App) *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "call [METHOD]",
		Short: "Call a method of a server with messages in JSON",
		Long: `call sends messages to a method, /pkg.Service/Method, and prints the answers as JSON,
one per line. If the server answers with an error, call prints the error on stderr as
JSON, and the exit status is 64 plus the number of the error code.

--data is a message as JSON, @FILE to read a file, or - to read stdin. For a
client-streaming method, the data may contain several messages, one after the other.
Without --data, call sends an empty message, or, for a client-streaming method, messages
from stdin. For a bidirectional method, call sends each message as soon as it has read the
message, and prints each answer as soon as it arrives.

call searches for the definition of the method in --proto, UNWIRE_PROTO, the capture of
--like, and unwire.yaml, in this order. If none of them defines the method, call asks the
server for the definition by server reflection. With -o, call also stores definitions of
--proto or of the server in the capture, unless the capture defines the method already.

--like copies the method, the server, the headers and the protocol from a recorded
exchange. call does not accept a secret itself as an argument. It reads secrets from the
environment (UNWIRE_TOKEN, UNWIRE_HEADER_X_API_KEY), from --credentials, or from a
reference in --header: NAME=env:VARIABLE, NAME=file:FILE or
NAME=keyring:SERVICE/ACCOUNT. call sends the value of --header as it is, so the value for
authorization includes the scheme, as in 'Bearer TOKEN'. Only a token of UNWIRE_TOKEN or
--credentials without a scheme gets 'Bearer '.

call sends requests only to this machine. To call another host, give --live and
--allow-host.`,
		Example: `  unwire call shop.v1.Orders/PlaceOrder --data '{"customerId":"c1"}' --to http://127.0.0.1:8080
  unwire call shop.v1.Orders/Track --data @request.json --to https://127.0.0.1:9440 --upstream-ca ca.pem --proto proto/
  unwire call talk.v1.Talk/Chat --data - --protocol grpc --to http://127.0.0.1:8080 -o F.uwc < messages.jsonl
  unwire call --like F.uwc#7 --data '{"orderId":"o2"}' --to http://127.0.0.1:8080`,
		Args: app.ArgsBetween(0, "METHOD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			method := ""
			if len(args) > 0 {
				method = args[0]
			}
			return runCall(cmd.Context(), a, method, cmd.Flags().Changed("data"), &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "message to send, as JSON, @FILE or - for stdin (default: an empty message; stdin for a client-streaming method)")
	flags.StringVar(&f.like, "like", "", "copy the method, server, headers and protocol from this recorded exchange, F.uwc#ID")
	flags.StringVar(&f.proto, "proto", "", "definitions of the method (default: UNWIRE_PROTO, unwire.yaml, or server reflection by the called server)")
	flags.StringVar(&f.codec, "codec", "", "encoding of messages: json or proto (default: proto, or the codec of --like)")
	flags.StringArrayVar(&f.headers, "header", nil, "header to send: NAME=VALUE, or for a secret NAME=REFERENCE, such as env:VARIABLE, file:FILE or keyring:SERVICE/ACCOUNT")
	flags.StringVarP(&f.out, "output", "o", "", "capture file to which unwire adds a record of the call")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the request without sending it")
	f.serverFlags(cmd)
	return cmd
}

// serverFlags adds the flags about the server and the connection to it.
func (f *callFlags) serverFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.To, "to", "", "URL of the server; a path in the URL precedes the path of the method (default: the server of --like)")
	flags.StringVar(&f.protocol, "protocol", "", "protocol of the call: connect, grpc or grpc-web (default: connect, or the protocol of --like)")
	flags.BoolVar(&f.http2, "http2", false, "use HTTP/2 without TLS for a http:// URL; gRPC and bidirectional methods always use HTTP/2")
	flags.StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file of additional CAs to trust for the server")
	flags.BoolVar(&f.Insecure, "upstream-insecure", false, "do not verify the server's certificate; the recorded exchange is marked as unverified")
	flags.BoolVar(&f.Live, "live", false, "allow requests to the other machines that --allow-host names")
	flags.StringSliceVar(&f.Allow, "allow-host", nil, "with --live: host, or host:port, to which requests may go")
	flags.DurationVar(&f.timeout, "max-time", time.Minute, "stop the call after this time")
	flags.StringVar(&f.Credentials, "credentials", "", app.CredentialsUsage())
	flags.BoolVar(&f.noAuth, "no-auth", false, "send no credentials")
}
