package oracle_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// A truth counts how far verdicts on definitions agree with what a server has.
type truth struct{ confirmed, contradicted, undecided, wrong, requests int }

func (t *truth) add(o truth) {
	t.confirmed += o.confirmed
	t.contradicted += o.contradicted
	t.undecided += o.undecided
	t.wrong += o.wrong
	t.requests += o.requests
}

func consumes(fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.GroupKind:
		return "group"
	case protoreflect.MessageKind:
		return "message"
	}
	label := ""
	if fd.IsList() && classOf(fd) != probe.Len {
		label = "repeated "
	}
	return label + string(classOf(fd))
}

// verify holds claimed, a request's definition, against a server of which is
// is the truth.
func verify(t *testing.T, o probe.VerifyOptions, claimed, is protoreflect.MessageDescriptor) (*probe.Verification, truth) {
	t.Helper()
	o.Request = claimed
	v, err := oracle.VerifyMethod(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	sum := truth{confirmed: v.Confirmed, contradicted: v.Contradicted, undecided: v.Undecided, requests: v.Requests}
	if v.Stopped != "" || v.Executed != 0 {
		t.Errorf("%s: stopped %q, %d executed", v.Method, v.Stopped, v.Executed)
	}
	for _, c := range v.Claims {
		fd, md, said := protoreflect.FieldDescriptor(nil), is, claimed
		var want protoreflect.FieldDescriptor
		for step := range strings.SplitSeq(c.Path, ".") {
			n, err := strconv.Atoi(step)
			if err != nil {
				t.Fatal(err)
			}
			want = said.Fields().ByNumber(protoreflect.FieldNumber(n))
			said = want.Message()
			if fd = nil; md != nil {
				fd = md.Fields().ByNumber(protoreflect.FieldNumber(n))
			}
			if md = nil; fd != nil && fd.Kind() == protoreflect.MessageKind {
				md = fd.Message()
			}
		}
		same := fd != nil && consumes(fd) == consumes(want)
		exact := same && fd.Kind() == want.Kind() && fd.IsMap() == want.IsMap() && fd.IsList() == want.IsList()
		text := strings.Contains(c.Concluded, "as string") || strings.Contains(c.Concluded, "as bytes")
		if c.Verdict == probe.Confirmed && (!same || text && fd.Kind() != want.Kind()) || c.Verdict == probe.Contradicted && exact {
			sum.wrong++
			t.Errorf("%s is %s: %+v", c.Path, describe(fd), c)
		}
	}
	return v, sum
}

func describe(fd protoreflect.FieldDescriptor) string {
	if fd == nil {
		return "unknown"
	}
	return fmt.Sprint(fd.Cardinality(), " ", fd.Kind(), " map ", fd.IsMap())
}

// mistaken is a copy of definitions in which some fields are of another kind,
// label or number.
func mistaken(t *testing.T, set *descriptorpb.FileDescriptorSet, seed uint64, oneIn int) *protoregistry.Files {
	t.Helper()
	out := proto.Clone(set).(*descriptorpb.FileDescriptorSet) //nolint:forcetypeassert // it is its clone
	r := rand.New(rand.NewPCG(seed, 99))
	for _, m := range out.File[0].MessageType {
		for _, f := range m.Field {
			if r.IntN(oneIn) != 0 || f.GetType() == descriptorpb.FieldDescriptorProto_TYPE_MESSAGE && f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED {
				continue
			}
			if f.OneofIndex != nil || len(m.ExtensionRange) > 0 {
				continue // what it may be is bounded
			}
			f.DefaultValue = nil
			switch r.IntN(4) {
			case 0:
				f.Number = proto.Int32(5000 + f.GetNumber())
			case 1:
				if f.Options = nil; f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED {
					f.Label = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()
				} else {
					f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
				}
			case 2:
				f.Options, f.TypeName = nil, proto.String("."+out.File[0].GetPackage()+".Other")
				f.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
			default:
				f.Options, f.TypeName = nil, nil
				f.Type = scalars[r.IntN(len(scalars))].Enum()
			}
		}
	}
	out.File[0].MessageType = append(out.File[0].MessageType, &messageProto{Name: proto.String("Other"), Field: []*fieldProto{
		{Name: proto.String("a"), Number: proto.Int32(1), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()},
		{Name: proto.String("b"), Number: proto.Int32(2), Type: descriptorpb.FieldDescriptorProto_TYPE_UINT64.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()},
	}})
	files, err := protodesc.NewFiles(out)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// verifyAll verifies all methods of a schema, as it is and with mistakes.
func verifyAll(t *testing.T, to *url.URL, m *schemaMaker, o probe.VerifyOptions) (right, wrong truth) {
	t.Helper()
	o.To, o.Depth = to, 4
	is := methods(m.files(t))
	for i, method := range is {
		o.Method = fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
		v, sum := verify(t, o, method.Input(), method.Input())
		if v.Contradicted > 0 {
			t.Errorf("%s: its own definition is contradicted", o.Method)
		}
		t.Logf("%s %s: %d confirmed, %d undecided of %d in %d requests, %d bytes", v.Runtime, o.Method, v.Confirmed, v.Undecided, len(v.Claims), v.Requests, v.Bytes)
		right.add(sum)
		for seed := range uint64(3) {
			claimed := methods(mistaken(t, m.set(), seed+uint64(10*i), 4))[i]
			_, sum := verify(t, o, claimed.Input(), method.Input())
			wrong.add(sum)
		}
	}
	t.Logf("as it is: %+v; with mistakes: %+v", right, wrong)
	return right, wrong
}

func verifySchema(seed uint64, sizes ...int) *schemaMaker {
	m := newSchemaMaker(seed)
	for i, size := range sizes {
		m.method(fmt.Sprintf("Call%d", i), size, int32(max(size, 1000)), i%3 == 2)
	}
	return m
}

func TestVerifyES(t *testing.T) {
	for _, version := range esVersions() {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			m := verifySchema(40+version.seed(), 1, 3, 8, 41)
			server := startNode(t, version, m.set())
			right, wrong := verifyAll(t, server.url, m, probe.VerifyOptions{Options: probe.Options{Refine: true}})
			if right.undecided*10 > right.confirmed || wrong.contradicted == 0 {
				t.Errorf("as it is: %+v; with mistakes: %+v", right, wrong)
			}
			if n := server.executed(t); n != 0 {
				t.Errorf("handlers ran %d times", n)
			}
		})
	}
}

func TestVerifyGo(t *testing.T) {
	m := verifySchema(50, 1, 3, 8, 41)
	connect := startConnect(t, m.files(t), nil)
	right, wrong := verifyAll(t, connect.url, m, probe.VerifyOptions{})
	if right.confirmed*2 < right.undecided || wrong.contradicted == 0 {
		t.Errorf("as it is: %+v; with mistakes: %+v", right, wrong)
	}
	if n := connect.executed.Load(); n != 0 {
		t.Errorf("handlers ran %d times", n)
	}
}

// Behind a proxy that hides what the parser says, nothing is claimed.
func TestVerifyMasked(t *testing.T) {
	m := verifySchema(60, 8)
	server := startConnect(t, m.files(t), func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("content-type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"code":"invalid_argument","message":"bad request"}`)
		})
	})
	md := methods(m.files(t))[0]
	v, sum := verify(t, probe.VerifyOptions{Options: probe.Options{To: server.url, Method: "/probe.v1.Service/Call0"}}, md.Input(), md.Input())
	if sum.confirmed+sum.contradicted != 0 || sum.undecided == 0 || !strings.Contains(strings.Join(v.Notes, " "), "do not contain the error messages of its parser") {
		t.Errorf("%+v", v)
	}
}
