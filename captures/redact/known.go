package redact

import (
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
}

// clean returns what fn makes of a field's value, or of a text under a name that no field
// has. The same rules make the same of it.
func (r *Redactor) clean(name, value string, fn func() string) string {
	if value == "" || len(value) > maxKnownValue {
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
