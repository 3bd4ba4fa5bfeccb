package replay

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/decode/diff"
	"unwire/replay/edit"
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
	issued, carried := map[string]bool{}, asking{parts: map[string]map[string]bool{}}
	for i := range p.Frames {
		for _, b := range p.Frames[i].Live {
			switch path := edit.WithoutIndexes(b.FromPath); {
			case strings.HasPrefix(b.value, "n"):
				issued[path] = true
			case b.Part != "" && !spelling(b.How).isDigest():
				carried.carry(path, b.Part)
			}
		}
	}
	for i := range changes {
		c := &changes[i]
		if c.Ignored == "" && isSecret(c.Old, c.New) {
			c.Ignored = ignoredSecret
		}
		frame, path, ok := strings.Cut(c.Path, " ")
		if ok && c.Ignored == "" && carried.alike(edit.WithoutIndexes(path), c.Old, c.New) {
			c.Ignored = ignoredID
		}
		if !ok || c.Ignored != "" || !strings.HasPrefix(frame, "@"+captures.Down.String()) || !isCount(c.Old) || !isCount(c.New) {
			continue
		}
		switch path = edit.WithoutIndexes(path); {
		case issued[path]:
			c.Ignored = ignoredID
		case timing.MatchString(edit.FieldName(path, p.types[captures.Down])):
			c.Ignored = ignoredDuration
		}
	}
}

// alike reports whether two values at path differ in nothing but parts that the
// client carries on.
func (a *asking) alike(path string, was, is any) bool {
	old, okOld := textOf(was)
	now, okNow := textOf(is)
	if !okOld || !okNow || a.parts[path] == nil {
		return false
	}
	x, y := leaf{path: path}, leaf{path: path}
	x.text([]byte(old))
	y.text([]byte(now))
	return a.without(&x).value == a.without(&y).value
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
	if !okA || !okB || !isRedacted(a) {
		return false
	}
	last := ""
	for i, part := range inHeader.Split(a, -1) {
		for j, rest := range inBody.Split(part, -1) {
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
