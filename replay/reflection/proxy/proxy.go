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
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"

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

	// forward1 and forward2 forward requests over HTTP/1.1 and HTTP/2.
	forward1, forward2 *httputil.ReverseProxy

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
	p.forward1, p.forward2 = p.forwarder("1.1"), p.forwarder("2")
	return p, nil
}

// Services returns the full names of the services that reflection lists, sorted.
func (p *Proxy) Services() []string { return slices.Clone(p.services) }

// forwarder returns a handler that forwards requests to the server over a version of HTTP.
func (p *Proxy) forwarder(version string) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(p.o.To)
			r.Out.URL.RawQuery = r.In.URL.RawQuery // also what net/url does not accept
		},
		Transport:     outbound.New(p.o.To.Scheme, version, false, true, p.o.Reach),
		FlushInterval: -1, // after each write, as streams need it
		ErrorHandler:  p.failed,
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelWarn),
	}
}

// A request is what the proxy knows of a request while it is forwarded.
type request struct {
	// progress records how far connecting to the server got.
	progress outbound.Progress

	// err is why the proxy answered with an error of its own; nil for none.
	err error
}

// requestKey is the key of a *request in the context of an http.Request.
type requestKey struct{}

// ServeHTTP answers a request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &request{}
	isReflection := false
	switch _, pattern := p.reflection.Handler(r); {
	case !isLocal(r):
		x.err = errors.New("the request is from a web page of another site, or its Host header names another machine")
		p.refuse(w, r, connect.NewError(connect.CodePermissionDenied, fmt.Errorf("unwire reflection: %w", x.err)), http.StatusForbidden)
	case pattern != "":
		isReflection = true
		p.reflection.ServeHTTP(w, r)
	default:
		forward := p.forward1
		if r.ProtoMajor == 2 {
			forward = p.forward2
		}
		ctx := context.WithValue(r.Context(), requestKey{}, x)
		forward.ServeHTTP(w, r.WithContext(x.progress.Trace(ctx, nil)))
	}
	if p.o.Answered != nil {
		p.o.Answered(Answer{Path: r.URL.Path, Reflection: isReflection, Err: x.err})
	}
}

// failed answers a request that could not be forwarded with the error unavailable, in the protocol of the client.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	x, _ := r.Context().Value(requestKey{}).(*request) // ServeHTTP sets it
	if r.Context().Err() != nil {
		err = errors.New("the client ended the request before the server answered")
	} else {
		err = errors.New(x.progress.Failure(err, 0).Message)
	}
	x.err = err
	p.refuse(w, r, connect.NewError(connect.CodeUnavailable, fmt.Errorf("unwire reflection: %w", err)), http.StatusBadGateway)
}

// refuse answers with an error in the protocol of the client, or with an HTTP status if the client speaks no RPC
// protocol.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, err *connect.Error, status int) {
	if p.errors.IsSupported(r) {
		_ = p.errors.Write(w, r, err) // the client may be gone
		return
	}
	http.Error(w, err.Message(), status)
}

// isLocal reports whether a request was sent to a name of this machine, and by no web page of another one. A page
// whose host name resolves to loopback (DNS rebinding) has that name in the Host header.
func isLocal(r *http.Request) bool {
	if u, err := url.Parse("http://" + r.Host); err != nil || u.Host != r.Host || !outbound.IsLoopback(strings.ToLower(u.Hostname())) {
		return false
	}
	for _, origin := range r.Header["Origin"] {
		if u, err := url.Parse(origin); err != nil || !outbound.IsLoopback(strings.ToLower(u.Hostname())) {
			return false
		}
	}
	return true
}
