// Package history finds what changed between the versions of a client in recorded traffic: which fields and methods
// appeared, when they were first seen, and which fields are read differently.
//
//	changes, err := history.Fields(shards, history.Options{})
//	changes = append(changes, history.Methods(parts)...)
//
// A shard is the evidence of one method and direction, from one version of a client, of one day, as unwire-pipeline
// writes it. Fields infers the definitions of each version from all of its days, and compares consecutive versions path
// by path. `unwire schema history` and the pipeline use it.
//
// Traffic shows what a client sends, not what it can send. So a field that does not occur in a later version is
// reported as not seen, never as removed.
//
// Source: schema/README.md#history
package history

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"unwire/captures/profile"
	"unwire/schema/infer"
	"unwire/schema/infer/sources"
)

// A Kind is a kind of change between two client versions: added, removed, retyped, and so on.
type Kind string

const (
	// added is a field or method that did not occur with earlier versions.
	added Kind = "added"
	// notSeen is a field that occurred with the earlier version and not with the later one. Whether it was
	// removed is unknown.
	notSeen Kind = "not_seen"
	// retyped is a field for whose values another type was inferred.
	retyped Kind = "retyped"
	// relabelled is a field that has several values in one message (is repeated or a map) in only one of the
	// versions.
	relabelled Kind = "relabelled"
)

// A Change is one difference between two consecutive versions of a client, inferred from recorded traffic.
type Change struct {
	// Method is "pkg.Service/Method", or the name of a message type that belongs to no method.
	Method string `json:"method"`
	// Direction is "up" (requests) or "down" (responses); "" if the change is about the method itself.
	Direction string `json:"direction"`
	// Path is the path of field numbers, such as "1.2", or "" for the method.
	Path string `json:"path"`
	// Change is the kind of the change.
	Change Kind `json:"change"`

	// From is the earlier version of the client.
	From string `json:"from"`
	// To is the later version of the client.
	To string `json:"to"`
	// FirstSeen is the first day, as 2006-01-02, on which an added field or method was recorded with the later
	// version. For other changes, it is the first day of the later version.
	FirstSeen string `json:"first_seen"`

	// Old is the declaration of the field, without its name, in the earlier version, or "".
	Old string `json:"old"`
	// New is the field's declaration in the later version, or "".
	New string `json:"new"`
	// P is the probability, from 0 to 1, that the inferred types on which the change depends are right.
	P float64 `json:"p"`
	// Seen is the number of messages of the later version that contain the field. If the field
	// disappeared, it is the number in the earlier version.
	Seen int64 `json:"seen"`
	// Messages is the number of messages of the later version that could contain the field.
	Messages int64 `json:"messages"`
}

// A Shard is the evidence (statistics of field values) from one part of the traffic, such as one day of one
// client version.
type Shard struct {
	// Part identifies the messages by method, direction, client version and day.
	Part sources.Part
	// Evidence summarizes the messages of the part.
	Evidence *infer.Evidence
}

// Options are the options of Fields. The zero value works.
type Options struct {
	// Profile has the secrets of a client, which must not appear in texts. It may be nil.
	Profile *profile.Profile
}

// ShardOf returns stored evidence as a shard.
//
// Errors: the evidence belongs to no part or to several, so that its versions cannot be distinguished.
func ShardOf(ev *infer.Evidence) (Shard, error) {
	switch parts := ev.Parts(); len(parts) {
	case 0:
		return Shard{}, errors.New("the evidence does not name the version of the client: history needs the files that unwire-pipeline writes")
	case 1:
		return Shard{parts[0].Part, ev}, nil
	default:
		return Shard{}, fmt.Errorf("the file was merged from %d evidence files, so history cannot separate the versions of the client: give history the files from before the merge", len(parts))
	}
}

// A version has the evidence of one client version, for one method and direction.
type version struct {
	// client is the client with its version, and first the first day on which it was recorded.
	client, first string
	// evidence summarizes all messages of the version.
	evidence *infer.Evidence
	// fields are the inferred fields by path. They are nil before infer was called.
	fields map[string]field
	// days has the evidence of each day, to find the day on which a field was first recorded.
	days map[string]*infer.Evidence
}

// Fields returns how the fields of messages changed between consecutive versions of each client. Shards may
// come in any order; the evidence of several days is merged.
//
// Shape: sorted by method, direction, version and path.
// Errors: those of infer.Infer.
func Fields(shards []Shard, o Options) ([]Change, error) {
	// Only versions of the same client are compared, for each method and direction.
	type group struct{ method, direction, product string }
	groups := map[group]map[string]*version{}
	for _, s := range shards {
		if s.Part.Direction == "" && len(s.Evidence.Roots()) == 0 {
			continue
		}
		g := group{s.Part.Method, s.Part.Direction, product(s.Part.Client)}
		if groups[g] == nil {
			groups[g] = map[string]*version{}
		}
		v := groups[g][s.Part.Client]
		if v == nil {
			v = &version{client: s.Part.Client, first: s.Part.Day, evidence: infer.NewEvidence(), days: map[string]*infer.Evidence{}}
			groups[g][s.Part.Client] = v
		}
		v.first = min(v.first, s.Part.Day)
		v.evidence.Merge(s.Evidence)
		if v.days[s.Part.Day] == nil {
			v.days[s.Part.Day] = infer.NewEvidence()
		}
		v.days[s.Part.Day].Merge(s.Evidence)
	}

	var list []Change
	for g, versions := range groups {
		if len(versions) < 2 {
			continue
		}

		// Versions are compared in the order of their first day, each with the one before it.
		ordered := slices.SortedFunc(maps.Values(versions), func(a, b *version) int {
			return cmp.Or(cmp.Compare(a.first, b.first), CompareVersions(a.client, b.client))
		})
		for i, v := range ordered {
			if err := v.infer(o); err != nil {
				return nil, fmt.Errorf("%s %s of %s: %w", g.method, g.direction, v.client, err)
			}
			if i == 0 {
				continue
			}
			changes, err := compare(ordered[i-1], v, o)
			if err != nil {
				return nil, fmt.Errorf("%s %s of %s: %w", g.method, g.direction, v.client, err)
			}
			for _, c := range changes {
				c.Method, c.Direction = g.method, g.direction
				list = append(list, c)
			}
			ordered[i-1].fields = nil // it is not needed any more
		}
	}
	Sort(list)
	return list, nil
}

// Sort sorts changes by method, direction, first day, version and path.
func Sort(list []Change) {
	slices.SortFunc(list, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Method, b.Method), cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.FirstSeen, b.FirstSeen),
			CompareVersions(a.To, b.To), CompareVersions(a.From, b.From), comparePaths(a.Path, b.Path), cmp.Compare(a.Change, b.Change))
	})
}

// Methods returns the methods that first occurred with a later version of a client. parts are those of all
// evidence.
func Methods(parts []sources.Part) []Change {
	// The first day of each version, and of each method in it.
	versions := map[string]map[string]string{}
	methods := map[string]map[string]map[string]string{}
	for _, p := range parts {
		if p.Method == "" {
			continue
		}
		who := product(p.Client)
		if versions[who] == nil {
			versions[who], methods[who] = map[string]string{}, map[string]map[string]string{}
		}
		if methods[who][p.Method] == nil {
			methods[who][p.Method] = map[string]string{}
		}
		for _, first := range []map[string]string{versions[who], methods[who][p.Method]} {
			if day, ok := first[p.Client]; !ok || p.Day < day {
				first[p.Client] = p.Day
			}
		}
	}

	// A method of the first version is not new. Otherwise its first version is the one that added it.
	var list []Change
	for who, first := range versions {
		ordered := slices.SortedFunc(maps.Keys(first), func(a, b string) int {
			return cmp.Or(cmp.Compare(first[a], first[b]), CompareVersions(a, b))
		})
		for method, seen := range methods[who] {
			i := slices.IndexFunc(ordered, func(client string) bool { return seen[client] != "" })
			if i > 0 {
				list = append(list, Change{Method: method, Change: added, From: ordered[i-1], To: ordered[i], FirstSeen: seen[ordered[i]], P: 1})
			}
		}
	}
	Sort(list)
	return list
}

// product returns the name of a client without its version number: "app" for "app/1.2".
func product(client string) string {
	name, _, _ := strings.Cut(client, "/")
	return name
}

// CompareVersions compares version texts, as cmp.Compare does. Numbers in them are compared numerically, so
// that 1.9 precedes 1.10.
func CompareVersions(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x == 0 || y == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		n, m := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
		if c := cmp.Or(cmp.Compare(len(n), len(m)), cmp.Compare(n, m)); c != 0 {
			return c
		}
		a, b = a[x:], b[y:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits returns how many decimal digits s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// comparePaths compares field paths such as "1.10" number by number, as cmp.Compare does.
func comparePaths(a, b string) int { return CompareVersions(a, b) }
