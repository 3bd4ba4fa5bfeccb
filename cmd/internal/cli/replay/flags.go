package replaycmd

import (
	"math"
	"time"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/options"
	"unwire/replay/credential"
	"unwire/replay/edit"
	"unwire/replay/live"
	"unwire/replay/outbound"
)

// editFlags adds the flags that edit the request.
func (f *replayFlags) editFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(&editFlag{"set", "PATH[:KIND]=VALUE", &f.edits}, "set", "set a field of the request to a value")
	flags.Var(&editFlag{"add", "PATH:KIND=VALUE", &f.edits}, "add", "add a field to the request")
	flags.Var(&editFlag{"del", "PATH", &f.edits}, "del", "delete a field of the request")
	flags.Var(&editFlag{"retype", "PATH:KIND", &f.edits}, "retype", "change the type of a field of the request, keeping its value")
	flags.Var(&editFlag{"set-raw", "PATH=HEX", &f.edits}, "set-raw", "replace the encoded bytes of a field's value by these bytes, without validation")
	options.Alias(flags, "raw", "set-raw")
	flags.StringVar(&f.proto, "proto", "", "definitions for field names in paths (default: the definitions in the capture, or the built-in ones)")
	flags.StringVar(&f.codec, "codec", "", "send the request in this codec, json or proto, converted by means of the definitions")
	flags.StringVar(&f.jsonBody, "json-body", "", "with --codec json: file with the JSON message to send, if no definitions describe the request")
	flags.Var(&answerFlag{&f.answers}, "answer", "[@FRAME ]PATH=@down/[FRAME/]PATH: in client frames, set the first PATH to the value that the live server sends at the second PATH, such as an ID")
	flags.Var(&patchFlag{&f.edits}, "patch", "file of edits to apply, one per line, such as 'set 1.2=x'")
	flags.StringVar(&f.edit, "edit", "", "open the client's first frame, or with --edit=@N its frame N (counted from 0), as text in $VISUAL or $EDITOR")
	flags.Lookup("edit").NoOptDefVal = "first"
}

// firstFlags adds the flags about exchanges that are sent before the request itself.
func (f *replayFlags) firstFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.after, "after", nil, "numbers of exchanges to send first, so that this request uses the IDs in their live answers; auto detects these exchanges")
	flags.BoolVar(&f.learn, "learn", false, "first send the unedited request twice, and ignore all fields in which the two answers differ")
	flags.BoolVar(&f.refresh, "refresh", false, "first get a token for the API key ("+credential.EnvAPIKey+", or from --credentials); this takes one more request")
	flags.BoolVar(&f.agentHost, "agent-host", false, "for the built-in agent API, which has one host for each privacy mode: send the request to the host for the mode in its headers")
}

// credentialFlags adds the flags that choose the source of credentials.
func (f *replayFlags) credentialFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Credentials, "credentials", "", app.CredentialsUsage())
	flags.BoolVar(&f.OmitSecrets, "omit-secrets", false, "if a secret is missing, send the request without its header")
}

// resultFlags adds the flags about the output.
func (f *replayFlags) resultFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the request without sending it")
	flags.StringVarP(&f.out, "output", "o", "", "capture file to append the answer to")
	flags.DurationVar(&f.timeout, "max-time", time.Minute, "deadline of the whole replay, including all its requests")
	flags.BoolVar(&f.parts, "parts", false, "replay only this call, even if several calls form one stream")
	flags.BoolVar(&f.showIgnored, "show-ignored", false, "also list ignored differences")
	options.Alias(flags, "timeout", "max-time")
	options.Alias(flags, "all", "show-ignored")
	flags.BoolVar(&f.json, "json", false, "print the result (with --dry-run, the plan) as JSON")
}

// headerFlag adds --header-from, which computes the value of a header.
func (f *replayFlags) headerFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.headerFrom, "header-from", nil, "NAME=COMMAND: set the header NAME to the output of COMMAND, which gets the captured value on stdin; NAME= keeps the captured value")
}

// trustFlags adds the flags about the verification of the server's certificate.
func (f *replayFlags) trustFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file of additional CAs to trust for the server")
	cmd.Flags().BoolVar(&f.Insecure, "upstream-insecure", false, "do not verify the server's certificate; the recorded answer is marked as unverified")
}

// liveFlags adds the flags that allow and limit requests to other hosts.
func (f *replayFlags) liveFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.Live, "live", false, "allow requests to the other machines that --allow-host names")
	flags.StringSliceVar(&f.Allow, "allow-host", nil, "with --live: host, or host:port, to which requests may go")
	flags.IntVar(&f.budget, "live-budget", 20, "maximum number of requests to other machines")
	flags.Float64Var(&f.rate, "rate", 0, "maximum number of requests per second, not above 1 to other machines (default: 1 to other machines, unlimited to this machine)")
	flags.StringVar(&f.journal, "journal", "", "file to which replay appends every request and answer")
	flags.DurationVar(&f.every, "every", time.Second, "with --live: minimum time between two requests, one second or more")
	options.Hide(flags, "every", "rate")
	options.Alias(flags, "budget", "live-budget")
}

// pace returns the limits on the rate and number of requests, from --rate, --live-budget and the older
// --every, which applies to other machines only.
func (f *replayFlags) pace() (*outbound.Pace, error) {
	switch {
	case f.budget < 1:
		return nil, app.Usagef("--live-budget must be 1 or more")
	case f.every < time.Second:
		return nil, app.Usagef("--every must be 1s or more")
	case f.rate < 0 || math.IsNaN(f.rate):
		return nil, app.Usagef("--rate must be greater than 0 requests per second")
	case f.Live && f.rate > 1:
		return nil, app.Usagef("--rate %g is too high: at most 1 request per second may go to other machines", f.rate)
	}
	p := &outbound.Pace{Interval: f.every, Budget: f.budget}
	if f.rate > 0 {
		p.LocalInterval = time.Duration(float64(time.Second) / f.rate)
		p.Interval = max(p.LocalInterval, time.Second)
	}
	return p, nil
}

// openPace sets in opts the limits on requests, and opens the journal that records all requests, if there
// is one. stop closes the journal.
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

// An answerFlag is the flag --answer: it maps by hand an identifier in the request to the field of the
// live response that replaces it.
type answerFlag struct {
	// answers is the list that the flag appends to.
	answers *[]live.Answer
}

// String returns "": the flag has no default value.
func (f *answerFlag) String() string { return "" }

// Type returns the form of the value for help.
func (f *answerFlag) Type() string { return "PATH=@down/PATH" }

// Set parses one value of the flag, and appends it to the list.
func (f *answerFlag) Set(text string) error {
	a, err := live.ParseAnswer(text)
	if err != nil {
		return err
	}
	*f.answers = append(*f.answers, a)
	return nil
}

// An editFlag is one of the flags that edit the request. All of them append to the same list, so that the
// order on the command line counts.
type editFlag struct {
	// op is the kind of edit, such as "set".
	op string

	// usage is the form of the value, for the help text.
	usage string

	// edits is the list that the flag appends to.
	edits *[]edit.Edit
}

// String returns "": the flag has no default value.
func (e *editFlag) String() string { return "" }

// Type returns the form of the value for help.
func (e *editFlag) Type() string { return e.usage }

// Set parses one value of the flag, and appends it to the list.
func (e *editFlag) Set(text string) error {
	parsed, err := edit.Parse(e.op, text)
	if err != nil {
		return err
	}
	*e.edits = append(*e.edits, parsed)
	return nil
}
