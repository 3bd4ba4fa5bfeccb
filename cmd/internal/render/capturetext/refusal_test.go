package capturetext

import (
	"strings"
	"testing"

	"unwire/captures"
	"unwire/mitm/launch"
	"unwire/mitm/refusal"
)

func TestTrustFix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		caller launch.Runtime
		want   string
	}{
		{"curl", "", "--cacert /ca.pem, or set CURL_CA_BUNDLE=/ca.pem"},
		{"python3.13", "", "REQUESTS_CA_BUNDLE=/ca.pem"},
		{"git-remote-https", "", "GIT_SSL_CAINFO=/ca.pem"},
		{"java", "", "trust store"},
		{"chromium", "", "--browser"},
		{"google-chrome-stable", "", "--browser"},
		{"firefox-esr", "", "--browser"},
		{"go", "", "SSL_CERT_FILE=/ca.pem"},
		{"gopls-like", launch.Go, "SSL_CERT_FILE=/ca.pem"},
		{"gopls-like", "", "many programs"},
		{"code", launch.Electron, "nssdb"},
		{"mytool", launch.NodeSEA, "NODE_EXTRA_CA_CERTS=/ca.pem"},
		{"https", "", "CAInfo"},
		{"httpie", "", "many programs"},
		{"", "", "SSL_CERT_FILE=/ca.pem"},
	} {
		got := TrustFix(refusal.Refusal{Process: captures.Process{Name: c.name}}, c.caller, "/ca.pem")
		if !strings.Contains(got, c.want) || !strings.Contains(got, "--passive") || strings.Contains(got, "%!") {
			t.Errorf("%q: %s", c.name, got)
		}
	}
}

func TestRefusedCertificate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    captures.Process
		want string
	}{
		{captures.Process{PID: 7, Name: "curl"}, "curl (process 7) rejected the proxy's certificate for h:443"},
		{captures.Process{PID: 7}, "process 7 rejected"},
		{captures.Process{}, "a program rejected"},
	} {
		if got := RefusedCertificate(refusal.Refusal{Process: c.p, Host: "h:443"}); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s", got)
		}
	}
}
