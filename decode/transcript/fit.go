package transcript

import (
	"fmt"
	"math"
	"slices"
)

// FitOptions configures Fit. The zero value is the default.
type FitOptions struct {
	// Hold is the strength of the penalty for deviating from Start, measured as a number of labels. The default is
	// 3.
	Hold float64

	// Start are the initial weights. The default is DefaultWeights.
	Start *Weights

	// Folds is the number of folds of the cross-validation. The default is 5.
	Folds int

	// Steps is the number of steps of the gradient descent. The default is 400.
	Steps int
}

// A FitReport describes how well fitted weights predict the roles of labels. Rates are shares of labels with the
// right role, from 0 to 1, and losses are in nats per label.
type FitReport struct {
	// Labels is the number of labels.
	Labels int `json:"labels"`

	// Roles is the number of different roles among the labels.
	Roles int `json:"roles"`

	// Before is the rate of right roles with the initial weights.
	Before float64 `json:"before"`

	// After is the rate of right roles with the fitted weights, on the labels that they were fitted to.
	After float64 `json:"after"`

	// Held is the rate on held-out labels in cross-validation, an estimate for similar labels.
	Held float64 `json:"held_out"`

	// LossBefore is the loss of the initial weights.
	LossBefore float64 `json:"loss_before"`

	// LossHeld is the loss on held-out labels in cross-validation.
	LossHeld float64 `json:"loss_held_out"`

	// Folds is the number of folds of the cross-validation that was done.
	Folds int `json:"folds"`
}

const (
	// minLabels is the minimum number of labels for a fit.
	minLabels = 20

	// leastRoles is the minimum number of different roles.
	leastRoles = 2
)

// Fit fits weights to labels by multinomial logistic regression. A quadratic penalty keeps weights close to the
// initial ones, so weights without evidence do not change. It is deterministic.
//
// Errors: too few labels, or labels of one role only.
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
		return nil, nil, fmt.Errorf("transcript: %d labels are too few to fit weights: at least %d are needed", len(labels), minLabels)
	}
	if len(roles) < leastRoles {
		return nil, nil, fmt.Errorf("transcript: all %d labels have the same role, but labels of at least %d roles are needed", len(labels), leastRoles)
	}
	all := make([]example, len(labels))
	for i := range labels {
		all[i] = newExample(&labels[i])
	}
	report := &FitReport{Labels: len(all), Roles: len(roles), Folds: o.Folds}
	report.Before, report.LossBefore = o.Start.accuracy(all)

	// Cross-validation: each fold is predicted by weights that were fitted to the others.
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

// foldsOf assigns labels to folds. Labels of one exchange are in the same fold, because they are too similar to
// test each other.
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

// An example is a training label in numeric form.
type example struct {
	// at are the indexes of the features that are not zero.
	at []int

	// values are the values of these features, in the order of at.
	values []float64

	// role is the index of the role.
	role int
}

// newExample converts a training label to an example.
func newExample(l *trainingLabel) example {
	e := example{role: slices.Index(roleOrder[:], l.Role)}
	for i, name := range featureNames {
		if v := l.Features[name]; v != 0 {
			e.at, e.values = append(e.at, i), append(e.values, v)
		}
	}
	return e
}

// shares returns the probabilities that w assigns to the roles of an example.
func (w *Weights) shares(e *example) (p [len(roleOrder)]float64) {
	for i, f := range e.at {
		for r, v := range w.table[f] {
			p[r] += v * e.values[i]
		}
	}
	return softmax(p, w.temperature)
}

// softmax converts sums of weights (log odds) to probabilities. calm is the temperature by which the sums are
// divided.
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

// accuracy returns the share of examples that w predicts correctly, and the mean loss in nats.
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

// descend returns the weights that minimize the loss and the penalty, by gradient descent with momentum. Features
// are between 0 and 1 and mostly zero, so a fixed step size, scaled by the frequency of a feature, does not
// overshoot.
func descend(all []example, o FitOptions) *Weights {
	w := *o.Start
	var seen [featureCount]float64
	for i := range all {
		for k, f := range all[i].at {
			seen[f] += all[i].values[k] * all[i].values[k]
		}
	}

	// slope is the gradient, and speed the accumulated step.
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
			// Adding 0 avoids negative zero.
			w.table[f][r] = math.Round(w.table[f][r]*1000)/1000 + 0
		}
	}
	return &w
}
