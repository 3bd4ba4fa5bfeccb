package failure

import (
	"strings"
	"testing"

	"unwire/captures"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		kind   Kind
		remedy string
	}{
		{"the client refused the certificate: it sent the alert", CertificateRefused, "--passive"},
		{"the certificate of api.test is not trusted by unwire: x509: certificate signed by unknown authority", serverCertificate, "--upstream-ca"},
		{"no connection to 127.0.0.1:1: connection refused", unreachable, "running"},
		{"dial tcp 127.0.0.1:1: connect: connection refused", unreachable, "running"}, // of earlier versions
		{"no connection to api.test:443: no such host", unknownHost, "name of the host"},
		{"no connection to 10.0.0.1:1: i/o timeout", timeout, "firewall"},
		{"something else", other, ""},
	} {
		f, ok := Of(c.text)
		if !ok || f.Kind != c.kind || f.Reason != c.text || !strings.Contains(f.Remedy, c.remedy) {
			t.Errorf("%s: %+v", c.text, f)
		}
	}
	if f, ok := Of(""); ok {
		t.Errorf("no error is %+v", f)
	}
	if f, ok := OfCall(&captures.Exchange{Outcome: captures.Complete}, "internal"); !ok || f.Kind != Status || f.Reason != "the server answered with the code internal" {
		t.Errorf("%+v, %v", f, ok)
	}
	if f, ok := OfCall(&captures.Exchange{Outcome: captures.Complete}, "ok"); ok {
		t.Errorf("a call that ended well is %+v", f)
	}
}
