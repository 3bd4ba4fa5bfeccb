// Package failure sorts the reasons for which exchanges failed into kinds, and says what to
// do about each. An error of an exchange goes in, a Failure comes out, which capture, ls and
// show print.
package failure

import (
	"strings"

	"unwire/captures"
	"unwire/mitm/refusal"
)

// A Kind is a class of reasons for which exchanges fail, as JSON output names it. The list may grow.
type Kind string

const (
	CertificateRefused Kind = "certificate-refused" // by the client
	serverCertificate  Kind = "server-certificate"
	unreachable        Kind = "unreachable"
	unknownHost        Kind = "unknown-host"
	timeout            Kind = "timeout"
	request            Kind = "request"
	other              Kind = "other"
	// Shortened means that --max-body limited the number of stored bytes.
	Shortened Kind = "shortened"
	// Status is the error status of a server.
	Status Kind = "status"
)

// A Failure describes why an exchange failed.
type Failure struct {
	// Kind is the class of the failure.
	Kind Kind

	// Reason describes the failure.
	Reason string

	// Remedy says what the user can do; "" if nothing is known.
	Remedy string
}

// pinning is the hint about a client that rejects the proxy's certificate.
const pinning = "the client rejected the proxy's certificate. If the client ignores the CA variables, configure it to trust the CA " +
	"('unwire ca' prints the file). If the client pins the server's certificate, no proxy can decrypt its traffic. Then record its " +
	"packets with 'capture --passive' (Linux; the client must log its TLS keys, as Node, curl and Chromium can), turn pinning off in the " +
	"client, change the client's server address and use 'capture --reverse', or exclude the host with 'capture --skip HOST'"

// kinds lists words that identify the kind of a failure in the text of an error. The first match counts.
var kinds = []struct {
	has    string
	kind   Kind
	remedy string
}{
	{refusal.Prefix, CertificateRefused, pinning},
	{"is not trusted", serverCertificate, "if you trust the server, repeat the recording or the request with --upstream-ca PEM (a file with the server's CA)"},
	{"failed to verify certificate", serverCertificate, "if you trust the server, repeat the recording or the request with --upstream-ca PEM (a file with the server's CA)"},
	{"the proxy cannot be reached", unreachable, ""}, // the reason has the advice
	{"connection refused", unreachable, "check that the server is running, and check the port"},
	{"no route to host", unreachable, "check the server's address and the network"},
	{"network is unreachable", unreachable, "check the server's address and the network"},
	{"no such host", unknownHost, "check the name of the host"},
	{"i/o timeout", timeout, "check the server's address, and whether a firewall drops the connection"},
	{"deadline exceeded", timeout, "check the server's address, and whether a firewall drops the connection"},
	{"unwire refused the request: ", request, "the request is malformed: correct the client"},
	{"refused: ", request, "the request is malformed: correct the client"},
	{"were not stored: the limit is", Shortened, "to store more, repeat the recording with a larger --max-body"},
}

// Of classifies the error text of an exchange. ok is false if the text is "".
func Of(text string) (f Failure, ok bool) {
	if text == "" {
		return f, false
	}
	f = Failure{other, text, ""}
	for _, k := range kinds {
		if strings.Contains(text, k.has) && (k.kind != CertificateRefused || strings.HasPrefix(text, k.has)) {
			f.Kind, f.Remedy = k.kind, k.remedy
			break
		}
	}
	return f, true
}

// OfCall classifies the failure of an exchange by its error text and by its status code, such as "not_found". ok is
// false if it did not fail.
func OfCall(ex *captures.Exchange, code string) (f Failure, ok bool) {
	if f, ok = Of(ex.Error); ok || code == "" || code == "ok" || ex.Outcome != captures.Complete {
		return f, ok
	}
	return Failure{Kind: Status, Reason: "the server answered with the code " + code}, true
}
