package pcap

import "testing"

func TestIsTLS(t *testing.T) {
	for p, want := range map[string]bool{
		"":                     false,
		"\x16":                 true,
		"\x16\x03\x01\x02\x00": true,
		"\x17\x03\x03\x00\x10": true,
		"\x17\x03\xf4\x01\xff": false, // no version of TLS
		"\x17\x02\x00\x00\x10": false,
		"GET / HTTP/1.1":       false,
	} {
		if isTLS([]byte(p)) != want {
			t.Errorf("isTLS(%q) = %v", p, !want)
		}
	}
}
