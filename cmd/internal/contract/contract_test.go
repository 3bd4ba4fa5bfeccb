package contract

import (
	"strings"
	"testing"
)

func TestEncode(t *testing.T) {
	var b strings.Builder
	if err := NewEncoder(&b).Encode(&Listening{Event: "listening", URL: "http://a/?b&c=<d>", CA: "ca.pem"}); err != nil {
		t.Fatal(err)
	}
	const want = `{"v":1,"event":"listening","url":"http://a/?b&c=<d>","ca":"ca.pem"}` + "\n"
	if b.String() != want {
		t.Errorf("%s, want %s", b.String(), want)
	}
}
