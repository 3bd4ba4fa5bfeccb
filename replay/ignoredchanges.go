package replay

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/decode/diff"
	"unwire/replay/credential"
	"unwire/replay/edit"
	"unwire/replay/live"
)

// Reasons for which a change does not count, beside those of diff.
const (
	ignoredID       = "id"       // frames up carry it on
	ignoredDuration = "duration" // its name says that it is a time or a duration
	ignoredSecret   = "secret"   // the capture has a placeholder in its place
)

// timing are the names of fields that no two runs agree in.
var timing = regexp.MustCompile(`(?i)duration|elapsed|latency|timestamp|execution_?time|_ms$|[a-z]Ms$|_at$|[a-z]At$|_time$|[a-z]Time$`)

// ignore marks the changes that mean nothing: numbers that the server issues and
// takes back, fields that a name gives away as times, and secrets, of which the
// capture has placeholders.
func (p *Plan) ignore(changes []diff.Change) {
	turns := make([]live.Turn, len(p.shown.Frames))
	for i := range p.shown.Frames {
		turns[i] = p.shown.Frames[i].Turn
	}
	isNumber, isText := live.CarriedOn(turns)
	for i := range changes {
		c := &changes[i]
		if c.Ignored == "" && isSecret(c.Old, c.New) {
			c.Ignored = ignoredSecret
		}
		frame, path, ok := strings.Cut(c.Path, " ")
		if ok && c.Ignored == "" && isSameText(isText, edit.WithoutIndexes(path), c.Old, c.New) {
			c.Ignored = ignoredID
		}
		if !ok || c.Ignored != "" || !strings.HasPrefix(frame, "@"+captures.Down.String()) || !isCount(c.Old) || !isCount(c.New) {
			continue
		}
		switch path = edit.WithoutIndexes(path); {
		case isNumber(path):
			c.Ignored = ignoredID
		case timing.MatchString(edit.FieldName(path, p.types[captures.Down])):
			c.Ignored = ignoredDuration
		}
	}
}

// isSameText reports whether two values are texts that differ in nothing but
// parts that the client carries on.
func isSameText(carried func(path, was, is string) bool, path string, was, is any) bool {
	old, okOld := textOf(was)
	now, okNow := textOf(is)
	return okOld && okNow && carried(path, old, now)
}

// isCount reports whether a value of a change is a number, or absent, which a
// number is that is zero.
func isCount(v any) bool {
	switch v := v.(type) {
	case nil, uint64, int64, float64:
		return true
	case json.RawMessage:
		_, err := strconv.ParseFloat(string(v), 64)
		return err == nil
	case string: // 64-bit integers in JSON
		_, err := strconv.ParseInt(v, 10, 64)
		return err == nil
	}
	return false
}

// isSecret reports whether was is text with placeholders, and is the same text
// with anything in their place.
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

func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	}
	return "", false
}
