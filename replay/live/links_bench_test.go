package live

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
)

// largeEcho is a conversation in which the client repeats a message of the server with so many members.
func largeEcho(members int) *decode.Exchange {
	var b strings.Builder
	for i := range members {
		fmt.Fprintf(&b, `"a%d":"state%c%c%c",`, i, 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26)
	}
	message := []byte("{" + b.String() + `"z":"1"}`)
	ex := &decode.Exchange{}
	for i, data := range [][]byte{[]byte("{}"), message, message, message} {
		dir := []captures.Direction{captures.Up, captures.Down}[i%2]
		ex.Frames = append(ex.Frames, decode.Frame{Dir: dir, Seq: i / 2, Frame: envelope.Frame{Framed: true, Raw: data, Data: data}})
	}
	return ex
}

// BenchmarkLargeEcho finds the values of a large message that the client repeats. Before values were looked up in indexes,
// it took 5 times as long.
func BenchmarkLargeEcho(b *testing.B) {
	ex := largeEcho(8000)
	for b.Loop() {
		if turns := NewLinks(ex, [2]protoreflect.MessageDescriptor{}).Turns(); len(turns) != 2 {
			b.Fatal(turns)
		}
	}
}
