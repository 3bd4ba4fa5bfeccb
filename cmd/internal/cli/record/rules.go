package record

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render"
	"unwire/decode"
	"unwire/decode/filter"
	"unwire/mitm/hook"
	"unwire/mitm/intercept"
	"unwire/mitm/rules"
	"unwire/mitm/throttle"
	"unwire/replay/outbound"
	"unwire/schema"
)

// heldMark is the mark that a frame has in the capture while it is held back. It remains there if unwire
// is killed.
const heldMark = "held"

// rewriteFlags are the values of the flags of capture that change traffic while it is recorded.
type rewriteFlags struct {
	// rules is the path of the rules file; "" for none.
	rules string

	// intercept is the filter for frames to hold; "" for none.
	intercept string

	// holdTime is how long a frame is held back before it is forwarded unchanged.
	holdTime time.Duration

	// hook is the command that decides about frames; "" for none.
	hook string

	// hookMatch is the filter for the frames that the command decides about.
	hookMatch string

	// throttle limits bandwidth and latency, such as "64KB/s,200ms".
	throttle string

	// proto names the definitions for field names in rules and filters.
	proto string

	// schema prints the JSON Schema of rules files.
	schema bool
}

// add adds the flags to the command capture.
func (f *rewriteFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.rules, "rules", "", "change messages by the rules in this YAML file; capture reads the file again whenever the file changes")
	flags.StringVar(&f.proto, "proto", "", ".proto definitions with the field names that you use in rules and filters; the word none means no definitions (default: UNWIRE_PROTO, else the built-in definitions)")
	flags.BoolVar(&f.schema, "rules-schema", false, "print the JSON Schema of the files for --rules, and exit")
	flags.StringVar(&f.intercept, "intercept", "", "hold back messages that match this filter, until you release them with 'unwire intercept'")
	flags.DurationVar(&f.holdTime, "hold-time", 10*time.Minute, "with --intercept: forward a held message unchanged if you do not release it within this time")
	flags.StringVar(&f.hook, "hook", "", "run this command, which can change messages: the command reads each message from stdin, as one JSON object, and prints on stdout what capture does with the message")
	flags.StringVar(&f.hookMatch, "hook-match", "", "with --hook: pass only messages that match this filter to the command, and forward all other messages unchanged")
	flags.StringVar(&f.throttle, "throttle", "", "slow the traffic down: limit the bandwidth of each direction (64KB/s), add a delay (200ms), or both (64KB/s,200ms)")
}

// isSet reports whether any flag changes traffic.
func (f *rewriteFlags) isSet() bool {
	return f.rules != "" || f.intercept != "" || f.hook != "" || f.throttle != ""
}

// A rewriter changes traffic while it is recorded, by rules, a hook program, throttling, and holding
// frames back for the user's decision. A nil rewriter changes nothing.
type rewriter struct {
	// policy applies the rules, the hook and the throttling to each exchange.
	policy *rules.Policy

	// holder holds frames back until they are decided about.
	holder *intercept.Holder

	// server accepts the decisions of 'unwire intercept'.
	server *intercept.Server

	// hook is the running command of --hook; nil for none.
	hook *hook.Hook

	// stop ends the watching of the rules file.
	stop context.CancelFunc

	// marks are changes of the mark "held", to be stored in the capture.
	marks chan captures.Note

	// marked is closed when all marks have been stored.
	marked chan struct{}
}

// newRewriter returns the rewriter that the flags describe; nil if no flag changes traffic.
func newRewriter(a *app.App, f *CaptureFlags) (r *rewriter, err error) {
	switch {
	case f.rewrite.hookMatch != "" && f.rewrite.hook == "":
		return nil, app.Usagef("--hook-match needs --hook: it selects the frames for the command of --hook")
	case !f.rewrite.isSet() && f.rewrite.proto != "":
		return nil, app.Usagef("--proto needs --rules, --intercept or --hook: recording needs no definitions")
	case !f.rewrite.isSet():
		return nil, nil
	}
	ctx, stop := context.WithCancel(context.Background())
	r = &rewriter{stop: stop, marks: make(chan captures.Note, 1024), marked: make(chan struct{})}

	// On an error, whatever was already started (the hook program, the watcher) must be stopped again.
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	names, err := newFieldNames(ctx, a, f.rewrite.proto)
	if err != nil {
		return r, err
	}
	o := rules.Options{Report: func(text string) { a.Say("unwire: %s", text) }, Type: names.typeOf}
	if o.Intercept, err = parseFilter("--intercept", f.rewrite.intercept); err != nil {
		return r, err
	}
	if o.HookMatch, err = parseFilter("--hook-match", f.rewrite.hookMatch); err != nil {
		return r, err
	}
	for flag, selected := range map[string]*filter.Filter{"--intercept": o.Intercept, "--hook-match": o.HookMatch} {
		if err := names.checkFilter(flag, selected); err != nil {
			return r, err
		}
	}
	if o.Pace, err = parseThrottle(f.rewrite.throttle); err != nil {
		return r, err
	}
	set, err := loadRules(f, names)
	if err != nil {
		return r, err
	}
	r.holder = intercept.New(intercept.Options{MaxTime: f.rewrite.holdTime, Changed: r.noteHeld(a, f)})
	o.Hold = r.holder.Hold
	if f.rewrite.hook != "" {
		if r.hook, err = startHook(a, f.rewrite.hook); err != nil {
			return r, err
		}
		o.Hook = r.hook.Decide
	}
	r.policy = rules.New(set, o)
	if set != nil {
		r.watch(ctx, a, f, names, set)
	}
	return r, nil
}

// loadRules loads the file of --rules, and checks it; nil if the flag is not set.
func loadRules(f *CaptureFlags, names *fieldNames) (*rules.Set, error) {
	if f.rewrite.rules == "" {
		return nil, nil
	}
	set, err := rules.Load(f.rewrite.rules)
	if err == nil {
		err = names.check(set)
	}
	switch {
	case errors.Is(err, rules.ErrRules):
		return nil, app.Fail(app.ExitUsage, err, "'unwire capture --rules-schema' prints the JSON Schema of rules files")
	case err != nil:
		return nil, err
	}
	if err := checkMapped(set, f.objects); err != nil {
		return nil, app.Fail(app.ExitUsage, err, "to let a rule send requests to other machines, use --live and --allow-host HOST")
	}
	return set, nil
}

// watch loads the rules file again whenever it changes. If the new rules are invalid, the previous ones
// remain in force. set are the rules loaded first.
func (r *rewriter) watch(ctx context.Context, a *app.App, f *CaptureFlags, names *fieldNames, set *rules.Set) {
	a.Say("unwire: using %s of %s", app.Counted(set.Len(), "rule"), f.rewrite.rules)
	go rules.Watch(ctx, f.rewrite.rules, func(s *rules.Set, err error) {
		if err == nil {
			err = errors.Join(names.check(s), checkMapped(s, f.objects))
		}
		if err != nil {
			a.Say("unwire: the rules file cannot be used, so unwire continues with the previous rules: %v", err)
			return
		}
		r.policy.Replace(s)
		a.Say("unwire: the rules file changed: unwire now uses %s of %s", app.Counted(s.Len(), "rule"), f.rewrite.rules)
	})
}

// fieldNames has the definitions with which field names in rules and filters are resolved.
type fieldNames struct {
	// given are the definitions that the user named, against which names in rules are checked; nil if
	// there are none.
	given *schema.Schema

	// all returns the given definitions, or else the built-in ones. They are loaded at the first call.
	all func() *schema.Schema
}

// newFieldNames loads the definitions that --proto names.
func newFieldNames(ctx context.Context, a *app.App, proto string) (*fieldNames, error) {
	given, err := a.FindDefinitions(ctx, proto, nil)
	if err != nil {
		return nil, err
	}
	n := &fieldNames{given: given}
	n.all = sync.OnceValue(func() *schema.Schema {
		all, err := a.LoadDefinitions(context.WithoutCancel(ctx), proto)
		if err != nil {
			a.Say("unwire: rules and filters cannot use names of fields: %v", err)
		}
		return all
	})
	return n, nil
}

// check returns an error if rules use names of services or methods that the given definitions lack.
func (n *fieldNames) check(s *rules.Set) error {
	if n.given == nil {
		return nil
	}
	return s.CheckNames(n.given.Services())
}

// checkFilter checks the names in the filter of a flag, which may be nil.
func (n *fieldNames) checkFilter(flag string, f *filter.Filter) error {
	if n.given == nil || f == nil {
		return nil
	}
	if err := rules.CheckFilter(f, n.given.Services()); err != nil {
		return app.Usagef("%s: %v", flag, err)
	}
	return nil
}

// typeOf returns the message type of a method's frames in one direction; see rules.Options.Type.
func (n *fieldNames) typeOf(method string, d captures.Direction) protoreflect.MessageDescriptor {
	service, rpc, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return app.FrameType(n.all(), decode.Call{Service: service, RPC: rpc}, d)
}

// parseThrottle parses the value of --throttle, and returns a function that delays a number of bytes in
// one direction accordingly; nil if the flag is not set.
func parseThrottle(text string) (func(context.Context, captures.Direction, int), error) {
	if text == "" {
		return nil, nil
	}
	limit, err := throttle.Parse(text)
	if err != nil {
		return nil, app.Usagef("--throttle: %v", err)
	}
	return limit.Wait, nil
}

// parseFilter parses a filter, the value of the named flag; nil if text is "".
func parseFilter(flag, text string) (*filter.Filter, error) {
	if text == "" {
		return nil, nil
	}
	f, err := filter.Parse(text, time.Now())
	if err != nil {
		return nil, app.Usagef("%s: %v", flag, err)
	}
	return f, nil
}

// startHook starts the command of --hook, which is split at spaces.
func startHook(a *app.App, command string) (*hook.Hook, error) {
	argv := strings.Fields(command)
	if len(argv) == 0 {
		return nil, app.Usagef("--hook: the command is empty")
	}
	if _, err := exec.LookPath(argv[0]); err != nil {
		return nil, app.Usagef("--hook: %v", err)
	}
	h, err := hook.Start(argv, a.Err.Writer)
	if err != nil {
		return nil, app.Usagef("--hook: %v", err)
	}
	return h, nil
}

// checkMapped returns an error if a rule redirects requests to another machine that --live and
// --allow-host do not allow.
func checkMapped(s *rules.Set, allowed app.ObjectStore) error {
	for _, host := range s.MapTargets() {
		if err := outbound.CheckTarget(&url.URL{Scheme: "https", Host: strings.ToLower(host)}, allowed.Live, allowed.Allow); err != nil {
			return fmt.Errorf("a rule sends requests to %s: %w", host, err)
		}
	}
	return nil
}

// noteHeld returns the function that is called when a frame is held back (true) and when it is released
// (false). It prints that, and marks the frame in the capture.
func (r *rewriter) noteHeld(a *app.App, f *CaptureFlags) func(intercept.Frame, bool) {
	return func(h intercept.Frame, held bool) {
		n := captures.Note{Kind: captures.MarkNote, Place: captures.Place{Exchange: h.Exchange, Frame: h.Number}}
		if h.Dir == captures.Down.String() {
			n.Dir = captures.Down
		}
		if held {
			n.Value = heldMark
			a.Say("unwire: holding frame %d (exchange %d, %s frame %d, %s): 'unwire intercept %s %d' shows it", h.ID, h.Exchange, render.Sender(h.Dir), h.Number, h.Method, f.Out, h.ID)
		}
		if f.json {
			// stdout may be gone: the traffic goes on
			_ = a.Print(&contract.HeldEvent{Event: map[bool]string{true: "held", false: "released"}[held], ID: h.ID, Exchange: h.Exchange, Dir: h.Dir, Frame: h.Number, Rule: h.Rule})
		}
		if h.Exchange > 0 {
			select {
			case r.marks <- n:
			case <-r.marked:
			}
		}
	}
}

// serve opens the socket through which 'unwire intercept' lists held frames and decides about them, and
// stores marks of held frames. out is the path of the capture, and current returns the file that is being
// written.
func (r *rewriter) serve(out string, current func() *store.Store) (err error) {
	if r == nil {
		return nil
	}
	if r.server, err = intercept.Serve(out, r.holder); err != nil {
		return fmt.Errorf("'unwire intercept' cannot show the held frames: %w", err)
	}
	go func() {
		defer close(r.marked)
		for n := range r.marks {
			// The exchange may be in an earlier file of the series.
			_ = current().PutNote(context.Background(), n)
		}
	}()
	return nil
}

// release forwards all frames that are held back, before the recording ends.
func (r *rewriter) release() {
	if r != nil && r.holder != nil {
		r.holder.Close()
	}
}

// close stops the rewriter, and releases all held frames.
func (r *rewriter) close() (err error) {
	if r == nil {
		return nil
	}
	r.stop()
	r.release()
	if r.server != nil {
		err = r.server.Close()
		close(r.marks)
		<-r.marked
	}
	if r.hook != nil {
		err = errors.Join(err, r.hook.Close())
	}
	return err
}
