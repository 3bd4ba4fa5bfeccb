package infer_test

import (
	"fmt"
	"log"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/schema/infer"
)

// greeting returns a serialized message with a text in field 1 and a number in field 2.
func greeting(text string, number uint64) []byte {
	data := protowire.AppendTag(nil, 1, protowire.BytesType)
	data = protowire.AppendString(data, text)
	data = protowire.AppendTag(data, 2, protowire.VarintType)
	return protowire.AppendVarint(data, number)
}

// Infer derives definitions from samples of an unknown message type.
func ExampleInfer() {
	ev := infer.NewEvidence()
	for i, text := range []string{"Good morning!", "How are you?", "See you tomorrow."} {
		if err := ev.Add("Greeting", greeting(text, uint64(100+i))); err != nil {
			log.Fatal(err)
		}
	}

	in, err := infer.Infer(ev, infer.Options{Package: "chat.v1"})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range in.Fields {
		fmt.Printf("%s %d: %s %s, seen in %d of %d\n", f.Message, f.Number, f.Label, f.Type, f.Seen, f.Samples)
	}
	// Output:
	// chat.v1.Greeting 1: singular string, seen in 3 of 3
	// chat.v1.Greeting 2: singular int32, seen in 3 of 3
}

// Evidence of parts of the traffic can be collected separately and merged.
func ExampleEvidence_Merge() {
	monday, tuesday := infer.NewEvidence(), infer.NewEvidence()
	if err := monday.Add("Greeting", greeting("Good morning!", 1)); err != nil {
		log.Fatal(err)
	}
	if err := tuesday.Add("Greeting", greeting("Good evening!", 2)); err != nil {
		log.Fatal(err)
	}

	monday.Merge(tuesday)
	fmt.Println(monday.Root("Greeting").Samples, "samples")
	// Output: 2 samples
}
