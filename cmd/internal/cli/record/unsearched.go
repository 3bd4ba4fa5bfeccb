package record

import (
	"fmt"
	"sync"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
)

// An UnsearchedLog counts the data of a recording that could not be searched for secrets, for example
// because its protocol is unknown.
type UnsearchedLog struct {
	// mu guards the fields below.
	mu sync.Mutex

	// announced is set once the first such data has been reported to the user.
	announced bool

	// exchanges is the number of exchanges with such data.
	exchanges int
	// bytes is the total size of such data, in bytes.
	bytes int64
}

// report returns the callback for data that could not be searched for secrets. It counts the data, and
// prints a warning for the first exchange.
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
		a.Say("unwire: exchange %d: cannot search %s for secrets: the data is recorded without redaction, and left out by 'unwire export' and 'unwire redact'", ex.ID, runs[0].Reason)
	}
}

// summary returns a sentence with the amount of data that was not searched for secrets; "" if there is
// none.
func (l *UnsearchedLog) summary() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes == 0 {
		return ""
	}
	return fmt.Sprintf("%s in %s could not be searched for secrets: 'unwire audit' shows why; 'unwire export' leaves these bytes out",
		app.Counted(l.bytes, "byte"), app.Counted(l.exchanges, "exchange"))
}
