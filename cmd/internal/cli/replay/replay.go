package replaycmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/render/replaytext"
	"unwire/cmd/internal/term"
	"unwire/replay"
	"unwire/replay/edit"
	"unwire/replay/live"
)

type replayFlags struct {
	app.Target
	out, proto               string
	dryRun, json, all, parts bool
	timeout                  time.Duration
	edits                    []edit.Edit
	codec, jsonBody          string
	refresh, agentHost       bool
	edit, journal            string
	learn                    bool
	after                    []string
	budget                   int
	every                    time.Duration
	headerFrom               []string
}

func replayCommand(a *app.App) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay F.uwc ID",
		Short: "Send a captured request again, with edits, and say what changed",
		Long: `replay rebuilds a captured request, applies edits, and sends it over the transport
it was captured on; WebSockets and what is not HTTP are refused. A frame of a bidirectional stream waits for the server frames
that it answered, and IDs that the server issued are replaced by the live ones.
The verdict is same, differs, rejected (by the server), refused (by unwire: the
request may not be sent to this host) or not_sent (there was no connection to the
server: DNS, TCP, TLS). If a request was sent and no answer came, the verdict is
rejected with origin local, and the server may have executed the request.

It goes to loopback only, unless --live is given and --allow-host names the host.
Secrets were redacted when they were recorded: they come from the environment
(UNWIRE_TOKEN, UNWIRE_COOKIE, UNWIRE_HEADER_X_API_KEY, …) or from --credentials,
and are never written.

PATH is field numbers or names joined by dots, 1.2[3].5, and may start with a
frame: '@2 1.3' is in the third frame that the client sent. It goes into what a
text or bytes hold: 3!gzip.1, 2!hex.1, 5!json.messages[0].content; the layer may
be left out where there is no doubt. Edits apply in the order they are given;
--patch reads them from a file, and --edit has you edit a frame as text.

What an earlier call issued, say in a header of its answer, is stale like any id:
--after 1,2 sends these exchanges first, unedited, and puts the live ids in place of
the captured ones. --after auto finds out which.

The exit status is 0 for same, 1 for differs, 2 for refused, 3 for not_sent, 4 where
credentials are missing, 64 plus the Connect code's number for rejected.

A capture whose name is that of a subcommand is named ./suite.`,
		Example: `  unwire replay F.uwc 2 --to https://127.0.0.1:9443 --upstream-ca ca.pem
  unwire replay F.uwc 1 --set 1=hello --dry-run
  unwire replay F.uwc 1 --set '2!json.messages[0].content=hello' --retype 3:string
  EDITOR=vi unwire replay F.uwc 1 --edit
  unwire replay F.uwc 3 --after auto
  unwire replay F.uwc 2 --set '@0 run_request.model_details.model_id=other' -o answers.uwc`,
		Args: app.ArgsBetween(1, "F.uwc", "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			addr, err := app.AddressArgs(args, false)
			if err != nil {
				return err
			}
			f.parts = f.parts || addr.Part
			return runReplay(cmd.Context(), a, addr, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.To, "to", "", "URL to send to instead of where it was captured")
	f.editFlags(cmd)
	f.firstFlags(cmd)
	f.liveFlags(cmd)
	f.credentialFlags(cmd)
	f.headerFlag(cmd)
	f.trustFlags(cmd)
	f.resultFlags(cmd)
	cmd.AddCommand(suiteCommand(a), verifyCommand(a))
	return cmd
}

func runReplay(ctx context.Context, a *app.App, addr query.Address, f replayFlags) (err error) {
	opts, err := f.settings(ctx, a, addr.File)
	if err != nil {
		return err
	}
	if f.edit != "" {
		opts.Editor = func(name string, text []byte) ([]byte, error) { return runEditor(a, name, text) }
	}
	stop, err := f.openPace(&opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	store, err := a.OpenCapture(addr.File)
	if err != nil {
		return err
	}
	defer store.Close()
	if f.refresh || f.agentHost {
		if err := f.prepare(ctx, store, addr.Exchange, &opts); err != nil {
			return err
		}
	}
	if err := sendFirst(ctx, a, store, addr.Exchange, f, &opts); err != nil {
		return err
	}
	learn := f.learn && !f.dryRun
	plan, err := store.Plan(ctx, addr.Exchange, opts.Changes, opts.Options, learn)
	if err != nil && learn {
		return app.Refusal(err)
	}
	if err != nil {
		return err
	}
	shown := plan.Description()
	if done, err := showPlan(a, &shown, f); done || err != nil {
		return err
	}
	result, err := a.Send(ctx, plan, f.out)
	if err != nil {
		return err
	}
	if err := printResult(a, result, f); err != nil {
		return err
	}
	sayHint(a, result, shown.URL)
	if result.Comparison == replay.Rejected && result.Origin == replay.FromServer && len(f.after) == 0 {
		sayIssuers(ctx, a, store, addr.Exchange)
	}
	return comparisonStatus(result)
}

// showPlan shows what is going to be sent to another machine, and says what is amiss
// with it; done says that showing it was all that was asked for.
func showPlan(a *app.App, plan *replay.Description, f replayFlags) (done bool, err error) {
	for _, w := range plan.Warnings {
		a.Say("unwire: warning: %s", term.Clean(w))
	}
	switch {
	case f.dryRun && f.json:
		return true, a.Print(&contract.ReplayPlan{Description: plan})
	case f.dryRun:
		replaytext.Plan(a.Out, plan, f.Live)
		return true, nil
	case f.Live && plan.Refusal == "":
		replaytext.Plan(a.Err, plan, true)
	}
	return false, nil
}

// sayIssuers names the exchanges that issued what a rejected request carries.
func sayIssuers(ctx context.Context, a *app.App, store *query.Capture, id int64) {
	if first, err := live.Issuers(ctx, store.Store, id); err == nil && len(first) > 0 {
		a.Say("unwire: hint: the request carries what exchange %s issued: '--after %s' sends that first, and takes the live ids", numbered(first, ", "), numbered(first, ","))
	}
}

// replaySettings are what the flags say of requests: how they differ from the
// capture, and how they are resolved and sent.
type replaySettings struct {
	replay.Changes
	replay.Options
}

func (f *replayFlags) settings(ctx context.Context, a *app.App, captures ...string) (replaySettings, error) {
	opts := replaySettings{
		Changes: replay.Changes{Edits: f.edits, Part: f.parts, Timing: replay.Timing{Timeout: f.timeout}},
		Options: replay.Options{OmitSecrets: f.OmitSecrets},
	}
	var err error
	if opts.To, opts.Policy, err = f.Server(); err != nil {
		return opts, err
	}
	if opts.EditFrame = edit.FirstFrame; f.edit != "" && f.edit != "first" {
		if _, err := fmt.Sscanf(f.edit, "@%d", &opts.EditFrame); err != nil || opts.EditFrame < 0 {
			return opts, app.Usagef("--edit wants a frame such as @2, not %q", f.edit)
		}
	}
	if opts.Schema, err = a.LoadDefinitions(ctx, f.proto, captures...); err != nil {
		return opts, err
	}
	if opts.Headers, err = app.HeaderMakers(f.headerFrom); err != nil {
		return opts, err
	}
	if err := f.recoding(&opts); err != nil {
		return opts, err
	}
	return opts, f.Load(&opts.Options)
}

// prepare chooses the host and gets a token, where that is asked for.
func (f *replayFlags) prepare(ctx context.Context, store *query.Capture, id int64, opts *replaySettings) error {
	ex, err := store.Exchange(ctx, id)
	if err != nil {
		return err
	}
	if f.agentHost {
		if opts.To != nil {
			return app.Usagef("--agent-host and --to name two servers")
		}
		if opts.To, err = agentEndpoint(ex); err != nil {
			return err
		}
	}
	if f.dryRun {
		return nil
	}
	return f.refreshToken(ctx, ex.URL, *opts)
}

// recoding reads the flags of another codec.
func (f *replayFlags) recoding(opts *replaySettings) (err error) {
	switch opts.Codec = f.codec; f.codec {
	case "", replay.CodecJSON, replay.CodecProto:
	default:
		return app.Usagef("--codec is json or proto, not %q", f.codec)
	}
	if f.jsonBody == "" {
		return nil
	}
	if f.codec != replay.CodecJSON {
		return app.Usagef("--json-body goes with --codec json")
	}
	if opts.Message, err = os.ReadFile(f.jsonBody); err == nil && !json.Valid(opts.Message) {
		return app.Fail(app.ExitInput, fmt.Errorf("%s is no JSON", f.jsonBody), "")
	}
	return err
}

// comparisonStatus maps a comparison to the exit status.
func comparisonStatus(r *replay.Result) error {
	switch r.Comparison {
	case replay.Same:
		return nil
	case replay.Rejected:
		return app.Fail(app.ExitConnect+r.ConnectCode(), nil, "")
	case replay.Refused:
		return app.Fail(app.ExitUsage, nil, "")
	case replay.NotSent:
		return app.Fail(app.ExitInput, nil, "")
	}
	return app.Fail(app.ExitFinding, nil, "")
}

func printResult(a *app.App, r *replay.Result, f replayFlags) error {
	if f.json {
		return a.Print(&contract.ReplayResult{Result: r})
	}
	replaytext.Result(a.Out, r)
	if len(r.Diff) > 0 {
		changes := []query.Comparison{{Changes: r.Diff}}
		if err := render.Differences(a.Out, changes, render.DiffOptions{Format: "tsv", All: f.all}); err != nil {
			return err
		}
		a.Say("%s", render.DifferenceCount(changes))
	}
	if r.Exchange != 0 {
		a.Say("the answer is %s#%d", f.out, r.Exchange)
	}
	return nil
}

// sayHint says what to do about a request that got no answer.
func sayHint(a *app.App, r *replay.Result, url string) {
	hint := replaytext.Hint(r.Reason, url)
	if r.Comparison == replay.Refused {
		hint = "another host needs --live and --allow-host; --to sends it to a local server"
	}
	if hint != "" {
		a.Say("unwire: hint: %s", hint)
	}
}
