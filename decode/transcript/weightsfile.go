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

// Weights is a linear model: for each feature and role, what one unit of the feature adds
// to the log odds of the role. The sums are divided by the temperature before they become
// probabilities.
type Weights struct {
	// table has a row for each feature and a column for each role, in the order of roleOrder.
	table [featureCount][len(roleOrder)]float64

	// temperature is the number by which sums are divided: 1 uses them as they are, greater values make scores less
	// certain (temperature scaling, Guo et al. 2017).
	temperature float64
}

// DefaultWeights returns the built-in weights.
//
// Source: decode/transcript/README.md#weights
func DefaultWeights() *Weights { return &Weights{table: weights, temperature: defaultTemperature} }

// Roles returns the roles in the order in which Row returns weights.
func (w *Weights) Roles() []Role { return slices.Clone(roleOrder[:]) }

// Features returns the names of the features, in the order of the table.
func (w *Weights) Features() []string { return slices.Clone(featureNames[:]) }

// Row returns the weights of the named feature for all roles, or nil if there is no such
// feature.
func (w *Weights) Row(name string) []float64 {
	i := slices.Index(featureNames[:], name)
	if i < 0 {
		return nil
	}
	return slices.Clone(w.table[i][:])
}

// weightsFile is the JSON form of Weights.
type weightsFile struct {
	// V is the version of the format: 1.
	V int `json:"v"`

	// Temperature is the number by which the sums of weights are divided before the softmax: greater values make
	// scores less certain. 0 or missing means the default.
	Temperature float64 `json:"temperature"`

	// Weights maps the name of each feature to its weight, in log odds, for each role.
	Weights map[string]map[Role]float64 `json:"weights"`
}

// MarshalJSON returns the content of a weights file.
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

// maxWeight is the maximum absolute value of a weight in a file.
const maxWeight = 1e4

// ParseWeights parses a weights file. Weights that are not in the file keep their
// built-in value, so a file may contain only a few.
//
// Errors: a syntax error, another version, an unknown feature or role, or a number out of
// range. The error names it.
func ParseWeights(data []byte) (*Weights, error) {
	var f weightsFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("transcript: the weights cannot be read: %w", err)
	}
	if f.V != 1 {
		return nil, fmt.Errorf("transcript: the weights have version %d; this version of unwire reads version 1", f.V)
	}
	w := DefaultWeights()
	if f.Temperature != 0 {
		if !(f.Temperature >= 0.01 && f.Temperature <= 100) {
			return nil, fmt.Errorf("transcript: the temperature of the weights must be from 0.01 to 100, not %g", f.Temperature)
		}
		w.temperature = f.Temperature
	}

	// Weights that the file lacks keep their defaults.
	for name, row := range f.Weights {
		i := slices.Index(featureNames[:], name)
		if i < 0 {
			return nil, fmt.Errorf("transcript: the file has weights for the unknown feature %q", name)
		}
		for role, v := range row {
			r := slices.Index(roleOrder[:], role)
			if r < 0 {
				return nil, fmt.Errorf("transcript: the weights of the feature %q name the unknown role %q; the roles are %s", name, role, RoleList())
			}
			if !(math.Abs(v) <= maxWeight) {
				return nil, fmt.Errorf("transcript: the weights of the feature %q have an invalid number for the role %s: %g", name, role, v)
			}
			w.table[i][r] = v
		}
	}

	return w, nil
}

// RoleList returns the names of all roles, separated by commas, for help and error messages.
func RoleList() string {
	var names []string
	for _, r := range roleOrder {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

// ParseRole returns the role of the given name, or an error that lists the roles.
func ParseRole(name string) (Role, error) {
	if slices.Contains(roleOrder[:], Role(name)) {
		return Role(name), nil
	}
	return "", fmt.Errorf("transcript: %q is not a role; the roles are %s", name, RoleList())
}

// A trainingLabel is a candidate with its features and the role that a person gave it. Fit uses such labels.
//
// Shape: a line of a labels file is {"v":1,"source":"F.uwc#2","dir":"down",
// "path":"1.1.1","role":"assistant","features":{"prior":1,…}}.
type trainingLabel struct {
	// V is the version of the format: 1.
	V int `json:"v"`

	// Source identifies the exchange, for example by file and number.
	Source string `json:"source"`

	// Dir is "up" or "down".
	Dir string `json:"dir"`

	// Path is the candidate's field path.
	Path string `json:"path"`

	// Kind distinguishes candidates with the same path.
	Kind string `json:"kind,omitempty"`

	// Role is the correct role.
	Role Role `json:"role"`

	// Features are the values of the features that are not 0, by name.
	Features map[string]float64 `json:"features"`
}

// Label returns a training label for candidate c with the given role. source identifies the exchange.
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
	// maxLabel is the maximum size in bytes of a line in a labels file.
	maxLabel = 1 << 16

	// maxLabelsRead is the maximum number of labels in a file.
	maxLabelsRead = 1_000_000
)

// ParseLabels parses a labels file, which has one JSON object per line. If two labels are
// of the same candidate, the later one counts.
//
// Errors: names the first invalid line; the labels before it are returned.
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
			return out, fmt.Errorf("transcript: line %d of the labels has %d bytes, which is too long", number, len(line))
		}
		var l trainingLabel
		if err := json.Unmarshal(line, &l); err != nil {
			return out, fmt.Errorf("transcript: line %d of the labels: %w", number, err)
		}
		if err := l.check(); err != nil {
			return out, fmt.Errorf("transcript: line %d of the labels: %w", number, err)
		}
		// A later label for the same text replaces an earlier one.
		key := [4]string{l.Source, l.Dir, l.Path, l.Kind}
		if i, ok := at[key]; ok && l.Source != "" {
			out[i] = l
			continue
		}
		if len(out) >= maxLabelsRead {
			return out, fmt.Errorf("transcript: the file contains more than %d labels", maxLabelsRead)
		}
		at[key] = len(out)
		out = append(out, l)
	}

	return out, nil
}

// check returns an error for the first mistake in the label, or nil.
func (l *trainingLabel) check() error {
	if l.V != 1 {
		return fmt.Errorf("the label has version %d; this version of unwire reads version 1", l.V)
	}
	if _, err := ParseRole(string(l.Role)); err != nil {
		return err
	}
	if len(l.Features) == 0 {
		return errors.New("the label has no features")
	}
	names := make([]string, 0, len(l.Features))
	for name := range l.Features {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if !slices.Contains(featureNames[:], name) {
			return fmt.Errorf("the label names the unknown feature %q", name)
		}
		if v := l.Features[name]; !(math.Abs(v) <= 10) {
			return fmt.Errorf("the feature %q has the invalid value %g", name, v)
		}
	}
	return nil
}
