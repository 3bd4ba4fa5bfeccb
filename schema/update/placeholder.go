package update

import (
	"regexp"
	"sync"
)

// Patterns for placeholder names of elements whose real name is unknown, such as field_3, and for comments on
// them.
var (
	// placeholderField matches an invented name of a field.
	placeholderField = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^(field|unknown|unnamed)_?[0-9]+$`) })
	// placeholderType matches an invented name of a message or enum.
	placeholderType = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^((unknown|unnamed|field|message|type|enum)_?[0-9]+|\w*_?Field_?[0-9]+(_[0-9]+)?)$`)
	})
	// placeholderValue matches an invented name of an enum value.
	placeholderValue = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(\w+_)?(unknown|unnamed|field|value|not_seen)_?[0-9]+$`)
	})
	// placeholderOneof matches an invented name of a oneof.
	placeholderOneof = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^(choice|oneof|unknown)_?[0-9]+$`) })
	// guessed matches a comment that says that a declaration is a guess.
	guessed = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(guess|guessed|assumed|unsure|placeholder)\b|\bSeen in [0-9]+ of [0-9]+\b`)
	})
)
