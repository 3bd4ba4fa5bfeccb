package query

import (
	"testing"

	"unwire/captures"
)

func TestParseAddress(t *testing.T) {
	for in, want := range map[string]Address{
		"a.uwc":                      {File: "a.uwc", Frame: -1},
		"a.uwc#7":                    {File: "a.uwc", Exchange: 7, Frame: -1},
		"d/a.uwc#7/up/0":             {File: "d/a.uwc", Exchange: 7},
		"a.uwc#7/down/12":            {File: "a.uwc", Exchange: 7, Dir: captures.Down, Frame: 12},
		"a#b.uwc":                    {File: "a#b.uwc", Frame: -1},
		"a#1.uwc#2":                  {File: "a#1.uwc", Exchange: 2, Frame: -1},
		"a.uwc#7/side/0":             {File: "a.uwc#7/side/0", Frame: -1},
		"#7":                         {File: "#7", Frame: -1},
		"a.uwc#99999999999999999999": {File: "a.uwc#99999999999999999999", Frame: -1},
	} {
		got := ParseAddress(in)
		if got != want {
			t.Errorf("parseAddress(%q) = %+v, want %+v", in, got, want)
		}
		if got.String() != in {
			t.Errorf("%q prints back as %q", in, got.String())
		}
	}
}
