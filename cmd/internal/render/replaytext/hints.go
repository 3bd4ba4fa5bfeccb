package replaytext

import (
	"strings"

	"unwire/replay/outbound"
)

// Hint returns what to do about a request to url that got no response for a reason, which message
// describes; "" if nothing is known.
func Hint(reason outbound.Reason, message, url string) string {
	const insecure = "or skip verification with --upstream-insecure, which sends the request's secrets to any machine that answers"
	// Each reason has one remedy; reasons without one get no hint.
	switch reason {
	case outbound.CertificateUntrusted:
		return "name a PEM file with the server's CA with --upstream-ca; 'unwire standin --ca-file ca.pem' writes the CA of the stand-in"
	case outbound.CertificateExpired, outbound.CertificateInvalid:
		return "renew the server's certificate; " + insecure
	case outbound.CertificateWrongHost:
		return "use the name in the server's certificate with --to; " + insecure
	case outbound.HostNotFound:
		return "check the host name, or use another server with --to"
	case outbound.NoConnection:
		return "check that the server is running; use another server with --to, or start one with 'unwire standin'"
	case outbound.NotTLS:
		return "if the server speaks plain HTTP, use --to http://…"
	case outbound.NoHTTP2:
		return "this call needs HTTP/2: use --to with the URL of a server that supports HTTP/2"
	case outbound.HandshakeFailed:
		return "check that the server uses HTTPS; replay supports TLS 1.2 and 1.3, without client certificates"
	case outbound.ConnectTimeout:
		return "check that the server is running; increase the deadline with --max-time (replay) or --timeout (probe)"
	case outbound.NoAnswer:
		if strings.HasPrefix(url, "http:") && !outbound.IsVersionFault(message) {
			return "if the server expects TLS, use --to https://…"
		}
	}
	return ""
}
