package pipeline

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"unwire/schema/check"
	"unwire/schema/history"
	"unwire/schema/infer/sources"
)

// A Segment describes a segment of a recording that was processed.
type Segment struct {
	// SHA256 is the hash of the segment's content in hex.
	SHA256 string `json:"sha256"`
	// URL is the segment's location; the alphabetically first one if there were several copies.
	URL string `json:"url"`
	// Size is the size of the segment's file in bytes.
	Size int64 `json:"size"`

	// Exchanges is the number of exchanges in the segment.
	Exchanges int `json:"exchanges"`
	// First is when the segment's first exchange began; zero if it has none.
	First time.Time `json:"first,omitzero"`
	// Last is when the segment's last exchange began; zero if it has none.
	Last time.Time `json:"last,omitzero"`

	// Definitions is the SHA-256 of the definitions against which the segment was checked; "" if it was not
	// checked.
	Definitions string `json:"definitions,omitempty"`
}

// A ShardRecord describes an evidence file in the output: the evidence of one part of the traffic.
type ShardRecord struct {
	// Key is the name of the files that belong to the part: evidence/KEY.pb and proto/KEY/.
	Key string `json:"key"`

	// Part names the part of the traffic: one method and direction, one version of a client, and one day.
	sources.Part

	// Segments is the number of segments (files of recordings) that were counted.
	Segments int `json:"segments"`

	// Bytes is the size of the evidence file in bytes.
	Bytes int64 `json:"bytes"`
}

// A Problem is something that could not be read or inferred. All other results are valid.
type Problem struct {
	// Segment is the SHA-256 of the segment in hex; "" if the problem is not about one segment.
	Segment string `json:"segment,omitempty"`
	// URL is the location of the segment; "" if the problem is not about one segment.
	URL string `json:"url,omitempty"`
	// Key is ShardRecord.Key of the evidence file, or the method whose versions could not be compared; "" if
	// the problem is about a segment.
	Key string `json:"key,omitempty"`
	// Error is the error message.
	Error string `json:"error"`
}

// A Finding is a row of findings.parquet: a field or method that definitions lack, or a field that contradicts its
// declaration, for one client and day.
type Finding struct {
	// Kind is "unknown", "contradicted" or "unknown_method".
	Kind string `json:"kind" parquet:"kind,dict"`
	// Message is the full name of the message type, or the service of an unknown method.
	Message string `json:"message" parquet:"message,dict"`
	// Number is the field number; 0 for a field that occurred in JSON only, a malformed message or a method.
	Number int32 `json:"number" parquet:"number"`
	// Name is the name of the field in the definitions or in JSON, or of the method.
	Name string `json:"name" parquet:"name,dict"`

	// Wire is the most probable kind of the values of an unknown field; "" for other findings.
	Wire string `json:"wire" parquet:"wire,dict"`

	// Reason describes how the values contradict the declaration; "" for other findings.
	Reason string `json:"reason" parquet:"reason,dict"`
	// Client is the client program with its version; "" if unknown.
	Client string `json:"client" parquet:"client,dict"`
	// Day is the day in UTC on which the exchanges began, as 2006-01-02; "" if unknown.
	Day string `json:"day" parquet:"day,dict"`

	// Seen is the number of messages with the finding.
	Seen int64 `json:"seen" parquet:"seen"`
	// Frames are the addresses of some frames with the finding, at most maxAddresses.
	Frames []string `json:"frames" parquet:"frames,list"`
}

// A Coverage is a row of coverage.parquet: how much of the messages of one method, client and day the
// definitions explain.
type Coverage struct {
	// Service is the full name of the service.
	Service string `json:"service" parquet:"service,dict"`
	// RPC is the name of the method.
	RPC string `json:"rpc" parquet:"rpc,dict"`
	// Direction is the direction of the messages, "up" or "down".
	Direction string `json:"direction" parquet:"direction,dict"`
	// Type is the full name of the type of the messages; "" if the definitions lack it.
	Type string `json:"type" parquet:"type,dict"`
	// Client is the client program with its version; "" if unknown.
	Client string `json:"client" parquet:"client,dict"`
	// Day is the day in UTC on which the exchanges began, as 2006-01-02; "" if unknown.
	Day string `json:"day" parquet:"day,dict"`

	// Frames is the number of messages.
	Frames int64 `json:"frames" parquet:"frames"`
	// Decoded is the number of messages of a known type that are well-formed.
	Decoded int64 `json:"decoded" parquet:"decoded"`
	// Bytes is the total decompressed size of the messages, in bytes.
	Bytes int64 `json:"bytes" parquet:"bytes"`
	// BytesExplained is the number of bytes that belong to declared fields with plausible values.
	BytesExplained int64 `json:"bytes_explained" parquet:"bytes_explained"`
}

// maxAddresses is the maximum number of addresses in Finding.Frames.
const maxAddresses = 20

// A result is one item for the summary of a run; exactly one member is set. Beam sends it between workers as
// JSON.
type result struct {
	// Segment is a segment that was processed.
	Segment *Segment `json:"segment,omitempty"`
	// Shard is an evidence file that was written.
	Shard *ShardRecord `json:"shard,omitempty"`
	// Problem is something that could not be read or inferred.
	Problem *Problem `json:"problem,omitempty"`
	// Finding is a finding of checking a segment.
	Finding *Finding `json:"finding,omitempty"`
	// Coverage are counts from checking a segment.
	Coverage *Coverage `json:"coverage,omitempty"`
	// Change is a change between two client versions.
	Change *history.Change `json:"change,omitempty"`
}

// encode encodes the result as JSON.
func (r result) encode() []byte {
	data, err := json.Marshal(r)
	if err != nil {
		panic(err) // texts and finite numbers always have a form in JSON
	}
	return data
}

// rowsOf converts the report of a check to results for one client and day (group).
func rowsOf(r *check.Report, group sources.Part) (list []result) {
	add := func(f Finding) {
		f.Client, f.Day = group.Client, group.Day
		list = append(list, result{Finding: &f})
	}
	for _, u := range r.Unknown {
		add(Finding{Kind: "unknown", Message: u.Message, Number: u.Number, Name: u.Name, Wire: string(u.Kind), Seen: int64(u.Seen), Frames: u.Frames})
	}
	for _, c := range r.Contradicted {
		add(Finding{Kind: "contradicted", Message: c.Message, Number: c.Number, Name: c.Name, Reason: c.Reason, Seen: int64(c.Seen), Frames: c.Frames})
	}
	for _, m := range r.UnknownMethods {
		add(Finding{Kind: "unknown_method", Message: m.Service, Name: m.RPC, Seen: int64(m.Count), Frames: m.Frames})
	}
	for _, m := range r.Methods {
		list = append(list, result{Coverage: &Coverage{
			Service: m.Service, RPC: m.RPC, Direction: m.Dir, Type: m.Type, Client: group.Client, Day: group.Day,
			Frames: int64(m.Frames), Decoded: int64(m.Decoded), Bytes: m.Bytes, BytesExplained: m.BytesExplained,
		}})
	}
	return list
}

// key returns a copy with only the properties in which findings must be equal to be added up.
func (f Finding) key() Finding {
	f.Seen, f.Frames = 0, nil
	return f
}

// findingKey returns Finding.key in a form that can be used as a map key.
func (f Finding) findingKey() string { return string(result{Finding: new(f.key())}.encode()) }

// add adds the counts of o to f. Of the frames, the first by name are kept, so that the order does not matter.
func (f *Finding) add(o Finding) {
	f.Seen += o.Seen
	f.Frames = slices.Concat(f.Frames, o.Frames)
	slices.Sort(f.Frames)
	f.Frames = slices.Compact(f.Frames)
	f.Frames = f.Frames[:min(len(f.Frames), maxAddresses)]
}

// key returns a copy with only the properties in which rows of coverage must be equal to be added up.
func (c Coverage) key() Coverage {
	c.Frames, c.Decoded, c.Bytes, c.BytesExplained = 0, 0, 0, 0
	return c
}

// add adds the counts of another row of coverage.
func (c *Coverage) add(o Coverage) {
	c.Frames += o.Frames
	c.Decoded += o.Decoded
	c.Bytes += o.Bytes
	c.BytesExplained += o.BytesExplained
}

// compareFindings compares two findings, for sorting.
func compareFindings(a, b Finding) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Wire, b.Wire), cmp.Compare(a.Reason, b.Reason), history.CompareVersions(a.Client, b.Client), cmp.Compare(a.Client, b.Client), cmp.Compare(a.Day, b.Day))
}

// compareCoverage compares two rows of coverage, for sorting.
func compareCoverage(a, b Coverage) int {
	return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.RPC, b.RPC), cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Type, b.Type),
		history.CompareVersions(a.Client, b.Client), cmp.Compare(a.Client, b.Client), cmp.Compare(a.Day, b.Day))
}
