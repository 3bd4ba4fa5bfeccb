package cli

import (
	"strings"

	"unwire/replay"
)

// resultHint says what to do about a request to url that got no answer; "" where
// there is nothing to do.
func resultHint(reason replay.Reason, url string) string {
	const insecure = "--upstream-insecure sends without verifying it: whoever answers gets the secrets of the request"
	switch reason {
	case replay.CertificateUntrusted:
		return "--upstream-ca names a PEM file of further CAs; 'unwire standin --ca-file ca.pem' writes the stand-in's"
	case replay.CertificateExpired, replay.CertificateInvalid:
		return "renew the server's certificate; " + insecure
	case replay.CertificateWrongHost:
		return "--to names the server by another name; " + insecure
	case replay.HostNotFound:
		return "check the host's name; --to names another server"
	case replay.NoConnection:
		return "is the server running? --to names another one, and 'unwire standin' starts one"
	case replay.NotTLS:
		return "if the server speaks plain HTTP, use --to http://…"
	case replay.NoHTTP2:
		return "this call needs HTTP/2; --to names another server"
	case replay.HandshakeFailed:
		return "is it an HTTPS server? replay speaks TLS 1.2 and 1.3, and has no client certificate"
	case replay.ConnectTimeout:
		return "is the server running? --timeout gives it longer"
	case replay.NoAnswer:
		if strings.HasPrefix(url, "http:") {
			return "if the server expects TLS, use --to https://…"
		}
	}
	return ""
}
