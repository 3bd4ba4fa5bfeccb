package query

import "unwire/decode/secret"

// FindingAddress is where a finding in a file is: a frame or an exchange.
func FindingAddress(file string, f *secret.Finding) Address {
	a := Address{File: file, Exchange: f.Exchange, Part: f.Part, Frame: -1}
	if f.Place == "frame" {
		a.Dir, a.Frame = f.Dir, f.Seq
	}
	return a
}
