package golang

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/replay/probe"
)

// A completeEnd is the answer to a message that the parser accepts, in a call that ends before its
// handler runs: because a required field is missing, which protobuf-go checks last, because the
// deadline is over, which connect-go checks after parsing, or because a second message follows. It
// ends requests where no string with invalid UTF-8 can: proto2 does not check strings.
//
// Source: replay/probe/README.md#protobuf-go-invalid-utf-8-as-the-oracle
type completeEnd struct {
	// required is the full name of the field that is missing; "" if the call ends for another
	// reason.
	required string
	// code is the error code.
	code string
}

var requiredNotSet = regexp.MustCompile(`required field ([\w.]+) not set`)

// met reports whether an answer shows that the parser accepted the message. A test may set the
// required field, so that the call ends because of its deadline.
func (e *completeEnd) met(a *probe.Answer) bool {
	return requiredNotSet.MatchString(a.Text) || !a.FromParser && (a.Code == e.code || a.Code == "deadline_exceeded" || refusesCaller(a))
}

// refusesCaller reports whether an interceptor refused the caller, which it does before the handler.
func refusesCaller(a *probe.Answer) bool {
	return a.Code == "unauthenticated" || a.Code == "permission_denied"
}

// findEnd finds out, once, whether a message without any known field ends before its handler runs.
func (s *server) findEnd(ctx context.Context) (bool, error) {
	if s.endAsked || !s.MayComplete() {
		return s.end != nil, nil
	}
	s.endAsked = true
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

// askComplete sends a complete message. On this machine, further requests may follow a refusal of
// the caller: each shows that the parser accepted the message.
func (s *server) askComplete(ctx context.Context, what string, message []byte) (*probe.Answer, error) {
	a, err := s.AskComplete(ctx, what, message)
	if err != nil && a != nil && !s.Remote && !a.Accepted && refusesCaller(a) {
		return a, nil
	}
	return a, err
}

// noteEnd notes how requests ended that the parser accepted.
func (s *server) noteEnd(res *probe.Result, poison []byte) {
	switch {
	case poison != nil:
	case s.end == nil:
		res.Note("no string field was found to end requests with, so messages and lists cannot be distinguished from unknown fields")
	case s.end.required != "":
		res.Note(fmt.Sprintf("no string field was found to end requests with; they end because the required field %s is missing, which the server checks last", s.end.required))
		if i := strings.LastIndexByte(s.end.required, '.'); i > 0 && res.RequestType == "" {
			res.RequestType = s.end.required[:i]
		}
	case res.Runtime == probe.GRPCGo:
		res.Note("no string field was found to end requests with; they end because a second message follows, which grpc-go refuses after parsing the first")
	default:
		res.Note("no string field was found to end requests with; they end because their deadline is over, which connect-go checks after parsing")
	}
}
