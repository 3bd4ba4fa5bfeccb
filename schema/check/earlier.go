package check

import (
	"regexp"
	"sync"
)

// An earlierReason is a wording of a reason that earlier versions wrote.
type earlierReason struct {
	// pattern matches the earlier wording.
	pattern *regexp.Regexp
	// now is the wording that replaces it.
	now string
}

// earlierReasons are the wordings of reasons in reports that earlier versions wrote, with the wordings that replaced them.
// The first that matches applies.
var earlierReasons = sync.OnceValue(func() []earlierReason {
	return []earlierReason{
		{regexp.MustCompile(`^declared as (\w+), but has a value outside its range$`), "the field is declared as $1, but has a value outside the range of this type"},
		{regexp.MustCompile(`^declared as (\w+), but has a fraction$`), "the field is declared as $1, but has a value with a fraction"},
		{regexp.MustCompile(`^(declared as \w+, but has .*)$`), "the field is $1"},
		{regexp.MustCompile(`^occurs more than once in a message, but is declared singular$`), "the field occurs more than once in a message, but is declared as singular"},
		{regexp.MustCompile(`^(occurs (?:more than once in a JSON object|together with .*))$`), "the field $1"},
		{regexp.MustCompile(`^JSON (\w+), declared (.+)$`), "the JSON value has the type $1, but the field is declared as $2"},
		{regexp.MustCompile(`^JSON that is no (.+)$`), "the JSON value is not a valid $1"},
		{regexp.MustCompile(`^key that is no (.+)$`), "a key of the map is not a valid $1"},
		{regexp.MustCompile(`^missing, declared required$`), "the field is missing, but is declared as required"},
		{regexp.MustCompile(`^payload is no (.+)$`), "the payload does not parse as $1"},
	}
})

// currentReason returns the present wording of a reason in a report.
func currentReason(reason string) string {
	for _, e := range earlierReasons() {
		if e.pattern.MatchString(reason) {
			return e.pattern.ReplaceAllString(reason, e.now)
		}
	}
	return reason
}
