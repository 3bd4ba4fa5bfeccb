// Package reflection requests a server's definitions through gRPC server reflection: v1, or else
// v1alpha; over gRPC, or else over Connect.
//
//	report, err := reflection.Ask(ctx, reflection.Options{To: url})
//	definitions, err := report.Files.Schema(ctx)
//
// The answers are limited: schema/reflection limits their size, and Options the time. Package
// outbound decides which servers may be contacted. Only the reflection handler runs on the server.
//
// Source: https://github.com/grpc/grpc/blob/master/doc/server-reflection.md
package reflection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"unwire/replay/outbound"
	"unwire/schema"
	"unwire/schema/reflection"
)

// The limits of one request for definitions.
const (
	// maxMessage limits a decompressed response message, in bytes.
	maxMessage = 16 << 20

	// maxBody limits all responses together, in bytes as sent.
	maxBody        = 128 << 20
	maxServices    = 10_000
	defaultTimeout = 20 * time.Second
)

// Options describe the server and the definitions to request from it by gRPC server reflection. To is
// required.
type Options struct {
	// To is the server's base URL. The path of the reflection service is appended to its path.
	To *url.URL

	// Service restricts the request to the definitions of one service; "" means all services.
	Service string

	// Header are the HTTP headers sent with each request.
	Header http.Header

	// Reach determines which hosts may be contacted.
	Reach outbound.Policy

	// Timeout is the time limit for all requests together. Default: 20 seconds.
	Timeout time.Duration
}

// A Report is the result of requesting a server's definitions by gRPC server reflection.
type Report struct {
	// Version is the version of the reflection API, "v1" or "v1alpha".
	Version string

	// Protocol is the RPC protocol that was used, "grpc" or "connect".
	Protocol string

	// Services are all services that the server lists, sorted, including reflection.
	Services []string

	// Files are the definitions that the server returned.
	Files *reflection.Files

	// Undescribed are the names of services and imports for which the server returns no definition.
	Undescribed []string

	// Requests is the number of HTTP requests that were sent.
	Requests int
}

// Ask requests a server's protobuf definitions by gRPC server reflection.
//
// Limits: Options.Timeout; 10,000 services; the limits of reflection.Files.
// Errors: outbound.ErrRefused; an outbound.Failure if the server was not reached; reflection.ErrNone if
// it offers no reflection; reflection.ErrLimit; that of ctx.
func Ask(ctx context.Context, o Options) (*Report, error) {
	if err := outbound.CheckTarget(o.To, o.Reach.Live, o.Reach.AllowHosts); err != nil {
		return nil, err
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	limited, stop := context.WithTimeout(ctx, o.Timeout)
	defer stop()

	// A server on this machine needs no permission; the transport then connects to no other machine.
	local := outbound.CheckTarget(o.To, false, nil) == nil
	s := &sender{transport: outbound.New(o.To.Scheme, "2", local, false, o.Reach), pace: o.Reach.Pace}
	defer s.close()

	// Try gRPC first; Connect only if the server does not speak gRPC.
	var err error
	for _, p := range []struct {
		name    string
		options []connect.ClientOption
	}{
		{"grpc", []connect.ClientOption{connect.WithGRPC()}},
		{"connect", nil},
	} {
		r := &Report{Protocol: p.name, Files: &reflection.Files{}}
		err = r.ask(limited, s, &o, p.options)
		if r.Requests = s.requests; err == nil {
			return r, nil
		}

		// Only an answer in another protocol justifies the second attempt.
		if !s.otherProtocol {
			break
		}
	}
	return nil, s.explain(ctx, limited, o.Timeout, err)
}

// explain converts err, with which the requests ended, to the error that Ask returns. limited is ctx
// with the timeout.
func (s *sender) explain(ctx, limited context.Context, timeout time.Duration, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, reflection.ErrLimit), errors.Is(err, reflection.ErrNone), errors.Is(err, outbound.ErrRefused):
		return err
	// no answer
	case s.status == 0:
		return s.noAnswer(timeout, err)
	// The requests carry the timeout, and the server may answer with this code slightly before limited
	// ends.
	case limited.Err() != nil, connect.CodeOf(err) == connect.CodeDeadlineExceeded:
		return fmt.Errorf("the server's reflection did not end within %s", timeout)
	}
	code := connect.CodeOf(err)
	if code == connect.CodeResourceExhausted && !connect.IsWireError(err) {
		return fmt.Errorf("%w: an answer has more than %d bytes", reflection.ErrLimit, maxMessage)
	}
	switch code {
	case connect.CodeUnauthenticated, connect.CodePermissionDenied, connect.CodeResourceExhausted:
		return fmt.Errorf("the server's reflection answered %s: %s", code, messageOf(err))
	case connect.CodeUnimplemented:
		return fmt.Errorf("%w: the server does not offer reflection", reflection.ErrNone)
	}
	return fmt.Errorf("%w: the server answered %d: %s", reflection.ErrNone, s.status, messageOf(err))
}

// noAnswer returns the error for a server that did not respond within timeout.
func (s *sender) noAnswer(timeout time.Duration, err error) error {
	failure := s.progress.Failure(err, timeout)
	switch {
	case failure.Reason == outbound.NoHTTP2, strings.Contains(err.Error(), "looked like an HTTP/1.1 header"), strings.Contains(err.Error(), "HTTP_1_1_REQUIRED"),
		strings.Contains(err.Error(), "client conn could not be established"):
		return fmt.Errorf("%w: reflection needs HTTP/2, which the server does not support", reflection.ErrNone)
	case !failure.Reason.Unsent() && !failure.Refused && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the server's reflection did not end within %s", timeout)
	case !failure.Reason.Unsent() && !failure.Refused:
		return fmt.Errorf("%w: the server did not answer: %s", reflection.ErrNone, messageOf(err))
	}
	return failure
}

// messageOf returns the message of an RPC error without its code.
func messageOf(err error) string {
	if e, ok := errors.AsType[*connect.Error](err); ok {
		return e.Message()
	}
	return err.Error()
}

// ask requests the definitions over one RPC protocol, which options select, and fills in the report.
func (r *Report) ask(ctx context.Context, s *sender, o *Options, options []connect.ClientOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options = append(options, connect.WithReadMaxBytes(maxMessage), connect.WithSendCompression(""))
	client := grpcreflect.NewClient(s, strings.TrimSuffix(o.To.String(), "/"), options...)
	stream := client.NewStream(ctx, grpcreflect.WithRequestHeaders(o.Header), grpcreflect.WithReflectionHost(o.To.Host))

	// List the services, then get the files that define them, then their imports.
	names, err := stream.ListServices()
	if err != nil {
		return err
	}
	r.Version = "v1"
	if strings.Contains(stream.Spec().Procedure, ".v1alpha.") {
		r.Version = "v1alpha"
	}
	if len(names) > maxServices {
		return fmt.Errorf("%w: the server lists more than %d services", reflection.ErrLimit, maxServices)
	}
	for _, name := range names {
		if name.IsValid() {
			r.Services = append(r.Services, string(name))
		}
	}
	slices.Sort(r.Services)
	r.Services = slices.Compact(r.Services)

	if err := r.askServices(stream, o.Service); err != nil {
		return err
	}
	if err := r.askImports(stream); err != nil {
		return err
	}
	// How the server ends the stream changes nothing.
	_, _ = stream.Close()
	return nil
}

// askServices requests the definitions of all services or, if only is not "", of that one.
func (r *Report) askServices(stream *grpcreflect.ClientStream, only string) error {
	for _, name := range r.Services {
		if only != "" && name != only || reflection.IsService(name) || r.Files.Declares(name) {
			continue
		}
		files, err := stream.FileContainingSymbol(protoreflect.FullName(name))
		if err == nil {
			for _, file := range files {
				if err := r.Files.Add(file); err != nil {
					return err
				}
			}
		}
		if err := r.note(name, err); err != nil {
			return err
		}
	}
	return nil
}

// askImports requests missing imports until all are there or the server lacks the rest.
func (r *Report) askImports(stream *grpcreflect.ClientStream) error {
	asked := map[string]bool{}
	for {
		before := len(asked)
		for _, path := range r.Files.Missing() {
			if asked[path] || isBuiltIn(path) {
				continue
			}
			asked[path] = true
			files, err := stream.FileByFilename(path)
			if err == nil {
				for _, file := range files {
					if err := r.Files.Add(file); err != nil {
						return err
					}
				}
			}
			if err := r.note(path, err); err != nil {
				return err
			}
		}
		if len(asked) == before {
			return nil
		}
	}
}

// isBuiltIn reports whether an import is known without asking the server, such as
// google/protobuf/any.proto.
func isBuiltIn(path string) bool {
	_, err := protoregistry.GlobalFiles.FindFileByPath(path)
	return err == nil && schema.IsWellKnown(path)
}

// note records that the server returned the error err instead of the definition of name, a service or
// an import.
//
// Errors: err, if it means that the server cannot be asked anything else.
func (r *Report) note(name string, err error) error {
	if err == nil {
		return nil
	}
	if grpcreflect.IsReflectionStreamBroken(err) {
		return err
	}
	r.Undescribed = append(r.Undescribed, name)
	return nil
}
