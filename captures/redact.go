package captures

import "time"

const (
	redactionKeySize = 32
	maxHold          = 250 * time.Millisecond
)

// A Redactor replaces secrets by placeholders.
type Redactor struct{ key []byte }

// DefaultRedactor returns the default rules.
func DefaultRedactor() *Redactor { return &Redactor{} }

func (r *Redactor) withKey(key []byte) *Redactor { return &Redactor{key: key} }
