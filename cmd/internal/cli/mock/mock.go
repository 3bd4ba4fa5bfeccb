// Package mock has the commands that use a capture as a server: mock, which answers clients from it, and
// probe-client, which edits its answers and reports what the client does. The work is done by replay/mock and
// replay/clientprobe.
package mock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/mitm/ca"
	"unwire/replay/mock"
)

// Commands returns the commands mock and probe-client.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{mockCommand(a), probeClientCommand(a)}
}

// mockFlags are the values of the flags of 'unwire mock'.
type mockFlags struct {
	// listen is the address of the server.
	listen string

	// repeat selects what happens if all equally similar calls have been used: "cycle", "last" or "never".
	repeat string

	// similarity is the least similarity, from 0 to 1, of a request and the recorded request whose answer
	// it gets.
	similarity float64

	// wait limits how long an answer waits for a frame of the client.
	wait time.Duration

	// json prints events as JSON Lines.
	json bool

	// quiet prints no line for each request.
	quiet bool
}

const mockLong = `mock is a server that answers the requests of clients with the
recorded answers of a capture (a file with recorded traffic). For example, you can test
a client without its real server. mock answers Connect, gRPC, gRPC-Web, server-sent
events and plain HTTP. Clients can connect to the same port with HTTP/1 or HTTP/2, with
or without TLS.

For each request, mock looks for recorded calls of the same method, protocol and codec,
and answers like the call whose request is the most similar. If several recorded
requests are equally similar, mock prefers those that contain the same identifiers. If
several calls are still equally good, mock uses them one after the other, in the order
of their recording. In a stream, mock sends a message only when the client has sent all
messages that preceded it in the recording. If a recorded answer contains an identifier
that the client generated, mock replaces it by the identifier in the client's new
request. If a rule (capture --rules) changed an answer during the recording, mock sends
the changed answer, which the client received.

If no recorded call matches a request, mock answers with the error unimplemented, and
gives the reason in the error message. mock accepts requests with any credentials, or
with none. unwire's local CA, which 'unwire ca' prints, signs the TLS certificate of
mock.

mock prints one line for each request, with the similarity of the recorded request: 1
means that the two requests are equal. When mock ends, it prints a report.`

// mockCommand returns the command 'unwire mock', a server that answers requests from a capture.
func mockCommand(a *app.App) *cobra.Command {
	var f mockFlags
	cmd := &cobra.Command{
		Use:   "mock F.uwc",
		Short: "Answer the requests of clients with the recorded answers of a capture",
		Long:  mockLong,
		Example: `  # Answer requests at a free port, and print its address
  unwire mock F.uwc
  # Use a fixed port, and print each answered request as JSON
  unwire mock F.uwc --listen 127.0.0.1:8080 --json
  # Answer only very similar requests, and repeat the last recorded answer
  unwire mock F.uwc --repeat last --min-similarity 0.9`,
		Args: app.ExactArgs("F.uwc"),
		RunE: func(cmd *cobra.Command, args []string) error { return runMock(cmd.Context(), a, f, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "loopback address at which the server listens, such as 127.0.0.1:8080, or only its port, such as 8080")
	flags.StringVar(&f.repeat, "repeat", string(mock.Cycle), "how to answer further requests after mock has used each of the most similar recorded calls once: cycle (start again with the first of them), last (use the last of them again) or never (answer with an error)")
	flags.Float64Var(&f.similarity, "min-similarity", mock.DefaultSimilarity, "answer a request with an error if all recorded requests are less similar to it than N; N is from 0 to 1, and 1 means equal")
	flags.DurationVar(&f.wait, "frame-wait", time.Minute, "in a stream, wait at most this time for the next message of the client")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "do not print a line for each request")
	flags.BoolVar(&f.json, "json", false, "print one JSON object for each event on stdout; the events are listening, answered, refused and ended")
	return cmd
}

// runMock executes 'unwire mock' for a capture, until the user interrupts it.
func runMock(ctx context.Context, a *app.App, f mockFlags, file string) error {
	o := mock.Options{Repeat: mock.Repeat(f.repeat), MinSimilarity: f.similarity, Wait: f.wait}
	if err := app.OneOf("--repeat", f.repeat, string(mock.Cycle), string(mock.Last), string(mock.Never)); err != nil {
		return err
	}
	if f.similarity < 0 || f.similarity > 1 {
		return app.Usagef("--min-similarity must be from 0 to 1, not %g", f.similarity)
	}
	if f.similarity == 0 {
		o.MinSimilarity = -1 // 0 is the default
	}
	if f.wait <= 0 {
		return app.Usagef("--frame-wait must be positive, such as 30s, not %s", f.wait)
	}
	ln, err := app.ListenLoopback(f.listen)
	if err != nil {
		return err
	}
	defer ln.Close() //nolint:errcheck // the server closes it first
	o.Answered = func(r mock.Answer) { sayAnswer(a, f, r) }
	c, server, authority, err := load(ctx, a, file, o)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // it was only read

	err = app.ServeUntil(ctx, func() error { return server.Serve(ln) }, func() error {
		return sayMock(a, f, server, file, ln.Addr().String(), authority.CertFile)
	})
	a.Shutdown(server.Shutdown)
	if reportErr := sayReport(a, f, server.Report()); err == nil {
		err = reportErr
	}
	return err
}

// load opens a capture file, and returns a mock server that answers from it, with the CA that 'unwire capture' uses
// too. The caller closes the capture.
func load(ctx context.Context, a *app.App, file string, o mock.Options) (c *query.Capture, server *mock.Server, authority *ca.Authority, err error) {
	opened, err := a.OpenCapture(file)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
		}
	}()
	dir, err := app.ConfigDir()
	if err != nil {
		return nil, nil, nil, err
	}
	if authority, err = ca.Load(filepath.Join(dir, "ca")); err != nil {
		return nil, nil, nil, err
	}
	o.CA = authority
	if server, err = mock.New(ctx, opened.Store, o); err != nil {
		return nil, nil, nil, app.Fail(app.ExitInput, fmt.Errorf("%s: %w", file, err), "")
	}
	return opened, server, authority, nil
}

// sayMock prints the addresses of the server. addr is HOST:PORT, and caFile the certificate that clients
// must trust.
func sayMock(a *app.App, f mockFlags, server *mock.Server, file, addr, caFile string) error {
	if f.json {
		return a.Print(&contract.Listening{Event: "listening", URL: "http://" + addr, CA: caFile})
	}
	fmt.Fprintf(a.Out, "http://%s\n", addr)
	a.Say("mock answers requests with %s of %s. It also serves https://%s; the certificate of its CA is %s. Stop mock with Ctrl-C", app.Counted(server.Calls(), "recorded call"), term.Clean(file), addr, caFile)
	return nil
}

// sayAnswer prints one line for a request that was answered or refused.
func sayAnswer(a *app.App, f mockFlags, r mock.Answer) {
	if f.json {
		e := contract.MockAnswer{
			Event: "answered", Method: r.Method, Protocol: string(r.Protocol), Exchange: r.Exchange, Similarity: round(r.Similarity),
			FramesUp: r.FramesUp, FramesDown: r.FramesDown, Substituted: r.Substituted, Code: r.Code, Reason: r.Reason, Complete: r.Complete, Notes: r.Notes,
		}
		if r.Exchange == 0 {
			e.Event = "refused"
		}
		// stdout may be gone: the answers go on
		_ = a.Print(&e)
		return
	}
	if f.quiet {
		return
	}
	switch {
	case r.Exchange == 0:
		a.Say("%s: mock used no recorded call, and answered with the error %s: %s", term.Clean(r.Method), r.Code, term.Clean(r.Reason))
		return
	case r.Code != "":
		a.Say("%s: mock answered with the recorded exchange %d (similarity of the requests: %.2f), which ended with the error %s: %s", term.Clean(r.Method), r.Exchange, r.Similarity, r.Code, term.Clean(r.Reason))
	default:
		a.Say("%s: mock answered with the recorded exchange %d (similarity of the requests: %.2f); %s received, %d sent%s", term.Clean(r.Method), r.Exchange, r.Similarity, app.Counted(r.FramesUp, "frame"), r.FramesDown, substituted(r.Substituted))
	}
	for _, n := range r.Notes {
		a.Say("  %s", term.Clean(n))
	}
}

// substituted returns a phrase for the number of messages in which recorded identifiers were replaced by
// the client's; "" for 0.
func substituted(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of them with IDs of the client instead of the recorded IDs", n)
}

// round rounds a similarity to three decimal places.
func round(x float64) float64 { return float64(int(x*1000+0.5)) / 1000 }

// sayReport prints a summary when the server ends: how many requests were answered, and which recorded
// calls were never used.
func sayReport(a *app.App, f mockFlags, r mock.Report) error {
	if f.json {
		e := contract.MockReport{Event: "ended", Answered: r.Answered, Refused: r.Refused, Used: []contract.MockUse{}, Unused: append([]int64{}, r.Unused...), Skipped: []contract.MockSkipped{}}
		for _, id := range slices.Sorted(maps.Keys(r.Used)) {
			e.Used = append(e.Used, contract.MockUse{Exchange: id, Answers: r.Used[id]})
		}
		for _, s := range r.Skipped {
			e.Skipped = append(e.Skipped, contract.MockSkipped{Exchange: s.Exchange, Reason: s.Reason})
		}
		return a.Print(&e)
	}
	a.Say("mock answered %s with %s, and refused %d", app.Counted(r.Answered, "request"), app.Counted(len(r.Used), "recorded call"), r.Refused)
	if len(r.Unused) > 0 {
		a.Say("mock did not use %d of the recorded calls (exchanges %s)", len(r.Unused), numbers(r.Unused))
	}
	for _, s := range r.Skipped {
		a.Say("mock cannot answer requests with exchange %d: %s", s.Exchange, s.Reason)
	}
	return nil
}

// numbers lists the first 20 numbers of exchanges, separated by commas.
func numbers(ids []int64) string {
	const most = 20
	text := ""
	for i, id := range ids[:min(len(ids), most)] {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(id)
	}
	if len(ids) > most {
		text += ", …"
	}
	return text
}
