package oracle_test

import (
	"context"
	"strings"
	"testing"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

const groupsBelow = `
syntax = "proto2";
package probe.v1;
message Inner {
  optional string note = 1;
  repeated group Row = 3 {
    optional string cell = 1;
    optional fixed64 width = 2;
    optional group Style = 4 { optional bytes raw = 1; optional fixed32 size = 5; optional Inner again = 7; }
    repeated int32 marks = 6;
  }
  optional int64 count = 4;
  optional group Last = 20 { optional sint32 a = 2; }
}
message Request {
  optional string title = 1;
  optional Inner inner = 2;
  optional group Top = 5 { optional Inner inside = 1; optional group Deep = 2 { optional double x = 9; } }
}
message Reply {}
service Service { rpc Call(Request) returns (Reply); }
`

// Groups are found below any path, and paths lead through groups.
func TestGroupsBelowAPath(t *testing.T) {
	set, files := compiled(t, groupsBelow)
	md := methods(files)[0].Input()
	for _, version := range esVersions() {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			server := startNode(t, version, set)
			for _, path := range []string{"", "2", "2.3", "2.3.4", "2.3.4.7", "2.20", "5", "5.1", "5.1.3", "5.2"} {
				numbers, err := probe.ParsePath(path)
				if path == "" {
					numbers, err = nil, nil
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, last := range []int32{30, 1100} {
					o := probe.Options{To: server.url, Method: call, Type: true, Refine: true, Path: numbers, Depth: 2, Numbers: []probe.Range{{First: 1, Last: last}}}
					res, err := oracle.Run(context.Background(), o)
					if err != nil || res.Stopped != "" || res.Executed != 0 {
						t.Fatalf("%q: %v: %+v", path, err, res)
					}
					v := compareAll(t, res, md)
					of, found := walk(md, path), 0
					for _, f := range res.Fields {
						if f.Path == path {
							found++
						}
					}
					if found != of.Fields().Len() {
						t.Errorf("%q up to %d: %d of %d fields: %s", path, last, found, of.Fields().Len(), strings.Join(res.Notes, "; "))
					}
					if v.wrong > 0 {
						t.Errorf("%q up to %d: %+v", path, last, v)
					}
				}
			}
			if n := server.executed(t); n != 0 {
				t.Errorf("handlers ran %d times", n)
			}
		})
	}
}
