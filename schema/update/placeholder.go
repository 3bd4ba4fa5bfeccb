package update

import "regexp"

// What stands for a name that nobody knows yet.
var (
	placeholderField = regexp.MustCompile(`(?i)^(field|unknown|unnamed)_?[0-9]+$`)
	placeholderType  = regexp.MustCompile(`(?i)^((unknown|unnamed|field|message|type|enum)_?[0-9]+|\w*_?Field_?[0-9]+(_[0-9]+)?)$`)
	placeholderValue = regexp.MustCompile(`(?i)^(\w+_)?(unknown|unnamed|field|value|not_seen)_?[0-9]+$`)
	placeholderOneof = regexp.MustCompile(`(?i)^(choice|oneof|unknown)_?[0-9]+$`)
	// What says in a comment that a declaration is a guess.
	guessed = regexp.MustCompile(`(?i)\b(guess|guessed|assumed|unsure|placeholder)\b|\bSeen in [0-9]+ of [0-9]+\b`)
)
