package answer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// fit is an object cut to a budget, with the omissions.
func fit(t *testing.T, object string, budget int, omit ...string) (map[string]any, []Omission) {
	t.Helper()
	p, err := NewPage(Request{MaxBytes: budget, Omit: omit}, "d")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.AddJSON("F.uwc#1", []byte(object)); err != nil {
		t.Fatal(err)
	}
	a := p.Answer("b", nil)
	if n := len(a.Items[0].Object); n > budget {
		t.Errorf("%d bytes, want at most %d", n, budget)
	}
	var out map[string]any
	if err := json.Unmarshal(a.Items[0].Object, &out); err != nil {
		t.Fatalf("%s: %v", a.Items[0].Object, err)
	}
	return out, a.LeftOut
}

// TestCut: a large object is cut where it is large, and the answer says where.
func TestCut(t *testing.T) {
	t.Parallel()
	data := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("bytes", 5000)))
	out, left := fit(t, `{"v":1,"a":"short","raw":"`+data+`","list":[1,2,3]}`, 8192)
	kept, _ := out["raw"].(string)
	if out["a"] != "short" || len(kept) < 1000 || !strings.HasPrefix(data, kept) {
		t.Errorf("%d bytes are left of raw", len(kept))
	}
	if _, err := base64.StdEncoding.DecodeString(kept); err != nil {
		t.Errorf("what is left does not decode: %v", err)
	}
	if len(left) != 1 || left[0].Path != "/raw" || left[0].Bytes != len(data)-len(kept) || left[0].Address != "F.uwc#1" {
		t.Errorf("left out: %+v", left)
	}

	list := "[" + strings.Repeat(`{"name":"an element"},`, 5000) + "1]"
	out, left = fit(t, `{"v":1,"x/y":`+list+`}`, 8192)
	if got, _ := out["x/y"].([]any); len(got) == 0 || len(left) != 1 || left[0].Path != "/x~1y" {
		t.Errorf("%d elements; left out: %+v", len(got), left)
	}

	deep := strings.Repeat(`{"in":`, 3000) + `1` + strings.Repeat(`}`, 3000)
	if _, left = fit(t, deep, 1024); len(left) != 1 || !strings.Contains(left[0].What, "nested") {
		t.Errorf("left out: %+v", left)
	}

	// Members with long names are no reason to exceed the limit.
	wide := `{"v":1`
	for i := range 500 {
		wide += fmt.Sprintf(`,"%s%d":%d`, strings.Repeat("n", 500), i, i)
	}
	if out, left = fit(t, wide+"}", 1024); len(left) == 0 || out["v"] != 1.0 {
		t.Errorf("%v; left out: %+v", out, left)
	}
}

// TestOmit: members are left out at all depths, and the answer says how much.
func TestOmit(t *testing.T) {
	t.Parallel()
	out, left := fit(t, `{"v":1,"raw":"abcd","in":[{"raw":"ef","data":"g"}]}`, 1024, "raw", "missing")
	if fmt.Sprint(out) != "map[in:[map[data:g]] v:1]" || len(left) != 1 || left[0].Bytes != 10 || !strings.Contains(left[0].What, `"raw"`) {
		t.Errorf("%v; left out: %+v", out, left)
	}
}

// TestManyCuts: the list of cuts is bounded, and the rest is counted.
func TestManyCuts(t *testing.T) {
	t.Parallel()
	object := `{"v":1`
	for i := range 60 {
		object += fmt.Sprintf(`,"m%d":"%s"`, i, strings.Repeat("x", 1000))
	}
	_, left := fit(t, object+"}", 8192)
	if len(left) > maxCuts+1 || !strings.Contains(left[len(left)-1].What, "more values were truncated") {
		t.Errorf("%d omissions, the last: %+v", len(left), left[len(left)-1])
	}
}

// FuzzCut: any JSON fits, stays JSON, and what is not cut stays as it is.
func FuzzCut(f *testing.F) {
	f.Add(`{"v":1,"a":"\ud83d\ude00 text","b":[1,2,{"c":null}]}`, 1024)
	f.Add(`{"":[[[[[[[[[[]]]]]]]]]]}`, 1500)
	f.Add(`[`+strings.Repeat(`"xxxxxxxxxxxxxxxxxxxxxxxx",`, 100)+`1]`, 1024)
	f.Fuzz(func(t *testing.T, object string, budget int) {
		if !json.Valid([]byte(object)) || len(object) > 1<<16 || budget < leastBytes || budget > 1<<14 {
			return
		}
		c := cutter{omitted: map[string]int{}}
		out, err := c.fit([]byte(object), budget)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(out) || len(out) > budget || len(object) <= budget && string(out) != object || len(object) > budget && len(c.cuts) == 0 && len(out) < len(object)/2 {
			t.Fatalf("%d bytes of %d at most: %s", len(out), budget, out)
		}
	})
}
