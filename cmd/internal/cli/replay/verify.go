package replaycmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"unwire/captures/safetext"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/options"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render/replaytext"
	"unwire/cmd/internal/term"
	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
	"unwire/schema"
)

// verifyFlags are the values of the flags of 'unwire replay verify'.
type verifyFlags struct {
	// replayFlags are the flags that verify has in common with replay.
	replayFlags

	// full prints everything that the server reported about each field.
	full bool

	// standin verifies against the stand-in server.
	standin bool

	// resume continues an interrupted run: the requests in its journal file are not repeated.
	resume bool

	// allowExecute also sends requests that may run the handler.
	allowExecute bool

	// noAuth sends no credentials.
	noAuth bool

	// http2 uses HTTP/2.
	http2 bool

	// refine also asks, for each length-delimited field, whether it is a string or bytes.
	refine bool

	// noRefine turns refine off.
	noRefine bool

	// names also checks declared names by the errors of the server's JSON parser (--ask-names).
	names bool

	// known are JSON names of existing fields, for names.
	known []string

	// depth is the how many levels of nested messages to verify.
	depth int

	// rate is the maximum number of requests per second; 0 for the default.
	rate float64
}

const verifyHelp = `verify tests whether a server uses the same .proto definitions for
its requests as you do. To do so, verify sends malformed messages, and reads in the
server's error messages how its protobuf parser understood each field. For each field,
verify prints one of three results: confirmed (the server uses the same definition),
contradicted (the server uses another definition), or undecided (the answers of the
server show neither). Because every parser rejects the malformed messages, the server
does not execute the method. In client-streaming and bidirectional methods, however, the
server starts the code of the method before it parses a message; this code then receives
an error.

What verify can test depends on the library with which the server was written:
  connect-es           the wire type of every field, and whether the field is repeated; with
                       protobuf-es 2 also whether it is string or bytes. verify sends one
                       or two requests, and a few more for each wrong definition
  connect-go, grpc-go  the types of strings, messages and repeated numbers, with about one
                       request for each field; for other fields, verify finds only which
                       types are impossible
  other servers, or a proxy that hides error messages: nothing; verify reports this

verify sends the requests to the server in the capture, if this server is on this
machine. Otherwise verify starts the stand-in ('unwire standin') and sends the requests
to it. --to names another server. For a server on another machine, give --live and
--allow-host. verify then first prints which requests it is going to send. verify sends
one request per second, and stops if the server answers 429, resource_exhausted,
permission_denied or unauthenticated.

The exit status is 0 if the server contradicted no field. The exit status is 1 if the
server contradicted a field, if verify stopped before the end, or if the server's
answers contained no error messages of its parser. The exit status is 2 if unwire does
not allow requests to the host.`

// verifyCommand returns the command 'unwire replay verify', which checks definitions against the errors
// of a server's parser.
func verifyCommand(a *app.App) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify F.uwc [ID]",
		Short: "Check with a server whether .proto definitions of requests are right",
		Long:  verifyHelp,
		Example: `  # Test the definitions of all recorded requests
  unwire replay verify --proto proto/ F.uwc
  # Test the request of exchange 2 with a local server, four levels deep
  unwire replay verify --proto proto/ F.uwc 2 --to http://127.0.0.1:8080 --depth 4 --json
  # Test with a server on another machine, and keep a journal
  unwire replay verify --proto proto/ F.uwc 2 --live --allow-host api.example.com --journal asked.jsonl`,
		Args: app.ArgsBetween(1, "F.uwc", "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			addr, err := app.AddressArgs(args, true)
			if err != nil {
				return err
			}
			if f.Live && !cmd.Flags().Changed("budget") {
				f.budget = liveVerifyBudget
			}
			return runVerify(cmd.Context(), a, addr, &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.proto, "proto", "", ".proto files that verify compares with the server (default: the definitions in the capture, else the built-in definitions)")
	flags.StringVar(&f.To, "to", "", "URL of the server to which verify sends the requests (default: the server in the capture, if it is on this machine)")
	flags.BoolVar(&f.standin, "standin", false, "start the local server of 'unwire standin', and send the requests to it")
	flags.IntVar(&f.depth, "depth", 2, "also test the fields of nested messages, down to this level; 0 tests only the fields of the request itself")
	flags.BoolVar(&f.noRefine, "no-refine", false, "do not test whether a field is string or bytes; this saves one request for each field")
	flags.BoolVar(&f.refine, "refine", true, "the opposite of --no-refine")
	options.Hide(flags, "refine", "no-refine")
	flags.BoolVar(&f.http2, "http2", false, "use HTTP/2; for a http:// URL, without an upgrade request (prior knowledge)")
	flags.StringVar(&f.journal, "journal", "", "append each request and each answer to this file")
	flags.BoolVar(&f.resume, "resume", false, "continue an interrupted run: do not repeat requests whose answers are already in the file of --journal")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the planned requests without sending them")
	flags.BoolVar(&f.full, "full", false, "for each field, print the server's answers to all requests that tested this field, not only the conclusion")
	options.Alias(flags, "all", "full")
	flags.BoolVar(&f.json, "json", false, "print one JSON object for each method")
	f.limitFlags(cmd)
	return cmd
}

// limitFlags adds the flags that choose the questions, limit the requests, and name the server and the
// credentials.
func (f *verifyFlags) limitFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.names, "ask-names", false, "also test the names of fields, with JSON requests; for servers written with connect-es, also give --known")
	flags.StringSliceVar(&f.known, "known", nil, "with --ask-names: JSON names of fields that certainly exist (no float or double fields); verify puts a wrong value into such a field, so that the server rejects the request instead of executing the method")
	flags.BoolVar(&f.Live, "live", false, "allow requests to other machines; --allow-host must name each machine")
	flags.StringSliceVar(&f.Allow, "allow-host", nil, "with --live: a host, HOST or HOST:PORT, to which unwire may send requests")
	flags.BoolVar(&f.allowExecute, "allow-execute", false, "also send requests that can make the server execute the method; verify needs this for streaming methods on other machines, and for Go servers that accept any bytes in string fields")
	flags.IntVar(&f.budget, "budget", 2000, "send at most this many requests for all methods together (default: 2000; with --live: 200)")
	flags.Float64Var(&f.rate, "rate", 0, "send at most this many requests per second (default: 1 for other machines, no limit for this machine)")
	flags.StringVar(&f.Credentials, "credentials", "", app.CredentialsUsage())
	flags.BoolVar(&f.noAuth, "no-auth", false, "send no credentials; this is often sufficient, because many servers parse a request before they check its credentials")
	flags.StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file with the certificates of additional CAs that unwire trusts when it connects to the server")
	flags.DurationVar(&f.timeout, "timeout", 20*time.Second, "wait at most this time for the answer to each request")
}

// liveVerifyBudget is the default maximum number of requests to a server on another machine.
const liveVerifyBudget = 200

// runVerify executes 'unwire replay verify' for a capture or an exchange.
func runVerify(ctx context.Context, a *app.App, addr query.Address, f *verifyFlags) (err error) {
	// Check the combination of flags before the capture is opened.
	if f.standin && f.To != "" {
		return app.Usagef("--standin and --to cannot be used together")
	}
	if f.budget < 1 || f.depth < 0 || f.depth > 8 {
		return app.Usagef("--budget must be 1 or more, and --depth 0 to 8")
	}
	if f.proto == app.NoDefinitions {
		return app.Usagef("--proto none cannot be used: verify needs definitions")
	}
	f.OmitSecrets = f.noAuth
	reach, err := f.settings(ctx, a, addr.File)
	if err != nil {
		return err
	}
	if f.noAuth {
		reach.Credentials = nil
	}
	store, err := a.OpenTrusted(ctx, addr.File, addr.Exchange, reach.To, &reach.Policy, [2]bool{})
	if err != nil {
		return err
	}
	defer store.Close() //nolint:errcheck // it was only read
	methods, err := methodsToVerify(ctx, a, store, addr, reach.Schema)
	if err != nil {
		return err
	}

	// Without a local server, verify against the stand-in, unless --live allows others.
	if f.standin || f.To == "" && !f.Live && !methods.Local() {
		if err := f.chooseStandin(ctx, a, addr.File); err != nil {
			return err
		}
		stop, err := startStandin(a, nil, &reach, "")
		if err != nil {
			return err
		}
		defer stop()
	}
	o := f.methodsOptions(a, reach)

	// Every request is recorded, so that a killed run can resume.
	if f.journal != "" && !f.dryRun {
		file, err := app.OpenJournal(f.journal, f.resume)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		o.Options.Journal = file
	}
	return verifyMethods(ctx, a, store, methods, o, f)
}

// chooseStandin prints that the stand-in server is used because no flag names a server and the recorded
// one is another machine. It is an error if the stand-in does not implement the service that was recorded
// in file.
func (f *verifyFlags) chooseStandin(ctx context.Context, a *app.App, file string) error {
	switch {
	case f.standin:
	case a.ShowsProfile(ctx, file):
		a.Say("the server in the capture is another machine, so verify asks the local stand-in instead (--live asks the server in the capture, --to another server)")
	default:
		return app.Fail(app.ExitUsage, errors.New("the capture's server is another machine, and no other server is given"),
			"name a server with --to, or use the server in the capture with --live and --allow-host")
	}
	return nil
}

// methodsOptions returns the options for verifying methods: the flags, and the server and limits in
// reach.
func (f *verifyFlags) methodsOptions(a *app.App, reach replaySettings) oracle.MethodsOptions {
	return oracle.MethodsOptions{
		AskNames: f.names,
		Options: probe.Options{
			To: reach.To, HTTP2: f.http2, Depth: f.depth, Refine: f.refine && !f.noRefine, Budget: f.budget, Rate: f.rate, Timeout: f.timeout,
			AllowExecute: f.allowExecute, Known: f.known, Waiting: a.SayWaiting, Reach: reach.Policy, Schema: reach.Schema,
		},
		Replay: reach.Options, PlanOnly: f.dryRun,
	}
}

// methodsToVerify returns the recorded methods that can be verified with the definitions s, from a
// capture or one exchange. It prints which ones are skipped.
func methodsToVerify(ctx context.Context, a *app.App, store *query.Capture, addr query.Address, s *schema.Schema) (*oracle.Methods, error) {
	methods, err := oracle.FindMethods(ctx, store, s, addr.Exchange)
	if errors.Is(err, oracle.ErrNotRequest) {
		return nil, app.Fail(app.ExitUsage, err, "'unwire replay' sends the exchange again")
	}
	if err != nil {
		return nil, err
	}
	for _, m := range methods.Unknown {
		a.Say("%s is not verified: the definitions lack its request type, or verify does not support its protocol", term.Clean(m))
	}
	switch {
	case addr.Exchange != 0 && methods.Exchanges == 0:
		return nil, app.Fail(app.ExitInput, fmt.Errorf("%s has no exchange %d", addr.File, addr.Exchange), fmt.Sprintf("'unwire ls %s' lists the exchanges", safetext.ShellFile(addr.File)))
	case methods.Len() == 0:
		return nil, app.Fail(app.ExitInput, fmt.Errorf("the definitions contain none of the methods in %s", addr.File), cmp.Or(app.Undefined(s, servicesOf(methods.Unknown)), "name the definitions with --proto"))
	}
	return methods, nil
}

// servicesOf returns the service of each method in a list such as /pkg.Service/Method.
func servicesOf(methods []string) []string {
	var list []string
	for _, m := range methods {
		service, _, _ := strings.Cut(strings.TrimPrefix(m, "/"), "/")
		list = append(list, service)
	}
	return list
}

// verifyMethods verifies the methods, and prints the result of each. The exit status is 1 if a definition
// is contradicted.
func verifyMethods(ctx context.Context, a *app.App, store *query.Capture, methods *oracle.Methods, o oracle.MethodsOptions, f *verifyFlags) error {
	// The callbacks print results while the verification runs.
	var list []*probe.Verification
	o.Planned = func(p *oracle.VerifyPlan) error {
		switch {
		case f.dryRun && f.json:
			return a.Print(&contract.VerifyPlan{VerifyPlan: p})
		case f.dryRun:
			replaytext.VerifyPlan(a.Out, p)
		case p.Live:
			replaytext.VerifyPlan(a.Err, p)
		}
		return nil
	}
	o.Verified = func(v *probe.Verification) error {
		list = append(list, v)
		if f.json {
			if err := a.Print(&contract.Verification{Verification: v}); err != nil {
				return err
			}
		}
		replaytext.Verified(a.Err, v)
		return nil
	}
	o.Skipped = func(method, why string) {
		a.Say("%s is not verified: %s", term.Clean(method), term.Clean(why))
	}

	sum, err := oracle.VerifyMethods(ctx, store, methods, o)
	if err != nil {
		return app.Refusal(err)
	}
	if !f.json {
		if err := replaytext.Verifications(a.Out, list, f.full); err != nil {
			return err
		}
	}

	// A contradiction is a finding, and so is a server that revealed nothing.
	switch {
	case sum.Finding:
		return app.Fail(app.ExitFinding, nil, "")
	case !sum.Answered:
		return app.Fail(app.ExitFinding, errors.New("no server revealed parser errors, so no field could be checked"), "")
	}
	return nil
}
