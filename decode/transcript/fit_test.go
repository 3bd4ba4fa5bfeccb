package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// labelsOf labels what is known of n exchanges of a style.
func labelsOf(t *testing.T, s style_, first, n uint64) []trainingLabel {
	t.Helper()
	var out []trainingLabel
	for seed := first; seed < first+n; seed++ {
		l := s.make(newMaker(seed))
		got := Extract(l.ex, Options{})
		for _, w := range l.roles {
			for i := range got.Candidates {
				if c := &got.Candidates[i]; c.Text == w.text {
					out = append(out, c.Label(fmt.Sprintf("%s-%d", s.name, seed), w.role))
				}
			}
		}
	}
	return out
}

// TestFit: weights that were spoiled are mended by labels, for exchanges that the
// labels are not of.
func TestFit(t *testing.T) {
	spoiled := DefaultWeights()
	for r := range spoiled.table[beforeText] {
		spoiled.table[beforeText][r], spoiled.table[echo][r], spoiled.table[languageLike][r] = 0, 0, 0
	}
	labels := labelsOf(t, styles[3], 1, 60)
	w, report, err := Fit(labels, FitOptions{Start: spoiled})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", *report)
	if report.Held < report.Before+0.02 || report.After < report.Held-0.02 || report.LossHeld >= report.LossBefore {
		t.Errorf("before %.3f, after %.3f, held out %.3f", report.Before, report.After, report.Held)
	}
	other := labelsOf(t, styles[3], 5000, 60)
	var examples []example
	for i := range other {
		examples = append(examples, newExample(&other[i]))
	}
	was, _ := spoiled.accuracy(examples)
	is, _ := w.accuracy(examples)
	if is < was+0.02 {
		t.Errorf("on other exchanges: %.3f before, %.3f after", was, is)
	}
	again, _, err := Fit(labels, FitOptions{Start: spoiled})
	if err != nil || again.table != w.table {
		t.Errorf("a second fit differs: %v", err)
	}
}

// Weights that no label concerns do not change, and labels that agree change little.
func TestFitKeepsWeights(t *testing.T) {
	w, report, err := Fit(labelsOf(t, styles[2], 1, 20), FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if report.After < report.Before {
		t.Errorf("%+v", *report)
	}
	if w.table[afterCall] != weights[afterCall] {
		t.Errorf("a feature that does not occur changed: %v", w.table[afterCall])
	}
}

func TestFitRefuses(t *testing.T) {
	l := trainingLabel{V: 1, Source: "a", Dir: "down", Path: "1", Role: Assistant, Features: map[string]float64{"prior": 1}}
	one := make([]trainingLabel, minLabels)
	for i := range one {
		one[i] = l
	}
	for _, c := range []struct {
		labels []trainingLabel
		want   string
	}{{one[:minLabels-1], "too few"}, {nil, "too few"}, {one, "have the same role"}} {
		if _, _, err := Fit(c.labels, FitOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d labels: %v, want %q", len(c.labels), err, c.want)
		}
	}
}

func TestWeightsFile(t *testing.T) {
	b, err := json.Marshal(DefaultWeights())
	if err != nil {
		t.Fatal(err)
	}
	w, err := ParseWeights(b)
	if err != nil || *w != *DefaultWeights() {
		t.Errorf("not read back: %v", err)
	}
	w, err = ParseWeights([]byte(`{"v":1,"weights":{"echo of the request":{"user":7}}}`))
	if err != nil || w.Row("echo of the request")[4] != 7 || w.Row("prior")[0] != weights[prior][0] {
		t.Errorf("a file of one row: %v", err)
	}
	if w.Row("nothing") != nil {
		t.Error("a row of no feature")
	}
	for in, want := range map[string]string{
		``: "EOF", `{"v":2}`: "version 2", `{"v":1,"weights":{"x":{}}}`: `the unknown feature "x"`, `{"v":1,"weights":{"prior":{"boss":1}}}`: `the unknown role "boss"`,
		`{"v":1,"weights":{"prior":{"user":1e300}}}`: "an invalid number for the role user", `{"v":1,"temperature":1e9}`: "temperature", `{"v":1,"more":1}`: "more",
	} {
		if _, err := ParseWeights([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

func TestParseLabels(t *testing.T) {
	line := `{"v":1,"source":"a#1","dir":"down","path":"1","role":"assistant","features":{"prior":1}}`
	got, err := ParseLabels([]byte(line + "\n\n" + strings.Replace(line, "assistant", "thinking", 1)))
	if err != nil || len(got) != 1 || got[0].Role != Thinking {
		t.Errorf("the later label of a candidate does not count: %v %v", got, err)
	}
	for in, want := range map[string]string{
		"x": "line 1", line + "\n{}": "line 2 of the labels: the label has version 0", strings.Replace(line, "assistant", "boss", 1): `"boss" is not a role`,
		strings.Replace(line, "prior", "x", 1): `the unknown feature "x"`, strings.Replace(line, `:1}}`, `:1e9}}`, 1): "the invalid value 1e+09", strings.Replace(line, `{"prior":1}`, `{}`, 1): "has no features",
	} {
		if _, err := ParseLabels([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

// FuzzWeightsFile reads weights and labels that anybody may have written.
func FuzzWeightsFile(f *testing.F) {
	f.Add([]byte(`{"v":1,"temperature":2,"weights":{"prior":{"user":7}}}`))
	f.Add([]byte(`{"v":1,"source":"a#1","dir":"down","path":"1","role":"assistant","features":{"prior":1}}`))
	ex := raw(request("What is in main.go?"), "--", agentText("It is "), agentText("a file."))
	f.Fuzz(func(t *testing.T, data []byte) {
		if w, err := ParseWeights(data); err == nil {
			for _, c := range Extract(ex, Options{Weights: w}).Candidates {
				if !(c.Score >= 0 && c.Score <= 1) {
					t.Fatalf("score %v", c.Score)
				}
			}
			if b, err := json.Marshal(w); err != nil {
				t.Fatal(err)
			} else if again, err := ParseWeights(b); err != nil || *again != *w {
				t.Fatalf("not read back: %v", err)
			}
		}
		labels, err := ParseLabels(data)
		if err == nil && len(labels) > bytes.Count(data, []byte("\n"))+1 {
			t.Fatal("more labels than lines")
		}
	})
}

// FuzzLabels reads files of labels of any kind: an error keeps the labels before it.
func FuzzLabels(f *testing.F) {
	for _, text := range []string{"", "{}\n", "{\"v\":1}\nx", "[]\n{}", "{\"role\":\"user\"}\n\n{\"role\":\"user\"}\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		labels, _ := ParseLabels(data)
		if lines := bytes.Count(data, []byte("\n")) + 1; len(labels) > lines {
			t.Errorf("%d labels in %d lines", len(labels), lines)
		}
	})
}
