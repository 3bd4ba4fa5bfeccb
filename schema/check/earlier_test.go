package check

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestReportsOfEarlierVersions: the findings in a report that an earlier version wrote are allowed, although their reasons
// were worded differently. The wordings in the map are those of that version.
func TestReportsOfEarlierVersions(t *testing.T) {
	for before, now := range map[string]string{
		"declared as uint64, but has a value outside its range":              "the field is declared as uint64, but has a value outside the range of this type",
		"declared as int32, but has a fraction":                              "the field is declared as int32, but has a value with a fraction",
		"declared as bool, but has a value above 1":                          "the field is declared as bool, but has a value above 1",
		"occurs more than once in a message, but is declared singular":       "the field occurs more than once in a message, but is declared as singular",
		"occurs more than once in a JSON object":                             "the field occurs more than once in a JSON object",
		"occurs together with file, which is in the same oneof source":       "the field occurs together with file, which is in the same oneof source",
		"JSON number, declared string":                                       "the JSON value has the type number, but the field is declared as string",
		"JSON that is no google.protobuf.Duration":                           "the JSON value is not a valid google.protobuf.Duration",
		"key that is no int32":                                               "a key of the map is not a valid int32",
		"missing, declared required":                                         "the field is missing, but is declared as required",
		"payload is no in.v1.Held":                                           "the payload does not parse as in.v1.Held",
		"the payload does not parse as a message":                            "the payload does not parse as a message",
		"the field is declared as bool, but has a value above 1":             "the field is declared as bool, but has a value above 1",
		"the field occurs more than once in a JSON object":                   "the field occurs more than once in a JSON object",
		"the JSON value has the type number, but the field is declared as x": "the JSON value has the type number, but the field is declared as x",
	} {
		report := func(reason string) *Report {
			return &Report{Contradicted: []Contradiction{{Message: "in.v1.Req", Number: 3, Name: "on", Reason: reason}}}
		}
		stored, err := json.Marshal(report(before))
		if err != nil {
			t.Fatal(err)
		}
		known, err := ReadAllowance(bytes.NewReader(stored))
		if err != nil {
			t.Fatal(err)
		}
		found := report(now)
		if found.Allow(known); !found.Contradicted[0].Allowed {
			t.Errorf("%q does not allow %q", before, now)
		}
	}
}
