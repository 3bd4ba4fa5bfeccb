package replaycmd

import (
	"math"
	"time"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/options"
	"unwire/replay/credential"
	"unwire/replay/edit"
	"unwire/replay/outbound"
)

// editFlags are those of what is changed in the request.
func (f *replayFlags) editFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(&editFlag{"set", "PATH[:KIND]=VALUE", &f.edits}, "set", "give a field another value")
	flags.Var(&editFlag{"add", "PATH:KIND=VALUE", &f.edits}, "add", "put in a field")
	flags.Var(&editFlag{"del", "PATH", &f.edits}, "del", "take out a field")
	flags.Var(&editFlag{"retype", "PATH:KIND", &f.edits}, "retype", "give a field the same value in another kind")
	flags.Var(&editFlag{"set-raw", "PATH=HEX", &f.edits}, "set-raw", "put bytes in place of a value, unchecked")
	options.Alias(flags, "raw", "set-raw")
	flags.StringVar(&f.proto, "proto", "", "folder of .proto files for names (default: those that the capture keeps, or the built-in ones)")
	flags.StringVar(&f.codec, "codec", "", "json or proto: the request in that codec, written anew by the definitions")
	flags.StringVar(&f.jsonBody, "json-body", "", "file to send in place of each message with --codec json, where no definitions know its type")
	flags.Var(&patchFlag{&f.edits}, "patch", "file of edits, one a line as in 'set 1.2=x'")
	flags.StringVar(&f.edit, "edit", "", "open a frame as text in $VISUAL or $EDITOR; --edit=@2 names one")
	flags.Lookup("edit").NoOptDefVal = "first"
}

// firstFlags are those of what is sent before the request.
func (f *replayFlags) firstFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.after, "after", nil, "exchanges to send first, whose live ids go into this one: IDs, or auto for those that issued what it carries")
	flags.BoolVar(&f.learn, "learn", false, "first send the unedited request twice, and ignore what differs without the edit")
	flags.BoolVar(&f.refresh, "refresh", false, "exchange the API key ("+credential.EnvAPIKey+", or of --credentials) for a token first: one more request")
	flags.BoolVar(&f.agentHost, "agent-host", false, "send to the agent's host for the privacy mode that the request says")
}

// credentialFlags are those of where secrets come from.
func (f *replayFlags) credentialFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Credentials, "credentials", "", app.CredentialsUsage())
	flags.BoolVar(&f.OmitSecrets, "omit-secrets", false, "leave out headers whose secret is not given")
}

// resultFlags are those of what is shown and kept.
func (f *replayFlags) resultFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would be sent, and send nothing")
	flags.StringVarP(&f.out, "output", "o", "", "capture to which the answer is added")
	flags.DurationVar(&f.timeout, "max-time", time.Minute, "deadline of the replay, with all its requests")
	flags.BoolVar(&f.parts, "parts", false, "the call alone, where several calls are one stream")
	flags.BoolVar(&f.showIgnored, "show-ignored", false, "list ignored differences too")
	options.Alias(flags, "timeout", "max-time")
	options.Alias(flags, "all", "show-ignored")
	flags.BoolVar(&f.json, "json", false, "the result (with --dry-run, the plan) as JSON")
}

// headerFlag is that of headers whose value is made.
func (f *replayFlags) headerFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.headerFrom, "header-from", nil, "NAME=COMMAND: a header's value is what the command prints, given the captured one on stdin; NAME= as captured")
}

// trustFlags are those of how the server's certificate is verified.
func (f *replayFlags) trustFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file of further CAs to trust for the server")
	cmd.Flags().BoolVar(&f.Insecure, "upstream-insecure", false, "do not verify the server's certificate; the recorded answer says so")
}

// liveFlags are those of what may be sent to other hosts.
func (f *replayFlags) liveFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.Live, "live", false, "allow hosts other than this machine (see --allow-host)")
	flags.StringSliceVar(&f.Allow, "allow-host", nil, "host, or host:port, that --live may send to")
	flags.IntVar(&f.budget, "live-budget", 20, "send at most this many requests to other machines")
	flags.Float64Var(&f.rate, "rate", 0, "requests per second, at most 1 to another machine (default: 1 to another machine, no limit to this one)")
	flags.StringVar(&f.journal, "journal", "", "file to which every request and answer is added")
	flags.DurationVar(&f.every, "every", time.Second, "with --live: time between two requests, one second or more")
	options.Hide(flags, "every", "rate")
	options.Alias(flags, "budget", "live-budget")
}

// pace is how gently servers are asked. The old --every is about other machines only.
func (f *replayFlags) pace() (*outbound.Pace, error) {
	switch {
	case f.budget < 1:
		return nil, app.Usagef("--live-budget wants 1 or more")
	case f.every < time.Second:
		return nil, app.Usagef("--every wants 1s or more")
	case f.rate < 0 || math.IsNaN(f.rate):
		return nil, app.Usagef("--rate wants a number of requests per second above 0")
	case f.Live && f.rate > 1:
		return nil, app.Usagef("--rate: another machine gets at most 1 request per second, not %g", f.rate)
	}
	p := &outbound.Pace{Interval: f.every, Budget: f.budget}
	if f.rate > 0 {
		p.LocalInterval = time.Duration(float64(time.Second) / f.rate)
		p.Interval = max(p.LocalInterval, time.Second)
	}
	return p, nil
}

// openPace readies what keeps requests to other hosts few, and the journal of
// all; stop ends that.
func (f *replayFlags) openPace(opts *replaySettings) (stop func() error, err error) {
	stop = func() error { return nil }
	if opts.Pace, err = f.pace(); err != nil {
		return stop, err
	}
	if f.journal == "" || f.dryRun {
		return stop, nil
	}
	if opts.Pace.Journal, err = outbound.OpenJournal(f.journal); err != nil {
		return stop, err
	}
	return opts.Pace.Journal.Close, nil
}

// An editFlag collects edits of several flags in the order they were given.
type editFlag struct {
	op, usage string
	edits     *[]edit.Edit
}

func (e *editFlag) String() string { return "" }
func (e *editFlag) Type() string   { return e.usage }

func (e *editFlag) Set(text string) error {
	parsed, err := edit.Parse(e.op, text)
	if err != nil {
		return err
	}
	*e.edits = append(*e.edits, parsed)
	return nil
}
