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
	"unwire/cmd/internal/render/replaytext"
	"unwire/replay/credential"
	"unwire/replay/outbound"
	"unwire/replay/standin"
	"unwire/replay/suite"
)

// suiteScript is the stand-in's script of a suite that has one of its own.
const suiteScript = "standin.json"

// suiteToken is what a suite sends to the stand-in that it started itself,
// which takes any.
const suiteToken = "a-token-that-the-stand-in-takes"

type suiteFlags struct {
	replayFlags
	capture, format string
	standin         bool
}

func suiteCommand(a *app.App) *cobra.Command {
	var f suiteFlags
	cmd := &cobra.Command{
		Use:   "suite DIR",
		Short: "Run a folder of experiments and check what each is expected to show",
		Long: `suite runs the experiments in DIR, files that end in ` + suite.Suffix + `, one by one in the order
of their names. Each says what to replay, with which edits, and what to expect:

  # Another prompt is echoed.
  capture turn.uwc
  exchange 2
  set run_request.action.user_message_action.user_message.text=Hello?
  expect verdict differs
  expect code ok
  expect differs @down 1.1.1
  expect same @down 1.14
  expect value 1.1.1~stand-in

The capture's path is relative to the file; a line 'after 1', or 'after auto', sends
other exchanges first, as --after does. Edits are as in a file for --patch.
differs and same take the path of a difference as replay prints it, or how it
begins; value takes a path in a message of the answer, = and its value or ~ and a
regular expression. None of the three is met by a request that got no answer.

With --learn the unedited request of each exchange is sent twice first, where that is
harmless, and what differs without an edit is no difference.

With --standin it starts the stand-in and sends everything there: the script is
DIR/` + suiteScript + ` where there is one. The exit status is 1 where an expectation
was not met.`,
		Example: `  unwire replay suite experiments --standin
  unwire replay suite experiments --to https://127.0.0.1:9443 --upstream-ca ca.pem
  unwire replay suite experiments --standin --format junit > report.xml`,
		Args: app.ExactArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return runSuite(cmd.Context(), a, args[0], f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.standin, "standin", false, "start the stand-in and send everything there")
	flags.StringVar(&f.capture, "capture", "", "capture of the experiments that name none")
	flags.StringVar(&f.format, "format", "tap", "tap, table or junit")
	flags.StringVar(&f.To, "to", "", "URL to send to instead of where it was captured")
	flags.BoolVar(&f.learn, "learn", false, "first send each unedited request twice, and ignore what differs without the edit")
	f.liveFlags(cmd)
	flags.StringVarP(&f.out, "output", "o", "", "capture to which the answers are added")
	flags.StringVar(&f.proto, "proto", "", "folder of .proto files for names (default: those that a capture keeps, or the built-in ones)")
	flags.StringVar(&f.Credentials, "credentials", "", "file of secrets, NAME: value a line, mode 0600")
	flags.BoolVar(&f.OmitSecrets, "omit-secrets", false, "leave out headers whose secret is not given")
	f.headerFlag(cmd)
	f.trustFlags(cmd)
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "for each experiment")
	flags.BoolVar(&f.json, "json", false, "a JSON line an experiment")
	return cmd
}

func runSuite(ctx context.Context, a *app.App, dir string, f suiteFlags) (err error) {
	if !slices.Contains([]string{"tap", "table", "junit"}, f.format) {
		return app.Usagef("--format is tap, table or junit, not %q", f.format)
	}
	if f.standin && f.To != "" {
		return app.Usagef("--standin and --to both say where to send to")
	}
	files, err := suite.Files(dir)
	if err != nil {
		return err
	}
	opts, err := f.settings(ctx, a, capturesOf(files, f.capture)...)
	if err != nil {
		return err
	}
	end, err := f.openPace(&opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
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
	meter := a.ShowSteps(ctx, "sending", "experiment", len(files))
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

// suiteStatus is the exit status of a suite: 1 if an experiment failed.
func suiteStatus(lines []*contract.Experiment) error {
	if slices.ContainsFunc(lines, func(l *contract.Experiment) bool { return !l.OK }) {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

// saySuiteHints says, once for each reason, what to do where experiments got no
// answer that they expected.
func saySuiteHints(a *app.App, lines []*contract.Experiment) {
	said := map[outbound.Reason]bool{}
	for _, l := range lines {
		if l.OK || l.Result == nil || said[l.Result.Reason] {
			continue
		}
		said[l.Result.Reason] = true
		if hint := replaytext.Hint(l.Result.Reason, ""); hint != "" {
			a.Say("unwire: hint: %s", hint)
		}
	}
}

// suiteStandin starts the stand-in for a suite and has everything sent there.
func suiteStandin(a *app.App, dir string, opts *replaySettings, f suiteFlags) (stop func(), err error) {
	script, err := os.ReadFile(filepath.Join(dir, suiteScript))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return startStandin(a, script, opts, f.Credentials)
}

// startStandin starts the stand-in with a script, nil for its own, and has
// everything sent there.
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

// openStore opens a capture for a library that reads it.
func openStore(a *app.App, path string) (*store.Store, error) {
	c, err := a.OpenCapture(path)
	if err != nil {
		return nil, err
	}
	return c.Store, nil
}

// capturesOf are the captures of experiments. One that cannot be read is reported when it is
// run.
func capturesOf(files []string, capture string) []string {
	var all []string
	for _, file := range files {
		if _, name, err := suite.Read(file, capture); err == nil && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
