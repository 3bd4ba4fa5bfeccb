package replaytext

import (
	"strings"

	"unwire/replay/outbound"
)

// Hint says what to do about a request to url that got no answer; "" where
// there is nothing to do.
func Hint(reason outbound.Reason, url string) string {
	const insecure = "--upstream-insecure sends without verifying it: whoever answers gets the secrets of the request"
	switch reason {
	case outbound.CertificateUntrusted:
		return "--upstream-ca names a PEM file of further CAs; 'unwire standin --ca-file ca.pem' writes the stand-in's"
	case outbound.CertificateExpired, outbound.CertificateInvalid:
		return "renew the server's certificate; " + insecure
	case outbound.CertificateWrongHost:
		return "--to names the server by another name; " + insecure
	case outbound.HostNotFound:
		return "check the host's name; --to names another server"
	case outbound.NoConnection:
		return "is the server running? --to names another one, and 'unwire standin' starts one"
	case outbound.NotTLS:
		return "if the server speaks plain HTTP, use --to http://…"
	case outbound.NoHTTP2:
		return "this call needs HTTP/2; --to names another server"
	case outbound.HandshakeFailed:
		return "is it an HTTPS server? replay speaks TLS 1.2 and 1.3, and has no client certificate"
	case outbound.ConnectTimeout:
		return "is the server running? --max-time gives a replay longer, --timeout a probe"
	case outbound.NoAnswer:
		if strings.HasPrefix(url, "http:") {
			return "if the server expects TLS, use --to https://…"
		}
	}
	return ""
}
