package redact

import (
	"strings"
	"sync"

	"unwire/captures"
)

// Limits of the cache of searched values, because clients send the same header values with every request: the
// number of entries, and the length of a cached value in bytes.
const (
	maxKnown      = 4096
	maxKnownValue = 1 << 10
)

// A known caches header values after redaction. It is valid only for one ruleset, because a secret that is
// learned later may be in any value.
type known struct {
	// mu guards all other fields.
	mu sync.Mutex

	// rules is the set of search rules for which the cached values are valid.
	rules *ruleset
	// values maps each header field with its original value to its redacted value.
	values map[captures.Header]string

	// names caches the properties of header field names, which do not depend on the rules.
	names map[string]fieldName
}

// A fieldName is a header field's name in lower case, and whether its value is always a secret.
type fieldName struct {
	// lower is the name of the header field in lower case.
	lower string

	// secret means that the field's value is always a secret.
	secret bool
}

// appendNames appends to names the normalized name of each field in h.
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

// clean returns the result of fn, the redacted form of value, from the cache if possible. name is that of the
// header field; nameOfText or nameOfURL for other texts.
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
	// It contained a secret that was learned.
	if r.rules.Load() != rules {
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

// Names under which texts that are in no header field are cached.
const (
	nameOfText = "\x00text"
	nameOfURL  = "\x00url"
)
