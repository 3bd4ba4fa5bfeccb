package envelope

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// A trailerField is one line of a gRPC-Web trailer frame.
type trailerField struct{ Name, Value string }

// ParseTrailer reads the data of a gRPC-Web trailer frame: `name: value` lines.
//
// Errors: names the first line that is none; the others are returned.
// Source: RESEARCH.md#grpc-web
func ParseTrailer(data []byte) ([]trailerField, error) {
	var fields []trailerField
	var err error
	off := 0
	for line := range strings.SplitSeq(string(data), "\n") {
		name, value, ok := strings.Cut(line, ":")
		name = strings.ToLower(strings.TrimSpace(name))
		switch {
		case ok && name != "":
			fields = append(fields, trailerField{name, strings.TrimSpace(value)})
		case strings.TrimSpace(line) != "" && err == nil:
			err = fmt.Errorf("envelope: trailer at %#x: %q is no `name: value` line", off, line)
		}
		off += len(line) + 1
	}
	return fields, err
}

// ParseStatus reads a gRPC status from trailers, or from the headers of a
// response without a body, of which get returns a field's first value.
//
// Shape: nil where there is no grpc-status, and for status 0 an End without Error.
// Errors: with what could be read, where the number or the details are malformed.
func ParseStatus(get func(name string) string) (*End, error) {
	status := get("grpc-status")
	if status == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(status)
	if err != nil {
		err = fmt.Errorf("envelope: grpc-status %q is no number", status)
		n = 2
	}
	if n == 0 {
		return &End{}, err
	}
	e := &Error{Code: codeName(n), Message: get("grpc-message")}
	// The message is percent-encoded; what does not decode is shown as it came.
	if m, uerr := url.PathUnescape(e.Message); uerr == nil {
		e.Message = m
	}
	if bin := get("grpc-status-details-bin"); bin != "" {
		var derr error
		e.Details, derr = parseStatusDetails(bin)
		err = errors.Join(err, derr)
	}
	return &End{Error: e}, err
}

// parseStatusDetails reads field 3 of a google.rpc.Status, the Any messages.
func parseStatusDetails(s string) ([]Detail, error) {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return nil, fmt.Errorf("envelope: grpc-status-details-bin: %w", err)
	}
	var details []Detail
	err = eachBytes(b, func(number protowire.Number, v []byte) error {
		if number != 3 {
			return nil
		}
		var d Detail
		err := eachBytes(v, func(number protowire.Number, v []byte) error {
			switch number {
			case 1:
				d.Type = string(v[strings.LastIndexByte(string(v), '/')+1:])
			case 2:
				d.Value = v
			}
			return nil
		})
		details = append(details, d)
		return err
	})
	if err != nil {
		return details, fmt.Errorf("envelope: grpc-status-details-bin: %w", err)
	}
	return details, nil
}

// eachBytes calls f with every length-delimited field of a message.
func eachBytes(b []byte, f func(protowire.Number, []byte) error) error {
	for len(b) > 0 {
		number, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		m := protowire.ConsumeFieldValue(number, typ, b[n:])
		if m < 0 {
			return protowire.ParseError(m)
		}
		if typ == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(b[n:])
			if err := f(number, v); err != nil {
				return err
			}
		}
		b = b[n+m:]
	}
	return nil
}
