package replay

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"unwire/captures"
	"unwire/decode/diff"
	"unwire/replay/credential"
	"unwire/replay/edit"
	"unwire/replay/live"
)

// Reasons for ignoring a change, in addition to those of package diff.
const (
	// ignoredID: later frames of the client send the id back
	ignoredID = "id"
	// ignoredDuration: the field's name is that of a time or a duration
	ignoredDuration = "duration"
	// ignoredSecret: the capture has a placeholder there
	ignoredSecret = "secret"
)

// timing matches the names of fields with times or durations, which differ between any two runs.
var timing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)duration|elapsed|latency|timestamp|execution_?time|_ms$|[a-z]Ms$|_at$|[a-z]At$|_time$|[a-z]Time$`)
})

// ignore sets Ignored in those differences between the captured and the new response that are
// insignificant: ids that the server issues and the client sends back, fields whose names indicate a
// time or duration, and secrets for which the capture has placeholders.
func (p *Plan) ignore(changes []diff.Change) {
	turns := make([]live.Turn, len(p.shown.Frames))
	for i := range p.shown.Frames {
		turns[i] = p.shown.Frames[i].Turn
	}
	carried := live.CarriedOn(turns)
	ignoreKeys(carried, changes)
	for i := range changes {
		c := &changes[i]
		if c.Ignored == "" && isSecret(c.Old, c.New) {
			c.Ignored = ignoredSecret
		}
		frame, path, ok := strings.Cut(c.Path, " ")
		if ok && c.Ignored == "" && (isSameText(carried.SameText, edit.WithoutIndexes(path), c.Old, c.New) ||
			isDown(frame) && isSameText(carried.Identifier, edit.WithoutIndexes(path), c.Old, c.New)) {
			c.Ignored = ignoredID
		}
		if !ok || c.Ignored != "" || !isDown(frame) || !isCount(c.Old) || !isCount(c.New) {
			continue
		}
		switch path = edit.WithoutIndexes(path); {
		case carried.Number(path):
			c.Ignored = ignoredID
		case timing().MatchString(edit.FieldName(path, p.types[captures.Down])):
			c.Ignored = ignoredDuration
		}
	}
}

// ignoreKeys ignores added and removed keys of a map, if the keys are ids that the client sends back,
// and as many keys were added to the map as were removed.
func ignoreKeys(carried *live.Carried, changes []diff.Change) {
	keys := map[string][]*diff.Change{} // by the map
	more := map[string]int{}
	for i := range changes {
		c := &changes[i]
		frame, path, ok := strings.Cut(c.Path, " ")
		if !ok || c.Ignored != "" || !isDown(frame) || c.Op != diff.Add && c.Op != diff.Remove {
			continue
		}
		if at, ok := carried.Key(path); ok {
			keys[at] = append(keys[at], c)
			if more[at]--; c.Op == diff.Add {
				more[at] += 2
			}
		}
	}
	for at, list := range keys {
		for _, c := range list {
			if more[at] == 0 {
				c.Ignored = ignoredID
			}
		}
	}
}

// isDown reports whether frame, the beginning of a change's path, names a frame of the server
// ("@down/3").
func isDown(frame string) bool { return strings.HasPrefix(frame, "@"+captures.Down.String()) }

// isSameText reports whether the captured value (was) and the new one (is) are texts that are equal
// except for ids. The function carried makes this comparison for the texts at a path.
func isSameText(carried func(path, was, is string) bool, path string, was, is any) bool {
	old, okOld := textOf(was)
	now, okNow := textOf(is)
	return okOld && okNow && carried(path, old, now)
}

// isCount reports whether a value in a change is a number, or nil, i.e. an absent field, which means
// zero.
func isCount(v any) bool {
	switch v := v.(type) {
	case nil, uint64, int64, float64:
		return true
	case json.RawMessage:
		_, err := strconv.ParseFloat(string(v), 64)
		return err == nil
	// a 64-bit integer in JSON
	case string:
		_, err := strconv.ParseInt(v, 10, 64)
		return err == nil
	}
	return false
}

// isSecret reports whether the captured value (was) is a redacted text, and the new value (is) equals
// it except for the text in place of the placeholders.
func isSecret(was, is any) bool {
	a, okA := textOf(was)
	b, okB := textOf(is)
	if !okA || !okB || !credential.IsRedacted(a) {
		return false
	}
	last := ""
	for i, part := range credential.InHeader.Split(a, -1) {
		for j, rest := range credential.InBody.Split(part, -1) {
			at := strings.Index(b, rest)
			if at < 0 || i+j == 0 && at > 0 {
				return false
			}
			b, last = b[at+len(rest):], rest
		}
	}
	return b == "" || last == ""
}

// textOf returns a value of a change as text, if it is a string or bytes.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	}
	return "", false
}
