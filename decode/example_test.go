package decode_test

import (
	"context"
	"fmt"
	"iter"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode"
	"unwire/decode/envelope"
)

// A call is a capture of one exchange in memory. Programs open a capture file with package
// store instead.
type call struct {
	exchange captures.Exchange
	chunks   []captures.Chunk
}

func (c call) Exchange(context.Context, int64) (*captures.Exchange, error) { return &c.exchange, nil }

func (c call) Profile() *profile.Profile { return nil }

func (c call) Chunks(context.Context, int64, int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		for _, chunk := range c.chunks {
			if !yield(chunk, nil) {
				return
			}
		}
	}
}

func chat() call {
	header := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}
	answer := envelope.Append(nil, 0, []byte{0x0a, 0x05, 'h', 'e', 'l', 'l', 'o', 0x10, 0x2a})
	answer = envelope.Append(answer, envelope.EndStream, []byte(`{}`))
	return call{
		exchange: captures.Exchange{
			ID: 1, Transport: captures.HTTP, Method: "POST", URL: "https://example.com/chat.v1.ChatService/Ask",
			RequestHeaders: header, Status: 200, ResponseHeaders: header, Outcome: captures.Complete,
		},
		chunks: []captures.Chunk{{Exchange: 1, Dir: captures.Down, Data: answer}},
	}
}

// Decode a stream without a schema: the types of fields are inferred.
func ExampleDecode() {
	ex, err := decode.Decode(context.Background(), chat(), 1, decode.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ex.Protocol, ex.CallName(), ex.Code)
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if f.End != nil {
			fmt.Println(f.Dir, f.Seq, "end of stream")
			continue
		}
		for _, field := range (decode.View{}).Fields(f.Tree) {
			fmt.Println(f.Dir, f.Seq, "field", field.N, field.Type, field.Value)
		}
	}
	// Output:
	// connect-stream chat.v1.ChatService/Ask ok
	// down 0 field 1 string hello
	// down 0 field 2 int64 42
	// down 1 end of stream
}

// EachFrame decodes exchanges of any size, because it keeps no frame.
func ExampleEachFrame() {
	ex, err := decode.EachFrame(context.Background(), chat(), 1, decode.Options{}, func(_ *decode.Exchange, f *decode.Frame) error {
		fmt.Println(f.Dir, f.Seq, len(f.Data), "bytes")
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ex.Code)
	// Output:
	// down 0 9 bytes
	// down 1 2 bytes
	// ok
}
