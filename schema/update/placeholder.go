package update

import "regexp"

// Patterns for placeholder names of fields whose real name is unknown, such as field_3.
var (
	// placeholderField matches a field name without a meaning.
	placeholderField = regexp.MustCompile(`(?i)^(field|unknown|unnamed)_?[0-9]+$`)
	// placeholderType matches a message or enum name without a meaning.
	placeholderType = regexp.MustCompile(`(?i)^((unknown|unnamed|field|message|type|enum)_?[0-9]+|\w*_?Field_?[0-9]+(_[0-9]+)?)$`)
	// placeholderValue matches an enum value's name without a meaning.
	placeholderValue = regexp.MustCompile(`(?i)^(\w+_)?(unknown|unnamed|field|value|not_seen)_?[0-9]+$`)
	// placeholderOneof matches a oneof's name without a meaning.
	placeholderOneof = regexp.MustCompile(`(?i)^(choice|oneof|unknown)_?[0-9]+$`)
	// guessed matches a comment that calls a declaration a guess.
	guessed = regexp.MustCompile(`(?i)\b(guess|guessed|assumed|unsure|placeholder)\b|\bSeen in [0-9]+ of [0-9]+\b`)
)
