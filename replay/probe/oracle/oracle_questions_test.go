package oracle_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// lie is a service whose definitions are wrong here and there.
func (s *randomService) lie() *randomService {
	wrong := *s
	wrong.file = proto.CloneOf(s.file)
	for _, m := range wrong.file.MessageType {
		m.Field = slices.DeleteFunc(m.Field, func(f *fieldProto) bool { return f.OneofIndex == nil && s.r.IntN(8) == 0 })
		for _, f := range m.Field {
			if f.OneofIndex != nil || f.GetType() == typeGroup || f.GetLabel() == required || s.r.IntN(3) > 0 {
				continue
			}
			f.Label, f.TypeName, f.Options, f.JsonName = optional.Enum(), nil, nil, nil
			if f.Type = scalars[s.r.IntN(len(scalars))].Enum(); s.r.IntN(4) == 0 {
				f.Label = repeated.Enum()
			}
		}
	}
	return &wrong
}

func TestDisagreementIsSettled(t *testing.T) {
	for _, server := range randomServers() {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			verdicts := map[string]int{}
			requests, asked := 0, 0
			for seed := range uint64(3) {
				s := newRandomService(seed, 14)
				target, executed := server.start(t, s)
				lies := methods(s.lie().files(t))
				for i, method := range methods(s.files(t)) {
					questions, texts := probe.QuestionsOfDefinitions("truth", method.Input(), "lie", lies[i].Input())
					if len(questions) == 0 {
						continue
					}
					res, err := oracle.Run(context.Background(), probe.Options{
						To: target, Method: fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()), Type: true, Refine: true, Questions: questions, Texts: texts,
					})
					if err != nil {
						t.Fatal(err)
					}
					if len(res.Settled) != len(questions) || res.Stopped != "" {
						t.Errorf("%d of %d: %s", len(res.Settled), len(questions), res.Stopped)
					}
					requests, asked = requests+res.Requests, asked+len(questions)
					for _, q := range res.Settled {
						if server.name != "connect-es 1" || q.Claims[0].Kind != "group" && q.Claims[1].Kind != "group" {
							checkVerdicts(t, q, walk(method.Input(), q.Path).Fields().ByNumber(protoreflect.FieldNumber(q.Number)))
						}
						for _, c := range q.Claims {
							verdicts[c.From+" "+string(c.Verdict)]++
							if c.Kind == "group" && server.name == "connect-es 1" {
								continue // it reads delimited fields of editions by their length
							}
							if c.From == "truth" && c.Verdict == probe.Contradicted {
								t.Errorf("seed %d: %+v: fields %+v", seed, q, res.Fields)
							}
						}
						if q.Claims[1].Verdict == probe.Confirmed && q.Claims[0].Verdict != probe.Confirmed {
							t.Errorf("seed %d: a lie is confirmed: %+v", seed, q)
						}
					}
				}
				if n := executed(); n != 0 {
					t.Errorf("seed %d: handlers ran %d times", seed, n)
				}
			}
			t.Logf("%d questions in %d requests: %v", asked, requests, verdicts)
			if verdicts["truth confirmed"]*8 < asked {
				t.Error("little was settled")
			}
		})
	}
}

// checkVerdicts checks claims of definitions against a field of a server; nil:
// it has none.
func checkVerdicts(t *testing.T, q probe.Question, is protoreflect.FieldDescriptor) {
	t.Helper()
	confirmed := map[string]bool{}
	for _, c := range q.Claims {
		if claimIs(c, is) && c.Verdict == probe.Contradicted {
			t.Errorf("%s.%d: what is true is contradicted: %+v", q.Path, q.Number, c)
		}
		if c.Verdict == probe.Confirmed {
			confirmed[c.Kind+" "+c.Label] = true
		}
	}
	if len(confirmed) > 1 {
		t.Errorf("%s.%d: claims that exclude each other are confirmed: %+v", q.Path, q.Number, q.Claims)
	}
}

// claimIs reports whether a claim is true of a field.
func claimIs(c probe.Claim, fd protoreflect.FieldDescriptor) bool {
	if fd == nil || c.Kind == "none" {
		return fd == nil && c.Kind == "none"
	}
	kind := string(classOf(fd))
	switch fd.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.GroupKind:
		kind = fd.Kind().String()
	}
	return c.Kind == kind && c.Label == labelOf(fd)
}

// Two definitions that are both wrong here and there: what is true by chance is
// not contradicted, and never are both sides confirmed.
func TestTwoLiesAreSettled(t *testing.T) {
	for _, server := range randomServers() {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			for seed := range seedsOf(4) {
				s := newRandomService(seed+70, 14, 5)
				target, executed := server.start(t, s)
				one, other := methods(s.lie().files(t)), methods(s.lie().files(t))
				for i, method := range methods(s.files(t)) {
					questions, texts := probe.QuestionsOfDefinitions("one", one[i].Input(), "other", other[i].Input())
					if len(questions) == 0 {
						continue
					}
					res, err := oracle.Run(context.Background(), probe.Options{
						To: target, Method: fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()), Type: true, Refine: true, Questions: questions, Texts: texts,
					})
					if err != nil || res.Stopped != "" {
						t.Fatalf("%v: %s", err, res.Stopped)
					}
					for _, q := range res.Settled {
						of := walk(method.Input(), q.Path)
						if of == nil || server.name == "connect-es 1" && (q.Claims[0].Kind == "group" || q.Claims[1].Kind == "group") {
							continue // connect-es 1 reads delimited fields of editions by their length
						}
						asked++
						checkVerdicts(t, q, of.Fields().ByNumber(protoreflect.FieldNumber(q.Number)))
					}
				}
				if n := executed(); n != 0 {
					t.Errorf("seed %d: handlers ran %d times", seed, n)
				}
			}
			if asked < 20 {
				t.Errorf("%d questions", asked)
			}
		})
	}
}

func TestAPathThatIsNoMessage(t *testing.T) {
	s := newRandomService(3, 20)
	method := methods(s.files(t))[0]
	es, g := startNode(t, es2, s.set()), startConnect(t, s.files(t), nil)
	for i := range method.Input().Fields().Len() {
		f := method.Input().Fields().Get(i)
		for _, target := range []*url.URL{es.url, g.url} {
			res, err := oracle.Run(context.Background(), probe.Options{
				To: target, Method: fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()), Type: true,
				Path: []int32{int32(f.Number())}, Numbers: []probe.Range{{First: 1, Last: 60}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if f.Kind() != protoreflect.MessageKind && f.Kind() != protoreflect.GroupKind {
				if len(res.Fields) > 0 {
					t.Errorf("%s, below %v: %+v", target, f, res.Fields)
				}
				continue
			}
			compare(t, res, fmt.Sprint(f.Number()), f.Message())
		}
	}
	if es.executed(t) != 0 || g.executed.Load() != 0 {
		t.Error("handlers ran")
	}
}
