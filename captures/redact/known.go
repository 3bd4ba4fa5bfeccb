package redact

import (
	"strings"
	"sync"

	"unwire/captures"
)

// What is remembered of values that were searched: clients send the same ones with every
// request.
const (
	maxKnown      = 4096
	maxKnownValue = 1 << 10 // bytes
)

// A known remembers what became of values, as long as the rules stay as they are: a
// secret that is learned may stand in any of them.
type known struct {
	mu     sync.Mutex
	rules  *ruleset
	values map[captures.Header]string

	// names are those of fields, which do not depend on the rules.
	names map[string]fieldName
}

// A fieldName is the name of a header field.
type fieldName struct {
	lower string

	// secret says that what the field has is a secret, whatever it looks like.
	secret bool
}

// appendNames appends the names of the fields of a section.
func (r *Redactor) appendNames(names []fieldName, h captures.Headers) []fieldName {
	k := &r.known
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range h {
		n, ok := k.names[h[i].Name]
		if !ok {
			n.lower = strings.ToLower(h[i].Name)
			n.secret = r.names.CarriesSecret(n.lower)
			if len(n.lower) <= maxKnownValue {
				if len(k.names) >= maxKnown || k.names == nil {
					k.names = make(map[string]fieldName)
				}
				k.names[h[i].Name] = n
			}
		}
		names = append(names, n)
	}
	return names
}

// clean returns what fn makes of a field's value, or of a text under a name that no field
// has. The same rules make the same of it.
func (r *Redactor) clean(name, value string, fn func() string) string {
	if value == "" {
		return ""
	}
	if len(value) > maxKnownValue {
		return fn()
	}
	k, key := &r.known, captures.Header{Name: name, Value: value}
	rules := r.rules.Load()
	k.mu.Lock()
	if k.rules == rules {
		if out, ok := k.values[key]; ok {
			k.mu.Unlock()
			return out
		}
	}
	k.mu.Unlock()
	out := fn()
	if r.rules.Load() != rules { // it was learned from
		return out
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rules != rules || len(k.values) >= maxKnown {
		k.rules, k.values = rules, make(map[captures.Header]string)
	}
	k.values[key] = out
	return out
}

// Names of texts that are no fields.
const (
	nameOfText = "\x00text"
	nameOfURL  = "\x00url"
)
