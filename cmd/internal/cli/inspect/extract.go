package inspect

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures/safetext"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/options"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/decode"
	"unwire/decode/transcript"
	"unwire/decode/transcript/follow"
	"unwire/schema"
)

// extractFlags are the values of the flags of 'unwire chat'.
type extractFlags struct {
	// json prints JSON Lines.
	json bool

	// empty also lists exchanges without a conversation.
	empty bool

	// parts treats each call separately.
	parts bool

	// follow prints answers while they are recorded.
	follow bool

	// top is the number of candidates that are printed for each exchange.
	top int

	// weights is the path of the weights file; "" for the default.
	weights string

	// labels is the path of the file to which --label appends.
	labels string

	// proto names definitions for error details; "" for the default.
	proto string

	// label are the values of --label: the role of the text at a path.
	label []string
}

// An extraction is the state of one run of `unwire chat`.
type extraction struct {
	// App gives access to the output streams and the settings of the program.
	*app.App
	// extractFlags are the values of the command's flags.
	extractFlags

	// options say how conversations are extracted.
	options query.TranscriptOptions

	// defs are the definitions of messages and error details; nil for none.
	defs *schema.Schema
}

const extractExamples = `  # Print the conversation in exchange 2
  unwire chat F.uwc 2
  # Print only the model's answers
  unwire chat --json F.uwc | jq -r .answer
  # Print answers while they are being recorded
  unwire chat --follow F.uwc
  # Correct two roles: 1.1.1 is an answer, and 2.1 of the client is a prompt
  unwire chat F.uwc 2 --label 1.1.1=assistant --label up/2.1=user
  # Compute new weights from the corrected roles, and use them
  unwire chat fit labels.jsonl -o weights.json && unwire chat --weights weights.json F.uwc`

// extractCommand returns the command 'unwire chat'.
func extractCommand(a *app.App) *cobra.Command {
	var f extractFlags
	cmd := &cobra.Command{
		Use:     "chat F.uwc [ID]",
		Aliases: []string{"extract"},
		Short:   "Find the chat conversation in an exchange: prompt, thinking, tool calls, answer",
		Long: `chat (formerly extract) finds conversations between a user and an AI model,
without a schema. Many servers send a text in pieces; chat joins the pieces of each
field. chat then estimates the role of each text: answer, thinking, tool call, tool
result, prompt, system prompt, metadata or ID. For each text, chat prints a score from 0
(the role is improbable) to 1, and the reasons for the score.

chat regards an exchange (a request with its answer) as a conversation only if the
exchange contains typical elements of a conversation: texts in pieces, names of roles,
lists of messages, names of models, token counts, or a question with one answer. With
--empty, or if you give the ID of an exchange, chat also lists the texts of exchanges
that do not contain a conversation.

For each conversation, chat prints the texts in order, the number of tokens that the
server reported, and the error with which the exchange ended. Then chat lists all texts
of the exchange with their scores (the candidates), the highest score first.

chat estimates a role from features of the text, such as its length. A weight says how
much a feature counts for a role. If chat printed a wrong role, give the path of the
text and its true role with --label. chat appends the path and the role to a labels
file. From this file, 'unwire chat fit' computes new weights, which you then give to
chat with --weights. 'unwire chat weights' prints the weights that chat uses by default.

If the name of a capture is also the name of a subcommand, such as fit, write the
capture as ./fit.`,
		Example: extractExamples,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(f.label) > 0 && len(args) == 0 {
				return nil // each label names its exchange
			}
			return app.ArgsBetween(1, "F.uwc", "ID")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return runExtract(cmd.Context(), a, args, f)
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object for each exchange")
	cmd.Flags().BoolVar(&f.follow, "follow", false, "print the model's answer while it is recorded, until the exchange ends; without an ID, until you interrupt chat")
	cmd.Flags().BoolVar(&f.parts, "parts", false, "if the client split one conversation over several calls: treat each call as a separate conversation")
	cmd.Flags().BoolVar(&f.empty, "empty", false, "also list the texts of exchanges that do not contain a conversation")
	options.Alias(cmd.Flags(), "all", "empty")
	cmd.Flags().IntVar(&f.top, "top", 8, "number of texts with their scores to print for each exchange; --json prints all texts")
	cmd.Flags().StringVar(&f.weights, "weights", "", "file with the weights by which chat estimates roles, written by 'unwire chat fit' (default: the file that unwire.yaml names, else the built-in weights)")
	cmd.Flags().StringArrayVar(&f.label, "label", nil, "correct the role of the text in the field PATH, such as 1.2=user; up/1.2=user corrects only a text that the client sent, and F.uwc#7=1.2=user also names the exchange; chat appends the correction to the file of --labels; the roles are "+transcript.RoleList())
	cmd.Flags().StringVar(&f.labels, "labels", "labels.jsonl", "file to which --label appends the true roles of texts")
	cmd.Flags().StringVar(&f.proto, "proto", "", ".proto definitions, from which chat takes field names; with the word none, chat prints only field numbers (default: field numbers; but for the details of errors, field names from the definitions in the capture, else from the built-in definitions)")
	cmd.AddCommand(extractFitCommand(a), extractWeightsCommand(a))
	return cmd
}

// runExtract executes 'unwire chat' with its arguments and flags.
func runExtract(ctx context.Context, a *app.App, args []string, f extractFlags) error {
	defer app.LimitMemory(app.WholeMemory)()
	if f.top < 1 {
		return app.Usagef("--top must be at least 1")
	}
	if f.follow && len(f.label) > 0 {
		return app.Usagef("--follow and --label cannot be used together: use --label when the exchange has ended")
	}
	e := &extraction{App: a, extractFlags: f, options: query.TranscriptOptions{Parts: f.parts}}
	var err error
	if e.options.Weights, err = a.LoadWeights(a.Weights(f.weights)); err != nil {
		return err
	}
	if len(f.label) > 0 {
		return e.addLabels(ctx, args)
	}
	if e.defs, err = a.LoadDefinitions(ctx, f.proto, args...); err != nil {
		return err
	}
	// The built-in definitions change no paths that labels and scripts refer to.
	if f.proto != "" && e.defs != nil {
		e.options.FrameType = e.defs.FrameType
	}
	addr, err := app.AddressArgs(args, true)
	if err != nil {
		return err
	}
	if f.follow {
		return e.followAnswers(ctx, addr)
	}
	return e.extract(ctx, addr)
}

// extract prints the conversations in a capture, or in the one exchange that an address names.
func (e *extraction) extract(ctx context.Context, at query.Address) error {
	c, err := e.OpenCapture(at.File)
	if err != nil {
		return err
	}
	defer c.Close()

	// A single exchange is printed even if it has no conversation.
	if at.Exchange != 0 {
		e.empty = true
		ex, tr, readErr := c.Transcript(ctx, at, e.options)
		if ex == nil {
			return readErr
		}
		if err := e.print(ex, tr); err != nil {
			return err
		}
		return undecoded(e.App, ex, readErr)
	}
	e.RemarkEmpty(ctx, c)

	// For a capture, an empty result needs an explanation.
	all, found := 0, 0
	err = c.EachTranscript(ctx, e.options, func(ex *decode.Exchange, tr *transcript.Transcript) error {
		if all++; tr.Found() {
			found++
		}
		if err := e.print(ex, tr); err != nil {
			return err
		}
		e.Remark(ex)
		return nil
	})
	if err == nil && all > 0 && found == 0 {
		e.Say("unwire: no conversation found in %s (%s)", app.Counted(all, "exchange"), e.whereToLook(at.File))
	}
	return err
}

// whereToLook returns a hint about what to do if no conversation was found in a file.
func (e *extraction) whereToLook(file string) string {
	word := safetext.ShellFile(file)
	if e.empty {
		return fmt.Sprintf("if one of these texts is an answer, give the path of its field: 'unwire chat %s ID --label PATH=assistant'; 'unwire show %s ID' prints the messages", word, word)
	}
	return fmt.Sprintf("'unwire chat --empty %s' lists the texts in them, 'unwire show %s ID' prints the messages of one", word, word)
}

// print prints the conversation of one exchange as text or JSON. Exchanges without a conversation are
// printed only with --empty or --json.
func (e *extraction) print(ex *decode.Exchange, tr *transcript.Transcript) error {
	line := contract.NewTranscript(ex.ID, tr, e.defs)
	if e.json {
		return e.Print(line)
	}
	if !tr.Found() && !e.empty {
		return nil
	}
	w := bufio.NewWriter(e.Out)
	render.Transcript(e.Out, w, ex, line, e.top)
	return w.Flush()
}

// followAnswers prints the answers of a language model while they are recorded.
func (e *extraction) followAnswers(ctx context.Context, at query.Address) error {
	c, err := awaitCapture(ctx, e.App, at.File)
	if err != nil {
		return err
	}
	defer c.Close()
	if at.Exchange != 0 {
		awaited, err := c.MayCome(ctx, at.Exchange)
		if err != nil {
			return err
		}
		if awaited {
			e.Say("unwire: waiting until exchange %d is recorded", at.Exchange)
		}
	}
	if e.json {
		return c.FollowAnswers(ctx, at.Exchange, e.options, e.printUpdate)
	}
	w := render.AnswerWriter{Out: e.Out, Err: e.Err}
	return c.FollowAnswers(ctx, at.Exchange, e.options, func(u *follow.Update, ended bool) error {
		if ended {
			return w.End(u)
		}
		return w.Update(u)
	})
}

// printUpdate prints, as JSON, the new part of an answer; ended means that the stream has ended, and also
// prints the whole transcript.
func (e *extraction) printUpdate(u *follow.Update, ended bool) error {
	if u.Changed {
		line := &contract.AnswerDelta{Event: "delta", Exchange: u.Exchange.ID, Delta: u.More}
		if u.Reset {
			line.Event = "reset"
		}
		if err := e.Print(line); err != nil {
			return err
		}
	}
	if !ended {
		return nil
	}
	return e.Print(contract.NewTranscript(u.Exchange.ID, u.Transcript, e.defs))
}

// parseLabel parses a value of --label, [F.uwc#ID=][up/|down/]PATH=ROLE; a colon may precede the role
// instead. If args is not empty, it names the exchange.
func parseLabel(s string, args []string) (query.Label, error) {
	bad := func(why string) (query.Label, error) {
		return query.Label{}, app.Fail(app.ExitUsage, fmt.Errorf("--label %q: %s", s, why), "examples: --label 1.1.1=assistant, --label up/2.1=user, or --label 'F.uwc#2=1.1.1=assistant'")
	}

	// The path may contain = in names, so cut at the last separator.
	cut := max(strings.LastIndexByte(s, '='), strings.LastIndexByte(s, ':'))
	if cut < 0 {
		return bad("the role is missing after =")
	}
	l := query.Label{Path: s[:cut]}
	var err error
	if l.Role, err = transcript.ParseRole(s[cut+1:]); err != nil {
		return bad(app.PlainText(err))
	}

	// Without arguments, the label itself names the exchange.
	if len(args) == 0 {
		file, path, ok := strings.Cut(l.Path, "=")
		if !ok {
			return bad("the number of the exchange is missing")
		}
		l.At, l.Path = query.ParseAddress(file), path
	} else if l.At, err = app.AddressArgs(args, false); err != nil {
		return l, err
	}
	if l.At.Exchange == 0 {
		return bad("the number of the exchange is missing")
	}
	for _, dir := range [...]string{"up", "down"} {
		if path, ok := strings.CutPrefix(l.Path, dir+"/"); ok {
			l.Dir, l.Path = dir, path
		}
	}
	return l, nil
}

// addLabels appends the labels of --label to the labels file. If one is invalid, it appends none. args
// may name the exchange.
func (e *extraction) addLabels(ctx context.Context, args []string) error {
	var lines []byte
	count := 0
	for _, s := range e.label {
		l, err := parseLabel(s, args)
		if err != nil {
			return err
		}
		more, n, err := e.labelLines(ctx, l)
		if err != nil {
			return err
		}
		lines = append(lines, more...)
		count += n
	}
	if err := app.AppendFile(e.labels, lines); err != nil {
		return err
	}
	e.Say("unwire: added %s to %s", app.Counted(count, "label"), e.labels)
	return nil
}

// labelLines returns the lines of the labels file for one label, one for each candidate text at its path,
// and their number.
func (e *extraction) labelLines(ctx context.Context, l query.Label) ([]byte, int, error) {
	c, err := e.OpenCapture(l.At.File)
	if err != nil {
		return nil, 0, err
	}
	defer c.Close()
	lines, n, err := c.LabelLines(ctx, l, e.options)
	if err == nil && n == 0 {
		err = app.Fail(app.ExitInput, fmt.Errorf("%s: cannot label the path %q: chat found no text there", l.At, l.Path), fmt.Sprintf("'unwire chat --top 99 %s %d' lists the texts with their paths", safetext.ShellFile(l.At.File), l.At.Exchange))
	}
	return lines, n, err
}
