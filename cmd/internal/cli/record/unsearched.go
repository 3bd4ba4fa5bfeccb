package record

import (
	"fmt"
	"sync"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
)

// An UnsearchedLog counts what a recording could not search for secrets.
type UnsearchedLog struct {
	mu        sync.Mutex
	announced bool
	exchanges int
	bytes     int64
}

// report returns what a capture calls with what it could not search. It says so
// at once for the first exchange that changes its protocol.
func (l *UnsearchedLog) report(a *app.App, json bool) func(captures.Exchange, []redact.Unsearched) {
	return func(ex captures.Exchange, runs []redact.Unsearched) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if ex.Ended() {
			l.exchanges++
			for _, u := range runs {
				l.bytes += u.Bytes()
			}
			return
		}
		if l.announced {
			return
		}
		l.announced = true
		if json {
			// a broken pipe is reported at the end
			_ = a.Print(&contract.Unsearched{Event: "unsearched", Exchange: ex.ID, Reason: runs[0].Reason})
			return
		}
		a.Say("unwire: exchange %d: %s is recorded, but cannot be searched for secrets: exports and 'unwire redact' leave it out", ex.ID, runs[0].Reason)
	}
}

// summary says how much was not searched; "" for nothing.
func (l *UnsearchedLog) summary() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s could not be searched for secrets; 'unwire audit' says why, and exports leave these bytes out",
		app.Counted(l.bytes, "byte"), app.Counted(l.exchanges, "exchange"))
}
