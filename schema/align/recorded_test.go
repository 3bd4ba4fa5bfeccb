package align

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/captures/store"
	"unwire/decode"
	"unwire/mitm"
	"unwire/mitm/ca"
)

type dynamic = dynamicpb.Message

// A recording is what methods of random types said, through the proxy.
type recording struct {
	w      *world
	types  [][2]protoreflect.MessageDescriptor // of each method
	store  *store.Store
	client string
}

// newRecording starts a server whose answer depends on nothing but the request,
// behind a recording proxy.
func newRecording(t *testing.T, methods int) *recording {
	t.Helper()
	r := &recording{w: newWorld(rand.New(rand.NewPCG(100, 1)), false, methods*2)}
	mux := http.NewServeMux()
	for i := range methods {
		in, out := r.w.file.Messages().Get(2*i), r.w.file.Messages().Get(2*i+1)
		r.types = append(r.types, [2]protoreflect.MessageDescriptor{in, out})
		path := fmt.Sprintf("/w.v1.Methods/Call%d", i)
		mux.Handle(path, connect.NewUnaryHandler(path, func(_ context.Context, req *connect.Request[dynamic]) (*connect.Response[dynamic], error) {
			data, err := proto.MarshalOptions{Deterministic: true}.Marshal(req.Msg)
			if err != nil {
				return nil, err
			}
			h := fnv.New64a()
			_, _ = h.Write(data)
			answer := &world{r: rand.New(rand.NewPCG(h.Sum64(), uint64(i))), file: r.w.file}
			return connect.NewResponse(answer.fill(out, 0.6, 0)), nil
		}, connect.WithRequestInitializer(func(_ connect.Spec, v any) error {
			*v.(*dynamic) = *dynamicpb.NewMessage(in) //nolint:forcetypeassert // as declared above
			return nil
		})))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	store, err := store.Create(filepath.Join(t.TempDir(), "r.uwc"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ca, err := ca.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	origin, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := mitm.New(mitm.Options{CA: ca, Store: store, Reverse: origin})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = proxy.Serve(ln) }()
	t.Cleanup(func() { _ = proxy.Shutdown(context.Background()); _ = store.Close() })
	r.store, r.client = store, "http://"+ln.Addr().String()
	return r
}

// call makes every method's call in both codecs.
func (r *recording) call(t *testing.T, into map[string]map[uint64]bool) {
	t.Helper()
	for i, types := range r.types {
		request := r.w.fill(types[0], 0.6, 0)
		for _, o := range [][]connect.ClientOption{nil, {connect.WithProtoJSON()}} {
			o = append(o, connect.WithResponseInitializer(func(_ connect.Spec, v any) error {
				*v.(*dynamic) = *dynamicpb.NewMessage(types[1]) //nolint:forcetypeassert // as declared
				return nil
			}))
			client := connect.NewClient[dynamic, dynamic](http.DefaultClient, fmt.Sprintf("%s/w.v1.Methods/Call%d", r.client, i), o...)
			resp, err := client.CallUnary(t.Context(), connect.NewRequest(request))
			if err != nil {
				t.Fatal(err)
			}
			seen(resp.Msg, fmt.Sprintf("w.v1.Call%dResponse", i), into)
		}
		seen(request, fmt.Sprintf("w.v1.Call%dRequest", i), into)
	}
}

// report aligns what was recorded so far.
func (r *recording) report(t *testing.T) *Report {
	t.Helper()
	if err := r.store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var calls Calls
	for ex, err := range r.store.Exchanges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		d, err := decode.Decode(t.Context(), r.store, ex.ID, decode.Options{})
		if err != nil {
			t.Fatal(err)
		}
		calls.Add("r.uwc", d)
	}
	var a Aligner
	if _, err := calls.Pair(&a); err != nil {
		t.Fatal(err)
	}
	return a.Solve()
}

// TestEvalRecorded: 100 methods of random types on a real server, recorded in
// both codecs through the proxy.
func TestEvalRecorded(t *testing.T) {
	r := newRecording(t, 100)
	truth := &truth{types: map[string]protoreflect.MessageDescriptor{}}
	for i, types := range r.types {
		truth.walk(fmt.Sprintf("w.v1.Call%dRequest", i), types[0], 0)
		truth.walk(fmt.Sprintf("w.v1.Call%dResponse", i), types[1], 0)
	}
	into := map[string]map[uint64]bool{}
	for pairs := 1; pairs <= 5; pairs++ {
		r.call(t, into)
		floor, measured := map[int]float64{1: 0.97, 5: 0.98}[pairs]
		if !measured {
			continue
		}
		found, wrong, all := 0, 0, 0
		report := r.report(t)
		for _, j := range report.Joins {
			if complaint, _ := truth.wrong(j); complaint != "" {
				wrong++
				t.Errorf("%s.%d = %s: %s", j.Message, j.Number, j.JSONName, complaint)
			}
			if into[j.Message][j.Number] {
				found++
			}
		}
		for _, fields := range into {
			all += len(fields)
		}
		share := float64(found) / float64(all)
		t.Logf("align  100 methods, %d pairs each: %.3f of the %d names seen, %d wrong, %d doubts", pairs, share, all, wrong, len(report.Doubts))
		if share < floor {
			t.Errorf("%d pairs: %.3f of the names seen, at least %.2f is wanted", pairs, share, floor)
		}
	}
}
