package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
)

// Weights is what one unit of each feature adds to the log odds of each role, and
// how far the sums are to be believed.
type Weights struct {
	table       [featureCount][len(roleOrder)]float64
	temperature float64 // sums are divided by it where they become probabilities
}

// DefaultWeights returns the weights that are built in.
//
// Source: decode/transcript/README.md#weights
func DefaultWeights() *Weights { return &Weights{table: weights, temperature: defaultTemperature} }

// Roles returns the roles in the order of Row.
func (w *Weights) Roles() []Role { return slices.Clone(roleOrder[:]) }

// Features returns the names of the features, in the order of the table.
func (w *Weights) Features() []string { return slices.Clone(featureNames[:]) }

// Row returns the weights of a feature for all roles, or nil if there is none.
func (w *Weights) Row(name string) []float64 {
	i := slices.Index(featureNames[:], name)
	if i < 0 {
		return nil
	}
	return slices.Clone(w.table[i][:])
}

// weightsFile is the JSON of Weights.
type weightsFile struct {
	V           int                         `json:"v"`
	Temperature float64                     `json:"temperature"`
	Weights     map[string]map[Role]float64 `json:"weights"`
}

// MarshalJSON writes the weights as a file has them.
//
// Shape: {"v":1,"temperature":1,"weights":{"prior":{"assistant":-1.5,…},…}}.
func (w *Weights) MarshalJSON() ([]byte, error) {
	f := weightsFile{V: 1, Temperature: w.temperature, Weights: make(map[string]map[Role]float64)}
	for i, row := range w.table {
		m := make(map[Role]float64)
		for r, v := range row {
			m[roleOrder[r]] = v
		}
		f.Weights[featureNames[i]] = m
	}
	return json.Marshal(f)
}

const maxWeight = 1e4

// ParseWeights reads a weights file. What it does not mention keeps its built-in
// weight, so that a file may hold a few rows only.
//
// Errors: names a feature or a role that there is not.
func ParseWeights(data []byte) (*Weights, error) {
	var f weightsFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("transcript: weights: %w", err)
	}
	if f.V != 1 {
		return nil, fmt.Errorf("transcript: weights: version %d; this reads version 1", f.V)
	}
	w := DefaultWeights()
	if f.Temperature != 0 {
		if !(f.Temperature >= 0.01 && f.Temperature <= 100) {
			return nil, fmt.Errorf("transcript: weights: temperature %g is not between 0.01 and 100", f.Temperature)
		}
		w.temperature = f.Temperature
	}
	for name, row := range f.Weights {
		i := slices.Index(featureNames[:], name)
		if i < 0 {
			return nil, fmt.Errorf("transcript: weights: no feature %q", name)
		}
		for role, v := range row {
			r := slices.Index(roleOrder[:], role)
			if r < 0 {
				return nil, fmt.Errorf("transcript: weights: %q: no role %q; there are %s", name, role, roleList())
			}
			if !(math.Abs(v) <= maxWeight) {
				return nil, fmt.Errorf("transcript: weights: %q: %s: %g is not a weight", name, role, v)
			}
			w.table[i][r] = v
		}
	}
	return w, nil
}

func roleList() string {
	var names []string
	for _, r := range roleOrder {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

// ParseRole returns the role of that name.
func ParseRole(name string) (Role, error) {
	if slices.Contains(roleOrder[:], Role(name)) {
		return Role(name), nil
	}
	return "", fmt.Errorf("transcript: no role %q; there are %s", name, roleList())
}

// A trainingLabel is a candidate with the role that a person gave it, and what it looked
// like to the extractor.
//
// Shape: as a line of a labels file it is {"v":1,"source":"F.uwc#2","dir":"down",
// "path":"1.1.1","role":"assistant","features":{"prior":1,…}}.
type trainingLabel struct {
	V      int    `json:"v"`
	Source string `json:"source"`
	Dir    string `json:"dir"`
	Path   string `json:"path"`

	// Tells candidates of one path apart.
	Kind     string             `json:"kind,omitempty"`
	Role     Role               `json:"role"`
	Features map[string]float64 `json:"features"`
}

// Label makes the label of a candidate.
func (c *candidate) Label(source string, role Role) trainingLabel {
	l := trainingLabel{V: 1, Source: source, Dir: c.Dir, Path: c.Path, Kind: c.kind, Role: role, Features: make(map[string]float64)}
	for i, v := range c.features {
		if v != 0 {
			l.Features[featureNames[i]] = v
		}
	}
	return l
}

const (
	maxLabel      = 1 << 16 // bytes of a line
	maxLabelsRead = 1_000_000
)

// ParseLabels reads a labels file, a JSON object a line. Of two labels of one
// candidate the later counts.
//
// Errors: names the first line that is none.
func ParseLabels(data []byte) ([]trainingLabel, error) {
	var out []trainingLabel
	at := make(map[[4]string]int)
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if len(line) > maxLabel {
			return out, fmt.Errorf("transcript: labels: line %d: %d bytes long", number, len(line))
		}
		var l trainingLabel
		if err := json.Unmarshal(line, &l); err != nil {
			return out, fmt.Errorf("transcript: labels: line %d: %w", number, err)
		}
		if err := l.check(); err != nil {
			return out, fmt.Errorf("transcript: labels: line %d: %w", number, err)
		}
		key := [4]string{l.Source, l.Dir, l.Path, l.Kind}
		if i, ok := at[key]; ok && l.Source != "" {
			out[i] = l
			continue
		}
		if len(out) >= maxLabelsRead {
			return out, fmt.Errorf("transcript: labels: more than %d", maxLabelsRead)
		}
		at[key] = len(out)
		out = append(out, l)
	}
	return out, nil
}

func (l *trainingLabel) check() error {
	if l.V != 1 {
		return fmt.Errorf("version %d; this reads version 1", l.V)
	}
	if _, err := ParseRole(string(l.Role)); err != nil {
		return err
	}
	if len(l.Features) == 0 {
		return errors.New("no features")
	}
	names := make([]string, 0, len(l.Features))
	for name := range l.Features {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if !slices.Contains(featureNames[:], name) {
			return fmt.Errorf("no feature %q", name)
		}
		if v := l.Features[name]; !(math.Abs(v) <= 10) {
			return fmt.Errorf("feature %q is %g", name, v)
		}
	}
	return nil
}
