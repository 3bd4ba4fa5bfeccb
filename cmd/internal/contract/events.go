package contract

// Listening is the first event of a command that serves.
type Listening struct {
	version
	Event string `json:"event"`           // "listening"
	Proxy string `json:"proxy,omitempty"` // of capture: the proxy's URL
	URL   string `json:"url,omitempty"`   // of the others: where they serve
	CA    string `json:"ca"`              // file of the certificate to trust
}
