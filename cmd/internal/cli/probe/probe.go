package probecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/replaytext"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/replay"
	"unwire/replay/outbound"
	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

type probeFlags struct {
	to, method, from, path, fields, proto, credentials, upstreamCA string
	protocol, journal, output                                      string
	names, values, allow, known, settle                            []string
	root                                                           string
	live, json, dryRun, resume, refine, allowExecute, http2        bool
	noAuth                                                         bool
	budget, depth                                                  int
	rate                                                           float64
	timeout                                                        time.Duration
}

func probeCommand(a *app.App) *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:   "probe --to URL --method /pkg.Service/Method",
		Short: "Learn a request's fields from a server's own parse errors",
		Long: `probe learns field numbers, classes, kinds, types and names of a request from what
a server's parser says of messages that cannot be parsed. Every message ends with
bytes that no parser takes, so the method's handler never gets one; a handler of a
client-streaming or bidirectional method starts all the same, and is told so.

What can be learnt depends on the server's runtime, which is found out first:
  connect-es    every field and its class: a request a field, and one or two more
  connect-go,   text, messages, maps and lists of numbers; single numbers and
  grpc-go       bytes never show in protobuf
  any other, or a proxy that hides the texts: nothing, and probe says so
With --names, JSON names and types are asked for, too, thousands in one request;
with --values, names of enums' values where they are in a list or a map, and the
types that an Any may hold.
With --settle, only what an inference is in doubt about, or what two definitions
disagree on, is asked, and each claim is confirmed, contradicted or left undecided,
with the reason. Of claims that exclude each other, one is confirmed only if the
others are contradicted; "open" names what the runtime does not show of it.

It goes to loopback only, unless --live is given and --allow-host names the host:
then one request a second. It stops at 429, resource_exhausted, permission_denied
and unauthenticated; a Retry-After is waited for. Secrets come from the
environment or from --credentials, as for replay, and are never written.

The exit status is 0 where it came to its end, 1 where it was stopped or could
learn nothing, 2 where it was refused.`,
		Example: `  unwire probe --to http://127.0.0.1:8080 --method /pkg.v1.Service/Method
  unwire probe --to http://127.0.0.1:8080 --method /pkg.v1.Service/Method --path 1.2 --fields 1-200 --json
  unwire probe --to http://127.0.0.1:8080 --from F.uwc#2 --names words.txt --journal probe.jsonl
  unwire probe --to http://127.0.0.1:8080 --method /pkg.v1.Service/Method --settle evidence.json
  unwire probe --to http://127.0.0.1:8080 --method /pkg.v1.Service/Method --settle old.proto --settle new.proto`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runProbe(cmd.Context(), a, &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "URL of the server (default: where --from was captured)")
	flags.StringVar(&f.method, "method", "", "/package.Service/Method (default: of --from)")
	flags.StringVar(&f.from, "from", "", "F.uwc#ID: an exchange to take the method, headers and protocol from")
	flags.StringVar(&f.protocol, "protocol", "", "connect-unary, connect-stream, grpc or grpc-web (default: what works)")
	flags.BoolVar(&f.http2, "http2", false, "speak HTTP/2, over http:// without asking")
	flags.StringVarP(&f.output, "output", "o", "", "file for the result as JSON; its journal is beside it, FILE.journal")
	flags.StringVar(&f.journal, "journal", "", "file to which every request and answer is appended")
	flags.BoolVar(&f.resume, "resume", false, "go on with a journal: what it answers is not asked again")
	flags.BoolVar(&f.dryRun, "plan", false, "say how many requests there would be, what each can tell, and what could have effects; send nothing")
	flags.BoolVar(&f.dryRun, "dry-run", false, "the same as --plan")
	flags.BoolVar(&f.json, "json", false, "the result as JSON")
	f.questionFlags(cmd)
	f.limitFlags(cmd)
	return cmd
}

// questionFlags are the flags that choose the questions.
func (f *probeFlags) questionFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.path, "path", "", "numbers of the message fields that lead to the message to ask about: 1.2")
	flags.StringVar(&f.fields, "fields", "1-1100", "numbers to ask about: ranges, joined by commas")
	flags.IntVar(&f.depth, "depth", 0, "levels of messages below it to ask about, too")
	flags.StringArrayVar(&f.names, "names", nil, "names to ask for: a file with one a line, a capture's JSON, definitions, a client's code; - is stdin, builtin the definitions' own")
	flags.StringArrayVar(&f.values, "values", nil, "with --names: names of enums' values to ask for, from such sources; of definitions, what an Any may hold, too")
	flags.StringArrayVar(&f.settle, "settle", nil, "ask just what settles this: evidence of 'schema infer', or two definitions that disagree (give it twice)")
	flags.StringVar(&f.root, "root", "", "full name of the request in what --settle names (default: found by the method)")
	flags.StringSliceVar(&f.known, "known", nil, "JSON names of the request that exist, of no float fields")
	flags.BoolVar(&f.refine, "refine", false, "ask one request more a field where that tells text from bytes")
	flags.StringVar(&f.proto, "proto", "", "folder of .proto files whose names 'builtin' means (default: those that the capture of --from keeps, or the built-in ones)")
}

// limitFlags are those of how much is sent, to whom, and with which credentials.
func (f *probeFlags) limitFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.budget, "budget", 2000, "requests at most")
	flags.Float64Var(&f.rate, "rate", 0, "requests a second (default: 1 to another machine, no limit to this one)")
	flags.DurationVar(&f.timeout, "timeout", 20*time.Second, "of one request")
	flags.BoolVar(&f.live, "live", false, "allow hosts other than this machine (see --allow-host)")
	flags.StringSliceVar(&f.allow, "allow-host", nil, "host, or host:port, that --live may send to")
	flags.BoolVar(&f.allowExecute, "allow-execute", false, "send to another machine what might run the handler, too")
	flags.StringVar(&f.credentials, "credentials", "", "file of secrets, NAME: value a line, mode 0600")
	flags.BoolVar(&f.noAuth, "no-auth", false, "send no credentials")
	flags.StringVar(&f.upstreamCA, "upstream-ca", "", "PEM file of further CAs to trust for the server")
}

func runProbe(ctx context.Context, a *app.App, f *probeFlags) (err error) {
	o, err := probeOptions(ctx, a, f)
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
	if f.dryRun {
		return printProbePlan(a, plan, f.json)
	}
	if plan.Live {
		a.Say("%s", strings.TrimSuffix(plan.Text(), "\n"))
	}
	if f.journal == "" && f.output != "" {
		f.journal = f.output + ".journal"
	}
	if f.journal != "" {
		journal, err := app.OpenJournal(f.journal, f.resume)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, journal.Close()) }()
		o.Journal = journal
	}
	meter := a.ShowSteps(ctx, "probing", "request", 0)
	defer meter.Stop()
	o.Asked = meter.Step
	res, err := oracle.Run(ctx, *o)
	meter.Stop()
	if err != nil {
		return app.Refusal(err)
	}
	if res.RequestType == "" && res.Runtime != probe.Unknown {
		if err := typeOfDefinitions(ctx, a, res, f.proto, f.from); err != nil {
			return err
		}
	}
	return printProbe(a, res, f)
}

// typeOfDefinitions takes the request's type from definitions where the server
// does not name it, and says so.
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
		res.Notes = append(res.Notes, "the server does not name the request's type: "+res.RequestType+" is what the definitions say")
	}
	return nil
}

func probeOptions(ctx context.Context, a *app.App, f *probeFlags) (*probe.Options, error) {
	o := &probe.Options{
		Method: f.method, Depth: f.depth, Refine: f.refine, Type: true, Protocol: probe.Protocol(f.protocol), HTTP2: f.http2,
		Budget: f.budget, Rate: f.rate, Timeout: f.timeout, Known: f.known, AllowExecute: f.allowExecute,
	}
	reach, err := probeTarget(ctx, a, o, f)
	if err != nil {
		return nil, err
	}
	if o.Path, err = probe.ParsePath(f.path); err != nil {
		return nil, app.Usagef("--path wants numbers joined by dots, such as 1.2, not %q", f.path)
	}
	if o.Numbers, err = parseRanges(f.fields); err != nil {
		return nil, err
	}
	if !o.Protocol.IsKnown() {
		return nil, app.Usagef("--protocol wants connect-unary, connect-stream, grpc or grpc-web, not %q", f.protocol)
	}
	if f.from == "" {
		if o.To == nil || o.Method == "" {
			return nil, app.Fail(app.ExitUsage, errors.New("what is to be asked?"), "give --to URL and --method /pkg.Service/Method, or --from F.uwc#ID")
		}
		if value, _, _, ok := reach.Credentials.Header("authorization", ""); ok {
			o.Header = append(o.Header, probe.HeaderField{Name: "authorization", Value: value, Secret: true})
		}
	} else if err := probeFrom(ctx, a, o, f.from, reach); err != nil {
		return nil, err
	}
	if err := probeNames(ctx, a, o, f); err != nil {
		return nil, err
	}
	return o, probeQuestions(ctx, a, o, f)
}

// probeTarget reads where the probe goes, and what its requests may carry.
func probeTarget(ctx context.Context, a *app.App, o *probe.Options, f *probeFlags) (reach replay.Options, err error) {
	target := app.Target{To: f.to, Live: f.live, Allow: f.allow, UpstreamCA: f.upstreamCA, Credentials: f.credentials}
	reach.OmitSecrets = f.noAuth
	if o.To, reach.Policy, err = target.Server(); err != nil {
		return reach, err
	}
	if reach.Schema, err = a.LoadDefinitions(ctx, "", f.from); err != nil {
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

// probeFrom takes from a captured exchange what was not said.
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
	if o.To == nil {
		if o.To, err = targetOf(ctx, store, addr.Exchange); err != nil {
			return err
		}
	}
	return app.Refusal(o.FromCapture(ctx, store, addr.Exchange, reach))
}

// targetOf is the server that an exchange was captured from.
func targetOf(ctx context.Context, src captures.Source, id int64) (*url.URL, error) {
	ex, err := decode.Decode(ctx, src, id, decode.Options{})
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(ex.URL)
	if err != nil {
		return nil, fmt.Errorf("probe: exchange %d: %w", id, err)
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

// parseRanges reads numbers and ranges of them, such as 1-1100,536870911.
func parseRanges(s string) ([]probe.Range, error) {
	var out []probe.Range
	for part := range strings.SplitSeq(s, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			high = low
		}
		a, err1 := strconv.ParseInt(low, 10, 32)
		b, err2 := strconv.ParseInt(high, 10, 32)
		if err1 != nil || err2 != nil || a < 1 || b < a {
			return nil, app.Usagef("--fields wants ranges of numbers such as 1-1100,5000, not %q", s)
		}
		out = append(out, probe.Range{First: int32(a), Last: int32(b)})
	}
	return out, nil
}

func printProbePlan(a *app.App, p *oracle.Plan, asJSON bool) error {
	if asJSON {
		return a.Print(&contract.ProbePlan{Plan: p})
	}
	_, err := fmt.Fprint(a.Out, p.Text())
	return err
}

func printProbe(a *app.App, r *probe.Result, f *probeFlags) error {
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
		}
	default:
		if err := replaytext.ProbeResult(a.Out, r); err != nil {
			return err
		}
		replaytext.Probed(a.Err, r)
	}
	if r.Stopped != "" {
		hint := replaytext.Hint(r.Reason, f.to)
		if len(r.Fields)+len(r.Settled) > 0 {
			hint = "what was learnt until then is above"
		}
		return app.Fail(app.ExitFinding, errors.New(term.Clean(r.Stopped)), hint)
	}
	if r.Runtime == probe.Unknown {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}
