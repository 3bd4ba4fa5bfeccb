package process

import (
	"strings"
	"sync"
	"unicode"

	"unwire/captures"
)

// maxName bounds what a program calls itself, in bytes.
const maxName = 64

// A product is how a client introduces itself.
//
// Source: RFC 9110, section 10.1.5
type product struct{ name, version string }

// browsers are products that browsers name besides those that they claim to be
// compatible with, the ones built on others first.
var browsers = []string{"Edg", "OPR", "Vivaldi", "SamsungBrowser", "Electron", "HeadlessChrome", "Chromium", "Chrome", "CriOS", "FxiOS", "Firefox", "Version"}

// clientOf returns how the client of a request introduces itself: by X-User-Agent, which
// libraries in a browser set, or by User-Agent.
func (k *products) clientOf(h captures.Headers) product {
	for _, name := range []string{"x-user-agent", "user-agent"} {
		if p := k.of(h.Get(name)); p.name != "" {
			return p
		}
	}
	return product{}
}

// products remembers the product of each User-Agent of a connection: a client sends the
// same with all of its requests.
type products struct {
	mu    sync.Mutex
	known map[string]product
}

// maxProducts bounds what is remembered.
const maxProducts = 16

// of is productOf.
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

// productOf returns the product that stands first in a User-Agent. A browser's begins with
// Mozilla, so there it is the browser itself.
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
			if p.name == "Version" { // of Safari, which numbers its engine by its name
				p.name = "Safari"
			}
			return p
		}
	}
	return first
}

// maxAgent is how much of a User-Agent is read.
const maxAgent = 1024

// parseProducts reads the products of a User-Agent and leaves out the comments.
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

// bounded cuts a name, and takes out what is not printed.
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
