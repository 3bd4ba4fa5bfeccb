package envelope

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// ParseEnd reads the data of an end-of-stream frame: an object that may have
// "error" and "metadata".
//
// Errors: with what could be read. An End is returned in any case.
// Source: RESEARCH.md#end-of-stream
func ParseEnd(data []byte) (*End, error) {
	end := &End{}
	var o map[string]json.RawMessage
	if err := json.Unmarshal(data, &o); err != nil {
		return end, fmt.Errorf("envelope: end-of-stream: %w", atOffset(err))
	}
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
		return end, fmt.Errorf("envelope: end-of-stream: %w", err)
	}
	return end, nil
}

// ParseError reads the body of a unary error: {"code", "message", "details"}.
//
// Errors: with what could be read; a nil Error if the body has no code.
// Source: RESEARCH.md#errors
func ParseError(body []byte) (*Error, error) {
	e, err := parseError(body)
	if err != nil {
		err = fmt.Errorf("envelope: error body: %w", err)
	}
	if e != nil && e.Code == "" {
		e = nil
	}
	return e, err
}

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
	var errs []error
	if err != nil {
		errs = append(errs, atOffset(err))
	}
	e.Code = parseCode(o.Code)
	if o.Message != nil && json.Unmarshal(o.Message, &e.Message) != nil {
		e.Message = string(o.Message)
	}
	for i, d := range o.Details {
		detail, err := parseDetail(d)
		if err != nil {
			errs = append(errs, fmt.Errorf("detail %d: %w", i, err))
		}
		e.Details = append(e.Details, detail)
	}
	return e, errors.Join(errs...)
}

// parseCode reads a code's name. Numbers are not in the specification, but are
// reported to be sent.
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
		return d, fmt.Errorf("value %.40q: %w", o.Value, err)
	}
	return d, nil
}

// parseMetadata reads an object of lists of strings; one string for a list of
// one is accepted.
func parseMetadata(raw json.RawMessage) (map[string][]string, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("metadata: %w", atOffset(err))
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
			errs = append(errs, fmt.Errorf("metadata %q: %w", name, atOffset(err)))
			continue
		}
		out[name] = []string{one}
	}
	return out, errors.Join(errs...)
}

// atOffset puts the place into a JSON error.
func atOffset(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("JSON at %#x: %w", syntax.Offset, err)
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("JSON at %#x: %w", wrong.Offset, err)
	}
	return err
}
