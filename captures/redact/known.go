package redact

import (
	"strings"
	"sync"

	"unwire/captures"
)

// Limits of the cache of searched values: clients send the same ones with every request.
const (
	maxKnown      = 4096
	maxKnownValue = 1 << 10 // bytes
)

// A known caches the results of searching values. It is valid only for the rules at that time, because a secret
// that is learned later may be in any value.
type known struct {
	mu     sync.Mutex
	rules  *ruleset
	values map[captures.Header]string

	// names caches the names of fields, which do not depend on the rules.
	names map[string]fieldName
}

// A fieldName is the name of a header field in a captured text.
type fieldName struct {
	lower string

	// secret means that the field's value is always a secret.
	secret bool
}

// appendNames appends the names of the fields in h to names.
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

// clean returns the cached result of fn for a field's value, or calls fn. For a text that is in no field, name
// is one that no field can have.
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

// Names for texts that are in no header field.
const (
	nameOfText = "\x00text"
	nameOfURL  = "\x00url"
)
