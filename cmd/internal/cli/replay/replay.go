package replaycmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/editor"
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
	out, proto          string
	dryRun, json, parts bool
	showIgnored         bool
	timeout             time.Duration
	edits               []edit.Edit
	codec, jsonBody     string
	refresh, agentHost  bool
	edit, journal       string
	learn               bool
	after               []string
	budget              int
	rate                float64       // requests per second; 0 for the default
	every               time.Duration // between two requests to other machines
	headerFrom          []string
	answers             []live.Answer
	as                  string // framing of connections without HTTP
	forwarded           bool
}

// replayHelp is the prose of the help.
const replayHelp = `replay rebuilds a captured request, applies edits, and sends it over the original
transport. In a bidirectional stream, replay sends each frame after the server frames
that came before it in the capture, and replaces IDs issued by the server with the
live ones. WebSockets and connections without HTTP are replayed in the same way; for
connections without HTTP, --as names the framing.

The verdict is same, differs, rejected (by the server), refused (unwire does not allow
this host) or not_sent (no connection: a DNS, TCP or TLS error). If the request was
sent but no answer came, the verdict is rejected with the origin "local"; the server
may have executed the request.

replay sends to loopback only, unless --live is set and --allow-host names the host.
Captures contain no secrets: replay reads them from the environment (UNWIRE_TOKEN,
UNWIRE_COOKIE, UNWIRE_HEADER_X_API_KEY, …) or from --credentials, and never stores
them.

PATH is field numbers or names joined by dots, such as 1.2[3].5. The prefix '@2 '
selects the third client frame: '@2 1.3'. PATH can also enter text or bytes in other
formats: 3!gzip.1, 2!hex.1, 5!json.messages[0].content; the format may be omitted if
it is unambiguous. Edits apply in the given order; --patch reads them from a file, and
--edit opens a frame as text in an editor.

If rules or 'unwire intercept' changed the captured request, replay sends the request
of the client; --forwarded sends the changed request that was forwarded to the server.
In both cases, replay compares the live answer with the recorded answer to the
forwarded request.

IDs that a server issued in earlier answers may no longer be valid. --after 1,2 sends
exchanges 1 and 2 first, unedited, and replaces captured IDs with the live ones.
--after auto detects these exchanges.

The exit status is 0 for same, 1 for differs, 2 for refused, 3 for not_sent, 4 if
credentials are missing, and 64 plus the number of the Connect code for rejected.

If the name of a capture is also a subcommand, write ./suite.`

func replayCommand(a *app.App) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay F.uwc ID",
		Short: "Send a captured request again, with edits, and compare the answers",
		Long:  replayHelp,
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
	flags.StringVar(&f.To, "to", "", "URL of the server (default: the server in the capture)")
	app.SplittingFlag(flags, &f.as)
	flags.BoolVar(&f.forwarded, "forwarded", false, "send the request as unwire forwarded it, with the changes of rules (default: as the client sent it)")
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
		opts.Editor = func(name string, text []byte) ([]byte, error) { return editor.Edit(a.Signals.ChildRuns, name, text) }
	}
	stop, err := f.openPace(&opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	store, err := openReplayed(ctx, a, addr, f, &opts)
	if err != nil {
		return err
	}
	defer store.Close()

	// A fresh token and the agent's host are needed before the plan is made.
	if f.refresh || f.agentHost {
		if err := f.prepare(ctx, store, addr.Exchange, &opts); err != nil {
			return err
		}
	}
	if err := sendFirst(ctx, a, store, addr.Exchange, f, &opts); err != nil {
		return err
	}

	// A dry run sends nothing, not even to learn.
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
	sayStale(a, result)

	// Rejections are often due to ids of other exchanges, so name those.
	if result.Comparison == replay.Rejected && result.Origin == replay.FromServer && len(f.after) == 0 {
		sayIssuers(ctx, a, store, addr.Exchange)
	}
	return comparisonStatus(result)
}

// showPlan prints the requests that are going to be sent to another machine, with warnings. done is
// true if the flags asked for the plan only.
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

// openReplayed opens the capture, and says which request is sent if rules changed it.
func openReplayed(ctx context.Context, a *app.App, addr query.Address, f replayFlags, opts *replaySettings) (*query.Capture, error) {
	c, err := a.OpenTrusted(ctx, addr.File, addr.Exchange, opts.To, &opts.Policy, [2]bool{f.forwarded, false})
	if err != nil {
		return nil, err
	}
	r, err := c.Rewritten(ctx, addr.Exchange)
	switch {
	case err != nil:
		return nil, errors.Join(err, c.Close())
	case r == nil:
	case f.forwarded:
		a.Say("unwire: rules changed exchange %d: this sends the request as unwire forwarded it", addr.Exchange)
	default:
		a.Say("unwire: rules changed exchange %d: this sends the request as the client sent it; --forwarded sends what unwire forwarded", addr.Exchange)
	}
	return c, nil
}

// sayStale says how the first value that kept a frame from being sent is mapped by hand.
func sayStale(a *app.App, r *replay.Result) {
	for i := range r.Stale {
		if s := &r.Stale[i]; strings.HasPrefix(s.Issued, captures.Down.String()+"/") {
			a.Say("unwire: hint: if another frame of the server is its counterpart, map the value by hand, as in --answer '@%d %s=@%s/%s'", s.Frame, s.Path, s.Issued, s.IssuedPath)
			return
		}
	}
}

// sayIssuers names the exchanges that issued what a rejected request carries.
func sayIssuers(ctx context.Context, a *app.App, store *query.Capture, id int64) {
	if first, err := live.Issuers(ctx, store.Store, id); err == nil && len(first) > 0 {
		a.Say("unwire: hint: the request contains IDs from the answer of exchange %s: '--after %s' sends that request first and uses the live IDs", numbered(first, ", "), numbered(first, ","))
	}
}

// replaySettings are the settings of all requests: how they differ from the capture, and how they
// are resolved and sent.
type replaySettings struct {
	replay.Changes
	replay.Options
}

func (f *replayFlags) settings(ctx context.Context, a *app.App, captures ...string) (replaySettings, error) {
	opts := replaySettings{
		Changes: replay.Changes{Edits: f.edits, Answers: f.answers, Part: f.parts, Timing: replay.Timing{Timeout: f.timeout}},
		Options: replay.Options{OmitSecrets: f.OmitSecrets},
	}
	var err error
	if opts.Split, err = app.ParseSplitting(f.as); err != nil {
		return opts, err
	}
	if opts.To, opts.Policy, err = f.Server(); err != nil {
		return opts, err
	}
	if opts.EditFrame = edit.FirstFrame; f.edit != "" && f.edit != "first" {
		if _, err := fmt.Sscanf(f.edit, "@%d", &opts.EditFrame); err != nil || opts.EditFrame < 0 {
			return opts, app.Usagef("--edit must be a frame such as @2, not %q", f.edit)
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

// prepare chooses the target host and gets an access token, if the flags ask for them.
func (f *replayFlags) prepare(ctx context.Context, store *query.Capture, id int64, opts *replaySettings) error {
	ex, err := store.Exchange(ctx, id)
	if err != nil {
		return err
	}
	if f.agentHost {
		if opts.To != nil {
			return app.Usagef("--agent-host and --to cannot be used together")
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

// recoding reads the flags that convert the request to another codec, such as JSON.
func (f *replayFlags) recoding(opts *replaySettings) (err error) {
	switch opts.Codec = f.codec; f.codec {
	case "", replay.CodecJSON, replay.CodecProto:
	default:
		return app.Usagef("--codec must be json or proto, not %q", f.codec)
	}
	if f.jsonBody == "" {
		return nil
	}
	if f.codec != replay.CodecJSON {
		return app.Usagef("--json-body requires --codec json")
	}
	if opts.Message, err = os.ReadFile(f.jsonBody); err == nil && !json.Valid(opts.Message) {
		return app.Fail(app.ExitInput, fmt.Errorf("%s is not valid JSON", f.jsonBody), "")
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
		if err := render.Differences(a.Out, changes, render.DiffOptions{Format: "tsv", All: f.showIgnored}); err != nil {
			return err
		}
		a.Say("%s", render.DifferenceCount(changes))
	}
	if r.Exchange != 0 {
		a.Say("the answer is stored as %s#%d", f.out, r.Exchange)
	}
	return nil
}

// sayHint prints a hint about a request that got no response.
func sayHint(a *app.App, r *replay.Result, url string) {
	hint := replaytext.Hint(r.Reason, url)
	if r.Comparison == replay.Refused {
		hint = "to send to another machine, use --live and --allow-host; to use a local server, use --to"
	}
	if hint != "" {
		a.Say("unwire: hint: %s", hint)
	}
}
