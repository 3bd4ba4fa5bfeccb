package mock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
	"unwire/replay/clientprobe"
	"unwire/replay/mock"
)

// probeFlags are the values of the flags of 'unwire probe-client'.
type probeFlags struct {
	// methods restricts the edited answers to these methods; empty for all.
	methods []string

	// paths restricts the edits to these fields; empty for all.
	paths []string

	// repeats is the number of unedited runs.
	repeats int

	// budget is the maximum number of runs.
	budget int

	// maxTime limits the time of all runs together.
	maxTime time.Duration

	// timeout limits the time of one run; 0 derives it from the unedited runs.
	timeout time.Duration

	// journal is the file that gets the outcome of each run; "" for none.
	journal string

	// resume skips the runs that the journal already has.
	resume bool

	// dryRun prints the plan and runs nothing.
	dryRun bool

	// json prints JSON.
	json bool

	// allowExecute also edits messages that ask the client to run something.
	allowExecute bool

	// noNamespace runs the client in the network of this machine, instead of an isolated one.
	noNamespace bool
}

const probeLong = `probe-client finds which fields of a server's answers a client reads.
CMD is the command that starts the client. probe-client runs CMD many times, and answers
its requests with the recorded answers of the capture F.uwc, like 'unwire mock'. In each
run, probe-client removes one field of the answers, or changes its value or its type.
Then probe-client compares the later requests, the exit status and the output of CMD
with those of a run with unedited answers. The result for a field is one of these:

  required   if the field is missing, CMD fails: its exit status is different, or it does not end
  read       if the field is missing or has another value, CMD does something else
  not read   CMD does the same if the field is missing or has another value
  untested   probe-client reached the maximum number of runs (--budget) before this field

probe-client first runs CMD several times with unedited answers (--repeats), and later
ignores differences that occurred between these runs. If a change has an effect,
probe-client repeats the run to confirm the effect. In one run, probe-client adds an
unknown field to each message. If CMD then does something else, probe-client reports
that the results prove nothing.

On Linux, probe-client runs CMD in a separate network namespace, and answers every TCP
connection of CMD itself. CMD cannot reach real servers, but it can resolve host names
as usual. If the machine does not allow network namespaces, or with --no-namespace,
probe-client sets proxy variables for CMD, like 'unwire capture'. A program that ignores
these variables then reaches real servers; probe-client reports this. In ARGS, the words
{url} and {https} stand for the http:// and https:// URL at which probe-client answers.
CMD has a new home folder in each run, and its stdin is empty.

Some servers ask their clients to run shell commands. If CMD is such a client, CMD runs
the commands in the recorded answers, again in each run. unwire contains the definitions
of one such API, the API of an AI coding agent. In answers of this API, probe-client
does not change messages that contain commands, unless you give --allow-execute.

With --dry-run, probe-client does not run CMD, but prints the fields that it would
change, and the number of runs. With --journal FILE, probe-client writes the result of
each run to FILE; with --resume, it continues after the runs in this file. The exit
status is 0 if probe-client made all runs, and 1 otherwise.`

// probeClientCommand returns the command 'unwire probe-client', which finds out which fields of the
// answers a client reads.
func probeClientCommand(a *app.App) *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:   "probe-client F.uwc [flags] -- CMD ARGS…",
		Short: "Find the fields of a server's answers that a client reads",
		Long:  probeLong,
		Example: `  # Find the fields that a Node client reads
  unwire probe-client F.uwc -- node client.mjs
  # Print the planned changes to answers of Get, without running a client
  unwire probe-client F.uwc --method Get --dry-run
  # Test one field of a client that takes the URL of its server
  unwire probe-client F.uwc --method Run --path 1.7 -- ./client --server {https}
  # Continue an interrupted probe, and print the result as JSON
  unwire probe-client F.uwc --journal probe.jsonl --resume --json -- ./client`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire probe-client: missing argument F.uwc"), "usage: "+cmd.UseLine())
			}
			if dash := cmd.ArgsLenAtDash(); dash > 1 || dash < 0 && len(args) > 1 {
				return app.Fail(app.ExitUsage, fmt.Errorf("unwire probe-client: unexpected argument %q", args[1]), "CMD follows --: "+cmd.UseLine())
			}
			if len(args) < 2 && !f.dryRun {
				return app.Fail(app.ExitUsage, errors.New("unwire probe-client: missing argument CMD"), "usage: "+cmd.UseLine())
			}
			return runProbeClient(cmd.Context(), a, f, args[0], args[1:])
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.methods, "method", nil, "change only answers of these methods: Run, or pkg.Service/Run (default: all methods)")
	flags.StringArrayVar(&f.paths, "path", nil, "change only the field at this path, and the fields nested in it (default: all fields)")
	flags.IntVar(&f.repeats, "repeats", clientprobe.DefaultRepeats, "first run CMD this many times with unedited answers, at least 2")
	flags.IntVar(&f.budget, "budget", clientprobe.DefaultBudget, "run CMD at most this many times")
	flags.DurationVar(&f.maxTime, "max-time", clientprobe.DefaultMaxTime, "stop if all runs together take longer than this time")
	flags.DurationVar(&f.timeout, "timeout", 0, "stop CMD after this time in each run (default: five times the slowest unedited run, at least 10s)")
	flags.StringVar(&f.journal, "journal", "", "append the result of each run to this file")
	flags.BoolVar(&f.resume, "resume", false, "continue an interrupted probe: do not repeat the runs whose results are in the file of --journal")
	flags.BoolVar(&f.dryRun, "dry-run", false, "do not run CMD; print which fields of the recorded answers probe-client would change, and the number of runs")
	flags.BoolVar(&f.allowExecute, "allow-execute", false, "also change messages that ask CMD to run shell commands")
	flags.BoolVar(&f.noNamespace, "no-namespace", false, "do not run CMD in a separate network namespace; set proxy variables for CMD instead")
	flags.BoolVar(&f.json, "json", false, "print the result as JSON; with --dry-run, print the changes and the number of runs as JSON")
	return cmd
}

// runProbeClient executes 'unwire probe-client'. file is the capture from which answers are taken, and
// argv the client's command line.
func runProbeClient(ctx context.Context, a *app.App, f probeFlags, file string, argv []string) (err error) {
	if f.repeats < 2 || f.budget < 1 || f.maxTime <= 0 || f.timeout < 0 {
		return app.Usagef("--repeats must be at least 2, --budget at least 1, and --max-time and --timeout positive")
	}
	c, server, authority, err := load(ctx, a, file, mock.Options{})
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // it was only read
	client := &sandbox{a: a, argv: argv, authority: authority, noNamespace: f.noNamespace}
	p := &clientprobe.Probe{
		Mock: server, Argv: argv, Client: client.run, Profile: a.Profile(), AllowExecute: f.allowExecute, Methods: f.methods, Paths: f.paths,
		Repeats: f.repeats, Budget: f.budget, MaxTime: f.maxTime, Timeout: f.timeout,
	}
	if f.dryRun {
		plan, err := p.Plan(ctx, nil)
		if err != nil {
			return explainPlan(err)
		}
		return sayPlan(a, f, plan)
	}
	if f.journal != "" {
		journal, err := app.OpenJournal(f.journal, f.resume)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, journal.Close()) }()
		id, err := c.ID(ctx)
		if err != nil {
			return err
		}
		if p.Journal, err = clientprobe.NewJournal(journal, string(id)); err != nil {
			return app.Fail(app.ExitInput, fmt.Errorf("%s: %w", f.journal, err), "")
		}
	}
	return probeClient(ctx, a, f, p, client)
}

// probeClient runs the client several times unedited, plans the edits, runs the client once for each
// edit, and prints the result.
func probeClient(ctx context.Context, a *app.App, f probeFlags, p *clientprobe.Probe, client *sandbox) error {
	baseline, err := p.Learn(ctx)
	if err != nil {
		return client.explain(err)
	}
	plan, err := p.Plan(ctx, baseline)
	if err != nil {
		return explainPlan(err)
	}
	a.Say("probe-client ran CMD %d times with unedited answers, and answered %s; the exit status of CMD was %d. Next, probe-client edits %s in %s of CMD", baseline.Runs(), app.Counted(baseline.Answered, "request"), baseline.Exit(), app.Counted(len(plan.Targets), "field"), app.Counted(plan.Runs, "run"))
	if !client.isolated {
		a.Say("unwire: warning: CMD is not isolated: %s. Programs that ignore proxy variables reach real servers", client.reason)
	}

	// What was found is printed, also if the probe was interrupted.
	meter := a.ShowSteps(ctx, "probing", "run", plan.Runs)
	p.Progress = func(int, int, string) { meter.Step() }
	result, err := p.Run(ctx, baseline, plan)
	meter.Stop()
	if err != nil && len(result.Fields) == 0 {
		return client.explain(err)
	}
	if sayErr := sayResult(a, f, p.Argv, client.isolated, result); sayErr != nil {
		return sayErr
	}
	switch {
	case err != nil:
		return client.explain(err)
	case !result.Complete:
		return app.Fail(1, nil, "")
	}
	return nil
}

// explainPlan adds a hint to the error of a plan whose --method or --path selects nothing.
func explainPlan(err error) error {
	if errors.Is(err, clientprobe.ErrNoField) {
		return app.Fail(app.ExitUsage, err, "'unwire probe-client F.uwc --dry-run', without --method and --path, lists the fields")
	}
	return err
}

// sayPlan prints the plan: which fields would be edited, and in which ways.
func sayPlan(a *app.App, f probeFlags, plan *clientprobe.Plan) error {
	if f.json {
		return a.Print(&contract.ClientProbePlan{Plan: plan})
	}
	t := term.Table{Columns: []term.Column{{Name: "METHOD", Shorten: term.Name, Min: 12}, {Name: "PATH", Shorten: term.Middle, Min: 12}, {Name: "KIND"}, {Name: "PLANNED EDITS"}, {Name: "MESSAGES", Right: true, Drop: 1}, {Name: "VALUE", Shorten: term.End, Min: 12, Drop: 2}}}
	for i := range plan.Targets {
		x := &plan.Targets[i]
		ops := make([]string, len(x.Changes))
		for k, op := range x.Changes {
			ops[k] = string(op)
		}
		t.Rows = append(t.Rows, []string{x.Method, x.Path, x.Kind, strings.Join(ops, ", "), fmt.Sprint(x.Messages), x.Value})
	}
	if err := a.Out.Table(t); err != nil {
		return err
	}
	a.Say("probe-client would edit %s in %s of CMD, if CMD makes all recorded calls, and would repeat each run in which an edit has an effect; it runs CMD at most %d times in total. Because of --dry-run, it did not run CMD", app.Counted(len(plan.Targets), "field"), app.Counted(plan.Runs, "run"), plan.MaxRuns)
	saySkipped(a, plan.Skipped, plan.Warnings)
	return nil
}

// sayResult prints the verdict about each field: required, read, not read or untested. isolated means
// that the client could reach only the mock.
func sayResult(a *app.App, f probeFlags, argv []string, isolated bool, r *clientprobe.Result) error {
	if f.json {
		return a.Print(&contract.ClientProbe{Client: argv, Isolated: isolated, Result: r})
	}
	t := term.Table{Columns: []term.Column{{Name: "VERDICT"}, {Name: "METHOD", Shorten: term.Name, Min: 12}, {Name: "PATH", Shorten: term.Middle, Min: 8}, {Name: "KIND", Drop: 2}, {Name: "VALUE", Shorten: term.End, Min: 10, Drop: 1}, {Name: "EVIDENCE", Shorten: term.End, Min: 24}}}
	counts := map[clientprobe.Verdict]int{}
	typed := 0 // fields that are not read, but parsed
	for i := range r.Fields {
		x := &r.Fields[i]
		counts[x.Verdict]++
		if x.Typed {
			typed++
		}
		t.Rows = append(t.Rows, []string{string(x.Verdict), x.Method, x.Path, x.Kind, x.Value, evidence(x)})
	}
	if err := a.Out.Table(t); err != nil {
		return err
	}
	a.Say("%s required by CMD, %d read, %d not read, %d untested; probe-client ran CMD %s", app.Counted(counts[clientprobe.Required], "field"), counts[clientprobe.Read], counts[clientprobe.NotRead], counts[clientprobe.Untested], app.Counted(r.Runs, "time"))
	if typed > 0 {
		a.Say("CMD parses %s without using the value: only a value of another type (retype) has an effect", app.Counted(typed, "field"))
	}
	if b := r.Baseline; len(b.Volatile) > 0 {
		a.Say("the unedited runs differed in %s, which probe-client ignored in all runs; --json lists them", app.Counted(len(b.Volatile), "detail"))
	}
	for _, e := range r.Control {
		a.Say("as a control, probe-client added an unknown field to the answers. It had an effect on CMD (%s: %s), so the verdicts prove nothing", term.Clean(e.What), term.Clean(e.Text))
	}
	if len(r.Control) == 0 && r.Complete {
		a.Say("as a control, probe-client added an unknown field to the answers; it had no effect on CMD")
	}
	if r.Stopped != "" {
		a.Say("the probe stopped early: %s. To continue it later, use --journal FILE --resume", r.Stopped)
	}
	saySkipped(a, r.Skipped, r.Warnings)
	return nil
}

// evidence summarises, in one line, what the client did differently when a field was edited.
func evidence(f *clientprobe.Field) string {
	const most = 3
	var parts []string
	for i := range f.Evidence {
		e := &f.Evidence[i]
		switch texts := e.Texts(); {
		case e.Messages == 0:
			parts = append(parts, string(e.Change)+": probe-client sent no message with this field")
		case len(texts) == 0:
			parts = append(parts, string(e.Change)+": no effect")
		default:
			more := ""
			if len(texts) > most {
				texts, more = texts[:most], ", and "+app.Counted(len(texts)-most, "more difference")
			}
			parts = append(parts, string(e.Change)+": "+strings.Join(texts, ", ")+more)
		}
	}
	return strings.Join(parts, "; ")
}

// saySkipped prints the fields that were not edited, each with the reason, and warnings.
func saySkipped(a *app.App, skipped []clientprobe.SkippedField, warnings []string) {
	for _, s := range skipped {
		what := "field " + term.Clean(s.Path) + " is"
		if s.Path == "" {
			what = "some fields are"
		}
		a.Say("%s: %s not edited: %s", term.Clean(s.Method), what, s.Reason)
	}
	for _, w := range warnings {
		a.Say("unwire: warning: %s", w)
	}
}
