package contract

// CA describes unwire's local certificate authority.
type CA struct {
	// version adds the member v, the version number of the JSON format.
	version

	// File is the path of the certificate.
	File string `json:"file"`

	// SHA256 is the SHA-256 hash of the certificate, in hex.
	SHA256 string `json:"sha256"`

	// NotAfter is the last day on which the CA is valid, as in 2027-01-31.
	NotAfter string `json:"not_after"`

	// Hosts are the host names, including subdomains, that the CA can sign certificates for; missing if
	// it is not restricted.
	Hosts []string `json:"hosts,omitempty"`
}

// Build describes the program's version, commit and platform.
type Build struct {
	// version adds the member v, the version number of the JSON format.
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
	// version adds the member v, the version number of the JSON format.
	version

	// Check is what was checked.
	Check string `json:"check"`

	// Status is "ok", "warn" or "fail".
	Status string `json:"status"`

	// What is the result in words.
	What string `json:"what"`

	// Do tells the user what to do about it.
	Do string `json:"do,omitempty"`
}
