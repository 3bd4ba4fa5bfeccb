// Package barewalk is the baseline of decoding benchmarks: a walk over the tags of a message that stores
// nothing. Benchmarks of this tree call Compare and so report how many times slower than the walk they are.
package barewalk

import (
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Descriptors returns a real message of at least 100 KiB: a set of file descriptors.
func Descriptors(t testing.TB) []byte {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	protoregistry.GlobalFiles.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(fd))
		return true
	})
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	for len(b) < 100<<10 {
		b = append(b, b...)
	}
	return b
}

// walk parses all tags of a message, and of payloads that begin like one, and returns the number of fields. It does
// the minimum that any decoder must do, so its time is a lower bound for theirs.
func walk(b []byte) (fields int, ok bool) {
	for len(b) > 0 {
		_, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fields, false
		}
		b = b[n:]
		fields++
		switch typ {
		case protowire.VarintType:
			_, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			_, n = protowire.ConsumeFixed32(b)
		case protowire.Fixed64Type:
			_, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			var v []byte
			if v, n = protowire.ConsumeBytes(b); n >= 0 {
				// Whether the payload is a message is unknown, so walk tries, as a decoder without schema must.
				inner, _ := walk(v)
				fields += inner
			}
		default:
			return fields, false
		}
		if n < 0 {
			return fields, false
		}
		b = b[n:]
	}

	return fields, true
}

// Compare benchmarks f, in alternation with a bare walk over the tags of the same data. It reports the fastest
// round of each: "x-walk" is the ratio of both times, "best-MB/s" the throughput of f. Fastest rounds are used
// because other work on the machine can only slow rounds down.
func Compare(b *testing.B, data []byte, f func()) {
	b.Helper()
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	bare, own := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	round := func(best *time.Duration, f func()) {
		start := time.Now()
		f()
		*best = min(*best, time.Since(start))
	}
	// Alternate, so that both run under the same load of the machine.
	for b.Loop() {
		round(&own, f)
		b.StopTimer()
		round(&bare, func() {
			if n, ok := walk(data); n == 0 || !ok {
				b.Fatal("the walk failed")
			}
		})
		b.StartTimer()
	}
	b.ReportMetric(float64(own)/float64(bare), "x-walk")
	b.ReportMetric(float64(len(data))/1e6/own.Seconds(), "best-MB/s")
}
