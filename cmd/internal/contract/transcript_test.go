package contract

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"unwire/decode/envelope"
	"unwire/decode/transcript"
)

func encoded(t *testing.T, o Object) string {
	t.Helper()
	var b strings.Builder
	if err := NewEncoder(&b).Encode(o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTranscript: the error's details are decoded by their type, or else shown as the
// server decoded them, or by their bytes.
func TestTranscript(t *testing.T) {
	duration, err := proto.Marshal(durationpb.New(1_500_000_000))
	if err != nil {
		t.Fatal(err)
	}
	tr := &transcript.Transcript{Answer: "Hi <b>", Error: &transcript.Failure{Code: "unavailable", Message: "busy", Details: []envelope.Detail{
		{Type: "type.googleapis.com/google.protobuf.Duration", Value: duration},
		{Type: "a.Unknown", Value: []byte{8, 1}, Debug: []byte(`{"n":1}`)},
		{Type: "a.Unknown", Value: []byte{8, 1}},
	}}}
	got := encoded(t, NewTranscript(7, tr, nil))
	if want := `{"v":1,"exchange":7,"answer":"Hi <b>","candidates":null,"error":{"code":"unavailable","message":"busy","details":[`; !strings.HasPrefix(got, want) {
		t.Errorf("%s does not begin with %s", got, want)
	}
	for _, text := range []string{`"text":"\"1.500s\""`, `"text":"{\"n\":1}"`, `"text":"1: 1"`} {
		if !strings.Contains(got, text) {
			t.Errorf("%s does not contain %s", got, text)
		}
	}
	tr.Error = nil
	if got, want := encoded(t, NewTranscript(7, tr, nil)), `{"v":1,"exchange":7,"answer":"Hi <b>","candidates":null}`+"\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestWeights: what is printed is a weights file.
func TestWeights(t *testing.T) {
	got := encoded(t, &Weights{Weights: transcript.DefaultWeights()})
	if !strings.HasPrefix(got, `{"v":1,"temperature":`) {
		t.Errorf("%.60s", got)
	}
	if _, err := transcript.ParseWeights([]byte(got)); err != nil {
		t.Error(err)
	}
	got = encoded(t, &WeightsFit{FitReport: &transcript.FitReport{Labels: 20, Roles: 2, Folds: 5}})
	if want := `{"v":1,"labels":20,"roles":2,"before":0,"after":0,"held_out":0,"loss_before":0,"loss_held_out":0,"folds":5}` + "\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
