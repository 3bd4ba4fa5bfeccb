package process

import (
	"strings"
	"sync"
	"unicode"

	"unwire/captures"
)

// maxName limits the names of programs and clients that are recorded, in bytes.
const maxName = 64

// A product is the name and version by which a client identifies itself in a User-Agent header.
//
// Source: RFC 9110, section 10.1.5
type product struct {
	// name is the name of the product; "" if the headers name none.
	name string
	// version is its version; "" if none is given.
	version string
}

// browsers are the product names in User-Agent headers that identify browsers. Browsers based on
// another one come first, because their User-Agent names that one too.
var browsers = []string{"Edg", "OPR", "Vivaldi", "SamsungBrowser", "Electron", "HeadlessChrome", "Chromium", "Chrome", "CriOS", "FxiOS", "Firefox", "Version"}

// clientOf returns the product that a request's headers name: in X-User-Agent, which libraries in browsers set,
// or User-Agent.
func (k *products) clientOf(h captures.Headers) product {
	for _, name := range []string{"x-user-agent", "user-agent"} {
		if p := k.of(h.Get(name)); p.name != "" {
			return p
		}
	}
	return product{}
}

// products caches the product of each User-Agent value, because a client repeats it in all requests.
type products struct {
	// mu guards known.
	mu sync.Mutex
	// known maps values of User-Agent headers to the products that they name.
	known map[string]product
}

// maxProducts limits the number of User-Agent values in the cache.
const maxProducts = 16

// of returns the first product in a User-Agent value, or that of the browser for a browser's value. It caches the
// results.
func (k *products) of(agent string) product {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok := k.known[agent]
	if ok || agent == "" {
		return p
	}
	if k.known == nil || len(k.known) >= maxProducts {
		k.known = make(map[string]product)
	}
	p = productOf(agent)
	if len(agent) <= maxAgent {
		k.known[agent] = p
	}
	return p
}

// productOf returns the first product in a User-Agent value. If that is Mozilla, it returns the product of the
// browser.
func productOf(agent string) product {
	products := parseProducts(agent)
	if len(products) == 0 {
		return product{}
	}
	first := products[0]
	if first.name != "Mozilla" {
		return first
	}
	for _, name := range browsers {
		for _, p := range products {
			if p.name != name {
				continue
			}
			// Safari's product is Version; the product named Safari is its engine.
			if p.name == "Version" {
				p.name = "Safari"
			}
			return p
		}
	}
	return first
}

// maxAgent limits how much of a User-Agent value is parsed, in bytes.
const maxAgent = 1024

// parseProducts returns the products in a User-Agent value, without comments.
func parseProducts(agent string) []product {
	agent = agent[:min(len(agent), maxAgent)]
	var out []product
	depth := 0
	for word := range strings.FieldsSeq(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(agent)) {
		switch {
		case word == "(":
			depth++
		case word == ")":
			depth = max(0, depth-1)
		case depth == 0:
			name, version, _ := strings.Cut(word, "/")
			if name = bounded(name); name != "" {
				out = append(out, product{name, bounded(version)})
			}
		}
	}
	return out
}

// bounded returns a name truncated to maxName bytes, without characters that are not printable.
func bounded(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	for len(s) > maxName {
		s = strings.ToValidUTF8(s[:maxName], "")
	}
	return s
}
