package rules

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode/filter"
	"unwire/mitm/rewrite"
	"unwire/schema"
)

const shopProto = `syntax = "proto3";
package shop;
message GetRequest {
  string name = 1;
  int32 count = 2;
  Options options = 3;
  map<string, string> labels = 4;
  repeated int32 sizes = 5;
  Colour colour = 6;
}
message Options { bool fast = 1; string model_id = 2; }
enum Colour { NONE = 0; RED = 1; }
message GetResponse { string title = 1; }
service Cart {
  rpc Get(GetRequest) returns (GetResponse);
  rpc Put(GetResponse) returns (GetResponse);
}
`

func shop(t testing.TB) *schema.Schema {
	t.Helper()
	s, err := schema.FromTexts(map[string]string{"shop.proto": shopProto})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Names in rules for known methods are checked, with file, line and a suggestion; others cannot be.
func TestCheckNames(t *testing.T) {
	for _, c := range []struct{ match, action, want string }{
		{"method:Get dir:up", "set: nmae=x", `r:3: set: nmae=x: shop.GetRequest has no field "nmae"; did you mean name (field 1)?`},
		{"method:Get dir:up", "set: name=x", ""},
		{"method:Get dir:up", "delete: options.modelId", ""},
		{"method:Get dir:up", "delete: options.model", `shop.Options has no field "model"; did you mean model_id (field 2)?`},
		{"method:Get dir:up", "set: count=many", `r:3: set: count=many: count of shop.GetRequest: the value "many" is not a valid int32`},
		{"method:Get dir:up", "set: count:string=many", ""},
		{"method:Get dir:up", "add: [sizes=1, 'sizes=2,3']", ""},
		{"method:Get dir:up", "add: sizes=x", "sizes of shop.GetRequest"},
		{"method:Get dir:up", "set: colour=BLUE", "shop.Colour has no value"},
		{"method:Get dir:up", "set: count.x=1", "the field count has the type int32, which has no fields"},
		{"method:Get dir:up", "set: [labels.any=1, name.inside=1, 99=1, 3.2=x]", ""},
		{"method:Get dir:up", "set: 3.name=1", `shop.Options has no field "name"`},
		{"method:Get dir:up path:options.slow", "drop: true", `r:2: match: path:options.slow: shop.Options has no field "slow"; its fields are fast, model_id`},
		{"method:Get dir:up path:**.slow", "drop: true", ""},
		{"method:Get", "set: [name=x, title=x]", ""},
		{"method:Get", "set: zzzzzzz=x", "its fields are"},
		{"method:Put", "set: name=x", "shop.GetResponse has no field"},
		{"(method:Get or method:Put) dir:up", "set: title=x", ""},
		{"host:a", "set: nmae=x", ""},
		{"method:Get or host:a", "set: nmae=x", ""},
		{"method:Other", "set: nmae=x", ""},
		{"not method:Get dir:up", "set: nmae=x", ""},
	} {
		s, err := parse("r", []byte("rules:\n  - match: "+c.match+"\n    "+c.action+"\n"))
		if err != nil {
			t.Errorf("%s, %s: %v", c.match, c.action, err)
			continue
		}
		switch err := s.CheckNames(shop(t).Services()); {
		case c.want == "" && err != nil:
			t.Errorf("%s, %s: %v", c.match, c.action, err)
		case c.want != "" && (!errors.Is(err, ErrRules) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s, %s:\n got %v\nwant %s", c.match, c.action, err, c.want)
		}
	}
}

// Names in the filters of --intercept and --hook-match are checked as those of rules are.
func TestCheckFilter(t *testing.T) {
	for text, want := range map[string]string{
		"method:Get dir:up path:nmae":         `path:nmae: shop.GetRequest has no field "nmae"; did you mean name (field 1)?`,
		"method:Get dir:up path:options.slow": `path:options.slow: shop.Options has no field "slow"; its fields are fast, model_id`,
		"method:Get dir:up path:name=x":       "",
		"method:Get path:title":               "",
		"path:nmae":                           "",
		"method:Get path:77":                  "",
	} {
		f, err := filter.Parse(text, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckFilter(f, shop(t).Services()); want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Rules with names change protobuf by the types of the messages.
func TestNames(t *testing.T) {
	s, err := parse("r", []byte("rules:\n  - match: method:Get path:options.model_id=old\n    set: options.modelId=new\n"))
	if err != nil || !s.HasNames() {
		t.Fatal(err)
	}
	types := shop(t)
	p := New(s, Options{Type: func(method string, d captures.Direction) protoreflect.MessageDescriptor {
		if method != "/shop.Cart/Get" || d != captures.Up {
			return nil
		}
		return types.Message("shop.GetRequest")
	}})
	x := p.Begin(&captures.Exchange{}, rewrite.Request{Method: "POST", URL: "https://a/shop.Cart/Get", Header: captures.Headers{{Name: "content-type", Value: "application/proto"}}})
	data := []byte("\x1a\x05\x12\x03old")
	v := x.Frame(context.Background(), &rewrite.Frame{Dir: captures.Up, Received: data, Raw: data, Data: data})
	if v.Action != rewrite.Replace || len(v.Messages) != 1 || string(v.Messages[0]) != "\x1a\x05\x12\x03new" {
		t.Errorf("%+v", v)
	}
	if numbers, err := parse("r", []byte("rules:\n  - match: method:Get path:1.2\n    set: 3.4=x\n")); err != nil || numbers.HasNames() {
		t.Errorf("numbers need no definitions: %v", err)
	}
}
