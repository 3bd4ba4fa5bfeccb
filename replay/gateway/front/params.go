package front

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"unwire/replay/agent/turn"
)

// NoteHeader is the response header that lists the request's parameters that had no effect, with the
// reasons.
const NoteHeader = "Unwire-Note"

// A Treatment is how a front end handles a parameter of a request.
type Treatment string

// The treatments.
const (
	// Honoured parameters have the effect that the API defines.
	Honoured Treatment = "honoured"
	// Emulated parameters are carried out by unwire, not by the upstream.
	Emulated Treatment = "emulated"
	// Ignored parameters have no effect; the response header NoteHeader lists them.
	Ignored Treatment = "ignored"
	// Refused parameters fail the request, except with a value in Param.Allowed.
	Refused Treatment = "refused"
)

// A Param describes how one parameter of an API's requests is handled. A parameter that is null always
// counts as absent.
type Param struct {
	// Name is the parameter's name.
	Name string

	// Treatment is how the front end handles the parameter.
	Treatment Treatment
	// Allowed are JSON values with default behaviour, such as 1 for n. A refused parameter is accepted
	// with such a value, and an ignored one is not listed.
	Allowed []string
	// Note explains the treatment, for the documentation, the response header and the error.
	Note string
}

// Params are all parameters of an API's requests, or all members of an object in them.
type Params []Param

// Check compares the members of a request, body, with the table. It returns notes about the parameters
// that have no effect, including those that the table does not list.
//
// Errors: kind Invalid for the first refused parameter.
func (p Params) Check(body map[string]json.RawMessage) (notes []string, err *turn.Error) {
	names := make([]string, 0, len(body))
	for name := range body {
		names = append(names, name)
	}
	slices.Sort(names)

	for _, name := range names {
		value := compact(body[name])
		if value == "null" {
			continue
		}
		// Unknown parameters have no effect, but the client should learn of it.
		i := slices.IndexFunc(p, func(param Param) bool { return param.Name == name })
		if i < 0 {
			notes = append(notes, fmt.Sprintf("%.40q: this parameter is unknown, and has no effect", name))
			continue
		}
		param := p[i]
		if slices.Contains(param.Allowed, value) {
			continue
		}
		switch param.Treatment {
		case Ignored:
			notes = append(notes, name+": "+param.Note)
		case Refused:
			return notes, &turn.Error{Kind: turn.Invalid, Param: name, Code: "unsupported_parameter", Message: name + " is not supported: " + param.Note}
		}
	}
	return notes, nil
}

// compact returns a JSON value without white space, for comparison with Param.Allowed. A long value is
// truncated; it then equals no allowed one.
func compact(raw json.RawMessage) string {
	const longest = 256
	var b bytes.Buffer
	if len(raw) > longest || json.Compact(&b, raw) != nil {
		return string(raw[:min(len(raw), longest)])
	}
	return b.String()
}

// WriteNotes puts notes in the response's header. It must be called before the body is
// written.
func WriteNotes(w http.ResponseWriter, notes []string) {
	if len(notes) > 0 {
		w.Header().Set(NoteHeader, strings.Join(notes[:min(len(notes), maxNotes)], "; "))
	}
}

// maxNotes bounds the header that WriteNotes writes.
const maxNotes = 30
