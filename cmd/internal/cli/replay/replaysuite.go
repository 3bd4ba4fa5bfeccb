package replaycmd

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
	"unwire/replay"
	"unwire/replay/credential"
	"unwire/replay/outbound"
	"unwire/replay/standin"
)

// experimentSuffix is how the files of a suite are called.
const experimentSuffix = ".replay"

// suiteScript is the stand-in's script of a suite that has one of its own.
const suiteScript = "standin.json"

// suiteToken is what a suite sends to the stand-in that it started itself,
// which takes any.
const suiteToken = "a-token-that-the-stand-in-takes"

type suiteFlags struct {
	ReplayFlags
	capture, format string
	standin         bool

	lessons map[string]lesson // learnt so far, by capture and exchange
}

// A lesson is what the unedited request of an exchange taught, or why it did not.
type lesson struct {
	*replay.Lesson
	err error
}

func replaySuiteCommand(a *app.App) *cobra.Command {
	var f suiteFlags
	cmd := &cobra.Command{
		Use:   "suite DIR",
		Short: "Run a folder of experiments and check what each is expected to show",
		Long: `suite runs the experiments in DIR, files that end in ` + experimentSuffix + `, one by one in the order
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
		RunE: func(cmd *cobra.Command, args []string) error { return replaySuite(cmd.Context(), a, args[0], f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.standin, "standin", false, "start the stand-in and send everything there")
	flags.StringVar(&f.capture, "capture", "", "capture of the experiments that name none")
	flags.StringVar(&f.format, "format", "tap", "tap, table or junit")
	flags.StringVar(&f.To, "to", "", "URL to send to instead of where it was captured")
	flags.BoolVar(&f.learn, "learn", false, "first send each unedited request twice, and ignore what differs without the edit")
	f.liveFlags(cmd)
	flags.StringVarP(&f.out, "output", "o", "", "capture to which the answers are added")
	flags.StringVar(&f.proto, "proto", "", "folder of .proto files for names (default: the built-in ones)")
	flags.StringVar(&f.Credentials, "credentials", "", "file of secrets, NAME: value a line, mode 0600")
	flags.BoolVar(&f.OmitSecrets, "omit-secrets", false, "leave out headers whose secret is not given")
	f.headerFlag(cmd)
	f.trustFlags(cmd)
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "for each experiment")
	flags.BoolVar(&f.json, "json", false, "a JSON line an experiment")
	return cmd
}

func replaySuite(ctx context.Context, a *app.App, dir string, f suiteFlags) (err error) {
	if !slices.Contains([]string{"tap", "table", "junit"}, f.format) {
		return app.Usagef("--format is tap, table or junit, not %q", f.format)
	}
	if f.standin && f.To != "" {
		return app.Usagef("--standin and --to both say where to send to")
	}
	files, err := ExperimentFiles(dir)
	if err != nil {
		return err
	}
	f.lessons = map[string]lesson{}
	opts, err := f.Options(ctx)
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
	lines := make([]contract.Experiment, 0, len(files))
	for _, file := range files {
		line := runExperiment(ctx, file, f, opts, answers)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		lines = append(lines, line)
		if f.json {
			if err := a.Print(&line); err != nil {
				return err
			}
		}
	}
	if !f.json {
		if err := printSuite(a, lines, f.format); err != nil {
			return err
		}
	}
	saySuiteHints(a, lines)
	if slices.ContainsFunc(lines, func(l contract.Experiment) bool { return !l.OK }) {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

// saySuiteHints says, once for each reason, what to do where experiments got no
// answer that they expected.
func saySuiteHints(a *app.App, lines []contract.Experiment) {
	said := map[outbound.Reason]bool{}
	for _, l := range lines {
		if l.OK || l.Result == nil || said[l.Result.Reason] {
			continue
		}
		said[l.Result.Reason] = true
		if hint := ResultHint(l.Result.Reason, ""); hint != "" {
			a.Say("unwire: hint: %s", hint)
		}
	}
}

// suiteStandin starts the stand-in for a suite and has everything sent there.
func suiteStandin(a *app.App, dir string, opts *ReplaySettings, f suiteFlags) (stop func(), err error) {
	script, err := os.ReadFile(filepath.Join(dir, suiteScript))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return startStandin(a, script, opts, f.Credentials)
}

// startStandin starts the stand-in with a script, nil for its own, and has
// everything sent there.
func startStandin(a *app.App, script []byte, opts *ReplaySettings, credentials string) (stop func(), err error) {
	srv, err := standin.New(standin.Options{Script: script})
	if err != nil {
		return nil, err
	}
	ln, err := srv.Listen("127.0.0.1:0")
	if err != nil {
		ShutdownStandin(a, srv)
		return nil, err
	}
	// it ends with stop, and what it served by then has failed
	go func() { _ = srv.Serve(ln) }()
	stop = func() { ShutdownStandin(a, srv) }
	if opts.To, err = url.Parse(srv.URL()); err == nil {
		opts.Roots, err = app.UpstreamRoots(srv.CAFile())
	}
	if err == nil {
		opts.OmitSecrets = true
		// No secret of the user goes to a server that takes any.
		opts.Credentials, err = credential.Load(credentials, func(name string) string {
			return map[string]string{credential.EnvToken: suiteToken}[name]
		})
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

func runExperiment(ctx context.Context, file string, f suiteFlags, opts ReplaySettings, answers *store.Store) contract.Experiment {
	start := time.Now()
	line := contract.Experiment{File: filepath.Base(file), Failed: []string{}}
	x, result, err := sendExperiment(ctx, file, f, opts, answers)
	line.Duration = float64(time.Since(start).Microseconds()) / 1000
	if x != nil {
		line.About = x.About
	}
	if err != nil {
		line.Failed = append(line.Failed, err.Error())
		return line
	}
	line.Result = &contract.ReplayResult{Result: result}
	line.Failed = append(line.Failed, x.Check(result)...)
	line.OK = len(line.Failed) == 0
	return line
}

func sendExperiment(ctx context.Context, file string, f suiteFlags, opts ReplaySettings, answers *store.Store) (*replay.Experiment, *replay.Result, error) {
	x, path, err := ReadExperiment(file, f.capture)
	if err != nil {
		return x, nil, err
	}
	store, err := app.OpenCapture(path)
	if err != nil {
		return x, nil, err
	}
	defer store.Close()
	first, err := firstExchanges(ctx, store, x.Exchange, x.After)
	if err != nil {
		return x, nil, err
	}
	err = replayFirst(ctx, store, first, &opts, func(n int64, plan *replay.Plan) error {
		result, err := plan.Send(ctx, answers)
		if err == nil && !result.Comparison.Answered() {
			err = fmt.Errorf("exchange %d, sent first: %s", n, ComparisonLine(result))
		}
		if err == nil {
			result.LearnIDs(opts.Issued)
		}
		return err
	})
	if err != nil {
		return x, nil, err
	}
	if f.learn {
		if opts.Lesson, err = f.lesson(ctx, store, path, x.Exchange, opts); err != nil {
			return x, nil, err
		}
	}
	opts.Edits = x.Edits
	plan, err := opts.Plan(ctx, store, x.Exchange)
	if err != nil {
		return x, nil, err
	}
	result, err := plan.Send(ctx, answers)
	return x, result, err
}

// ReadExperiment reads an experiment and says which capture it is of: that of
// the suite where it names none.
func ReadExperiment(file, suite string) (x *replay.Experiment, capture string, err error) {
	r, err := os.Open(file)
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	if x, err = replay.ReadExperiment(r); err != nil {
		return nil, "", err
	}
	capture = suite
	if x.Capture != "" {
		if capture = filepath.FromSlash(x.Capture); !filepath.IsAbs(capture) {
			capture = filepath.Join(filepath.Dir(file), capture)
		}
	}
	if capture == "" {
		return x, "", errors.New("it names no capture, and --capture is not given")
	}
	return x, capture, nil
}

// ExperimentFiles lists the experiments of a folder, in the order of their names.
func ExperimentFiles(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+experimentSuffix))
	if err == nil && len(files) == 0 {
		_, err = os.ReadDir(dir)
		err = errors.Join(err, fmt.Errorf("%s has no file that ends in %s", dir, experimentSuffix))
	}
	return files, err
}

// lesson is what the unedited request of an exchange teaches; it is sent for the
// first experiment that needs it.
func (f *suiteFlags) lesson(ctx context.Context, store *store.Store, path string, id int64, opts ReplaySettings) (*replay.Lesson, error) {
	key := fmt.Sprintf("%s#%d", filepath.Clean(path), id)
	l, ok := f.lessons[key]
	if !ok {
		var request *replay.Request
		if request, l.err = replay.NewRequest(ctx, store, id, opts.Changes); l.err == nil {
			l.Lesson, l.err = replay.Learn(ctx, request, opts.Options, nil)
		}
		f.lessons[key] = l
	}
	return l.Lesson, l.err
}

func printSuite(a *app.App, lines []contract.Experiment, format string) error {
	switch format {
	case "table":
		var rows [][]string
		for _, l := range lines {
			comparison, state := "", "ok"
			if l.Result != nil {
				comparison = string(l.Result.Comparison)
			}
			if !l.OK {
				state = "not ok"
			}
			rows = append(rows, []string{l.File, state, comparison, fmt.Sprintf("%.0f", l.Duration), term.Clean(strings.Join(append(l.Failed, l.About), "; "))})
		}
		return a.Out.Wide([]string{"EXPERIMENT", "STATE", "VERDICT", "MS", "WHAT"}, rows)
	case "junit":
		return printJUnit(a, lines)
	}
	fmt.Fprintf(a.Out, "TAP version 14\n1..%d\n", len(lines))
	for i, l := range lines {
		state := "ok"
		if !l.OK {
			state = "not ok"
		}
		fmt.Fprintf(a.Out, "%s %d - %s\n", state, i+1, term.Clean(strings.TrimSuffix(l.File+": "+l.About, ": ")))
		for _, why := range l.Failed {
			fmt.Fprintf(a.Out, "  # %s\n", term.Clean(strings.ReplaceAll(why, "\n", " ")))
		}
	}
	return nil
}

// Elements of a report as JUnit writes it.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Seconds string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

func printJUnit(a *app.App, lines []contract.Experiment) error {
	suite := junitSuite{Name: "unwire replay suite", Tests: len(lines)}
	for _, l := range lines {
		c := junitCase{Class: "unwire.replay", Name: strings.TrimSuffix(l.File+": "+l.About, ": "), Seconds: fmt.Sprintf("%.3f", l.Duration/1000)}
		if !l.OK {
			suite.Failures++
			c.Failure = &junitFailure{Message: l.Failed[0], Text: strings.Join(l.Failed, "\n")}
		}
		suite.Cases = append(suite.Cases, c)
	}
	b, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "%s%s\n", xml.Header, b)
	return err
}
