package oracle_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/twitchtv/twirp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"unwire/replay/probe/testdata/gen/catalog"
	"unwire/replay/probe/testdata/gen/catalog/catalogconnect"
)

// A catalogServer is a server of gen.catalog.Catalog. ran is how often its handler ran.
type catalogServer struct {
	url   *url.URL
	roots *x509.CertPool
	ran   func() int
}

const violation = "validation error: page_size: value must be greater than 0 [int32.gt]"

// A counted implements the service for all Go servers, and counts its calls.
type counted struct {
	catalog.UnimplementedCatalogServer
	n atomic.Int64
}

func (c *counted) Find(context.Context, *catalog.FindRequest) (*catalog.FindReply, error) {
	c.n.Add(1)
	return &catalog.FindReply{}, nil
}

func (c *counted) ran() int { return int(c.n.Load()) }

// A countedConnect is counted for connect-go.
type countedConnect struct{ *counted }

func (c countedConnect) Find(ctx context.Context, r *connect.Request[catalog.FindRequest]) (*connect.Response[catalog.FindReply], error) {
	reply, err := c.counted.Find(ctx, r.Msg)
	return connect.NewResponse(reply), err
}

func startConnectCatalog(t *testing.T, o serverOptions) *catalogServer {
	t.Helper()
	c := &counted{}
	refuse := func(err *connect.Error) connect.HandlerOption {
		return connect.WithInterceptors(connect.UnaryInterceptorFunc(func(connect.UnaryFunc) connect.UnaryFunc {
			return func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { return nil, err }
		}))
	}
	var opts []connect.HandlerOption
	if o.Auth {
		opts = append(opts, authenticated())
	}
	if o.Invalid {
		opts = append(opts, refuse(connect.NewError(connect.CodeInvalidArgument, errors.New(violation))))
	}
	if o.Strict {
		opts = append(opts, connect.WithCodec(strictJSON{}))
	}
	_, h := catalogconnect.NewCatalogHandler(countedConnect{c}, opts...)
	return serveCatalog(t, o, h, c.ran)
}

// grpcInterceptor refuses messages of gRPC as the options say.
func (o serverOptions) grpcInterceptor() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		switch {
		case o.Auth:
			return nil, status.Error(codes.Unauthenticated, "who are you?")
		case o.Invalid:
			return nil, status.Error(codes.InvalidArgument, violation)
		}
		return handler(ctx, req)
	}
}

func startGRPCCatalog(t *testing.T, o serverOptions) *catalogServer {
	t.Helper()
	c := &counted{}
	opts := []grpc.ServerOption{grpc.UnaryInterceptor(o.grpcInterceptor())}
	if o.Cert != "" {
		opts = append(opts, grpc.Creds(credentials.NewServerTLSFromCert(keyPair(t, o))))
	}
	server := grpc.NewServer(opts...)
	catalog.RegisterCatalogServer(server, c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l) //nolint:errcheck // it ends with Stop
	t.Cleanup(server.Stop)
	s := &catalogServer{ran: c.ran, roots: o.roots(t)}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s.url = parseURL(t, o.origin(port))
	return s
}

func startTwirpCatalog(t *testing.T, o serverOptions) *catalogServer {
	t.Helper()
	c := &counted{}
	refuse := func(next twirp.Method) twirp.Method {
		return func(ctx context.Context, req any) (any, error) {
			switch {
			case o.Auth:
				return nil, twirp.NewError(twirp.Unauthenticated, "who are you?")
			case o.Invalid:
				return nil, twirp.InvalidArgumentError("page_size", "must be greater than 0")
			}
			return next(ctx, req)
		}
	}
	return serveCatalog(t, o, catalog.NewCatalogServer(c, twirp.WithServerInterceptors(refuse)), c.ran)
}

func startGatewayCatalog(t *testing.T, o serverOptions) *catalogServer {
	t.Helper()
	// The gateway translates to a server of grpc-go.
	behind := startGRPCCatalog(t, serverOptions{Auth: o.Auth, Invalid: o.Invalid})
	conn, err := grpc.NewClient(behind.url.Host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	mux := runtime.NewServeMux(runtime.WithMarshalerOption(runtime.MIMEWildcard, &runtime.JSONPb{UnmarshalOptions: protojson.UnmarshalOptions{DiscardUnknown: !o.Strict}}))
	if err := catalog.RegisterCatalogHandler(t.Context(), mux, conn); err != nil {
		t.Fatal(err)
	}
	return serveCatalog(t, o, mux, behind.ran)
}

// serveCatalog serves over HTTP.
func serveCatalog(t *testing.T, o serverOptions, h http.Handler, ran func() int) *catalogServer {
	t.Helper()
	if o.Prefix != "" {
		h = http.StripPrefix(o.Prefix, h)
	}
	server := httptest.NewUnstartedServer(h)
	s := &catalogServer{ran: ran, roots: o.roots(t)}
	if o.Cert != "" {
		server.TLS = &tls.Config{Certificates: []tls.Certificate{*keyPair(t, o)}}
		server.EnableHTTP2 = true
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	s.url = parseURL(t, server.URL)
	return s
}

// testCertificate returns a certificate for 127.0.0.1 and its key, as PEM.
func testCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	raw, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	return cert, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

func keyPair(t *testing.T, o serverOptions) *tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(o.Cert), []byte(o.Key))
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

// roots are the roots that verify the certificate of the options; nil without one.
func (o serverOptions) roots(t *testing.T) *x509.CertPool {
	t.Helper()
	if o.Cert == "" {
		return nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(o.Cert)) {
		t.Fatal("no certificate")
	}
	return roots
}
