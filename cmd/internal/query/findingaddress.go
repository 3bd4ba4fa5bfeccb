package query

import "unwire/decode/secret"

// FindingAddress returns the address of the frame or exchange in which an audit found something.
func FindingAddress(file string, f *secret.Finding) Address {
	a := Address{File: file, Exchange: f.Exchange, Part: f.Part, Frame: -1}
	if f.Place == "frame" {
		a.Dir, a.Frame = f.Dir, f.Seq
	}
	return a
}
