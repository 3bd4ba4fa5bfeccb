package schematest

import (
	"fmt"
	"math"
	"testing"
	"time"

	_ "google.golang.org/genproto/googleapis/rpc/code"
	_ "google.golang.org/genproto/googleapis/rpc/context"
	_ "google.golang.org/genproto/googleapis/rpc/context/attribute_context"
	_ "google.golang.org/genproto/googleapis/rpc/errdetails"
	_ "google.golang.org/genproto/googleapis/rpc/http"
	_ "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	_ "google.golang.org/protobuf/types/gofeaturespb"
	_ "google.golang.org/protobuf/types/known/apipb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	_ "google.golang.org/protobuf/types/known/sourcecontextpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/typepb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
	_ "google.golang.org/protobuf/types/pluginpb"

	reconstructed "unwire/proto"
	"unwire/schema"
)

// A Corpus is a set of messages whose type is known, for tests.
type Corpus struct {
	// Name is the name of the corpus.
	Name string
	// Truth is the true type of the messages.
	Truth protoreflect.MessageDescriptor
	// Samples are the encoded messages.
	Samples [][]byte
}

// RandomCorpus returns a number of messages with realistic random values and a random type. Equal seeds give
// equal messages.
func RandomCorpus(t testing.TB, seed uint64, samples int) Corpus {
	r := NewRand(seed)
	file := RandomFile(r)
	fd, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	c := Corpus{Name: fmt.Sprintf("random %d", seed), Truth: fd.Messages().Get(0)}
	g := NewGenerator(r)
	for range samples {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.Message(c.Truth, 0))
		if err != nil {
			t.Fatal(err)
		}
		c.Samples = append(c.Samples, b)
	}
	return c
}

// BenchCorpus returns messages like those of the stream of a coding agent: many small ones, most of them with
// text.
func BenchCorpus(b *testing.B) (*schema.Schema, Corpus) {
	s, err := schema.LoadDir(b.Context(), "../../proto")
	if err != nil {
		b.Fatal(err)
	}
	split := reconstructed.Profile().Split
	c := Corpus{Truth: s.Method(split.Service, split.RPC).Output()}
	g := NewGenerator(NewRand(5))
	for range 400 {
		m, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.Message(c.Truth, 3))
		if err != nil {
			b.Fatal(err)
		}
		c.Samples = append(c.Samples, m)
	}
	return s, c
}

// Size returns the total size of the messages in bytes.
func (c Corpus) Size() (n int64) {
	for _, s := range c.Samples {
		n += int64(len(s))
	}
	return n
}

// Timed returns the time of one run of f in nanoseconds: the minimum of ten runs.
func Timed(b *testing.B, f func()) float64 {
	b.Helper()
	best := time.Duration(math.MaxInt64)
	for range 10 {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return float64(best)
}
