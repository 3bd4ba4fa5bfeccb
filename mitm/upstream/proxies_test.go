package upstream_test

import (
	"net/url"
	"strings"
	"testing"

	"unwire/mitm/upstream"
)

func getenv(set map[string]string) func(string) string {
	return func(name string) string { return set[name] }
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"http://h:3128":              "http://h:3128",
		"h:3128":                     "http://h:3128",
		"h":                          "http://h:80",
		"HTTPS://h/":                 "https://h:443",
		"socks5://u:p%40@[::1]:1080": "socks5://u:p%40@[::1]:1080",
		"socks5h://h":                "socks5h://h:1080",
		"u:p@h:1":                    "http://u:p@h:1",
	} {
		if u, err := upstream.Parse(in); err != nil || u.String() != want {
			t.Errorf("%s: %v, %v; want %s", in, u, err, want)
		}
	}
	for _, in := range []string{"", "http://", "ftp://made:up@h", "socks4://h", "http://made:up@h/path", "http://made:up@h?q", "http://made:u/p@h", "http://made:up@ h", "http://made:up%@h", "http://h:made"} {
		if u, err := upstream.Parse(in); err == nil || strings.Contains(err.Error(), "made") || strings.Contains(err.Error(), "up@") {
			t.Errorf("%q: %v, %v", in, u, err)
		}
	}
}

// TestFromEnvironment: which proxy a server is reached through.
func TestFromEnvironment(t *testing.T) {
	all := map[string]string{
		"HTTPS_PROXY": "http://secure:1", "HTTP_PROXY": "http://plain:2", "ALL_PROXY": "socks5h://all:3",
		"NO_PROXY": "direct.example, .sub.example,10.0.0.0/8,192.0.2.7,other.example:8443",
	}
	for _, c := range []struct {
		env    map[string]string
		scheme string
		addrs  []string
		want   string
	}{
		{all, "https", []string{"example.com:443"}, "http://secure:1"},
		{all, "http", []string{"example.com:80"}, "http://plain:2"},
		{all, "https", []string{"direct.example:443"}, ""},
		{all, "https", []string{"a.direct.example:443"}, ""},
		{all, "https", []string{"sub.example:443"}, "http://secure:1"},
		{all, "https", []string{"a.sub.example:443"}, ""},
		{all, "https", []string{"10.1.2.3:443"}, ""},
		{all, "https", []string{"192.0.2.7:1"}, ""},
		{all, "https", []string{"192.0.2.8:1"}, "http://secure:1"},
		{all, "https", []string{"other.example:443"}, "http://secure:1"},
		{all, "https", []string{"other.example:8443"}, ""},
		// A name that the client asks for counts as its address does.
		{all, "https", []string{"192.0.2.8:443", "direct.example:443"}, ""},
		{all, "https", []string{"localhost:443"}, ""},
		{all, "http", []string{"127.0.0.2:80"}, ""},
		{all, "https", []string{"[::1]:443"}, ""},
		{map[string]string{"ALL_PROXY": "socks5h://all:3"}, "http", []string{"example.com:80"}, "socks5h://all:3"},
		{map[string]string{"ALL_PROXY": "socks5h://all:3", "HTTP_PROXY": "p:1"}, "http", []string{"example.com:80"}, "http://p:1"},
		{map[string]string{"ALL_PROXY": "socks5h://all:3", "NO_PROXY": "*"}, "http", []string{"example.com:80"}, ""},
		{map[string]string{"https_proxy": "low:1", "HTTPS_PROXY": "high:1", "no_proxy": "a.example", "NO_PROXY": "b.example"}, "https", []string{"b.example:443"}, "http://low:1"},
		{map[string]string{"http_proxy": "low:1"}, "https", []string{"example.com:443"}, ""},
		{nil, "https", []string{"example.com:443"}, ""},
	} {
		p, ignored, err := upstream.FromEnvironment(getenv(c.env), "127.0.0.1:9")
		if err != nil || len(ignored) > 0 {
			t.Fatal(ignored, err)
		}
		got := ""
		if u := p.For(c.scheme, c.addrs...); u != nil {
			got = u.String()
		}
		if got != c.want {
			t.Errorf("%s %q with %v: %q, want %q", c.scheme, c.addrs, c.env, got, c.want)
		}
	}
}

// TestOwnAddress: a variable that names the listener itself is ignored.
func TestOwnAddress(t *testing.T) {
	for value, ignores := range map[string]bool{
		"http://127.0.0.1:8080": true, "localhost:8080": true, "socks5h://u:p@127.0.0.1:8080": true,
		"http://127.0.0.1:8081": false, "http://127.0.0.2:8080": false, "http://proxy.example:8080": false,
	} {
		p, ignored, err := upstream.FromEnvironment(getenv(map[string]string{"all_proxy": value, "HTTPS_PROXY": "http://other:1"}), "127.0.0.1:8080")
		if err != nil || (len(ignored) == 1 && ignored[0] == "all_proxy") != ignores || (p.For("http", "example.com:80") == nil) != ignores {
			t.Errorf("%s: %v, %v", value, ignored, err)
		}
		if u := p.For("https", "example.com:443"); u == nil || u.Host != "other:1" {
			t.Errorf("%s: %v for HTTPS", value, u)
		}
	}
}

func TestEnvironmentErrors(t *testing.T) {
	for name, value := range map[string]string{"HTTPS_PROXY": "ftp://made-up:x@h", "http_proxy": "http://made-up:x@ h", "ALL_PROXY": "socks4a://made-up@h"} {
		_, _, err := upstream.FromEnvironment(getenv(map[string]string{name: value}), "")
		if err == nil || !strings.HasPrefix(err.Error(), name+": ") || strings.Contains(err.Error(), "made-up") {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	// One that no server needs is not looked at.
	if _, _, err := upstream.FromEnvironment(getenv(map[string]string{"ALL_PROXY": "ftp://h", "HTTPS_PROXY": "a:1", "HTTP_PROXY": "b:1"}), ""); err != nil {
		t.Error(err)
	}
}

func TestAlways(t *testing.T) {
	proxy := &url.URL{Scheme: "http", Host: "h:1"}
	for _, addr := range []string{"localhost:1", "127.0.0.1:1", "example.com:1"} {
		if upstream.Always(proxy).For("https", addr) != proxy {
			t.Errorf("%s is reached directly", addr)
		}
	}
}
