package envelope

// codes are the codes of Connect and gRPC, by gRPC's number, with the HTTP
// status that a Connect unary error has.
//
// Source: https://connectrpc.com/docs/protocol#error-codes
var codes = [...]struct {
	name   string
	status int
}{
	{"ok", 200},
	{"canceled", 499},
	{"unknown", 500},
	{"invalid_argument", 400},
	{"deadline_exceeded", 504},
	{"not_found", 404},
	{"already_exists", 409},
	{"permission_denied", 403},
	{"resource_exhausted", 429},
	{"failed_precondition", 400},
	{"aborted", 409},
	{"out_of_range", 400},
	{"unimplemented", 501},
	{"internal", 500},
	{"unavailable", 503},
	{"data_loss", 500},
	{"unauthenticated", 401},
}

// CodeName returns the name of a gRPC status number: 3 is "invalid_argument".
// Numbers that no code has are "unknown", as gRPC wants them read.
func CodeName(number int) string {
	if number < 0 || number >= len(codes) {
		return codes[2].name
	}
	return codes[number].name
}

// CodeNumber returns the number of a code's name, and whether there is such a code.
func CodeNumber(name string) (number int, ok bool) {
	for i := range codes {
		if codes[i].name == name {
			return i, true
		}
	}
	return 0, false
}

// CodeStatus returns the HTTP status of a Connect unary error; 500 for a name
// that no code has.
func CodeStatus(name string) int {
	if n, ok := CodeNumber(name); ok {
		return codes[n].status
	}
	return 500
}

// CodeOfStatus returns the code that a client concludes from an HTTP status
// alone, where the body does not tell one.
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
