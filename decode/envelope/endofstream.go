package envelope

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// ParseEnd parses the payload of a Connect end-of-stream frame: a JSON object with optional members "error" and
// "metadata".
//
// Errors: malformed JSON. The result is never nil and has whatever could be read.
//
// Source: RESEARCH.md#end-of-stream
func ParseEnd(data []byte) (*End, error) {
	end := &End{}
	var o map[string]json.RawMessage
	if err := json.Unmarshal(data, &o); err != nil {
		return end, fmt.Errorf("the end-of-stream message is malformed: %w", atOffset(err))
	}
	// Parse both members, even if one is malformed.
	var errs []error
	if raw, ok := o["error"]; ok && string(raw) != "null" {
		var err error
		end.Error, err = parseError(raw)
		errs = append(errs, err)
	}
	if raw, ok := o["metadata"]; ok && string(raw) != "null" {
		var err error
		end.Metadata, err = parseMetadata(raw)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return end, fmt.Errorf("the end-of-stream message is malformed: %w", err)
	}
	return end, nil
}

// ParseError parses the JSON body of a unary Connect error: {"code", "message", "details"}.
//
// Errors: malformed JSON; the result has whatever could be read. The result is nil if the body has no code.
//
// Source: RESEARCH.md#errors
func ParseError(body []byte) (*Error, error) {
	e, err := parseError(body)
	if err != nil {
		err = fmt.Errorf("the error in the body is malformed: %w", err)
	}
	if e != nil && e.Code == "" {
		e = nil
	}
	return e, err
}

// parseError parses an error object leniently: members of a wrong type become text, and are reported.
func parseError(raw []byte) (*Error, error) {
	var o struct {
		Code    json.RawMessage   `json:"code"`
		Message json.RawMessage   `json:"message"`
		Details []json.RawMessage `json:"details"`
	}
	e := &Error{}
	err := json.Unmarshal(raw, &o)
	var wrong *json.UnmarshalTypeError
	if err != nil && !errors.As(err, &wrong) {
		return nil, atOffset(err)
	}
	// A member of a wrong type leaves the others readable.
	var errs []error
	if err != nil {
		errs = append(errs, atOffset(err))
	}

	// Servers disagree about the types of these members, so none of them makes the others unreadable.
	e.Code = parseCode(o.Code)
	if o.Message != nil && json.Unmarshal(o.Message, &e.Message) != nil {
		e.Message = string(o.Message)
	}
	for i, d := range o.Details {
		detail, err := parseDetail(d)
		if err != nil {
			errs = append(errs, fmt.Errorf("detail %d cannot be read: %w", i, err))
		}
		e.Details = append(e.Details, detail)
	}
	return e, errors.Join(errs...)
}

// parseCode parses a status code. The specification has names only, but some servers send gRPC's numbers.
func parseCode(raw json.RawMessage) string {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return name
	}
	if n, err := strconv.Atoi(string(raw)); err == nil {
		return codeName(n)
	}
	return string(raw)
}

// parseDetail parses one element of the list "details" in an error.
func parseDetail(raw json.RawMessage) (Detail, error) {
	var o struct {
		Type  string          `json:"type"`
		Value string          `json:"value"`
		Debug json.RawMessage `json:"debug"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return Detail{Type: o.Type, Debug: o.Debug}, atOffset(err)
	}
	d := Detail{Type: o.Type, Debug: o.Debug}
	var err error
	if d.Value, err = decodeBase64(o.Value); err != nil {
		return d, fmt.Errorf("the value %.40q cannot be decoded: %w", o.Value, err)
	}
	return d, nil
}

// parseMetadata parses an object whose members are lists of strings. A single string is accepted in place of a
// list.
func parseMetadata(raw json.RawMessage) (map[string][]string, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("the metadata cannot be read: %w", atOffset(err))
	}
	out := make(map[string][]string, len(o))
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o)) {
		var list []string
		if err := json.Unmarshal(o[name], &list); err == nil {
			out[name] = list
			continue
		}
		var one string
		if err := json.Unmarshal(o[name], &one); err != nil {
			errs = append(errs, fmt.Errorf("the metadata %q cannot be read: %w", name, atOffset(err)))
			continue
		}
		out[name] = []string{one}
	}
	return out, errors.Join(errs...)
}

// atOffset adds to a JSON syntax or type error the offset in the text at which it occurred.
func atOffset(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("JSON at offset %#x: %w", syntax.Offset, err)
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("JSON at offset %#x: %w", wrong.Offset, err)
	}
	return err
}
