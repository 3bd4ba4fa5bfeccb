package probe

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// claimKinds are all kinds of claims, with the class that each has.
var claimKinds = map[string]Class{
	"string": Len, "bytes": Len, "message": Message, "group": Message, "varint": Varint, "fixed32": Fixed32, "fixed64": Fixed64,
}

// drawClaim draws a claim of a definition, or of an inference, which has no label.
func drawClaim(t *rapid.T) Claim {
	kinds := []string{"string", "bytes", "message", "group", "varint", "fixed32", "fixed64", noKind, "packed"}
	c := Claim{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Label: rapid.SampledFrom([]string{"", "singular", "repeated"}).Draw(t, "label")}
	switch {
	case c.Kind == noKind, c.Kind == "packed":
		c.Label = ""
	case c.Kind == "message" && rapid.Bool().Draw(t, "map"):
		c.Label = "map"
	}
	return c
}

// drawShown draws what a runtime shows of a field of which a claim is true: each
// part of it, or not.
func drawShown(t *rapid.T, truth Claim) *Field {
	if truth.Kind == noKind {
		return nil
	}
	f := &Field{Number: 1}
	shows := func(what string) bool { return rapid.Bool().Draw(t, what) }
	class, ok := claimKinds[truth.Kind]
	if !ok { // packed
		class = rapid.SampledFrom([]Class{Varint, Fixed32, Fixed64}).Draw(t, "class")
	}
	label := truth.Label
	if truth.Kind == "packed" {
		label = "repeated"
	}
	if (class == Varint && label == "singular" || class == Message && truth.Kind == "message") && shows("either") {
		f.VarintOrMessage = true
		return f
	}
	if shows("class") {
		f.Class = class
		if class != Len || shows("kind") {
			f.Kind = string(class)
			if ok && (class == Len || class == Message) {
				f.Kind = truth.Kind
			}
		}
	}
	if shows("label") {
		f.Label = label
	}
	f.NoMap = f.Class == Message && label != "map" && label != "" && shows("noMap")
	return f
}

// Whatever a server shows and whatever is claimed, a true claim is not
// contradicted, and no two are confirmed that exclude each other.
func TestVerdictsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth := drawClaim(t)
		claims := append(rapid.SliceOfN(rapid.Custom(drawClaim), 1, 4).Draw(t, "claims"), truth)
		res := &Result{Runtime: ES2, Complete: map[string]bool{}, Shown: map[string]bool{}}
		if f := drawShown(t, truth); f != nil {
			res.Fields = []Field{*f}
		} else {
			res.Complete[""] = rapid.Bool().Draw(t, "complete")
		}
		res.judge([]Question{{Number: 1, Claims: claims}})
		got := res.Settled[0].Claims
		if last := got[len(got)-1]; last.Verdict == Contradicted {
			t.Fatalf("what is true is contradicted: %+v of %+v", last, res.Fields)
		}
		for i, c := range got {
			if c.Concluded == "" || c.Open != "" && c.Verdict != Confirmed {
				t.Fatalf("%+v", c)
			}
			for _, d := range got[i+1:] {
				if c.Verdict == Confirmed && d.Verdict == Confirmed && exclusive(c, d) {
					t.Fatalf("both are confirmed: %+v, %+v of %+v", c, d, res.Fields)
				}
			}
		}
	})
}

// exclusive lists what each of two claims allows, and reports whether nothing is
// in both lists.
func exclusive(c, d Claim) bool {
	allows := func(c Claim) (list []string) {
		if c.Kind == noKind {
			return []string{noKind}
		}
		kinds, labels := []string{c.Kind}, []string{c.Label}
		if c.Kind == "packed" {
			kinds, labels = []string{"varint", "fixed32", "fixed64"}, []string{"repeated"}
		} else if c.Label == "" {
			labels = []string{"singular", "repeated", "map"}
		}
		for _, k := range kinds {
			for _, l := range labels {
				list = append(list, fmt.Sprint(k, l))
			}
		}
		return list
	}
	of := allows(d)
	return !slices.ContainsFunc(allows(c), func(s string) bool { return slices.Contains(of, s) })
}
