package search

import (
	"net/url"
	"testing"
)

// A server is new once, however its URL is spelled.
func TestEndpoints(t *testing.T) {
	e := NewEndpoints("https://a.example", "http://127.0.0.1:8080", "::")
	var urls []*url.URL
	for _, s := range []string{"https://A.example:443", "http://a.example", "http://127.0.0.1:8080", "https://b.example", "https://b.example:443"} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, u)
	}
	added := e.addNew(urls)
	if len(added) != 2 || added[0].String() != "http://a.example" || added[1].String() != "https://b.example" {
		t.Errorf("%v", added)
	}
	if again := e.addNew(urls); again != nil {
		t.Errorf("%v is new again", again)
	}
}
