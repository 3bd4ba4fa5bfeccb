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

// A trailerField is one line of the trailers in a gRPC-Web body.
type trailerField struct {
	// Name is the field's name in lower case, and Value its value without surrounding white space.
	Name, Value string
}

// ParseTrailer parses the payload of a gRPC-Web trailer frame: lines of the form `name: value`.
//
// Errors: the first malformed line; the other lines are returned.
//
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
			err = fmt.Errorf("trailer at %#x: %q is not a line of the form `name: value`", off, line)
		}
		off += len(line) + 1
	}
	return fields, err
}

// ParseStatus parses a gRPC status from trailers, or from the headers of a response without a body. get returns
// the first value of a field.
//
// Shape: nil without grpc-status, and an End without Error for status 0.
//
// Errors: a malformed number or malformed details; the result has whatever could be read.
func ParseStatus(get func(name string) string) (*End, error) {
	status := get("grpc-status")
	if status == "" {
		return nil, nil
	}

	// A malformed number is still an error status, not success.
	n, err := strconv.Atoi(status)
	if err != nil {
		err = fmt.Errorf("grpc-status %q is not a number", status)
		// 2 is the code "unknown".
		n = 2
	}
	if n == 0 {
		return &End{}, err
	}
	e := &Error{Code: codeName(n), Message: get("grpc-message")}
	// The message is percent-encoded. A malformed one is kept unchanged.
	if m, uerr := url.PathUnescape(e.Message); uerr == nil {
		e.Message = m
	}

	// Details in base64 are optional. Their defects do not hide the status.
	if bin := get("grpc-status-details-bin"); bin != "" {
		var derr error
		e.Details, derr = parseStatusDetails(bin)
		err = errors.Join(err, derr)
	}
	return &End{Error: e}, err
}

// parseStatusDetails parses a google.rpc.Status in base64 and returns its field 3: messages of type
// google.protobuf.Any.
func parseStatusDetails(s string) ([]Detail, error) {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return nil, fmt.Errorf("grpc-status-details-bin cannot be decoded: %w", err)
	}
	var details []Detail

	// Fields 1 and 2, the code and the message, repeat the headers.
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
				// Any: field 1 is a URL that ends in the type's name, field 2 the encoded message.
				d.Value = v
			}
			return nil
		})
		details = append(details, d)
		return err
	})
	if err != nil {
		return details, fmt.Errorf("grpc-status-details-bin cannot be decoded: %w", err)
	}
	return details, nil
}

// eachBytes calls f for every length-delimited field of a message. protowire suffices here: package wire would
// build a tree.
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
