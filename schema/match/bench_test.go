package match

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"unwire/schema"
)

// manyTypes is a schema of n types of a few fields each, which refer to each other.
func manyTypes(t testing.TB, n int) *schema.Schema {
	r := rand.New(rand.NewPCG(3, 3))
	kinds := []string{"string", "string", "string", "int32", "bool", "int64", "bytes", "double", "E", "M", "M", "repeated string", "repeated M", "repeated int32"}
	var b strings.Builder
	b.WriteString("enum E { E_ZERO = 0; E_ONE = 1; E_TWO = 2; }\n")
	for i := range n {
		fmt.Fprintf(&b, "message M%d {\n", i)
		for number := range 1 + r.IntN(14) {
			kind := kinds[r.IntN(len(kinds))]
			if strings.HasSuffix(kind, "M") {
				kind += fmt.Sprint(r.IntN(n))
			}
			fmt.Fprintf(&b, "  %s f%d = %d;\n", kind, number, number+1)
		}
		b.WriteString("}\n")
	}
	return load(t, b.String())
}

// BenchmarkMatch is one frame of 5 to 20 KB against 3,000 types.
func BenchmarkMatch(b *testing.B) {
	s := manyTypes(b, 3000)
	m := New(s, Options{})
	var list []Sample
	for i := range 3000 {
		g := maker{rand.New(rand.NewPCG(uint64(i), 1)), 0.6}
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.message(s.Message(fmt.Sprintf("a.M%d", i)), 2))
		if err != nil {
			b.Fatal(err)
		}
		if len(data) > 5_000 && len(data) < 20_000 {
			list = samples(data)
			break
		}
	}
	if len(list) == 0 {
		b.Fatal("no message of that size")
	}
	b.SetBytes(int64(len(list[0].Tree.Data)))
	for b.Loop() {
		m.Match(list)
	}
}

// BenchmarkMatchPooled is 1,000 distinct small frames against 3,000 types.
func BenchmarkMatchPooled(b *testing.B) {
	s := manyTypes(b, 3000)
	m := New(s, Options{})
	g := maker{rand.New(rand.NewPCG(5, 1)), 0.5}
	var list []Sample
	for range 1000 {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.message(s.Message("a.M3"), 4))
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, samples(data)...)
	}
	for b.Loop() {
		m.Match(list)
	}
}
