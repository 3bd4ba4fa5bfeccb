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
	flags.Var(&editFlag{"set", "PATH[:KIND]=VALUE", &f.edits}, "set", "set the field at PATH of the request to VALUE")
	flags.Var(&editFlag{"add", "PATH:KIND=VALUE", &f.edits}, "add", "add a field of type KIND with VALUE to the request, at PATH")
	flags.Var(&editFlag{"del", "PATH", &f.edits}, "del", "delete the field at PATH of the request")
	flags.Var(&editFlag{"retype", "PATH:KIND", &f.edits}, "retype", "send the field at PATH of the request as type KIND, with the same value")
	flags.Var(&editFlag{"set-raw", "PATH=HEX", &f.edits}, "set-raw", "replace the encoded value of the field at PATH by these bytes; replay does not check whether they are valid")
	options.Alias(flags, "raw", "set-raw")
	flags.StringVar(&f.proto, "proto", "", ".proto definitions with the field names that you use in PATH (default: the definitions in the capture, else the built-in definitions)")
	flags.StringVar(&f.codec, "codec", "", "send the request as json or proto; replay converts the captured messages with the .proto definitions")
	flags.StringVar(&f.jsonBody, "json-body", "", "with --codec json: send the JSON message in this file; for requests that no definitions describe")
	flags.Var(&answerFlag{&f.answers}, "answer", "copy a value, such as an ID, from the server's new answer into the request: the first PATH is a field of the request, the second a field of the answer; to select messages by number, write '@FRAME PATH=@down/FRAME/PATH'")
	flags.Var(&patchFlag{&f.edits}, "patch", "apply the edits in this file; each line is one edit, such as 'set 1.2=x'")
	flags.StringVar(&f.edit, "edit", "", "open the first message of the client as text in $VISUAL or $EDITOR, and send the edited message; with --edit=@N, open the message N of the client instead (the first is 0)")
	flags.Lookup("edit").NoOptDefVal = "first"
}

// firstFlags adds the flags about exchanges that are sent before the request itself.
func (f *replayFlags) firstFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.after, "after", nil, "first send these exchanges (their numbers, such as 1,2) again, and use the IDs in their new answers in this request; with auto, replay finds the exchanges that issued the IDs")
	flags.BoolVar(&f.learn, "learn", false, "first send the unedited request twice; then ignore differences in all fields in which the two answers differ")
	flags.BoolVar(&f.refresh, "refresh", false, "first send a request that exchanges the API key for a token; the API key is in "+credential.EnvAPIKey+" or comes from --credentials")
	flags.BoolVar(&f.agentHost, "agent-host", false, "choose the server by the privacy setting in the request's headers; only for the AI agent API whose definitions are built into unwire, which has one host for users with privacy mode and one for other users")
}

// credentialFlags adds the flags that choose the source of credentials.
func (f *replayFlags) credentialFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Credentials, "credentials", "", app.CredentialsUsage())
	flags.BoolVar(&f.OmitSecrets, "omit-secrets", false, "if a secret is missing, send the request without the header that contained the secret")
}

// resultFlags adds the flags about the output.
func (f *replayFlags) resultFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the request without sending it")
	flags.StringVarP(&f.out, "output", "o", "", "write the sent request and its answer to this capture file; if the file exists, append them")
	flags.DurationVar(&f.timeout, "max-time", time.Minute, "stop the replay if all its requests together take longer than this time")
	flags.BoolVar(&f.parts, "parts", false, "if the client split one stream over several calls: send only this call again, not the whole stream")
	flags.BoolVar(&f.showIgnored, "show-ignored", false, "also list the differences that replay ignores")
	options.Alias(flags, "timeout", "max-time")
	options.Alias(flags, "all", "show-ignored")
	flags.BoolVar(&f.json, "json", false, "print the result as JSON; with --dry-run, print the request as JSON")
}

// headerFlag adds --header-from, which computes the value of a header.
func (f *replayFlags) headerFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.headerFrom, "header-from", nil, "run COMMAND, and send its output as the value of the header NAME; COMMAND reads the captured value from stdin; if COMMAND is empty (NAME=), send the captured value")
}

// trustFlags adds the flags about the verification of the server's certificate.
func (f *replayFlags) trustFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.UpstreamCA, "upstream-ca", "", "PEM file with the certificates of additional CAs that unwire trusts when it connects to the server")
	cmd.Flags().BoolVar(&f.Insecure, "upstream-insecure", false, "do not verify the server's certificate; the capture of -o marks the answer as unverified")
}

// liveFlags adds the flags that allow and limit requests to other hosts.
func (f *replayFlags) liveFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.Live, "live", false, "allow requests to other machines; --allow-host must name each machine")
	flags.StringSliceVar(&f.Allow, "allow-host", nil, "with --live: a host, HOST or HOST:PORT, to which unwire may send requests")
	flags.IntVar(&f.budget, "live-budget", 20, "send at most this many requests to other machines")
	flags.Float64Var(&f.rate, "rate", 0, "send at most this many requests per second; for other machines, at most 1 (default: 1 for other machines, no limit for this machine)")
	flags.StringVar(&f.journal, "journal", "", "append each request and each answer to this file")
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
