package callcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/replaytext"
	"unwire/cmd/internal/term"
	"unwire/replay/call"
	"unwire/replay/outbound"
	"unwire/schema"
	"unwire/schema/protoform"
)

// runCall executes 'unwire call METHOD': it calls the method and prints each response message as a line
// of JSON. given reports whether --data was set.
func runCall(ctx context.Context, a *app.App, method string, given bool, f *callFlags) (err error) {
	o, s, err := f.options(ctx, a, method)
	if err != nil {
		return err
	}
	in, err := newMessageReader(a, f.data, given, o.Method.IsStreamingClient())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.close()) }()

	// Requests to another machine are shown before they are sent.
	if f.dryRun || f.Live {
		printRequest(a, o, f.dryRun)
	}
	if f.dryRun {
		return nil
	}

	// Secrets in the request's headers must also be redacted wherever the response repeats them.
	if f.out != "" {
		out, err := store.Create(f.out, a.IndexedWhenClosed(store.Options{NoAdditions: true}))
		if err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, out.Close(), keepDefinitions(context.WithoutCancel(ctx), a, f, o, s))
		}()
		if out.Redactor != nil {
			o.Placeholder = out.Redactor.Placeholder
		}
		for _, h := range o.Headers {
			if h.Secret && out.Redactor != nil { // an answer may repeat it
				out.Redactor.Headers(captures.Headers{{Name: "authorization", Value: h.Value}, {Name: "x-api-key", Value: h.Value}})
			}
		}
		o.Record = out
	}

	// Report each unknown field once, not for each message of a stream.
	lost := map[string]bool{}
	r, err := call.Do(ctx, *o, call.Messages{Next: in.next, OnAnswer: func(json []byte, paths []string) error {
		for _, path := range paths {
			if !lost[path] {
				lost[path] = true
				a.Say("unwire: warning: the output does not show field %s of the answer, because the definitions lack this field", path)
			}
		}
		_, err := a.Out.Write(append(json, '\n'))
		return err
	}})
	// A request that does not match its definition was never sent.
	if err != nil {
		if errors.Is(err, call.ErrMessage) {
			return app.Fail(app.ExitInput, err, "'unwire schema print "+f.source+string(o.Method.Input().FullName())+"' shows the definition")
		}
		return app.Refusal(err)
	}
	if r.Exchange != 0 {
		a.Say("the call is recorded as %s#%d", term.Clean(f.out), r.Exchange)
	}
	return report(ctx, a, o, s, r)
}

// report prints the error status with which a call ended, as JSON on stderr, with a hint. It returns an
// error that carries only the exit code; nil if the call succeeded.
func report(ctx context.Context, a *app.App, o *call.Options, s *schema.Schema, r *call.Result) error {
	if r.Number == 0 {
		return nil
	}

	// Error details are decoded with the same definitions as the answer.
	e := &contract.CallFailure{Code: r.Code, Message: r.Message, Origin: "server", Reason: string(r.Reason), Exchange: r.Exchange, RetryAfter: r.RetryAfter, Details: []contract.FailureDetail{}}
	for _, d := range r.Details {
		detail := contract.FailureDetail{Type: d.Type, Value: d.Value}
		if md := s.Message(d.Type); md != nil {
			if p, err := protoform.Print(protoform.JSON, d.Value, false, md, o.Find); err == nil {
				detail.JSON = p.Data
			}
		}
		e.Details = append(e.Details, detail)
	}
	if r.Local {
		e.Origin = "local"
	}
	if err := contract.NewEncoder(a.Err).Encode(e); err != nil {
		return err
	}

	if h := hint(ctx, o, r); h != "" {
		a.Say("unwire: hint: %s", h)
	}
	// If nothing was sent, the code is not the server's: it is bad input or no connection.
	if r.Local && r.Reason.Unsent() {
		return app.Fail(app.ExitInput, nil, "")
	}
	return app.Fail(app.ExitConnect+r.Number, nil, "")
}

// isBidirectional reports whether both sides of the method stream, which needs HTTP/2 in each protocol.
func isBidirectional(o *call.Options) bool {
	return o.Method.IsStreamingClient() && o.Method.IsStreamingServer()
}

// answeredVersion returns the message of a call that got no answer. If the server supports only the other
// version of HTTP, it is the message about that version, whatever the connection's error is. Only
// servers on this machine are asked.
func answeredVersion(ctx context.Context, o *call.Options, r *call.Result) string {
	local := outbound.CheckTarget(o.To, false, nil) == nil
	if !r.Local || r.Reason != outbound.NoAnswer || o.To.Scheme != "http" || !local || outbound.IsVersionFault(r.Message) {
		return r.Message
	}
	used, fault := "1.1", outbound.OnlyHTTP2
	if o.HTTP2 || o.Protocol == call.GRPC || isBidirectional(o) {
		used, fault = "2", outbound.OnlyHTTP1
	}
	if outbound.Version(ctx, o.To, used, true, o.Reach) == used {
		return r.Message
	}
	return fault
}

// hint returns advice for a failed call whose connection or protocol seems to be wrong, such as another
// --protocol; "" for any other error.
func hint(ctx context.Context, o *call.Options, r *call.Result) string {
	message := answeredVersion(ctx, o, r)
	switch {
	case outbound.AskedToWait(r.RetryAfter, time.Now()) != "":
		return outbound.AskedToWait(r.RetryAfter, time.Now())
	case r.Local && outbound.IsVersionFault(message):
		return versionHint(o, message)
	case r.Local && r.Reason == outbound.NoAnswer && o.Protocol == call.GRPC:
		return "check that the server serves gRPC at this address; gRPC needs HTTP/2, --protocol connect and grpc-web do not"
	case r.Local:
		return replaytext.Hint(r.Reason, r.Message, o.To.String())
	case strings.HasPrefix(r.Message, "415 "), strings.HasPrefix(r.Message, "invalid content-type"):
		return "the server does not serve this protocol: choose another with --protocol (connect, grpc, grpc-web)"
	case r.Code == "unimplemented":
		return "the server does not serve this method at this path, or not with this protocol: if the server's paths begin with a prefix, write --to URL/PREFIX; otherwise try another --protocol"
	}
	return ""
}

// versionHint returns advice for a call whose server supports only another version of HTTP, as message says.
func versionHint(o *call.Options, message string) string {
	switch {
	case message == outbound.OnlyHTTP2 && (o.Protocol == "" || o.Protocol == call.Connect):
		return "use --protocol grpc; or --http2, for Connect over HTTP/2"
	case message == outbound.OnlyHTTP2:
		return "use --protocol grpc, or --http2"
	case isBidirectional(o):
		return "a bidirectional method needs HTTP/2: use --to with the URL of a server that supports HTTP/2"
	}
	return "use --protocol connect or grpc-web, which do not need HTTP/2"
}

// printRequest prints the URL, the types and the headers of a call that is about to be sent, without
// secrets. It prints to stdout if asResult is set (--dry-run), and otherwise to stderr.
func printRequest(a *app.App, o *call.Options, asResult bool) {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s%s\n", strings.TrimSuffix(o.To.Redacted(), "/"), call.Path(o.Method))
	fmt.Fprintf(&b, "  protocol %s, codec %s, request %s, response %s\n", o.Protocol, o.Codec, o.Method.Input().FullName(), o.Method.Output().FullName())
	for _, h := range o.Headers {
		value := h.Value
		if h.Secret {
			// The scheme of a token is no secret, and it matters to the server.
			scheme, _, ok := strings.Cut(h.Value, " ")
			if value = "(secret)"; ok && strings.EqualFold(h.Name, "authorization") {
				value = scheme + " (secret)"
			}
		}
		fmt.Fprintf(&b, "  %s: %s\n", h.Name, value)
	}
	text := term.CleanText(b.String())
	if asResult {
		fmt.Fprint(a.Out, text)
		return
	}
	a.Say("%s", strings.TrimSuffix(text, "\n"))
}
