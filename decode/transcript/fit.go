package transcript

import (
	"fmt"
	"math"
	"slices"
)

// FitOptions bounds a fit. The zero value is the default.
type FitOptions struct {
	// How strongly weights are held to those of Start, in units of labels; default
	// 3.
	Hold  float64
	Start *Weights
	Folds int // of the cross-validation; default 5
	Steps int // of the descent; default 400
}

// A FitReport is how well the weights of a fit predict the roles of its labels.
//
// Shape: shares of labels whose role the weights get right, from 0 to 1. Before
// is with the weights of the start, After with the new ones on the labels that
// they were fitted to, Held with weights that were fitted without the label:
// what to expect of others like them. Losses are nats a label, Held again.
type FitReport struct {
	Labels     int     `json:"labels"`
	Roles      int     `json:"roles"`
	Before     float64 `json:"before"`
	After      float64 `json:"after"`
	Held       float64 `json:"held_out"`
	LossBefore float64 `json:"loss_before"`
	LossHeld   float64 `json:"loss_held_out"`
	Folds      int     `json:"folds"`
}

const (
	minLabels  = 20 // that weights are fitted to
	leastRoles = 2
)

// Fit fits weights to labels: a multinomial logistic regression that is held to
// the weights it starts from by a quadratic penalty, so that what the labels do
// not speak of stays as it is. It is deterministic.
//
// Errors: where there are too few labels, or all are of one role.
func Fit(labels []trainingLabel, o FitOptions) (*Weights, *FitReport, error) {
	if o.Start == nil {
		o.Start = DefaultWeights()
	}
	if o.Hold <= 0 {
		o.Hold = 3
	}
	if o.Folds < 2 {
		o.Folds = 5
	}
	if o.Steps <= 0 {
		o.Steps = 400
	}
	roles := make(map[Role]bool)
	for i := range labels {
		roles[labels[i].Role] = true
	}
	if len(labels) < minLabels {
		return nil, nil, fmt.Errorf("transcript: fit: %d labels are too few: at least %d are needed", len(labels), minLabels)
	}
	if len(roles) < leastRoles {
		return nil, nil, fmt.Errorf("transcript: fit: all %d labels are of one role: at least %d are needed", len(labels), leastRoles)
	}
	all := make([]example, len(labels))
	for i := range labels {
		all[i] = newExample(&labels[i])
	}
	report := &FitReport{Labels: len(all), Roles: len(roles), Folds: o.Folds}
	report.Before, report.LossBefore = o.Start.accuracy(all)
	folds := foldsOf(labels, o.Folds)
	for fold := range o.Folds {
		var train, test []example
		for i, e := range all {
			if folds[i] == fold {
				test = append(test, e)
			} else {
				train = append(train, e)
			}
		}
		right, loss := descend(train, o).accuracy(test)
		report.Held += right * float64(len(test)) / float64(len(all))
		report.LossHeld += loss * float64(len(test)) / float64(len(all))
	}
	w := descend(all, o)
	report.After, _ = w.accuracy(all)
	return w, report, nil
}

// foldsOf parts labels so that those of one exchange are tested together: they are
// too much alike to vouch for each other.
func foldsOf(labels []trainingLabel, n int) []int {
	sources := make(map[string]int)
	for i := range labels {
		if _, ok := sources[labels[i].Source]; !ok {
			sources[labels[i].Source] = len(sources)
		}
	}
	out := make([]int, len(labels))
	for i := range labels {
		if out[i] = i % n; len(sources) >= n {
			out[i] = sources[labels[i].Source] % n
		}
	}
	return out
}

// An example is a label as numbers.
type example struct {
	at     []int // features
	values []float64
	role   int
}

func newExample(l *trainingLabel) example {
	e := example{role: slices.Index(roleOrder[:], l.Role)}
	for i, name := range featureNames {
		if v := l.Features[name]; v != 0 {
			e.at, e.values = append(e.at, i), append(e.values, v)
		}
	}
	return e
}

// shares are the probabilities of the roles.
func (w *Weights) shares(e *example) (p [len(roleOrder)]float64) {
	for i, f := range e.at {
		for r, v := range w.table[f] {
			p[r] += v * e.values[i]
		}
	}
	return softmax(p, w.temperature)
}

func softmax(sums [len(roleOrder)]float64, calm float64) (p [len(roleOrder)]float64) {
	most := slices.Max(sums[:])
	total := 0.0
	for r, s := range sums {
		p[r] = math.Exp((s - most) / calm)
		total += p[r]
	}
	for r := range p {
		p[r] /= total
	}
	return p
}

// accuracy is the share of examples that w gets right, and the mean loss.
func (w *Weights) accuracy(all []example) (right, loss float64) {
	for i := range all {
		p := w.shares(&all[i])
		if slices.Index(p[:], slices.Max(p[:])) == all[i].role {
			right++
		}
		loss -= math.Log(max(p[all[i].role], 1e-12))
	}
	n := float64(max(len(all), 1))
	return right / n, loss / n
}

// descend minimizes loss and penalty by gradient descent with momentum. The
// features lie between 0 and 1 and few are set at once, so that a step of a
// fixed size, scaled by how often a feature occurs, does not overshoot.
func descend(all []example, o FitOptions) *Weights {
	w := *o.Start
	var seen [featureCount]float64
	for i := range all {
		for k, f := range all[i].at {
			seen[f] += all[i].values[k] * all[i].values[k]
		}
	}
	const momentum, rate = 0.9, 0.15
	var speed [featureCount][len(roleOrder)]float64
	for range o.Steps {
		var slope [featureCount][len(roleOrder)]float64
		for i := range all {
			e := &all[i]
			p := w.shares(e)
			p[e.role]--
			for k, f := range e.at {
				for r := range p {
					slope[f][r] += p[r] * e.values[k] / w.temperature
				}
			}
		}
		for f := range slope {
			for r := range slope[f] {
				g := slope[f][r] + o.Hold*(w.table[f][r]-o.Start.table[f][r])
				speed[f][r] = momentum*speed[f][r] - rate*g/(seen[f]+o.Hold)
				w.table[f][r] += speed[f][r]
			}
		}
	}
	for f := range w.table {
		for r := range w.table[f] {
			w.table[f][r] = math.Round(w.table[f][r]*1000)/1000 + 0 // no negative zero
		}
	}
	return &w
}
