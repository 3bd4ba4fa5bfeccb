package har_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A rule is what HAR 1.2 says of an object: its members, those marked with !
// required, by the rule of their value.
type rule map[string]check

type check func(v any) error

// Source: http://www.softwareishard.com/blog/har-12-spec/
func harSchema() check {
	pairs := list(object(rule{"name!": str, "value!": str, "comment": str}))
	cookies := list(object(rule{
		"name!": str, "value!": str, "path": str, "domain": str, "expires": date, "httpOnly": boolean, "secure": boolean, "comment": str,
	}))
	return object(rule{"log!": object(rule{
		"version!": str, "creator!": object(rule{"name!": str, "version!": str, "comment": str}),
		"browser": object(rule{"name!": str, "version!": str, "comment": str}), "comment": str,
		"entries!": list(object(rule{
			"pageref": str, "startedDateTime!": date, "time!": atLeast(0), "serverIPAddress": str, "connection": str, "comment": str,
			"cache!": object(rule{"beforeRequest": anything, "afterRequest": anything, "comment": str}),
			"timings!": object(rule{
				"blocked": atLeast(-1), "dns": atLeast(-1), "connect": atLeast(-1), "ssl": atLeast(-1),
				"send!": atLeast(0), "wait!": atLeast(0), "receive!": atLeast(0), "comment": str,
			}),
			"request!": object(rule{
				"method!": str, "url!": absolute, "httpVersion!": str, "cookies!": cookies, "headers!": pairs, "queryString!": pairs,
				"postData": object(rule{
					"mimeType!": str, "text!": str, "comment": str,
					"params": list(object(rule{"name!": str, "value": str, "fileName": str, "contentType": str, "comment": str})),
				}),
				"headersSize!": integer, "bodySize!": integer, "comment": str,
			}),
			"response!": object(rule{
				"status!": integer, "statusText!": str, "httpVersion!": str, "cookies!": cookies, "headers!": pairs,
				"content!": object(rule{
					"size!": integer, "compression": integer, "mimeType!": str, "text": str, "encoding": str, "comment": str,
				}),
				"redirectURL!": str, "headersSize!": integer, "bodySize!": integer, "comment": str,
			}),
		})),
		"pages": list(anything),
	})})
}

// object wants the members of r and, of others, only those that begin with an
// underscore, as the format has custom ones.
func object(r rule) check {
	return func(v any) error {
		m, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%T, not an object", v)
		}
		for name, value := range m {
			c := r[name]
			if c == nil {
				c = r[name+"!"]
			}
			if c == nil && !strings.HasPrefix(name, "_") {
				return fmt.Errorf(".%s: no member of the format", name)
			}
			if c != nil {
				if err := c(value); err != nil {
					return fmt.Errorf(".%s%w", name, err)
				}
			}
		}
		for name := range r {
			if bare, required := strings.CutSuffix(name, "!"); required {
				if _, ok := m[bare]; !ok {
					return fmt.Errorf(".%s: missing", bare)
				}
			}
		}
		return nil
	}
}

func list(element check) check {
	return func(v any) error {
		l, ok := v.([]any)
		if !ok {
			return fmt.Errorf(": %T, not a list", v)
		}
		for i, e := range l {
			if err := element(e); err != nil {
				return fmt.Errorf("[%d]%w", i, err)
			}
		}
		return nil
	}
}

func anything(any) error { return nil }

func str(v any) error {
	if _, ok := v.(string); !ok {
		return fmt.Errorf(": %T, not a string", v)
	}
	return nil
}

func boolean(v any) error {
	if _, ok := v.(bool); !ok {
		return fmt.Errorf(": %T, not a boolean", v)
	}
	return nil
}

func atLeast(least float64) check {
	return func(v any) error {
		if n, ok := v.(float64); !ok || n < least {
			return fmt.Errorf(": %v, not a number from %v on", v, least)
		}
		return nil
	}
}

func integer(v any) error {
	if n, ok := v.(float64); !ok || n != float64(int64(n)) {
		return fmt.Errorf(": %v, not an integer", v)
	}
	return nil
}

var isoDate = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

func date(v any) error {
	s, _ := v.(string)
	if _, err := time.Parse(time.RFC3339, s); err != nil || !isoDate.MatchString(s) {
		return fmt.Errorf(": %v, not a date", v)
	}
	return nil
}

func absolute(v any) error {
	s, _ := v.(string)
	if u, err := url.Parse(s); err != nil || !u.IsAbs() {
		return fmt.Errorf(": %v, not an absolute URL", v)
	}
	return nil
}

func validate(t *testing.T, data []byte) {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if err := harSchema()(v); err != nil {
		t.Error(err)
	}
}

// TestSchemaTells: the check refuses what is not valid.
func TestSchemaTells(t *testing.T) {
	t.Parallel()
	good := `{"log":{"version":"1.2","creator":{"name":"x","version":"1"},"entries":[]}}`
	validate(t, []byte(good))
	for _, bad := range []string{
		strings.Replace(good, `"version":"1.2",`, "", 1), strings.Replace(good, `[]`, `[{}]`, 1), strings.Replace(good, `"entries"`, `"x":1,"entries"`, 1),
	} {
		var v any
		if err := json.Unmarshal([]byte(bad), &v); err != nil {
			t.Fatal(err)
		}
		if harSchema()(v) == nil {
			t.Errorf("%s is taken for valid", bad)
		}
	}
	if slices.ContainsFunc([]string{"2026-01-02", "yesterday"}, func(s string) bool { return date(s) == nil }) {
		t.Error("dates")
	}
}
