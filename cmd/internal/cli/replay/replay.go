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

// replayFlags are the values of the flags of 'unwire replay'. Suites and verify use some of them.
type replayFlags struct {
	// Target has the flags about the server and the credentials.
	app.Target

	// out is the capture that records the answer; "" for none.
	out string

	// proto names the definitions; "" for the default.
	proto string

	// dryRun sends nothing.
	dryRun bool

	// json prints JSON.
	json bool

	// parts sends one call of a split conversation alone.
	parts bool

	// showIgnored also prints differences that are ignored by default.
	showIgnored bool

	// timeout limits the time of the whole replay.
	timeout time.Duration

	// edits are the edits of the request, in the order of the command line.
	edits []edit.Edit

	// codec is "json" or "proto" to convert the request; "" to send it as it is.
	codec string

	// jsonBody is a file with the message to send as JSON; "" for none.
	jsonBody string

	// refresh exchanges an API key for a new token first.
	refresh bool

	// agentHost sends to the service's agent host.
	agentHost bool

	// edit is the frame to open in an editor, such as "@2"; "" for none.
	edit string

	// journal is the file that records all requests; "" for none.
	journal string

	// learn sends the unedited request first, to find out which values of the answer vary by themselves.
	learn bool

	// after names the exchanges to send before the request, or "auto".
	after []string

	// budget is the maximum number of requests to other machines.
	budget int

	// rate is the maximum number of requests per second; 0 for the default.
	rate float64

	// every is the least time between two requests to other machines.
	every time.Duration

	// headerFrom are the values of --header-from: NAME=COMMAND.
	headerFrom []string

	// answers map identifiers in the request to fields of the live answer.
	answers []live.Answer

	// as is the framing of connections without HTTP.
	as string

	// forwarded sends the request as unwire forwarded it after rewriting rules, not as the client sent it.
	forwarded bool
}

// replayHelp is the long help text of 'unwire replay'.
const replayHelp = `replay sends a captured request again, with your edits, over the
same protocol. replay then compares the new answer of the server with the captured
answer. In a bidirectional stream, replay sends a message of the client only when the
server has sent all messages that preceded it in the capture. If a message of the client
contains an ID that the server issued in the capture, replay replaces this ID by the ID
in the server's new answer. replay also works for WebSockets and for connections without
HTTP. For connections without HTTP, --as says how the bytes are divided into messages.

replay prints one of these results:

  same       the new answer equals the captured answer, except for differences in IDs, times
             and other values that differ in every run
  differs    the new answer differs from the captured answer
  rejected   the server answered with an error; or replay sent the request but received no
             answer (replay then prints the origin "local"), and the server may have
             executed the request
  refused    replay sent nothing, because unwire does not allow requests to this host, or
             because the request contains a value that is no longer valid
  not_sent   replay could not connect to the server, because of a DNS, TCP or TLS error

replay sends requests only to servers on this machine. To send a request to another
host, give --live and --allow-host. A capture contains placeholders instead of secrets,
such as tokens. replay reads the secrets from environment variables (UNWIRE_TOKEN,
UNWIRE_COOKIE, UNWIRE_HEADER_X_API_KEY and others) or from --credentials, and never
stores them.

An edit, such as --set 1.2=hello, changes the field at PATH. PATH consists of field
numbers or names, joined by dots, such as 1.2[3].5. An edit changes the first message of
the client; with the prefix '@2 ', as in '@2 1.3', it changes the third message. If the
value of a field is in another format, PATH can continue inside the value: 3!gzip.1 is
field 1 of the gzip data in field 3, and 5!json.messages[0].content is a member of the
JSON text in field 5. You can omit the format if only one is possible. replay applies
the edits in the order in which you give them. --patch reads edits from a file. --edit
opens a message as text in your editor.

If a rule (capture --rules) or 'unwire intercept' changed the request during the
recording, replay sends the request as the client sent it. With --forwarded, replay
sends the changed request, which unwire forwarded to the server. With and without
--forwarded, replay compares the new answer with the captured answer, which is the
answer to the changed request.

A request can contain IDs that the server issued in earlier answers, and that are no
longer valid. --after 1,2 first sends the requests of exchanges 1 and 2 again, without
edits. replay then replaces the captured IDs by the IDs in the new answers. --after auto
finds the exchanges that issued the IDs.

The exit status is 0 for the result same, 1 for differs, 2 for refused, and 3 for
not_sent. For rejected, the exit status is 64 plus the number of the Connect error code.
If credentials are missing, the exit status is 4.

If the name of a capture is also the name of a subcommand, such as suite, write the
capture as ./suite.`

// replayCommand returns the command 'unwire replay' with its subcommands.
func replayCommand(a *app.App) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay F.uwc ID",
		Short: "Send a captured request again, with edits, and compare the answers",
		Long:  replayHelp,
		Example: `  # Send exchange 2 again, to a server with a certificate from a private CA
  unwire replay F.uwc 2 --to https://127.0.0.1:9443 --upstream-ca ca.pem
  # Change field 1, and print the request without sending it
  unwire replay F.uwc 1 --set 1=hello --dry-run
  # Change the JSON text in field 2, and send field 3 as a string
  unwire replay F.uwc 1 --set '2!json.messages[0].content=hello' --retype 3:string
  # Change the request in your editor
  EDITOR=vi unwire replay F.uwc 1 --edit
  # First send the exchanges again that issued the IDs in the request
  unwire replay F.uwc 3 --after auto
  # Request another model, and record the new answer
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
	flags.BoolVar(&f.forwarded, "forwarded", false, "if unwire changed the request during the recording (capture --rules, intercept): send the changed request (default: the request that the client sent)")
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

// runReplay executes 'unwire replay' for the exchange at an address, and compares the live answer with
// the recorded one.
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
		return reportOutdated(a, err, f)
	}

	// A dry run sends nothing, not even to learn.
	learn := f.learn && !f.dryRun
	plan, err := store.Plan(ctx, addr.Exchange, opts.Changes, opts.Options, learn)
	if err != nil && learn {
		return app.Refusal(err)
	}
	if err != nil {
		return reportOutdated(a, err, f)
	}
	shown := plan.Description()
	if done, err := showPlan(a, &shown, f); done || err != nil {
		return err
	}
	result, err := sendAndNote(ctx, a, plan, store, addr.Exchange, f.out)
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

// sendAndNote sends the plan of exchange id of the capture c, and adds to the result the values that were sent
// as recorded. out is the capture that records the answer; "" for none.
func sendAndNote(ctx context.Context, a *app.App, plan *replay.Plan, c *query.Capture, id int64, out string) (*replay.Result, error) {
	result, err := a.Send(ctx, plan, out)
	if err != nil {
		return nil, err
	}
	return result, result.NoteAsRecorded(ctx, c.Store, id)
}

// reportOutdated prints a verdict if err says that the request would contain an outdated value, and returns
// the error with the exit status. Other errors are returned unchanged.
func reportOutdated(a *app.App, err error, f replayFlags) error {
	result, ok := replay.Outdated(err)
	if !ok {
		return err
	}
	return errors.Join(printResult(a, result, f), comparisonStatus(result))
}

// showPlan prints the plan's warnings and, with --dry-run or before requests to another machine, the
// requests that will be sent. done is true with --dry-run: nothing is to be sent.
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

// openReplayed opens the capture that is replayed. If rewriting rules had changed the request, it prints
// which version of the request is sent.
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
		a.Say("unwire: rules changed the request of exchange %d while it was recorded: replay sends the changed request", addr.Exchange)
	default:
		a.Say("unwire: rules changed the request of exchange %d while it was recorded: replay sends the client's original request; --forwarded sends the changed one", addr.Exchange)
	}
	return c, nil
}

// sayStale prints a hint if a frame was not sent because the live value for an identifier in it was not
// found: how to map that identifier by hand.
func sayStale(a *app.App, r *replay.Result) {
	for i := range r.Stale {
		if s := &r.Stale[i]; strings.HasPrefix(s.Issued, captures.Down.String()+"/") {
			a.Say("unwire: hint: if another frame of the server is its counterpart, map the value by hand, as in --answer '@%d %s=@%s/%s'", s.Frame, s.Path, s.Issued, s.IssuedPath)
			return
		}
	}
}

// sayIssuers prints, after a request was rejected, which recorded exchanges issued the identifiers in it,
// since these exchanges may have to be sent first.
func sayIssuers(ctx context.Context, a *app.App, store *query.Capture, id int64) {
	if first, err := live.Issuers(ctx, store.Store, id); err == nil && len(first) > 0 {
		a.Say("unwire: hint: the request contains IDs from the answer of exchange %s: '--after %s' sends that request first and uses the live IDs", numbered(first, ", "), numbered(first, ","))
	}
}

// replaySettings are the settings for requests: how they differ from the capture (Changes), and how
// secrets are resolved and requests sent (Options).
type replaySettings struct {
	// Changes are the differences between the captured requests and those that are sent.
	replay.Changes
	// Options say how secrets are resolved and requests are sent.
	replay.Options
}

// settings returns the settings that the flags describe. captures are the captures in which definitions
// are looked for.
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

// prepare sets the server for --agent-host, and gets a new access token for --refresh.
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

// recoding applies the flags that convert the request to another codec: --codec and --json-body.
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

// comparisonStatus returns the error with the exit status for the result of a replay; nil if the answers
// are the same.
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

// printResult prints the result of a replay as text or JSON.
func printResult(a *app.App, r *replay.Result, f replayFlags) error {
	if f.json {
		return a.Print(&contract.ReplayResult{Result: r})
	}
	replaytext.Result(a.Out, r)
	if len(r.Diff) > 0 {
		changes := []query.Comparison{{Changes: r.Diff}}
		if err := render.Differences(a.Out, changes, render.DiffOptions{Format: "tsv", A: "recording", B: "replay", All: f.showIgnored}); err != nil {
			return err
		}
		a.Say("%s", render.DifferenceCount(changes))
	}
	if r.Exchange != 0 {
		a.Say("the live answer is stored as %s#%d", f.out, r.Exchange)
	}
	return nil
}

// sayHint prints what to do about a request to url that got no answer, if anything is known.
func sayHint(a *app.App, r *replay.Result, url string) {
	hint := replaytext.Hint(r.Reason, r.Message, url)
	if r.Comparison == replay.Refused && r.Code == "" {
		hint = "to send to another machine, use --live and --allow-host HOST; to use a local server, give its URL with --to"
	}
	if hint != "" {
		a.Say("unwire: hint: %s", hint)
	}
}
