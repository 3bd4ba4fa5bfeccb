package probe

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/outbound"
)

// A Verdict is what a server's parser makes of one field of a definition.
type Verdict string

const (
	// it reads the number as the definition says, as far as its runtime lets one see
	Confirmed    Verdict = "confirmed"
	Contradicted Verdict = "contradicted" // it does not
	Undecided    Verdict = "undecided"    // nothing that it said tells
)

// VerifyOptions says which definition to hold against which method. Request and
// what Options needs are needed; Names, Known and Numbers are not used.
type VerifyOptions struct {
	Options
	// what the definitions say the request is
	Request protoreflect.MessageDescriptor
	// what accepted requests show of fields, by path: "1.2"
	Seen map[string]Hint
}

// A verifiedField is a field of the definitions with what came of asking.
//
// Shape: Said is the server's statement, and Concluded is ours.
type verifiedField struct {
	Path      string   `json:"path"`    // of the field: "1.2"
	Message   string   `json:"message"` // full name
	Number    int32    `json:"number"`
	Name      string   `json:"name"`
	Type      string   `json:"type"`  // as the definition has it
	Label     string   `json:"label"` // "singular", "repeated" or "map"
	Verdict   Verdict  `json:"verdict"`
	Said      []string `json:"said"`
	Concluded string   `json:"concluded"`
	// of a confirmed one: what the runtime does not let one see
	Open string `json:"open,omitempty"`
}

// A Verification is what a server's parser made of a request's definition.
type Verification struct {
	Method      string  `json:"method"`
	Request     string  `json:"request"` // full name, by the definitions
	RequestType string  `json:"request_type"`
	Runtime     Runtime `json:"runtime"`
	Protocol    string  `json:"protocol"`
	Kind        string  `json:"kind"`
	Requests    int     `json:"requests"`
	Resumed     int     `json:"resumed"`
	Bytes       int64   `json:"bytes"`
	// requests that may have run the handler
	Executed     int    `json:"executed"`
	Confirmed    int    `json:"confirmed"`
	Contradicted int    `json:"contradicted"`
	Undecided    int    `json:"undecided"`
	Stopped      string `json:"stopped,omitempty"`
	// why a request got no answer
	Reason outbound.Reason `json:"reason,omitempty"`
	Notes  []string        `json:"notes"`
	Claims []verifiedField `json:"fields"`
}

// conclude counts the verdicts, and says of what was not decided why. What ended
// the verification early is no error.
func (v *Verification) conclude(c *Client, d *Definition, res *Result, err error) error {
	v.RequestType, v.Runtime, v.Kind, v.Protocol = res.RequestType, res.Runtime, res.Kind, string(c.protocol)
	v.Requests, v.Resumed, v.Bytes, v.Executed = c.Requests, c.resumed, c.bytes, c.executed
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

	if d.truncated {
		res.Note("the definitions have more fields than are verified at once: the first " + strconv.Itoa(maxExpectations))
	}
	if t := res.RequestType; t != "" && t != v.Request {
		res.Note(fmt.Sprintf("the server calls the request %s, the definitions %s", t, v.Request))
	}
	v.Notes = append([]string{}, res.Notes...)
	if v.Claims == nil {
		v.Claims = []verifiedField{}
	}
	return err
}

// whyUndecided says why nothing was concluded of a field.
func (v *Verification) whyUndecided(e *Expectation) string {
	unknown := v.Runtime == "" || v.Runtime == Unknown
	switch {
	case v.Stopped != "" && unknown:
		return "there was no answer that tells"
	case unknown:
		return "the server says nothing of what its parser met"
	case !e.Reachable():
		return fmt.Sprintf("field %s, which leads to it, is not as the definitions say", e.In.Above.Path)
	case v.Stopped != "":
		return "it was not asked about: the run was stopped"
	}
	return "nothing that the server said tells"
}
