package live

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// TestLinksGrowLinearly compares the processor time of conversations with that of conversations of four times the size.
func TestLinksGrowLinearly(t *testing.T) {
	const times, tries, most = 4, 3, 10
	for name, conversation := range growing() {
		t.Run(name, func(t *testing.T) {
			var ratio float64
			for range tries {
				small := linksTime(t, conversation(1))
				if ratio = float64(linksTime(t, conversation(times))) / float64(small); ratio <= most {
					return
				}
			}
			t.Errorf("%d times the size takes %.1f times the processor time", times, ratio)
		})
	}
}

// growing are conversations that took time in proportion to the square of their size, by what is repeated in them.
func growing() map[string]func(size int) *decode.Exchange {
	members := func(n int, member func(i int) string) []byte {
		list := make([]string, n)
		for i := range list {
			list[i] = member(i)
		}
		return []byte("{" + strings.Join(list, ",") + "}")
	}
	return map[string]func(size int) *decode.Exchange{
		"members": func(size int) *decode.Exchange { return largeEcho(3000 * size) },
		"frames": func(size int) *decode.Exchange {
			return talk(12000*size, false, func(int) []byte { return []byte(`{"id":1}`) })
		},
		"states": func(size int) *decode.Exchange {
			return talk(6000*size, false, func(i int) []byte { return fmt.Appendf(nil, `{"s":"state %c"}`, 'a'+i%3) })
		},
		"shapes": func(size int) *decode.Exchange {
			return talk(6000*size, true, func(i int) []byte {
				return append(wire.AppendVarint(nil, uint64(i/2+1)<<3|2), "\x09abcdefghi"...)
			})
		},
		"absent numbers": func(size int) *decode.Exchange {
			numbers := members(500*size, func(i int) string { return fmt.Sprintf(`"a%d":%d`, i, 100000+i) })
			return talk(1000*size, false, func(i int) []byte {
				if i == 1 || i == 2 {
					return numbers
				}
				return []byte(`{"y":1}`)
			})
		},
		"equal members": func(size int) *decode.Exchange {
			message := members(4000*size, func(int) string { return `"a":"state"` })
			return talk(4, false, func(int) []byte { return message })
		},
		"a long name": func(size int) *decode.Exchange {
			message := members(2000*size, func(i int) string { return fmt.Sprintf(`"a%d":%d`, i, i) })
			message = fmt.Appendf(nil, `{"%s":%s}`, strings.Repeat("n", 20000*size), message)
			return talk(4, false, func(int) []byte { return message })
		},
		"words": func(size int) *decode.Exchange {
			return talk(6, false, func(i int) []byte {
				return members(1000*size, func(k int) string { return fmt.Sprintf(`"a%d":%d`, k, 1000+(i+1)/2) })
			})
		},
	}
}

// talk is a conversation of so many frames, of the client and the server in turn.
func talk(frames int, isProto bool, frame func(i int) []byte) *decode.Exchange {
	ex := &decode.Exchange{}
	for i := range frames {
		data := frame(i)
		f := decode.Frame{Dir: []captures.Direction{captures.Up, captures.Down}[i%2], Seq: i / 2, Frame: envelope.Frame{Framed: true, Raw: data, Data: data}}
		if isProto {
			f.Tree = wire.Parse(data, wire.Options{})
		}
		ex.Frames = append(ex.Frames, f)
	}
	return ex
}

// linksTime returns the processor time that it takes to find the turns in a conversation.
func linksTime(t *testing.T, ex *decode.Exchange) time.Duration {
	t.Helper()
	start := processorTime(t)
	NewLinks(ex, [2]protoreflect.MessageDescriptor{}).Turns()
	return processorTime(t) - start
}

// processorTime returns the processor time that the process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
