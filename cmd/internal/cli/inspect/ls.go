package inspect

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/render/capturetext"
	"unwire/cmd/internal/render/exchangeline"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/filter"
	"unwire/schema"
)

// lsFlags are the values of the flags of 'unwire ls'.
type lsFlags struct {
	// filter selects exchanges; "" for all.
	filter string

	// sort is the name of the sort order; "" for the order in which exchanges were recorded.
	sort string

	// follow prints exchanges as they end.
	follow bool

	// json prints JSON Lines.
	json bool

	// proto names the definitions for filters that depend on message types.
	proto string
}

// lsCommand returns the command 'unwire ls'.
func lsCommand(a *app.App) *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:   "ls F.uwc…",
		Short: "List the exchanges of captures",
		Long: `ls lists the exchanges of captures (files with recorded traffic), ordered by
start time. An exchange is one request with its answer. If you give several captures,
each line contains the name of the capture. On a terminal, ↑ marks the number of bytes
that the client sent, and ↓ the number of bytes that the server sent.

` + filterHelp + `

ls --follow first lists the finished exchanges. While the recording continues, ls then
prints each exchange when it ends, until you interrupt ls.`,
		Example: `  # List all exchanges
  unwire ls F.uwc
  # List exchanges that failed or took longer than 2 seconds
  unwire ls --filter 'code:!ok or duration>2s' F.uwc
  # List calls of Run in which the server sent the text "rate limit"
  unwire ls --filter 'host:api.* method:Run dir:down text:"rate limit"' F.uwc
  # List the exchanges of two captures, the slowest first
  unwire ls --sort -duration F.uwc G.uwc
  # Also list each further exchange when it ends
  unwire ls --follow F.uwc
  # Print the URLs of exchanges that failed
  unwire ls --json F.uwc | jq -r 'select(.code!="ok") | .url'`,
		Args: cobra.MinimumNArgs(0),
		RunE: func(cmd *cobra.Command, args []string) error { return ls(cmd.Context(), a, f, args) },
	}
	fl := cmd.Flags()
	filterFlag(a, cmd, &f.filter)
	fl.StringVar(&f.sort, "sort", "", "sort the list by time, size, duration, code, host or method; a - before the word reverses the order, as in -duration")
	fl.BoolVar(&f.follow, "follow", false, "after the list, continue: print each further exchange when it ends, while the capture is being recorded")
	fl.BoolVar(&f.json, "json", false, "print one JSON object per exchange")
	fl.StringVar(&f.proto, "proto", "", ".proto definitions with the field names that --filter may use; the word none means no definitions (default: the first that exists of UNWIRE_PROTO, the definitions in the capture, unwire.yaml, and the built-in definitions)")
	return cmd
}

// ls executes 'unwire ls': it prints a table of the exchanges in captures.
func ls(ctx context.Context, a *app.App, f lsFlags, files []string) error {
	if len(files) == 0 {
		return app.Fail(app.ExitUsage, errors.New("unwire ls: missing argument F.uwc"), "usage: unwire ls F.uwc…")
	}

	// Check the filter and the order before any file is read.
	selected, err := parseFilter(f.filter)
	if err != nil {
		return err
	}
	order, err := render.ParseOrder(f.sort)
	if err != nil {
		return app.Usagef("--sort %w", err)
	}
	if f.follow {
		switch {
		case f.sort != "":
			return app.Usagef("--follow and --sort cannot be used together: --follow prints exchanges as they end")
		case len(files) > 1:
			return app.Usagef("--follow needs exactly one capture, not %d", len(files))
		}
		return followList(ctx, a, f, files[0], selected)
	}

	// Terms about frames read the bodies, which takes long in a large capture.
	if selected.Needs()&filter.Frames != 0 {
		counted, meter := a.ShowProgress(ctx, "searching", files...)
		defer meter.Stop()
		ctx = counted
	}

	// A damaged capture is listed as far as it can be read; the error is reported at the end.
	var lines []*contract.Exchange
	var damage error
	for _, file := range files {
		found, err := listFile(ctx, a, f, file, selected)
		if found == nil && err != nil && (len(files) == 1 || !errors.Is(err, captures.ErrDamaged)) {
			return err
		}
		damage = cmp.Or(damage, err)

		// With several captures, each line names its file, and all lines are sorted together.
		if len(files) > 1 {
			for _, l := range found {
				l.File = file
			}
		}
		lines = append(lines, found...)
	}
	order.Sort(lines)
	if err := printList(a, lines, f.json); err != nil {
		return err
	}
	if len(lines) == 0 && damage == nil {
		if f.filter != "" {
			a.Say("unwire: no exchange matches %s", f.filter)
		} else {
			a.Say("unwire: %s: no exchange was recorded", term.Clean(strings.Join(files, ", ")))
		}
	}
	return damage
}

// listFile returns the exchanges of a capture that the filter selects. For a damaged capture, it returns
// those that can be read, and the damage as the error.
func listFile(ctx context.Context, a *app.App, f lsFlags, file string, selected *filter.Filter) ([]*contract.Exchange, error) {
	defs, err := filterDefinitions(ctx, a, selected, f.proto, file)
	if err != nil {
		return nil, err
	}
	capture, err := a.OpenCapture(file)
	if err != nil {
		return nil, err
	}
	defer capture.Close()
	return capture.ExchangeLines(ctx, selected, defs)
}

// printList prints exchanges as a table or as JSON Lines.
func printList(a *app.App, lines []*contract.Exchange, asJSON bool) error {
	if asJSON {
		w := bufio.NewWriterSize(a.Out, 64<<10)
		e := contract.NewEncoder(w)
		for _, l := range lines {
			if err := e.Encode(l); err != nil {
				return err
			}
		}
		return w.Flush()
	}
	if err := render.Exchanges(a.Out, lines); err != nil {
		return err
	}
	if reason, remedy := capturetext.FirstFailure(lines); remedy != "" {
		a.Say("unwire: %s", reason)
		a.Say("unwire: hint: %s", remedy)
	}
	return nil
}

// followList executes 'unwire ls --follow': it prints the exchanges that the filter selects, each when it
// ends.
func followList(ctx context.Context, a *app.App, f lsFlags, file string, selected *filter.Filter) error {
	var capture *query.Capture
	var defs *schema.Schema
	lines := exchangeline.NewPrinter(a.Out)

	// Frames are counted while they arrive, because a listing needs their number.
	frames := map[int64]*[2]int{}
	w := decode.Watcher{
		NoTrees: true,
		Frame: func(ex *captures.Exchange, _ decode.Call, fr *decode.Frame) error {
			n := frames[ex.ID]
			if n == nil {
				n = new([2]int)
				frames[ex.ID] = n
			}
			n[fr.Dir&1]++
			return nil
		},
		Ended: func(ex *captures.Exchange, s *decode.Stream) error {
			l := conversation.Listed{Exchange: ex, Call: s.Call()}
			l.Code, _ = s.Status()
			if n := frames[ex.ID]; n != nil {
				l.FramesUp, l.FramesDown = n[captures.Up], n[captures.Down]
				delete(frames, ex.ID)
			}
			ok, err := capture.Selects(ctx, selected, defs, &l)
			if err != nil || !ok {
				return err
			}
			return printEnded(a, lines, contract.NewExchange(&l, nil), f.json)
		},
	}

	// The capture is open only once watching starts, so filters are prepared here.
	return watch(ctx, a, query.Address{File: file, Frame: -1}, func(c *query.Capture) decode.Watcher {
		capture = c
		var err error
		if defs, err = filterDefinitions(ctx, a, selected, f.proto, file); err != nil {
			w.Ended = func(*captures.Exchange, *decode.Stream) error { return err }
		}
		return w
	})
}

// printEnded prints one exchange that has ended, as a line of text or as JSON.
func printEnded(a *app.App, lines *exchangeline.Printer, l *contract.Exchange, asJSON bool) error {
	if asJSON {
		return a.Print(l)
	}
	a.Err.Sayf("%s", lines.Heading())
	_, err := a.Out.Write([]byte(lines.Line(l, a.Out.Width) + "\n"))
	return err
}

// filterHelp explains --filter.
const filterHelp = `--filter selects exchanges by one or more conditions. ls lists an
exchange if it matches all conditions; you can also combine conditions with and, or, not
and parentheses. A condition is a key, such as host, and a value. In a value, * matches
any text, and ? matches one character. A ! before the value excludes the exchanges that
have this value. These are examples of all kinds of conditions:

  host:api.*          the URL has this host
  method:Run          the RPC method is Run; also Service/Run or package.Service/Run
  code:!ok            the call failed: its result is not ok; code:not_found selects one error code
  status>=400         the HTTP status is at least 400

  size>1KB            the two bodies together are larger than 1,000 bytes; up>1KB is a condition
                      for the request's body, down>1KB for the answer's body
  duration>2s         the exchange took longer than 2 seconds
  started>-10m        the exchange started within the last 10 minutes
  protocol:grpc       the protocol is grpc; others are connect, grpc-web, sse, http, websocket,
                      tcp, tls
  client:node         the client's program, product or address is node
  header:x-id=7       a header or trailer has this name and value
  is:failed           the exchange failed; also is:open (not ended yet), is:edited (changed by
                      rules) and others
  note:x              you wrote a note with the text x ('unwire note'); mark:star selects a mark
  text:"rate limit"   a message contains this text
  path:1.7="x*"       field 1.7 of a message has a value that begins with x
  type:shop.v1.Item   a message, or a message nested in it, has this type
  dir:down            a message came from the server; dir:up is for messages of the client

The last four conditions are about messages: if you combine them, one message of the
exchange must match all of them. A word without a key, such as timeout, selects the
exchanges with a message that contains this word. Shell completion ('unwire completion
--help') completes all keys.`

// filterFlag adds the flag --filter to a command; its value is stored in to.
func filterFlag(a *app.App, cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "filter", "", "process only the exchanges (requests with their answers) that match these conditions, such as 'host:api.* code:!ok'; 'unwire ls --help' explains the conditions")
	err := cmd.RegisterFlagCompletionFunc("filter", func(_ *cobra.Command, args []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completeFilter(a.Ctx, a, args, text), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	if err != nil {
		panic(err) // the flag was added above
	}
}

// completionTime bounds the time for which a capture is read for completion.
const completionTime = time.Second

// completeFilter returns shell completions for the incomplete filter text. Values, such as hosts, are
// those in the captures that args name.
func completeFilter(ctx context.Context, a *app.App, args []string, text string) (list []cobra.Completion) {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	known := func(key string) []string {
		for _, name := range args {
			capture, err := a.OpenCapture(query.ParseAddress(name).File)
			if err != nil {
				continue // it may be the pattern of grep
			}
			defer capture.Close()
			return capture.FilterValues(ctx, key)
		}
		return nil
	}
	c, err := filter.Complete(text, len(text), known)
	if err != nil {
		return nil
	}
	for _, candidate := range c.Candidates {
		list = append(list, cobra.CompletionWithDesc(text[:c.From]+candidate.Text, candidate.About))
	}
	return list
}

// parseFilter parses the value of --filter.
func parseFilter(text string) (*filter.Filter, error) {
	f, err := filter.Parse(text, time.Now())
	if wrong, ok := errors.AsType[*filter.Error](err); ok {
		return nil, app.Fail(app.ExitUsage, fmt.Errorf("--filter: column %d: %s", wrong.Column, wrong.Text), "'unwire ls --help' explains the filter language")
	}
	return f, err
}

// filterDefinitions loads the definitions of a capture if the filter depends on message types; otherwise
// it returns nil.
func filterDefinitions(ctx context.Context, a *app.App, f *filter.Filter, proto, file string) (*schema.Schema, error) {
	if f.Needs()&filter.Types == 0 {
		return nil, nil
	}
	return a.LoadDefinitions(ctx, proto, file)
}
