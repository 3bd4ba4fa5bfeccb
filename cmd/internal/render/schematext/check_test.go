package schematext

import (
	"strings"
	"testing"

	"unwire/cmd/internal/term"
	"unwire/schema/check"
)

func TestCheck(t *testing.T) {
	r := &check.Report{
		Frames: 3, Decoded: 2, Bytes: 3000, BytesExplained: 2999, FieldsSeen: 1,
		Methods:        []check.MethodCoverage{{Service: "a.B", RPC: "C", Dir: "up", Frames: 3, Decoded: 2, Bytes: 3000, BytesExplained: 2999}},
		Unknown:        []check.UnknownField{{Message: "a.M", Number: 7, Kind: "varint", P: 0.5, Seen: 2, Frames: []string{"f#1/up/0", "f#1/up/1", "f#2/up/0", "f#3/up/0"}}},
		Contradicted:   []check.Contradiction{{Message: "a.M", Name: "a.M", Reason: "truncated", Seen: 1, Allowed: true}},
		UnknownMethods: []check.UnknownMethod{{Service: "a.B", RPC: "D", Count: 1}},
	}
	var b strings.Builder
	if err := Check(term.New(&b, "never"), r); err != nil {
		t.Fatal(err)
	}
	const want = "METHOD\tSENT BY\tMESSAGE TYPE\tDECODED\tDESCRIBED\n" +
		"a.B/C\tclient\t(unknown method)\t2 of 3 frames\t99.9 % of bytes\n\n" +
		"FINDING\tMESSAGE OR SERVICE\tFIELD OR METHOD\tDETAILS\tSEEN\tFRAMES\n" +
		"unknown\ta.M\t7\tvarint (probability 0.50)\t2 times\tf#1/up/0 f#1/up/1 f#2/up/0 …\n" +
		"(accepted) contradicted\ta.M\ta.M\ttruncated\t1 time\t\n" +
		"unknown method\ta.B\tD\t\t1 message\t\n"
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	const summary = "decoded 2 of 3 frames; the definitions describe 99.9 % of 3000 bytes; 1 field of the definitions occurred in the traffic, 0 did not; 1 unknown field, 1 contradiction, 1 unknown method; you accepted 1 finding"
	if s := CheckSummary(r); s != summary {
		t.Errorf("%s\nwant\n%s", s, summary)
	}
}
