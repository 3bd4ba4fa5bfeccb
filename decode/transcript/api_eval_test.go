package transcript

import (
	"maps"
	"math"
	"os"
	"slices"
	"testing"
)

func floatBits(v float64) uint64 { return math.Float64bits(v) }

func sortedNames(o object) []string { return slices.Sorted(maps.Keys(o)) }

// TestEvalAPIs prints how well the streams of published APIs are read, and demands floors.
func TestEvalAPIs(t *testing.T) {
	for _, half := range []struct {
		name string
		apis []api

		// answer, thinking, calls, results and usage are the floors.
		answer, thinking, calls, results, usage float64
	}{
		{"tuned on", tunedAPIs, 0.97, 0.97, 0.97, 0.97, 0.90},
		{"held back at first", heldAPIs, 0.97, 0.97, 0.97, 0.97, 0.97},
		{"looked at once", lastAPIs, 0.97, 0.90, 0.90, 0.90, 0.95},
		{"as different as possible", blindAPIs, 0.93, 0.97, 0.95, 0.95, 0.80},
		{"written after these", secondBlindAPIs, 0.86, 0.87, 0.95, 0, 0.45},
		{"in wide use", realAPIs, 0.97, 0.93, 0.97, 0.97, 0.85},
		{"agent services", agentAPIs, 0.96, 0.95, 0.92, 0.97, 0.97},
		{"products", productAPIs, 0.97, 0.97, 0.97, 0, 0.97},
		{"other assistants", assistantAPIs, 0.93, 0.97, 0.97, 0.97, 0.97},
		{"servers", serverAPIs, 0.95, 0.97, 0.97, 0.97, 0.85},
		{"runs of agents", runAPIs, 0.97, 0.97, 0.97, 0, 0.97},
		{"further products", secondProductAPIs, 0.95, 0.97, 0.85, 0, 0.97},
		{"forms of calls", callFormAPIs, 0.97, 0.97, 0.90, 0, 0},
		{"forms of texts", textFormAPIs, 0.97, 0.97, 0, 0, 0.97},
		{"split, tuned", splitTunedAPIs, 0.95, 0.96, 0.94, 0.97, 0.97},
		{"split, held back at first", splitHeldAPIs, 0.91, 0.95, 0.57, 0, 0.97},
	} {
		sum := &apiScore{}
		for _, a := range half.apis {
			s := judgeAPI(a, apiRounds(), Options{})
			t.Log(s.row("  " + a.name))
			for _, w := range s.wrong[:min(len(s.wrong), 3)] {
				t.Log("      " + w)
			}
			sum.add(s)
		}
		t.Log(sum.row("= " + half.name))
		for _, c := range []struct {
			what    string
			got     [2]int
			atLeast float64
		}{
			{"answer", sum.answer, half.answer},
			{"thinking", sum.thinking, half.thinking},
			{"calls", sum.calls, half.calls},
			{"results", sum.results, half.results},
			{"usage", sum.usage, half.usage},
		} {
			if share(c.got) < c.atLeast {
				t.Errorf("%s: %s: %.3f, want %.3f", half.name, c.what, share(c.got), c.atLeast)
			}
		}
	}
}

// apiRounds returns the number of exchanges of each API.
func apiRounds() uint64 {
	if os.Getenv("UNWIRE_EVAL") != "" {
		return 100
	}
	return 12
}

// everyAPI returns the APIs of all sets.
func everyAPI() []api {
	return slices.Concat(tunedAPIs, heldAPIs, lastAPIs, blindAPIs, secondBlindAPIs, realAPIs, agentAPIs, productAPIs, assistantAPIs, serverAPIs, runAPIs, secondProductAPIs, splitTunedAPIs, splitHeldAPIs)
}

// judgeAPI reads n exchanges of an API.
func judgeAPI(a api, n uint64, o Options) *apiScore {
	s := &apiScore{}
	for seed := range n {
		g := newAPICall(seed)
		a.make(g)
		s.judge(a.name, seed, g, o)
	}
	return s
}
