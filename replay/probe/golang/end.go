package golang

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/replay/probe"
)

// A completeEnd is the error with which a call ends although the parser accepts the message: because a
// required field is missing, which protobuf-go checks last; because the deadline has expired, which
// connect-go checks after parsing; or because a second message follows. It is used to end requests if
// no string field is known that could be made invalid; proto2 does not validate strings.
//
// Source: replay/probe/README.md#protobuf-go-invalid-utf-8-as-the-oracle
type completeEnd struct {
	// required is the full name of the missing required field; "" if the call ends for another reason.
	required string
	// code is the RPC error code.
	code string
}

// requiredNotSet matches protobuf-go's error for a missing required field.
var requiredNotSet = regexp.MustCompile(`required field ([\w.]+) not set`)

// met reports whether a response shows that the parser accepted the message. If a test happens to set
// the required field, the call still ends because of its deadline.
func (e *completeEnd) met(a *probe.Answer) bool {
	return requiredNotSet.MatchString(a.Text) || !a.FromParser && (a.Code == e.code || a.Code == "deadline_exceeded" || refusesCaller(a))
}

// refusesCaller reports whether a response means that an interceptor refused the caller, which happens
// before the handler runs.
func refusesCaller(a *probe.Answer) bool {
	return a.Code == "unauthenticated" || a.Code == "permission_denied"
}

// findEnd determines, once, how a call whose message the parser accepts ends before its handler runs.
// It returns false if it does not.
func (s *server) findEnd(ctx context.Context) (bool, error) {
	if s.endAsked {
		return s.end != nil, nil
	}
	s.endAsked = true
	if !s.MayComplete() {
		// An answer that forbids further requests only means that there is no such end.
		if a, err := s.AskCardinality(ctx); err != nil && a == nil {
			return false, err
		}
	}
	if !s.MayComplete() {
		return false, nil
	}
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, protowire.FirstReservedNumber, protowire.VarintType), 0)
	a, err := s.askComplete(ctx, "how a call with nothing known in its message ends", unknown)
	switch {
	// An answer that forbids further requests is obeyed on other machines; on this one it only means
	// that there is no such end.
	case err != nil && (a == nil || s.Remote):
		return false, err
	case err != nil:
		return false, nil
	}
	if m := requiredNotSet.FindStringSubmatch(a.Text); m != nil {
		s.end = &completeEnd{required: m[1], code: a.Code}
	} else if a.Code != "" && !a.FromParser {
		s.end = &completeEnd{code: a.Code}
	}
	return s.end != nil, nil
}

// askComplete sends a message that the parser may accept. On this machine, further requests may follow
// after the caller was refused: such a response shows that the parser accepted the message.
func (s *server) askComplete(ctx context.Context, what string, message []byte) (*probe.Answer, error) {
	a, err := s.AskComplete(ctx, what, message)
	if err != nil && a != nil && !s.Remote && !a.Accepted && refusesCaller(a) {
		return a, nil
	}
	return a, err
}

// noteEnd adds a note to the result about how requests ended that the parser accepted. poison is nil if
// none ended with an invalid string.
func (s *server) noteEnd(res *probe.Result, poison []byte) {
	switch {
	case poison != nil:
	case s.end == nil:
		res.Note("the request has no string field that the server checks, so unwire could not find messages and repeated numbers")
	case s.end.required != "":
		res.Note(fmt.Sprintf("the request has no string field that the server checks; unwire instead omitted the required field %s, so that the server rejected each request", s.end.required))
		if i := strings.LastIndexByte(s.end.required, '.'); i > 0 && res.RequestType == "" {
			res.RequestType = s.end.required[:i]
		}
	case s.HasEnvelopes():
		res.Note(fmt.Sprintf("the request has no string field that the server checks; unwire instead sent two messages, so that %s rejected each request after parsing the first", res.Runtime))
	default:
		res.Note("the request has no string field that the server checks; unwire instead sent an expired deadline, so that connect-go rejected each request after parsing it")
	}
}
