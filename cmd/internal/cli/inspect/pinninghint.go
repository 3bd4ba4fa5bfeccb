package inspect

import (
	"strings"

	"unwire/mitm"
)

// pinningHint says what to do about a client that pins certificates.
const pinningHint = `the client refused the proxy's certificate. Either it does not read the CA variables
('unwire ca' has the CA: have the client trust it), or it pins the server's own certificate: then
no proxy can read it; record its packets with 'capture --passive' if it logs its keys (Node, curl, Chromium: Linux), turn
pinning off in the client, set its endpoint and use 'capture --reverse', or let it pass unread with
'capture --skip HOST'`

// isRefusedCertificate reports whether an exchange's error stands for that.
func isRefusedCertificate(text string) bool { return strings.HasPrefix(text, mitm.CertificateRefused) }
