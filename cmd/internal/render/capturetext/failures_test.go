package capturetext

import (
	"bytes"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
)

// TestFailures: failures are counted by kind, those that the server answered by code.
func TestFailures(t *testing.T) {
	t.Parallel()
	counts := new(Counts)
	var list []contract.FailureCount
	for i, c := range []struct {
		outcome captures.Outcome
		err     string
		code    string
	}{
		{captures.Complete, "", "ok"},
		{captures.Failed, "no connection to 127.0.0.1:1: connection refused", ""},
		{captures.Complete, "", "ok"},
		{captures.Failed, "no connection to 127.0.0.1:2: connection refused", ""},
		{captures.Complete, "", "internal"},
		{captures.Complete, "", "not_found"},
		{captures.Canceled, "", ""},
		{captures.InFlight, "", ""},
	} {
		counts.Add(c.outcome, c.code)
		list = CountFailure(list, "F.uwc", &captures.Exchange{ID: int64(i + 1), Outcome: c.outcome, Error: c.err}, c.code)
	}
	if got := counts.String(); got != "2 ok, 2 failed, 1 internal, 1 not_found, 1 canceled, 1 in flight" {
		t.Error(got)
	}
	var b bytes.Buffer
	for i := range list {
		Failure(&term.Output{Writer: &b}, &list[i])
	}
	want := `unwire: failed: exchange 2, and 1 other: no connection to 127.0.0.1:1: connection refused
unwire: hint: check that the server is running, and check the port
unwire: failed: exchange 5: the server answered with the code internal; 'unwire show F.uwc 5' prints details
unwire: failed: exchange 6: the server answered with the code not_found; 'unwire show F.uwc 6' prints details
`
	if b.String() != want {
		t.Errorf("\n%s, want\n%s", b.String(), want)
	}
	if reason, hint := FirstFailure([]*contract.Exchange{{ID: 1}, {ID: 2, Error: "no such host"}}); reason != "exchange 2: no such host" || !strings.HasPrefix(hint, "exchange 2: ") {
		t.Errorf("%q", hint)
	}
}
