package contract

// CA is the local certificate authority.
type CA struct {
	version
	File   string `json:"file"`   // the certificate
	SHA256 string `json:"sha256"` // of the certificate, in hexadecimal

	// NotAfter is the last day that it is valid: 2027-01-31.
	NotAfter string `json:"not_after"`

	// Hosts are those that the CA vouches for, with the names below them; none if it is for
	// all.
	Hosts []string `json:"hosts,omitempty"`
}

// Build is what the program was built from.
type Build struct {
	version

	// Version is the module's; "(devel)" for a build from a folder.
	Version string `json:"version"`

	// Commit is the revision, with "-dirty" if files were changed; "" if it is unknown.
	Commit string `json:"commit"`

	// Go is the version of Go.
	Go string `json:"go"`

	// Platform is the system and the processor: "linux/amd64".
	Platform string `json:"platform"`
}

// Check is what doctor found about one thing.
type Check struct {
	version
	Check  string `json:"check"`        // what was looked at
	Status string `json:"status"`       // "ok", "warn" or "fail"
	What   string `json:"what"`         // what was found
	Do     string `json:"do,omitempty"` // what to do about it
}
