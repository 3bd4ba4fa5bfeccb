package probe

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/outbound"
)

// A Verdict is the outcome of verifying one field of a definition, or one claim about a field.
type Verdict string

const (
	// Confirmed: the server reads the field as defined, as far as its error messages reveal it.
	Confirmed Verdict = "confirmed"
	// Contradicted: the server reads the field differently.
	Contradicted Verdict = "contradicted"
	// Undecided: no response of the server decides it.
	Undecided Verdict = "undecided"
)

// VerifyOptions selects a method and the definition that is compared with the server's parser. Request,
// and the required Options, must be set. Names and Numbers are not used; Known is used only with
// AskNames.
type VerifyOptions struct {
	// Options are the options of the probe.
	Options
	// Request is the defined message type of the request.
	Request protoreflect.MessageDescriptor
	// Seen has the wire types of fields in requests that the server accepted, by path such as "1.2".
	Seen map[string]Hint
	// AskNames also verifies the names and types of fields, by the errors of the JSON parser. On
	// connect-es servers this requires Known or AllowExecute.
	AskNames bool
}

// A verifiedField is a field of the definition with the verdict about it.
type verifiedField struct {
	// Path has the field numbers from the request to the field, such as "1.2".
	Path string `json:"path"`
	// Message is the full name of the message that contains the field.
	Message string `json:"message"`

	// Number is the field number.
	Number int32 `json:"number"`

	// Name is the declared name of the field.
	Name string `json:"name"`
	// Type is the field's type in the definition.
	Type string `json:"type"`
	// Label is the field's label in the definition: "singular", "repeated" or "map".
	Label string `json:"label"`

	// Verdict says whether the server parses the field as defined.
	Verdict Verdict `json:"verdict"`

	// Said are quotations of the server's error messages on which the verdict is based.
	Said []string `json:"said"`

	// Concluded is the reason for the verdict.
	Concluded string `json:"concluded"`
	// Open describes what the server cannot reveal about a confirmed field.
	Open string `json:"open,omitempty"`
}

// A Verification is the result of verifying the definition of a request.
type Verification struct {
	// Method is the verified RPC method, "/package.Service/Method".
	Method string `json:"method"`
	// Request is the request's full name in the definitions.
	Request string `json:"request"`
	// RequestType is the full name that the server reported; "" if it did not.
	RequestType string `json:"request_type"`
	// Runtime is the library that parses the server's requests.
	Runtime Runtime `json:"runtime"`
	// Protocol is the protocol in which messages were sent.
	Protocol string `json:"protocol"`
	// Kind is the kind of method, "unary", "stream" or "bidi"; "" if unknown.
	Kind string `json:"kind"`
	// Requests is the number of requests, including those whose response came from a journal.
	Requests int `json:"requests"`
	// Resumed is the number of requests whose response came from the journal.
	Resumed int `json:"resumed"`
	// Bytes is the total size of all request bodies, in bytes.
	Bytes int64 `json:"bytes"`
	// Executed is the number of requests that may have started the RPC handler.
	Executed int `json:"executed"`
	// Confirmed is the number of confirmed fields.
	Confirmed int `json:"confirmed"`

	// Contradicted is the number of contradicted fields.
	Contradicted int `json:"contradicted"`

	// Undecided is the number of undecided fields.
	Undecided int `json:"undecided"`
	// Stopped explains why the verification ended early; "" if it was completed.
	Stopped string `json:"stopped,omitempty"`
	// Reason is the kind of failure for programs, if a request got no response.
	Reason outbound.Reason `json:"reason,omitempty"`
	// Notes are remarks for the user about the whole verification.
	Notes []string `json:"notes"`
	// Claims are the fields of the definition with the verdicts about them, sorted by path.
	Claims []verifiedField `json:"fields"`
}

// conclude completes the verification: it counts the verdicts, and sets the reason for each undecided
// field. err is the error with which the probe ended; it returns nil if the verification only ended
// early.
func (v *Verification) conclude(c *Client, d *Definition, res *Result, err error) error {
	v.RequestType, v.Runtime, v.Kind, v.Protocol = res.RequestType, res.Runtime, res.Kind, string(c.protocol)
	v.Requests, v.Resumed, v.Bytes, v.Executed = c.Requests, c.resumed, c.bytes, c.executed

	// An early stop is part of the result, not an error.
	var stop *stopError
	if errors.As(err, &stop) {
		v.Stopped, v.Reason, err = stop.Error(), stop.reason, nil
	}

	for _, e := range d.Fields {
		if e.Verdict == Undecided && e.Concluded == "" {
			e.Concluded = v.whyUndecided(e)
		}
		switch e.Verdict {
		case Confirmed:
			v.Confirmed++
		case Contradicted:
			v.Contradicted++
		default:
			v.Undecided++
		}
		v.Claims = append(v.Claims, e.verifiedField)
	}
	slices.SortStableFunc(v.Claims, func(a, b verifiedField) int { return slices.Compare(numbers(a.Path), numbers(b.Path)) })

	// Remarks about the definitions as a whole.
	if d.truncated {
		res.Note("the definitions have more fields than verify can test at once; it tested the first " + strconv.Itoa(maxExpectations))
	}
	if t := res.RequestType; t != "" && t != v.Request {
		res.Note(fmt.Sprintf("the server calls the request type %s, but the .proto definitions call it %s", t, v.Request))
	}
	v.Notes = append([]string{}, res.Notes...)
	if v.Claims == nil {
		v.Claims = []verifiedField{}
	}
	return err
}

// whyUndecided returns the reason why the field e is undecided.
func (v *Verification) whyUndecided(e *Expectation) string {
	unknown := v.Runtime == "" || v.Runtime == Unknown
	switch {
	case v.Stopped != "" && unknown:
		return "no server answer reveals how the field is parsed"
	case unknown:
		return "the server's answers do not contain the error messages of its parser"
	case !e.Reachable():
		return fmt.Sprintf("not tested, because the field %s that contains it is not as declared", e.In.Above.Path)
	case v.Stopped != "":
		return "not tested, because the run stopped early"
	}
	return "the server's answers reveal nothing about the field"
}
