package replaycmd

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/options"
	"unwire/cmd/internal/render/replaytext"
	"unwire/replay/credential"
	"unwire/replay/outbound"
	"unwire/replay/standin"
	"unwire/replay/suite"
)

// suiteScript is the name of the file in a suite's folder that has the answers of the stand-in server.
const suiteScript = "standin.json"

// suiteToken is the token that a suite sends to the stand-in server that it has started, which accepts
// any token.
const suiteToken = "a-token-that-the-stand-in-takes"

// suiteFlags are the values of the flags of 'unwire replay suite'.
type suiteFlags struct {
	// replayFlags are the flags that suites have in common with replay.
	replayFlags

	// capture is the capture for experiments that do not name one.
	capture string

	// format is "tap", "table" or "junit".
	format string

	// standin starts the stand-in server, and sends all requests to it.
	standin bool
}

const suiteExamples = `  # Run all experiments in a folder, with a local imitation of the server
  unwire replay suite experiments --standin
  # Run them with your own server, whose certificate is from a private CA
  unwire replay suite experiments --to https://127.0.0.1:9443 --upstream-ca ca.pem
  # Write a report for a CI system
  unwire replay suite experiments --standin --format junit > report.xml`

// suiteCommand returns the command 'unwire replay suite', which runs the replay experiments in a folder.
func suiteCommand(a *app.App) *cobra.Command {
	var f suiteFlags
	cmd := &cobra.Command{
		Use:   "suite DIR",
		Short: "Run tests: send recorded requests, and check the answers of the server",
		Long: `suite runs experiments. Each experiment is a file that names a captured request,
edits of the request, and the expected answer. suite runs all files in DIR with the extension ` + suite.Suffix + `, in the
order of their names. This is an example of such a file:

  # Send exchange 2 of turn.uwc with another prompt: the answer contains the prompt.
  capture turn.uwc
  exchange 2
  set run_request.action.user_message_action.user_message.text=Hello?
  expect verdict differs
  expect code ok
  expect differs @down 1.1.1
  expect same @down 1.14
  expect value 1.1.1~stand-in

The path of the capture is relative to the folder of the experiment file. A line
'after 1' or 'after auto' sends other exchanges first, like the flag --after of 'unwire
replay'. A line such as 'set PATH=VALUE' edits the request, with the syntax of 'unwire replay
--patch'. 'expect differs' and 'expect same' are followed by the path of a field, or by
the beginning of a path, as replay prints it. 'expect value' is followed by a path in
the answer, and then by = and a value, or by ~ and a regular expression. If the server
does not answer, 'expect differs', 'expect same' and 'expect value' fail.

With --learn, suite first sends each unedited request twice, unless the request could
have side effects. suite then ignores the fields in which the two answers differ.

With --standin, suite starts the stand-in, and sends all requests to it. The stand-in is a
local server that imitates the API of an AI coding agent (see 'unwire standin'). If the
file DIR/` + suiteScript + ` exists, the stand-in takes its answers from this file. The exit status is 1 if an expectation fails.`,
		Example: suiteExamples,
		Args:    app.ExactArgs("DIR"),
		RunE:    func(cmd *cobra.Command, args []string) error { return runSuite(cmd.Context(), a, args[0], f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.standin, "standin", false, "start the local server of 'unwire standin', and send all requests to it")
	flags.StringVar(&f.capture, "default-capture", "", "capture for the experiments whose file has no line 'capture F.uwc'")
	options.Alias(flags, "capture", "default-capture")
	flags.StringVar(&f.format, "format", "tap", "format of the report: tap, table or junit")
	flags.StringVar(&f.To, "to", "", "URL of the server (default: the server in the capture)")
	flags.BoolVar(&f.learn, "learn", false, "first send each unedited request twice; then ignore differences in all fields in which the two answers differ")
	f.liveFlags(cmd)
	flags.StringVarP(&f.out, "output", "o", "", "write the sent requests and their answers to this capture file; if the file exists, append them")
	flags.StringVar(&f.proto, "proto", "", ".proto definitions, from which suite takes field names (default: the definitions in the capture, else the built-in definitions)")
	flags.StringVar(&f.Credentials, "credentials", "", app.CredentialsUsage())
	flags.BoolVar(&f.OmitSecrets, "omit-secrets", false, "if a secret is missing, send the request without the header that contained the secret")
	f.headerFlag(cmd)
	f.trustFlags(cmd)
	flags.DurationVar(&f.timeout, "max-time", time.Minute, "stop an experiment if all its requests together take longer than this time")
	options.Alias(flags, "timeout", "max-time")
	flags.BoolVar(&f.json, "json", false, "print one JSON object for each experiment file")
	return cmd
}

// runSuite executes 'unwire replay suite' for the folder dir.
func runSuite(ctx context.Context, a *app.App, dir string, f suiteFlags) (err error) {
	if !slices.Contains([]string{"tap", "table", "junit"}, f.format) {
		return app.Usagef("--format must be tap, table or junit, not %q", f.format)
	}
	if f.standin && f.To != "" {
		return app.Usagef("--standin and --to cannot be used together")
	}

	// Read all files first: a syntax error in one of them must not stop a suite in the middle.
	files, err := suite.Files(dir)
	if err != nil {
		return err
	}
	opts, err := f.settings(ctx, a, capturesOf(files, f.capture)...)
	if err != nil {
		return err
	}

	// The pace and the journal are shared by all experiments.
	end, err := f.openPace(&opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()

	// The stand-in belongs to this run, and ends with it.
	if f.standin {
		stop, err := suiteStandin(a, dir, &opts, f)
		if err != nil {
			return err
		}
		defer stop()
	}
	var answers *store.Store
	if f.out != "" {
		if answers, err = store.Create(f.out, a.IndexedWhenClosed(store.Options{})); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, answers.Close()) }()
	}

	// Text output needs all results for its table; JSON is printed as results arrive.
	meter := a.ShowSteps(ctx, "running", "experiment", len(files))
	defer meter.Stop()
	lines := make([]*contract.Experiment, 0, len(files))
	err = suite.Run(ctx, files, suite.Options{
		Changes: opts.Changes, Replay: opts.Options, Capture: f.capture, Open: func(path string) (*store.Store, error) { return openStore(a, path) }, Learn: f.learn, Answers: answers,
	}, func(o *suite.Outcome) error {
		line := contract.NewExperiment(o, replaytext.Failures(o))
		lines = append(lines, line)
		meter.Step()
		if f.json {
			return a.Print(line)
		}
		return nil
	})
	// A failed expectation is no error of the run; it only sets the exit status.
	if err != nil {
		return err
	}
	if !f.json {
		if err := replaytext.Suite(a.Out, lines, f.format); err != nil {
			return err
		}
	}
	saySuiteHints(a, lines)
	return suiteStatus(lines)
}

// suiteStatus returns the error with exit status 1 if an experiment failed; otherwise nil.
func suiteStatus(lines []*contract.Experiment) error {
	if slices.ContainsFunc(lines, func(l *contract.Experiment) bool { return !l.OK }) {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

// saySuiteHints prints one hint for each reason for which experiments did not get the expected
// response.
func saySuiteHints(a *app.App, lines []*contract.Experiment) {
	said := map[outbound.Reason]bool{}
	for _, l := range lines {
		if l.OK || l.Result == nil || said[l.Result.Reason] {
			continue
		}
		said[l.Result.Reason] = true
		if hint := replaytext.Hint(l.Result.Reason, l.Result.Message, ""); hint != "" {
			a.Say("unwire: hint: %s", hint)
		}
	}
}

// suiteStandin starts the stand-in server with the script in the suite's folder, and makes opts send all
// requests to it. stop ends the server.
func suiteStandin(a *app.App, dir string, opts *replaySettings, f suiteFlags) (stop func(), err error) {
	script, err := a.ReadInput(filepath.Join(dir, suiteScript))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return startStandin(a, script, opts, f.Credentials)
}

// startStandin starts a stand-in server, and makes opts send all requests to it, without the user's
// secrets. script is the JSON script of its answers; nil selects the built-in script. credentials is the
// value of --credentials.
func startStandin(a *app.App, script []byte, opts *replaySettings, credentials string) (stop func(), err error) {
	srv, err := standin.New(standin.Options{Script: script})
	if err != nil {
		return nil, err
	}
	ln, err := srv.Listen("127.0.0.1:0")
	if err != nil {
		a.Shutdown(srv.Shutdown)
		return nil, err
	}
	// it ends with stop, and what it served by then has failed
	go func() { _ = srv.Serve(ln) }()
	stop = func() { a.Shutdown(srv.Shutdown) }
	if opts.To, err = url.Parse(srv.URL()); err == nil {
		opts.Roots, err = app.UpstreamRoots(srv.CAFile)
	}
	if err == nil {
		opts.OmitSecrets = true
		// No secret of the user goes to a server that takes any.
		opts.Credentials, err = credential.Resolver{Getenv: func(name string) string {
			return map[string]string{credential.EnvToken: suiteToken}[name]
		}}.Load("file:" + credentials)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// openStore opens a capture file, and returns the low-level store that package suite needs.
func openStore(a *app.App, path string) (*store.Store, error) {
	c, err := a.OpenCapture(path)
	if err != nil {
		return nil, err
	}
	return c.Store, nil
}

// capturesOf returns the captures that experiments use, each once. capture is the default. Experiments
// that cannot be read are skipped; running them reports the error.
func capturesOf(files []string, capture string) []string {
	var all []string
	for _, file := range files {
		if _, name, err := suite.Read(file, capture); err == nil && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
