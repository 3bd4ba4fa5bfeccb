package replay

import (
	"context"
	"errors"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"unwire/replay/credential"
)

// A signer makes a header of what it is told.
type signer struct{ fail error }

func (signer) Part() string { return "UNWIRE_SIGNER_KEY" }

func (s signer) MakeHeader(_ context.Context, c HeaderCall) (string, error) {
	return strings.Join([]string{"signed", c.Method, c.Value, c.Part}, "|"), s.fail
}

// A header is made of the captured value, of the secret given for it, or of
// nothing, and what is made is shown and recorded nowhere.
func TestHeaderMakers(t *testing.T) {
	l := newLab(t)
	id := l.say("hello", connect.WithInterceptors(headers{"x-plain": "was", "x-api-key": "kept-from-the-capture"}))
	o := l.withToken(l.options())
	o.Headers = map[string]HeaderMaker{"x-plain": signer{}, "x-api-key": signer{}, "x-new": signer{}}
	o.OmitSecrets = true
	credentials, err := credential.Resolver{Getenv: func(name string) string {
		return map[string]string{credential.EnvToken: "a-token", "UNWIRE_SIGNER_KEY": "the-key"}[name]
	}}.Load("")
	if err != nil {
		t.Fatal(err)
	}
	o.Credentials = credentials
	p := l.plan(id, o)
	r, err := p.Send(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	l.expect(r, Same, FromServer, "ok")
	for name, want := range map[string]string{"x-plain": "signed|POST|was|", "x-api-key": "signed|POST||the-key", "x-new": "signed|POST||"} {
		if got := l.server.header(name); got != want {
			t.Errorf("%s: %q was sent, want %q", name, got, want)
		}
		if shown := p.shown.Headers.Get(name); shown == "" || strings.Contains(shown, "signed") || strings.Contains(p.kept.Get(name), "signed") {
			t.Errorf("%s is shown as %q and kept as %q", name, shown, p.kept.Get(name))
		}
	}
	o.Headers = map[string]HeaderMaker{"x-new": signer{fail: errors.New("no key")}}
	if _, err := newPlan(t.Context(), l.store, id, o); err == nil || !strings.Contains(err.Error(), "the header x-new cannot be created: no key") {
		t.Errorf("got %v", err)
	}
}

// headers adds some to every request.
type headers map[string]string

func (h headers) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		for name, value := range h {
			r.Header().Set(name, value)
		}
		return next(ctx, r)
	}
}

func (h headers) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (h headers) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}
