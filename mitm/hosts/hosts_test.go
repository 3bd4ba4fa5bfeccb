package hosts

import "testing"

func TestPathPatterns(t *testing.T) {
	for _, c := range []struct {
		only, skip []string
		host, path string
		captured   bool // the host's traffic is decrypted
		recorded   bool
	}{
		{nil, nil, "h:443", "/a", true, true},
		{[]string{"h"}, nil, "h:443", "/a", true, true},
		{[]string{"h/a*"}, nil, "h:443", "/a/b/c", true, true},
		{[]string{"h/a*"}, nil, "h:443", "/b", true, false},
		{[]string{"h/a*"}, nil, "other:443", "/a", false, false},
		{[]string{"h/a*", "other"}, nil, "other:443", "/b", true, true},
		{[]string{"H:443/A"}, nil, "h:443", "/A", true, true},
		{[]string{"H:443/A"}, nil, "h:443", "/a", true, false},
		{nil, []string{"h/a*"}, "h:443", "/a/b", true, false},
		{nil, []string{"h/a*"}, "h:443", "/b", true, true},
		{nil, []string{"/health"}, "any:443", "/health", true, false},
		{nil, []string{"*.h/*/x"}, "a.b.h:443", "/1/2/x", true, false},
		{[]string{"h"}, []string{"h/a"}, "h:443", "/a", true, false},
	} {
		f, err := New(c.only, c.skip, nil)
		if err != nil {
			t.Fatal(err)
		}
		captured := f.RecordsHost(c.host)
		if recorded := captured && f.RecordsRequest(c.path, c.host); captured != c.captured || recorded != c.recorded {
			t.Errorf("only %v, skip %v: %s%s: decrypted %v, recorded %v", c.only, c.skip, c.host, c.path, captured, recorded)
		}
	}
	for _, bad := range []string{"h/[", "[/a"} {
		if _, err := New([]string{bad}, nil, nil); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
