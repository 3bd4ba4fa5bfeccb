package callcmd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/captures/safetext"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/reflected"
	"unwire/cmd/internal/render/failure"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/proto"
	"unwire/replay"
	"unwire/replay/call"
	"unwire/replay/credential"
	"unwire/replay/outbound"
	"unwire/replay/probe"
	"unwire/schema"
	"unwire/schema/wellknown"
)

// options returns the options of the call, from the flags and the exchange that --like names, and the
// definitions that contain the called method.
func (f *callFlags) options(ctx context.Context, a *app.App, method string) (*call.Options, *schema.Schema, error) {
	var reach replay.Options
	to, policy, err := f.Server()
	if err != nil {
		return nil, nil, err
	}
	reach.Policy, reach.OmitSecrets = policy, f.noAuth
	if err := f.Load(&reach); err != nil {
		return nil, nil, err
	}

	// With --no-auth, not even a token of the environment is sent.
	if f.noAuth {
		reach.Credentials = nil
	}
	reach.Pace = &outbound.Pace{}
	// What a call has in common with a probe: the method, below which path, and the headers.
	from := &probe.Options{To: to, Method: fullMethod(method), HTTP2: f.http2}
	o := &call.Options{Protocol: call.Connect, Codec: call.Proto, Timeout: f.timeout, Reach: reach.Policy}
	if f.like != "" {
		if err := f.takeLike(ctx, a, from, o, reach); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case from.Method == "":
		return nil, nil, app.Fail(app.ExitUsage, errors.New("no method is given"), "give METHOD and --to URL, or --like F.uwc#ID")
	case from.To == nil:
		return nil, nil, app.Fail(app.ExitUsage, fmt.Errorf("no server is given for the method %s", term.Clean(from.Method)), "give the server with --to URL, or an exchange of a capture with --like F.uwc#ID")
	}

	// A method below a path, such as /api/v1/pkg.Service/Method, adds the path to the URL.
	from.SplitMethod()
	o.To, o.HTTP2 = from.To, from.HTTP2 || f.http2
	for _, h := range from.Header {
		o.Headers = append(o.Headers, call.Header{Name: h.Name, Value: h.Value, Secret: h.Secret})
	}

	// Flags override the values from the exchange of --like.
	if err := f.ownOptions(a, o, reach.Credentials.ForHost(o.To.Hostname())); err != nil {
		return nil, nil, err
	}
	if err := outbound.CheckTarget(o.To, policy.Live, policy.AllowHosts); err != nil {
		return nil, nil, app.Refusal(err)
	}

	// Reflection may use the same server and credentials, but no others.
	a.Reflection.Allow(reach.Policy, reach.Credentials, o.To)
	s, err := f.define(ctx, a, o, from.Method)
	if s != nil {
		o.Find = func(name string) protoreflect.MessageDescriptor { return s.Message(name) }
	}
	return o, s, err
}

// fullMethod returns "/pkg.Service/Method" for each way of writing a method, such as pkg.Service.Method.
// A text that begins with a slash is returned unchanged.
func fullMethod(text string) string {
	if text == "" || strings.HasPrefix(text, "/") {
		return text
	}
	if i := strings.LastIndexByte(text, '.'); i > 0 && !strings.Contains(text, "/") {
		text = text[:i] + "/" + text[i+1:] // as grpcurl's symbols are written
	}
	return "/" + text
}

// takeLike copies the server URL, method, headers, protocol and codec of the recorded exchange that
// --like names, as far as no flag sets them, into from and o. reach has the limits and credentials for
// requests.
func (f *callFlags) takeLike(ctx context.Context, a *app.App, from *probe.Options, o *call.Options, reach replay.Options) error {
	addr, err := app.AddressArgs([]string{f.like}, false)
	if err != nil {
		return err
	}
	c, err := a.OpenCapture(addr.File)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := app.NeedCall(ctx, c, addr, "call"); err != nil {
		return err
	}
	if err := a.TrustRecorded(ctx, c.Store, addr.Exchange, from.To, &o.Reach); err != nil {
		return err
	}
	ex, err := decode.Decode(ctx, c, addr.Exchange, decode.Options{NoTrees: true})
	if err != nil {
		return err
	}

	// The captured server is the target, unless --to names another.
	if from.To == nil {
		u, err := url.Parse(ex.URL)
		if err != nil {
			return fmt.Errorf("exchange %d: %w", addr.Exchange, err)
		}
		from.To = &url.URL{Scheme: u.Scheme, Host: u.Host}
	}
	if err := from.FromCapture(ctx, c, addr.Exchange, reach); err != nil {
		return app.Refusal(err)
	}

	// Explicit flags were applied before, so only the captured protocol and codec are left.
	switch from.Protocol {
	case "grpc":
		o.Protocol = call.GRPC
	case "grpc-web":
		o.Protocol = call.GRPCWeb
	}
	if ex.Codec == call.JSON {
		o.Codec = call.JSON
	}
	return nil
}

// ownOptions applies the flags --protocol, --codec and --header to o, and adds an authorization header
// from the credentials c if there is none.
func (f *callFlags) ownOptions(a *app.App, o *call.Options, c *credential.Credentials) error {
	if f.protocol != "" {
		if err := app.OneOf("--protocol", f.protocol, call.Protocols()...); err != nil {
			return err
		}
		o.Protocol = call.Protocol(f.protocol)
	}
	if f.codec != "" {
		if err := app.OneOf("--codec", f.codec, call.Proto, call.JSON); err != nil {
			return err
		}
		o.Codec = f.codec
	}
	for _, text := range f.headers {
		h, err := header(text)
		if err != nil {
			return err
		}
		if h.Name == "authorization" && !strings.Contains(h.Value, " ") {
			a.Say("unwire: warning: the value of the header authorization has no scheme, such as 'Bearer '; call sends the value as it is")
		}
		o.Headers = slices.DeleteFunc(o.Headers, func(old call.Header) bool { return strings.EqualFold(old.Name, h.Name) })
		o.Headers = append(o.Headers, h)
	}
	named := slices.ContainsFunc(o.Headers, func(h call.Header) bool { return strings.EqualFold(h.Name, "authorization") })
	if value, _, _, ok := c.Header("authorization", ""); ok && !named && f.like == "" {
		o.Headers = append(o.Headers, call.Header{Name: "authorization", Value: value, Secret: true})
	}
	return nil
}

// header parses a value of --header: NAME=VALUE or, for a secret, NAME=env:VARIABLE, NAME=file:FILE or
// NAME=keyring:SERVICE/ACCOUNT. It refuses secrets written on the command line.
func header(text string) (h call.Header, err error) {
	name, value, ok := strings.Cut(text, "=")
	if name = strings.ToLower(strings.TrimSpace(name)); !ok || !app.IsHeaderName(name) || strings.ContainsAny(value, "\r\n\x00") {
		return h, app.Usagef("--header must be NAME=VALUE, not %q", text)
	}
	kind, _, _ := strings.Cut(value, ":")
	if !slices.Contains([]string{"env", "file", "keyring"}, kind) {
		if len(redact.New(redact.Options{}).FindHeaders(captures.Headers{{Name: name, Value: value}})) > 0 {
			return h, app.Fail(app.ExitUsage, fmt.Errorf("--header: the value of %s is a secret, and other users can see the command line", name),
				"give the place of the secret instead of its value: --header "+name+"=env:VARIABLE, "+name+"=file:FILE or "+name+"=keyring:SERVICE/ACCOUNT")
		}
		return call.Header{Name: name, Value: value}, nil
	}
	c, err := credential.Resolver{Getenv: os.Getenv, Profile: proto.Profile()}.Load(value)
	if err != nil {
		return h, err
	}
	secret, _, found := c.Find(credential.EnvToken)
	if kind == "file" {
		// A file has a line for the header, or a token of the environment variable's name.
		if secret, _, found = c.Find(name); !found {
			secret, _, _, found = c.Header(name, "")
		}
	}
	if !found {
		return h, fmt.Errorf("%w: %s contains no value for the header %s", credential.ErrCredentials, value, name)
	}
	return call.Header{Name: name, Value: secret, Secret: true}, nil
}

// define finds the definition of the called method, stores it in o.Method, and returns the definitions.
// They come from --proto or the capture of --like or, if these do not have the method, from the server by
// reflection.
func (f *callFlags) define(ctx context.Context, a *app.App, o *call.Options, method string) (*schema.Schema, error) {
	service, rpc, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if !ok || service == "" || rpc == "" {
		return nil, app.Usagef("METHOD must be /package.Service/Method, not %q", method)
	}
	var like []string
	if f.like != "" {
		like = append(like, f.like)
	}

	// Definitions come from --proto or the capture; only then is the server asked.
	s, err := a.FindDefinitions(ctx, f.proto, []string{service}, like...)
	if err != nil {
		return nil, err
	}
	if f.proto != "" {
		f.source = "--proto " + safetext.ShellFile(f.proto) + " "
	}
	if s != nil && s.Method(service, rpc) == nil && f.proto != "" || f.proto == app.NoDefinitions {
		return nil, noMethod(s, service, rpc, f.proto)
	}

	// Server reflection is the last resort, because it sends requests.
	if s == nil || s.Method(service, rpc) == nil {
		name := reflected.Name(o.To)
		f.source = "--proto " + safetext.ShellFile(name) + " "
		s, err = a.LoadSource(ctx, name)
		if err != nil {
			return nil, app.Fail(app.ExitInput, fmt.Errorf("cannot get the definition of %s by server reflection: %w", term.Clean(method), err), definitionsHint(err))
		}
		if s.Method(service, rpc) == nil {
			return nil, noMethod(s, service, rpc, o.To.Redacted()+" (by server reflection)")
		}
	}
	s.SetBase(wellknown.Schema())
	o.Method = s.Method(service, rpc)
	return s, nil
}

// mostNamed is the largest number of names that an error lists.
const mostNamed = 8

// noMethod returns the error that the definitions from source lack a method. Its hint lists the methods
// or services that they have.
func noMethod(s *schema.Schema, service, rpc, source string) error {
	var names []string
	if s != nil {
		sd := s.Service(service)
		for i := 0; sd != nil && i < sd.Methods().Len(); i++ {
			names = append(names, string(sd.Methods().Get(i).Name()))
		}
		for other := range s.Services() {
			if sd == nil {
				names = append(names, string(other.FullName()))
			}
		}
	}
	hint := ""
	if len(names) > 0 {
		more := ""
		if n := len(names) - mostNamed; n > 0 {
			names, more = names[:mostNamed], fmt.Sprintf(" and %d more", n)
		}
		what := "the definitions have the services "
		if s.Service(service) != nil {
			what = "this service has "
		}
		hint = what + term.Clean(strings.Join(names, ", ")) + more
	}
	return app.Fail(app.ExitInput, fmt.Errorf("the definitions of %s have no method %s/%s", source, term.Clean(service), term.Clean(rpc)), hint)
}

// definitionsHint says what to do if the server did not give its definitions.
func definitionsHint(err error) string {
	if f, ok := failure.Of(err.Error()); ok && f.Remedy != "" {
		return f.Remedy + "; to use other definitions than those of the server, name a folder, a descriptor set or a capture with --proto"
	}
	return "name a folder, a descriptor set or a capture with the definitions: --proto DEFINITIONS"
}
