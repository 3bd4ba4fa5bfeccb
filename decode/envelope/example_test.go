package envelope_test

import (
	"fmt"

	"unwire/decode/envelope"
)

// A body arrives in chunks that do not respect the boundaries of frames.
func Example() {
	body := envelope.Append(nil, 0, []byte("first"))
	body = envelope.Append(body, envelope.EndStream, []byte(`{"error":{"code":"not_found"}}`))

	d := envelope.NewDecoder(envelope.Options{Framed: true})
	for _, chunk := range [][]byte{body[:7], body[7:12], body[12:]} {
		frames, err := d.Feed(chunk)
		if err != nil {
			fmt.Println(err)
		}
		for _, f := range frames {
			fmt.Printf("at %d, flags %s: %s\n", f.Offset, f.Flags, f.Data)
		}
	}
	if _, err := d.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// at 0, flags 0: first
	// at 10, flags end: {"error":{"code":"not_found"}}
}

// A frame that the end of the body cuts off is returned with an error.
func ExampleDecoder_Close() {
	body := envelope.Append(nil, 0, []byte("a long message"))

	d := envelope.NewDecoder(envelope.Options{Framed: true})
	if _, err := d.Feed(body[:9]); err != nil {
		fmt.Println(err)
	}
	frames, err := d.Close()
	fmt.Printf("partial %t: %q\n%v\n", frames[0].Partial, frames[0].Data, err)
	// Output:
	// partial true: "a lo"
	// frame at offset 0x0: the length is 14, but only 4 bytes arrived: unexpected EOF
}

func ExampleParseEnd() {
	end, err := envelope.ParseEnd([]byte(`{"error":{"code":"unavailable","message":"try again"},"metadata":{"retry-after":["5"]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(end.Error.Code, end.Error.Message, end.Metadata)
	// Output:
	// unavailable try again map[retry-after:[5]]
}
