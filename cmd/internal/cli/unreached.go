package cli

import "strings"

// unreachedHint says what to do where a server could not be reached; "" where
// the reason says nothing that could be done.
func unreachedHint(reason string) string {
	switch {
	case strings.Contains(reason, "failed to verify certificate"):
		return "--upstream-ca names a PEM file of further CAs; 'unwire standin --ca-file ca.pem' writes the stand-in's"
	case strings.Contains(reason, "connection refused"):
		return "nothing listens there: --to names another server, and 'unwire standin' starts one"
	}
	return ""
}
