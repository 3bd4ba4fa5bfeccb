package process

import (
	"strings"
	"testing"

	"unwire/captures"
)

func TestProductOf(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]product{
		"":                             {},
		"   ":                          {},
		"connect-es/2.0.0":             {"connect-es", "2.0.0"},
		"connect-go/1.16.0 (go1.22.1)": {"connect-go", "1.16.0"},
		"grpc-go/1.60.0":               {"grpc-go", "1.60.0"},
		"grpc-node-js/1.10.1":          {"grpc-node-js", "1.10.1"},
		"grpc-python/1.60.0 grpc-c/37.0 (linux; chttp2)": {"grpc-python", "1.60.0"},
		"curl/8.14.1":                {"curl", "8.14.1"},
		"node":                       {"node", ""},
		"(comment (nested)) Thing/1": {"Thing", "1"},
		"Thing/1 (open":              {"Thing", "1"},
		"/1":                         {},
		"Mozilla/5.0":                {"Mozilla", "5.0"},
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36":           {"Chrome", "120.0.0.0"},
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/120.0.0.0 Safari/537.36":   {"HeadlessChrome", "120.0.0.0"},
		"Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36 Edg/120.0.1": {"Edg", "120.0.1"},
		"Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0":                                          {"Firefox", "120.0"},
		"Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.1 Safari/605.1.15":                   {"Safari", "17.1"},
		"a\x1b[31mb/1\u202e0": {"a[31mb", "10"},
		strings.Repeat("é", 100) + "/" + strings.Repeat("1", 100): {strings.Repeat("é", 32), strings.Repeat("1", 64)},
	} {
		equal(t, want, productOf(agent))
	}
}

func TestClientOf(t *testing.T) {
	t.Parallel()
	var known products
	equal(t, product{"connect-es", "1.6.1"}, known.clientOf(captures.Headers{
		{Name: "user-agent", Value: "Mozilla/5.0 Chrome/120.0.0.0"}, {Name: "x-user-agent", Value: "connect-es/1.6.1"},
	}))
	equal(t, product{}, known.clientOf(nil))
}

func FuzzProductOf(f *testing.F) {
	f.Add("Mozilla/5.0 (X11; Linux x86_64) Chrome/120.0.0.0")
	f.Fuzz(func(t *testing.T, agent string) {
		p := productOf(agent)
		if len(p.name) > maxName || len(p.version) > maxName {
			t.Errorf("%q: %q %q", agent, p.name, p.version)
		}
	})
}
