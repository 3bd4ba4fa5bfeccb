package match_test

import (
	"fmt"
	"log"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/wire"
	"unwire/schema"
	"unwire/schema/match"
)

// A Matcher finds the type of an unknown message among the messages of a schema.
func ExampleMatcher_Match() {
	s, err := schema.FromTexts(map[string]string{"chat.proto": `
		syntax = "proto3";
		package chat.v1;
		message Message { string text = 1; int64 sent = 4; }
		message User { int32 id = 1; string name = 2; }`})
	if err != nil {
		log.Fatal(err)
	}

	data := protowire.AppendTag(nil, 1, protowire.BytesType)
	data = protowire.AppendString(data, "Where is the station?")
	data = protowire.AppendTag(data, 4, protowire.VarintType)
	data = protowire.AppendVarint(data, 1_760_000_000)

	m := match.New(s, match.Options{})
	r := m.Match([]match.Sample{{Tree: wire.Parse(data, wire.Options{})}})
	fmt.Println(r.Conclusion, r.FullName())
	for _, c := range r.Vetoed {
		fmt.Println("not", c.Message, c.Vetoes)
	}
	// Output:
	// match chat.v1.Message
	// not chat.v1.User [1: the wire type is len, but the field is declared as int32]
}
