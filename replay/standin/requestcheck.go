package standin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// A gate is an interceptor that checks the credentials and the client's version before a handler runs.
// Real servers also do this in an interceptor, so a malformed unary request is reported before the
// credentials are checked.
type gate struct {
	// s is the server whose calls are checked.
	s *Server
}

// WrapUnary adds the check to unary calls.
func (g gate) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if err := g.check(req.Header()); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// WrapStreamingHandler adds the check to streaming calls.
func (g gate) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if err := g.check(conn.RequestHeader()); err != nil {
			return err
		}
		return next(ctx, conn)
	}
}

// WrapStreamingClient returns next, because a server has no clients.
func (g gate) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// check returns an error if the headers h have no valid token or an outdated client version.
func (g gate) check(h http.Header) error {
	token, ok := strings.CutPrefix(h.Get("authorization"), "Bearer ")
	switch {
	case !ok || token == "":
		return g.refuse("ERROR_NOT_LOGGED_IN", "the request has no bearer token")
	case g.s.o.Token != "" && token != g.s.o.Token:
		return g.refuse("ERROR_UNAUTHORIZED", "the bearer token is not the one that the stand-in accepts")
	}
	if v := g.s.script.Gate; v != nil && older(h.Get("x-cursor-client-version"), v.MinVersion) {
		return v.Error.err()
	}
	return nil
}

// refuse returns the error for a call without valid credentials. kind is the name of the enum value in
// the error's details, and why the message.
func (g gate) refuse(kind protoreflect.Name, why string) error {
	e := connect.NewError(connect.CodeUnauthenticated, errors.New(why))
	m := dynamicpb.NewMessage(g.s.api.Message("aiserver.v1.ErrorDetails"))
	fd := m.Descriptor().Fields().ByName("error")
	if v := fd.Enum().Values().ByName(kind); v != nil {
		m.Set(fd, protoreflect.ValueOfEnum(v.Number()))
	}
	details := within(m, "details")
	set(details, "title", "Not signed in")
	set(details, "detail", why)
	d, err := connect.NewErrorDetail(m)
	if err != nil {
		return fmt.Errorf("standin: %w", err)
	}
	e.AddDetail(d)
	return e
}

// older reports whether a client's version is below limit, or has no numbers.
func older(version, limit string) bool {
	have, want := versionNumbers(version), versionNumbers(limit)
	for i, w := range want {
		if i >= len(have) {
			return true
		}
		if have[i] != w {
			return have[i] < w
		}
	}
	return false
}

// versionNumbers returns the dotted numbers of a version such as "cli-2026.01.09-231024f" or
// "2.0.77".
func versionNumbers(v string) (list []int) {
	start := strings.IndexAny(v, "0123456789")
	if start < 0 {
		return nil
	}
	v = v[start:]
	if end := strings.IndexFunc(v, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); end >= 0 {
		v = v[:end]
	}
	for s := range strings.SplitSeq(v, ".") {
		n, err := strconv.Atoi(s)
		if err != nil {
			break
		}
		list = append(list, n)
	}
	return list
}
