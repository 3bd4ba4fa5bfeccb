package probecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/options"
	"unwire/cmd/internal/render/replaytext"
	"unwire/cmd/internal/term"
	"unwire/replay"
	"unwire/replay/credential"
	"unwire/replay/outbound"
	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// probeFlags are the values of the flags of 'unwire probe'.
type probeFlags struct {
	// to is the URL of the server; "" for the server of the exchange in like.
	to string

	// method is the RPC method to probe; "" for the method of the exchange in like.
	method string

	// like is the address of the exchange to copy the method, headers and protocol from; "" for none.
	like string

	// path is the path of the nested message to probe; "" for the request itself.
	path string

	// fields are the field numbers to probe, as ranges separated by commas.
	fields string

	// proto names the definitions for --names builtin; "" for the default.
	proto string

	// credentials names the credentials to send; "" for the default.
	credentials string

	// upstreamCA is a PEM file of additional CAs to trust for the server; "" for none.
	upstreamCA string

	// protocol is the protocol of the requests; "" to detect it.
	protocol string

	// journal is the file to which every request and answer is appended; "" for none.
	journal string

	// output is the file to which the result is written; "" for none.
	output string

	// names are the sources of field names to try.
	names []string

	// values are the sources of names of enum values to try.
	values []string

	// allow are the hosts that --live may send to (--allow-host).
	allow []string

	// known are the JSON names of request fields that you know to exist; their type must not be float or double.
	known []string

	// settle are the files with ambiguous fields to probe, or two definitions whose differences to probe.
	settle []string

	// typ is the full protobuf name of the request's message type, which is looked up in the files given with
	// --settle (flag --type); "" for the request type that these files declare for the probed method.
	typ string

	// live allows hosts other than this machine.
	live bool

	// json prints JSON.
	json bool

	// dryRun prints the plan and sends nothing.
	dryRun bool

	// resume continues the journal and does not repeat its requests.
	resume bool

	// refine distinguishes text from bytes, which takes one more request for each field.
	refine bool

	// allowExecute also sends requests that may run the handler.
	allowExecute bool

	// http2 uses HTTP/2.
	http2 bool

	// noAuth sends no credentials.
	noAuth bool

	// noReflection does not ask for server reflection first.
	noReflection bool

	// budget is the maximum number of requests.
	budget int

	// depth is the how many levels of nested messages to probe.
	depth int

	// rate is the maximum number of requests per second; 0 for the default.
	rate float64

	// timeout is the deadline of one request.
	timeout time.Duration
}

const probeHelp = `probe finds the fields of a method's request: their numbers, types
and names. To do so, probe sends malformed messages to a server, and reads the parse
errors in the server's answers. Because every parser rejects these messages, the server
does not execute the method. In client-streaming and bidirectional methods, however, the
server starts the code of the method before it parses a message; this code then receives
an error. Some servers written in Go accept any bytes in all string fields of the
request. For such a server, probe cannot make a message that the parser rejects. If the
server is on this machine, probe then sends requests that the server rejects for another
reason: their deadline has expired, or a required field is missing.

If the server offers gRPC server reflection, probe first asks for the definition of the
method. If the server returns the definition, probe prints the definition and sends no
malformed messages. With --settle or --no-reflection, probe does not ask for the
definition.

If the server does not return the definition, probe detects the library with which the
server was written. What probe can find depends on the error messages of this library:
  connect-es           every field and its wire type, with one to three requests for each field
  connect-go, grpc-go  fields that are strings, messages, maps or repeated numbers; other fields only with
                       --names, and only if the server accepts JSON
  other servers, or a proxy that hides error messages: nothing; probe reports this

With --names, probe sends JSON requests with the names that you give, and so finds the
names and types of fields. With --values, probe sends the names of enum values, and
finds which values an enum has. With --values, probe also finds which message types a
field of type Any can contain. In most servers, probe can find the values of an enum
only if the enum is in a repeated field or in a map.

With --settle, probe tests only fields whose type is not certain: fields that are
ambiguous in an evidence file (statistics about the values of fields, which 'unwire
schema infer --evidence' writes), or in which two definitions differ. For each possible
type, probe prints one of three results, with the reason: confirmed (the field has this
type), contradicted (the field does not have this type), or undecided (the answers of
the server show neither). If a field can have only one of several types, probe confirms
a type only after the server contradicted all other types.

probe sends requests only to servers on this machine. To probe another host, give --live
and --allow-host; probe then sends one request per second. probe stops if the server
answers 429, resource_exhausted, permission_denied or unauthenticated. If this answer
has a Retry-After header of at most one minute, probe waits that long and sends the
request again, up to five times. probe reads secrets, such as tokens, from the
environment or from --credentials, like 'unwire replay', and never stores them.

The exit status is 0 if probe sent all its requests and found fields. The exit status is
1 if probe stopped before the end or found nothing, and 2 if unwire does not allow
requests to the host.`

// probeCommand returns the command 'unwire probe', which finds the fields of a request by the errors of
// the server's parser.
func probeCommand(a *app.App) *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:   "probe --to URL --method METHOD",
		Short: "Find the fields of a request from the parse errors of a server",
		Long:  probeHelp,
		Example: `  # Find the fields of a request
  unwire probe --to http://127.0.0.1:8080 --method /pkg.v1.Service/Method
  # Find the fields 1 to 200 of the message in field 1.2 of the request
  unwire probe --to http://127.0.0.1:8080 --method /pkg.v1.Service/Method --path 1.2 --fields 1-200 --json
  # Try field names from a list, with the headers of a recorded request
  unwire probe --to http://127.0.0.1:8080 --like F.uwc#2 --names words.txt --journal probe.jsonl
  # Find the types of fields that are ambiguous in an evidence file
  unwire probe --to http://127.0.0.1:8080 --method /pkg.v1.Service/Method --settle evidence.json
  # Test the fields in which two definitions differ
  unwire probe --to http://127.0.0.1:8080 --method /pkg.v1.Service/Method --settle old.proto --settle new.proto`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return app.Fail(app.ExitUsage, fmt.Errorf("%s: unexpected argument %q", cmd.CommandPath(), args[0]), "to use an exchange of a capture as the request, write --from F.uwc#ID")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runProbe(cmd.Context(), a, &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "URL of the server (default: the server of the exchange in --like)")
	flags.StringVar(&f.method, "method", "", "RPC method, such as /package.Service/Method, or /api/v1/package.Service/Method if the server expects a path prefix (default: the method of --like)")
	flags.StringVar(&f.like, "like", "", "use the method, headers and protocol of this recorded exchange, F.uwc#ID")
	flags.StringVarP(&f.output, "output", "o", "", "write the result as JSON to this file, and each request and answer to FILE.journal (or to the file of --journal)")
	flags.StringVar(&f.journal, "journal", "", "append each request and each answer to this file")
	flags.BoolVar(&f.resume, "resume", false, "continue an interrupted probe: do not repeat requests whose answers are already in the file of --journal")
	flags.BoolVar(&f.dryRun, "dry-run", false, "send nothing; print which requests probe would send, their purpose, and their possible side effects")
	flags.BoolVar(&f.json, "json", false, "print the result as JSON")
	f.questionFlags(cmd)
	f.limitFlags(cmd)
	options.Alias(flags, "from", "like")
	options.Alias(flags, "plan", "dry-run")
	options.Alias(flags, "root", "type")
	return cmd
}

// questionFlags adds the flags that select what the server is asked about: fields, names and types.
func (f *probeFlags) questionFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.path, "path", "", "find the fields of the nested message at this path, such as 1.2 (default: the fields of the request itself)")
	flags.StringVar(&f.fields, "fields", "1-1100", "field numbers that probe tries: ranges separated by commas, such as 1-20,100-120")
	flags.IntVar(&f.depth, "depth", 0, "also find the fields of nested messages, down to this level; 0 finds only the fields of the request itself")
	flags.StringArrayVar(&f.names, "names", nil, "source of the field names that probe tries: a file with one name per line, - for stdin, a capture with JSON messages, .proto definitions, the code of a client, or builtin (see --proto)")
	flags.StringArrayVar(&f.values, "values", nil, "with --names: source of the names of enum values that probe tries, such as a file (see --names); if the source is .proto definitions, probe also tries their message types in fields of type Any")
	flags.StringArrayVar(&f.settle, "settle", nil, "test only fields whose type is not certain: those that are ambiguous in this file, which 'schema infer --evidence' wrote; or give --settle twice, with two definitions, to test the fields in which they differ")
	flags.StringVar(&f.typ, "type", "", "with --settle: full name of the type of the request, as in the files of --settle (default: the request type of the method)")
	flags.StringSliceVar(&f.known, "known", nil, "with --names: JSON names of fields that certainly exist (no float or double fields); probe puts a wrong value into such a field, so that the server rejects the request instead of executing the method")
	flags.BoolVar(&f.refine, "refine", false, "also find whether a field is string or bytes, with one more request for each field; this works if the server checks the UTF-8 of strings")
	flags.StringVar(&f.proto, "proto", "", "with --names=builtin: .proto files with the field names that probe tries (default: the definitions in the capture of --like, else the built-in definitions)")
}

// limitFlags adds the flags that limit how many requests are sent to which hosts, and those about
// credentials.
func (f *probeFlags) limitFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.protocol, "protocol", "", "protocol of the requests: connect-unary, connect-stream, grpc or grpc-web (default: probe detects it)")
	flags.BoolVar(&f.http2, "http2", false, "use HTTP/2; for a http:// URL, without an upgrade request (prior knowledge)")
	flags.IntVar(&f.budget, "budget", 2000, "send at most this many requests")
	flags.Float64Var(&f.rate, "rate", 0, "send at most this many requests per second (default: 1 for other machines, no limit for this machine)")
	flags.DurationVar(&f.timeout, "timeout", 20*time.Second, "wait at most this time for the answer to each request")
	flags.BoolVar(&f.live, "live", false, "allow requests to other machines; --allow-host must name each machine")
	flags.StringSliceVar(&f.allow, "allow-host", nil, "with --live: a host, HOST or HOST:PORT, to which unwire may send requests")
	flags.BoolVar(&f.allowExecute, "allow-execute", false, "also send requests that can make the server execute the method; probe needs this for some methods on other machines, and for Go servers that accept any bytes in string fields")
	flags.StringVar(&f.credentials, "credentials", "", app.CredentialsUsage())
	flags.BoolVar(&f.noReflection, "no-reflection", false, "do not first ask the server for the definition of the method by server reflection")
	flags.BoolVar(&f.noAuth, "no-auth", false, "send no credentials, such as tokens, with the requests")
	flags.StringVar(&f.upstreamCA, "upstream-ca", "", "PEM file with the certificates of additional CAs that unwire trusts when it connects to the server")
}

// runProbe executes 'unwire probe': it asks for server reflection first, and then probes the server's
// parser.
func runProbe(ctx context.Context, a *app.App, f *probeFlags) (err error) {
	o, credentials, err := probeOptions(ctx, a, f)
	if err != nil {
		return err
	}
	plan, err := oracle.NewPlan(o)
	switch {
	case errors.Is(err, outbound.ErrRefused):
		return app.Refusal(err)
	case err != nil:
		return app.Fail(app.ExitUsage, err, "see 'unwire probe --help'")
	}
	if !f.noReflection {
		plan.AddReflection()
	}
	if f.dryRun {
		return printProbePlan(a, plan, f.json)
	}

	// A plan for another machine is printed before anything is sent.
	if plan.Live {
		a.Say("%s", strings.TrimSuffix(plan.Text(), "\n"))
	}

	// Reflection answers most questions with few requests; only without it the parser is probed.
	res, err := askReflection(ctx, a, o, f, credentials)
	if res == nil && err == nil {
		res, err = askParser(ctx, a, o, f)
	}
	if err != nil {
		return app.Refusal(err)
	}
	return printProbe(a, res, f)
}

// askParser sends the probe's requests, and infers the fields of the request type from the errors of the
// server's parser.
func askParser(ctx context.Context, a *app.App, o *probe.Options, f *probeFlags) (res *probe.Result, err error) {
	if f.journal == "" && f.output != "" {
		f.journal = f.output + ".journal"
	}
	if f.journal != "" {
		journal, err := app.OpenJournal(f.journal, f.resume)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, journal.Close()) }()
		o.Journal = journal
	}
	meter := a.ShowSteps(ctx, "probing", "request", 0)
	defer meter.Stop()
	o.Asked = meter.Step
	res, err = oracle.Run(ctx, *o)
	meter.Stop()
	if err == nil && res.RequestType == "" && res.Runtime != probe.Unknown {
		err = typeOfDefinitions(ctx, a, res, f.proto, f.like)
	}
	return res, err
}

// typeOfDefinitions sets the request type's name in res from definitions, for a server that does not
// report it. folder is the value of --proto, and capture that of --like.
func typeOfDefinitions(ctx context.Context, a *app.App, res *probe.Result, folder, capture string) error {
	s, err := a.LoadDefinitions(ctx, folder, capture)
	if err != nil {
		return err
	}
	service, rpc, _ := strings.Cut(strings.TrimPrefix(res.Method, "/"), "/")
	if s == nil {
		return nil
	}
	if m := s.Method(service, rpc); m != nil {
		res.RequestType = string(m.Input().FullName())
		res.Notes = append(res.Notes, "the server does not reveal the name of the request type; in the .proto definitions, its name is "+res.RequestType)
	}
	return nil
}

// probeOptions returns the options of the probe from the flags and the exchange of --like, and the
// credentials.
func probeOptions(ctx context.Context, a *app.App, f *probeFlags) (*probe.Options, *credential.Credentials, error) {
	o := &probe.Options{
		Method: f.method, Depth: f.depth, Refine: f.refine, Type: true, Protocol: probe.Protocol(f.protocol), HTTP2: f.http2,
		Budget: f.budget, Rate: f.rate, Timeout: f.timeout, Known: f.known, AllowExecute: f.allowExecute, Waiting: a.SayWaiting,
	}
	reach, err := probeTarget(ctx, a, o, f)
	if err != nil {
		return nil, nil, err
	}
	if o.Path, err = probe.ParsePath(f.path); err != nil {
		return nil, nil, app.Usagef("--path must be field numbers joined by dots, such as 1.2, not %q", f.path)
	}
	if o.Numbers, err = probe.ParseNumbers(f.fields); err != nil {
		return nil, nil, app.Usagef("--%w", err)
	}
	if !o.Protocol.IsKnown() {
		return nil, nil, app.Usagef("--protocol must be connect-unary, connect-stream, grpc or grpc-web, not %q", f.protocol)
	}

	// Without --like, server and method must be named, and the credentials come from the
	// environment.
	if f.like == "" {
		if o.To == nil || o.Method == "" {
			return nil, nil, app.Fail(app.ExitUsage, errors.New("the server or the method to probe is missing"), "give --to URL and --method /pkg.Service/Method, or --like F.uwc#ID")
		}
		if value, _, _, ok := reach.Credentials.Header("authorization", ""); ok {
			o.Header = append(o.Header, probe.HeaderField{Name: "authorization", Value: value, Secret: true})
		}
	} else if err := probeFrom(ctx, a, o, f.like, reach); err != nil {
		return nil, nil, err
	}
	// As for 'unwire call', the slash before the service may be missing.
	if strings.Contains(o.Method, "/") {
		o.Method = "/" + strings.TrimPrefix(o.Method, "/")
	}
	o.SplitMethod()
	if err := probeNames(ctx, a, o, f); err != nil {
		return nil, nil, err
	}
	return o, reach.Credentials, probeQuestions(ctx, a, o, f)
}

// probeTarget sets the server and the limits in o from the flags, and returns the same settings and the
// credentials for requests built from a capture.
func probeTarget(ctx context.Context, a *app.App, o *probe.Options, f *probeFlags) (reach replay.Options, err error) {
	target := app.Target{To: f.to, Live: f.live, Allow: f.allow, UpstreamCA: f.upstreamCA, Credentials: f.credentials}
	reach.OmitSecrets = f.noAuth
	if o.To, reach.Policy, err = target.Server(); err != nil {
		return reach, err
	}
	if reach.Schema, err = a.LoadDefinitions(ctx, "", f.like); err != nil {
		return reach, err
	}
	if err := target.Load(&reach); err != nil {
		return reach, err
	}
	if f.noAuth {
		reach.Credentials = nil
	}
	o.Reach, o.Schema = reach.Policy, reach.Schema
	return reach, nil
}

// probeFrom sets the options that no flag sets (server, method, headers, protocol) from the exchange that
// from, the value of --like, names.
func probeFrom(ctx context.Context, a *app.App, o *probe.Options, from string, reach replay.Options) error {
	addr, err := app.AddressArgs([]string{from}, false)
	if err != nil {
		return err
	}
	store, err := a.OpenCapture(addr.File)
	if err != nil {
		return err
	}
	defer store.Close() //nolint:errcheck // it was only read
	if err := app.NeedCall(ctx, store, addr, "probe"); err != nil {
		return err
	}
	if err := a.TrustRecorded(ctx, store.Store, addr.Exchange, o.To, &o.Reach); err != nil {
		return err
	}
	if o.To == nil {
		if o.To, err = store.ServerOf(ctx, addr.Exchange); err != nil {
			return err
		}
	}
	return app.Refusal(o.FromCapture(ctx, store, addr.Exchange, reach))
}

// printProbePlan prints the plan of --dry-run.
func printProbePlan(a *app.App, p *oracle.Plan, asJSON bool) error {
	if asJSON {
		return a.Print(&contract.ProbePlan{Plan: p})
	}
	_, err := fmt.Fprint(a.Out, a.Out.Wrap(p.Text()))
	return err
}

// printProbe prints the result of a probe, and writes it to the file of -o. It returns the error with the
// exit status.
func printProbe(a *app.App, r *probe.Result, f *probeFlags) error {
	// The file gets the whole result, independent of what is printed.
	if f.output != "" {
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if err := app.WholeFile(f.output, app.ForOwner, func(w io.Writer) error { _, err := w.Write(append(data, '\n')); return err }); err != nil {
			return err
		}
	}
	switch {
	case f.json:
		if err := a.Print(&contract.ProbeResult{Result: r}); err != nil {
			return err

			// A probe that stopped early is a finding, even with results.
		}
	default:
		if err := replaytext.ProbeResult(a.Out, r); err != nil {
			return err
		}
		replaytext.Probed(a.Err, r)
	}

	// The exit status shows that the result is incomplete, even if fields were found.
	if r.Stopped != "" {
		hint := replaytext.Hint(r.Reason, r.Stopped, f.to)
		if len(r.Fields)+len(r.Settled) > 0 {
			hint = "the results until then are printed above"
		}
		return app.Fail(app.ExitFinding, errors.New(term.Clean(r.Stopped)), hint)
	}
	if r.Runtime == probe.Unknown && r.Reflection == nil {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}
