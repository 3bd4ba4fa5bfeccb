package check_test

import (
	"fmt"
	"log"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/schema"
	"unwire/schema/check"
)

// A Checker reports what definitions do not explain: here field 3 is unknown, and field 2
// has another type than the definitions say.
func ExampleChecker() {
	definitions, err := schema.FromTexts(map[string]string{"chat.proto": `
		syntax = "proto3";
		package chat.v1;
		message Message {
			string text = 1;
			string author = 2;
		}
		service Chat {
			rpc Send(Message) returns (Message);
		}`})
	if err != nil {
		log.Fatal(err)
	}

	// The request has text in field 1, and numbers in the fields 2 and 3.
	data := protowire.AppendTag(nil, 1, protowire.BytesType)
	data = protowire.AppendString(data, "hello")
	for _, number := range []protowire.Number{2, 3} {
		data = protowire.AppendTag(data, number, protowire.VarintType)
		data = protowire.AppendVarint(data, 7)
	}
	ex := &decode.Exchange{Call: decode.Call{Service: "chat.v1.Chat", RPC: "Send", Codec: "proto"}}
	ex.ID = 1
	ex.Frames = []decode.Frame{{Dir: captures.Up, Frame: envelope.Frame{Data: data}}}

	k := check.NewChecker(definitions, check.Options{})
	k.Add(ex)
	report := k.Report()
	for _, u := range report.Unknown {
		fmt.Printf("unknown: %s field %d, %s, in %v\n", u.Message, u.Number, u.Kind, u.Frames)
	}
	for _, c := range report.Contradicted {
		fmt.Printf("contradicted: %s.%s, in %v\n", c.Message, c.Name, c.Frames)
	}
	// Output:
	// unknown: chat.v1.Message field 3, varint, in [#1/up/0]
	// contradicted: chat.v1.Message.author, in [#1/up/0]
}
