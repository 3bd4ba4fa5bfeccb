package contract

// CA describes unwire's local certificate authority.
type CA struct {
	version
	File   string `json:"file"`   // the certificate
	SHA256 string `json:"sha256"` // of the certificate, in hexadecimal

	// NotAfter is the last day on which the CA is valid, as in 2027-01-31.
	NotAfter string `json:"not_after"`

	// Hosts are the host names, including subdomains, that the CA can sign certificates for; missing if
	// it is not restricted.
	Hosts []string `json:"hosts,omitempty"`
}

// Build describes the program's version, commit and platform.
type Build struct {
	version

	// Version is the module's; "(devel)" for a build from a folder.
	Version string `json:"version"`

	// Commit is the revision, with "-dirty" if files were changed; "" if it is unknown.
	Commit string `json:"commit"`

	// Go is the version of Go that compiled the program.
	Go string `json:"go"`

	// Platform is the system and the processor: "linux/amd64".
	Platform string `json:"platform"`
}

// Check is the result of one check of `unwire doctor`.
type Check struct {
	version
	Check  string `json:"check"`        // what was looked at
	Status string `json:"status"`       // "ok", "warn" or "fail"
	What   string `json:"what"`         // what was found
	Do     string `json:"do,omitempty"` // what to do about it
}
