package cli

import (
	"strings"

	"unwire/mitm"
)

// refusedHint says what to do about a client that pins certificates.
const refusedHint = `the client refused the proxy's certificate. Either it does not read the CA variables
('unwire ca' has the CA: have the client trust it), or it pins the server's own certificate: then
no proxy can read it; record its packets with 'capture --passive' if it logs its keys (Node, curl, Chromium: Linux), turn
pinning off in the client, set its endpoint and use 'capture --reverse', or let it pass unread with
'capture --skip HOST'`

// refusedCertificate reports whether an exchange's error stands for that.
func refusedCertificate(text string) bool { return strings.HasPrefix(text, mitm.CertificateRefused) }
