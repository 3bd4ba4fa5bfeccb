package envelope

import "slices"

// codes are the names of the status codes of Connect and gRPC, indexed by gRPC's number.
//
// Source: https://connectrpc.com/docs/protocol#error-codes
var codes = [...]string{
	"ok",
	"canceled",
	"unknown",
	"invalid_argument",
	"deadline_exceeded",
	"not_found",
	"already_exists",
	"permission_denied",
	"resource_exhausted",
	"failed_precondition",
	"aborted",
	"out_of_range",
	"unimplemented",
	"internal",
	"unavailable",
	"data_loss",
	"unauthenticated",
}

// codeName returns the name of a gRPC status number: 3 is "invalid_argument". Undefined numbers become
// "unknown", as gRPC requires.
func codeName(number int) string {
	if number < 0 || number >= len(codes) {
		return codes[2]
	}
	return codes[number]
}

// Codes returns the names of all status codes, indexed by gRPC's number.
func Codes() []string { return slices.Clone(codes[:]) }

// CodeNumber returns the gRPC number of a status code's name. ok is false for an unknown name.
func CodeNumber(name string) (number int, ok bool) {
	for i := range codes {
		if codes[i] == name {
			return i, true
		}
	}
	return 0, false
}

// CodeOfHTTP returns the status code that best describes an HTTP status of a server that is not an RPC server:
// 404 is "not_found". Compare CodeOfStatus.
//
// Source: https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
func CodeOfHTTP(status int) string {
	switch status {
	case 400, 405, 406, 410, 411, 413, 414, 415, 416, 422:
		return "invalid_argument"
	case 404:
		return "not_found"
	case 408, 504:
		return "deadline_exceeded"
	case 409:
		return "aborted"
	case 412:
		return "failed_precondition"
	case 429:
		return "resource_exhausted"
	case 499:
		return "canceled"
	case 500:
		return "internal"
	case 501:
		return "unimplemented"
	}
	return CodeOfStatus(status)
}

// CodeOfStatus returns the status code that an RPC client concludes from an HTTP status if the body has no
// error: 404 is "unimplemented".
//
// Source: https://connectrpc.com/docs/protocol#http-to-error-code
func CodeOfStatus(status int) string {
	switch status {
	case 200:
		return "ok"
	case 400:
		return "internal"
	case 401:
		return "unauthenticated"
	case 403:
		return "permission_denied"
	case 404:
		return "unimplemented"
	case 429, 502, 503, 504:
		return "unavailable"
	}
	return "unknown"
}
