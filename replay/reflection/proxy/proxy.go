// Package proxy offers gRPC server reflection in front of a server that has none, so that tools which ask for
// reflection, such as grpcurl, grpcui and buf curl, can call that server.
//
//	p, err := proxy.New(proxy.Options{Schema: definitions, To: url})
//	err = http.Serve(ln, p)
//
// A Proxy answers requests for reflection (v1 and v1alpha; gRPC, gRPC-Web and Connect) from definitions, and never
// forwards them. It forwards all other requests to the server: over HTTP/2 what arrives over HTTP/2, streams frame by
// frame in both directions, with trailers.
//
// Package outbound decides which servers may be contacted. The Host header of a request must name this machine, and
// so must its Origin if it has one; otherwise a web page could reach the server with the user's access.
//
// Limits: reflection needs HTTP/2, because it is a bidirectional stream.
package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"

	"unwire/replay/listen"
	"unwire/replay/outbound"
	"unwire/schema"
)

// ErrNoService means that the definitions declare no service, so reflection would list none.
var ErrNoService = errors.New("the definitions declare no service")

// Options describe what a Proxy offers, and for which server. Schema and To are required.
type Options struct {
	// Schema are the definitions with which requests for reflection are answered.
	Schema *schema.Schema

	// To is the base URL of the server that gets all other requests. The path of a request is appended to its path.
	To *url.URL

	// Reach determines which servers may be contacted. Its Pace is not used: the client determines the rate.
	Reach outbound.Policy

	// Answered, if set, is called for each request after it was answered. It may be called concurrently.
	Answered func(Answer)
}

// An Answer reports how one request was answered.
type Answer struct {
	// Path is the path of the request, such as "/package.Service/Method".
	Path string

	// Reflection means that the request was answered from the definitions.
	Reflection bool

	// Err is why the proxy answered with an error of its own; nil if the server answered.
	Err error
}

// A Proxy is an http.Handler that answers requests for reflection, and forwards all others.
type Proxy struct {
	// o are the options.
	o Options

	// services are the full names of the declared services, sorted.
	services []string

	// reflection answers requests for reflection.
	reflection *http.ServeMux

	// http1 and http2 send requests to the server over HTTP/1.1 and HTTP/2.
	http1, http2 *http.Transport

	// errors writes errors in the protocol of the client.
	errors *connect.ErrorWriter
}

// New returns a Proxy.
//
// Errors: ErrNoService; outbound.ErrRefused if the policy does not allow the server.
func New(o Options) (*Proxy, error) {
	if err := outbound.CheckTarget(o.To, o.Reach.Live, o.Reach.AllowHosts); err != nil {
		return nil, err
	}
	p := &Proxy{o: o, reflection: http.NewServeMux(), errors: connect.NewErrorWriter()}
	for s := range o.Schema.Services() {
		p.services = append(p.services, string(s.FullName()))
	}
	if len(p.services) == 0 {
		return nil, ErrNoService
	}
	slices.Sort(p.services)

	definitions := resolve(o.Schema)
	reflector := grpcreflect.NewReflector(grpcreflect.NamerFunc(p.Services), grpcreflect.WithDescriptorResolver(definitions), grpcreflect.WithExtensionResolver(definitions))
	p.reflection.Handle(grpcreflect.NewHandlerV1(reflector))
	p.reflection.Handle(grpcreflect.NewHandlerV1Alpha(reflector))
	p.http1, p.http2 = outbound.New(o.To.Scheme, "1.1", false, true, o.Reach), outbound.New(o.To.Scheme, "2", false, true, o.Reach)
	return p, nil
}

// Services returns the full names of the services that reflection lists, sorted.
func (p *Proxy) Services() []string { return slices.Clone(p.services) }

// ServeHTTP answers a request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := Answer{Path: r.URL.Path}
	switch _, pattern := p.reflection.Handler(r); {
	case !isLocal(r):
		a.Err = errors.New("the request is from a web page of another site, or its Host header names another machine")
		p.refuse(w, r, connect.CodePermissionDenied, a.Err, http.StatusForbidden)
	case pattern != "":
		a.Reflection = true
		p.reflection.ServeHTTP(w, r)
	default:
		a.Err = p.forward(w, r)
	}
	if p.o.Answered != nil {
		p.o.Answered(a)
	}
}

// forward sends a request to the server, and the answer to the client. If there is no answer, it sends the error
// unavailable instead, and returns the reason.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request) (failure error) {
	var at outbound.Progress
	f := httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(p.o.To)
			// Unchanged, even if net/url does not accept it.
			r.Out.URL.RawQuery = r.In.URL.RawQuery
		},
		Transport:     p.http1,
		FlushInterval: -1, // after each write, as streams need it
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if failure = errors.New(at.Failure(err, 0).Message); r.Context().Err() != nil {
				failure = errors.New("the client ended the request before the server answered")
			}
			p.refuse(w, r, connect.CodeUnavailable, failure, http.StatusBadGateway)
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelWarn),
	}
	if r.ProtoMajor == 2 {
		f.Transport = p.http2
	}
	// Without this, net/http reads the rest of a request itself when the answer begins, while f still sends it.
	_ = http.NewResponseController(w).EnableFullDuplex()
	f.ServeHTTP(w, r.WithContext(at.Trace(r.Context(), nil)))
	return failure
}

// refuse answers with an error in the protocol of the client, or with an HTTP status if the client speaks no RPC
// protocol.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, code connect.Code, err error, status int) {
	err = fmt.Errorf("unwire reflection: %w", err)
	if p.errors.IsSupported(r) {
		// The client may be gone.
		_ = p.errors.Write(w, r, connect.NewError(code, err))
		return
	}
	http.Error(w, err.Error(), status)
}

// isLocal reports whether a request was sent to a name of this machine, and by no web page of another one. A page
// whose host name resolves to loopback (DNS rebinding) has that name in the Host header.
func isLocal(r *http.Request) bool {
	return listen.IsLocalName(r.Host) && !slices.ContainsFunc(r.Header["Origin"], func(origin string) bool {
		u, err := url.Parse(origin)
		return err != nil || !listen.IsLocalName(u.Host)
	})
}
