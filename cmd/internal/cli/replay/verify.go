package replaycmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

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

type verifyFlags struct {
	replayFlags
	full                                         bool
	standin, resume, allowExecute, noAuth, http2 bool
	refine, noRefine                             bool
	depth                                        int
	rate                                         float64
}

func verifyCommand(a *app.App) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify --proto DIR F.uwc [ID]",
		Short: "Ask a server whether it knows each field of the requests' definitions",
		Long: `verify holds the definitions of the requests in a capture against what a server's
parser says: each field is confirmed, contradicted or undecided. It sends messages
that end in bytes which no parser accepts, so no handler gets a message. The handler
of a client-streaming or bidirectional method starts anyway, and gets an error.

  connect-es    every field's class and label, text from bytes in version 2: one or
                two requests if the definitions are right, a few more a mistake
  connect-go,   text, messages and lists of numbers: about a request each; of
  grpc-go       bytes and single numbers only what they are not
  any other, or a proxy that hides the texts: nothing, and verify says so

What the server said and what is concluded of it are told apart. It asks the server
that the capture was made of where that is this machine, else the stand-in, which
it starts; --to names another. Another host needs --live and --allow-host: then the
plan is printed, and there is one request a second, and none after 429,
resource_exhausted, permission_denied or unauthenticated.

The exit status is 0 where nothing is contradicted, 1 where something is, where
a run was stopped, or where no server said anything of its parser; 2 where it was
refused.`,
		Example: `  unwire replay verify --proto proto/ F.uwc
  unwire replay verify --proto proto/ F.uwc 2 --to http://127.0.0.1:8080 --depth 4 --json
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
	flags.StringVar(&f.proto, "proto", "", "folder of .proto files to verify (default: those that the capture keeps, or the built-in ones)")
	flags.StringVar(&f.To, "to", "", "URL of the server")
	flags.BoolVar(&f.standin, "standin", false, "start the stand-in and ask that")
	flags.IntVar(&f.depth, "depth", 2, "levels of messages below the request to verify, too")
	flags.BoolVar(&f.noRefine, "no-refine", false, "do not distinguish text from bytes, which takes one more request per field")
	flags.BoolVar(&f.refine, "refine", true, "the opposite of --no-refine")
	options.Hide(flags, "refine", "no-refine")
	flags.BoolVar(&f.http2, "http2", false, "speak HTTP/2, over http:// without asking")
	flags.StringVar(&f.journal, "journal", "", "file to which every request and answer is appended")
	flags.BoolVar(&f.resume, "resume", false, "go on with a journal: what it answers is not asked again")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be sent, and send nothing")
	flags.BoolVar(&f.full, "full", false, "print every answer of the server about each field")
	options.Alias(flags, "all", "full")
	flags.BoolVar(&f.json, "json", false, "a JSON line a method")
	f.limitFlags(cmd)
	return cmd
}

// limitFlags are those of how much is sent, to whom, and with which credentials.
func (f *verifyFlags) limitFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.Live, "live", false, "allow hosts other than this machine (see --allow-host)")
	flags.StringSliceVar(&f.Allow, "allow-host", nil, "host, or host:port, that --live may send to")
	flags.BoolVar(&f.allowExecute, "allow-execute", false, "start handlers of bidirectional methods on another machine, too")
	flags.IntVar(&f.budget, "budget", 2000, "send at most this many requests, for all methods; 200 with --live unless it is given")
	flags.Float64Var(&f.rate, "rate", 0, "requests per second (default: 1 to another machine, no limit to this one)")
	flags.StringVar(&f.Credentials, "credentials", "", app.CredentialsUsage())
	flags.BoolVar(&f.noAuth, "no-auth", false, "send no credentials: many servers parse before they look at them")
	flags.StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file of further CAs to trust for the server")
	flags.DurationVar(&f.timeout, "timeout", 20*time.Second, "deadline of one request")
}

// liveVerifyBudget is how many requests another machine gets if nothing is said.
const liveVerifyBudget = 200

func runVerify(ctx context.Context, a *app.App, addr query.Address, f *verifyFlags) (err error) {
	if f.standin && f.To != "" {
		return app.Usagef("--standin and --to both say which server to ask")
	}
	if f.budget < 1 || f.depth < 0 || f.depth > 8 {
		return app.Usagef("--budget wants 1 or more, --depth 0 to 8")
	}
	if f.proto == app.NoDefinitions {
		return app.Usagef("--proto none leaves nothing to verify")
	}
	f.OmitSecrets = f.noAuth
	reach, err := f.settings(ctx, a, addr.File)
	if err != nil {
		return err
	}
	if f.noAuth {
		reach.Credentials = nil
	}
	store, err := a.OpenCapture(addr.File)
	if err != nil {
		return err
	}
	defer store.Close() //nolint:errcheck // it was only read
	methods, err := methodsToVerify(ctx, a, store, addr, reach.Schema)
	if err != nil {
		return err
	}
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
	o := f.methodsOptions(reach)
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

// chooseStandin reports that the stand-in is asked if nobody said so.
//
// Errors: a capture of a service that the stand-in is none of.
func (f *verifyFlags) chooseStandin(ctx context.Context, a *app.App, file string) error {
	switch {
	case f.standin:
	case a.ShowsProfile(ctx, file):
		a.Say("the capture is not of this machine: asking the stand-in; --live asks the server, --to another")
	default:
		return app.Fail(app.ExitUsage, errors.New("the capture is not of this machine: which server is to be asked?"),
			"--to names a server; --live and --allow-host ask the captured one")
	}
	return nil
}

// methodsOptions are the options that the flags and what they reach say.
func (f *verifyFlags) methodsOptions(reach replaySettings) oracle.MethodsOptions {
	return oracle.MethodsOptions{
		Options: probe.Options{
			To: reach.To, HTTP2: f.http2, Depth: f.depth, Refine: f.refine && !f.noRefine, Budget: f.budget, Rate: f.rate, Timeout: f.timeout,
			AllowExecute: f.allowExecute, Reach: reach.Policy, Schema: reach.Schema,
		},
		Replay: reach.Options, PlanOnly: f.dryRun,
	}
}

// methodsToVerify finds the methods of a capture, or of one exchange, and reports
// those that are left out.
func methodsToVerify(ctx context.Context, a *app.App, store *query.Capture, addr query.Address, s *schema.Schema) (*oracle.Methods, error) {
	methods, err := oracle.FindMethods(ctx, store, s, addr.Exchange)
	if err != nil {
		return nil, err
	}
	for _, m := range methods.Unknown {
		a.Say("%s is left out: the definitions do not know its request, or it is not asked this way", term.Clean(m))
	}
	switch {
	case addr.Exchange != 0 && methods.Exchanges == 0:
		return nil, app.Fail(app.ExitInput, fmt.Errorf("%s has no exchange %d", addr.File, addr.Exchange), fmt.Sprintf("'unwire ls %s' lists them", addr.File))
	case methods.Len() == 0:
		return nil, app.Fail(app.ExitInput, fmt.Errorf("no request in %s is of a method in the definitions", addr.File), cmp.Or(app.Undefined(s, servicesOf(methods.Unknown)), "--proto names the folder of definitions"))
	}
	return methods, nil
}

// servicesOf are the services of methods such as /pkg.Service/Method.
func servicesOf(methods []string) []string {
	var list []string
	for _, m := range methods {
		service, _, _ := strings.Cut(strings.TrimPrefix(m, "/"), "/")
		list = append(list, service)
	}
	return list
}

// verifyMethods verifies the methods and prints what came of each.
func verifyMethods(ctx context.Context, a *app.App, store *query.Capture, methods *oracle.Methods, o oracle.MethodsOptions, f *verifyFlags) error {
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
		a.Say("%s was not asked about: %s", term.Clean(method), term.Clean(why))
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
	switch {
	case sum.Finding:
		return app.Fail(app.ExitFinding, nil, "")
	case !sum.Answered:
		return app.Fail(app.ExitFinding, errors.New("no server said anything of its parser"), "")
	}
	return nil
}
