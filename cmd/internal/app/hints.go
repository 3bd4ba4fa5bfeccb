package app

import (
	"errors"
	"io/fs"
	"path/filepath"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode/text"
	"unwire/replay"
	"unwire/replay/credential"
)

// hintFor says what to do about the errors that people meet most.
func hintFor(err error) string {
	var syntax *text.Error
	if errors.As(err, &syntax) {
		return syntax.Hint
	}
	_, limited := errors.AsType[*store.LimitError](err)
	switch {
	case limited:
		return "what was read before that counts, the rest does not; if you trust the file, set " + maxReadVariable + " to what it may expand to, such as 20GB"
	case errors.Is(err, captures.ErrNoExchange):
		return "'unwire ls F.uwc' lists the exchanges"
	case errors.Is(err, captures.ErrNoFolder):
		return "make the folder first, or name another"
	case errors.Is(err, captures.ErrNewerFormat):
		return "use a newer unwire, or record again with this one"
	case errors.Is(err, captures.ErrNotCapture):
		return "a capture is made by 'unwire capture -o F.uwc'"
	case errors.Is(err, captures.ErrDamaged):
		return "what could be read was shown; the rest of the file is lost"
	case errors.Is(err, captures.ErrInUse):
		return "end the other recorder, or record to another file"
	case errors.Is(err, captures.ErrOlderFormat):
		return "'unwire capture -o' the file once: it is brought up to date"
	case errors.Is(err, credential.ErrExpired):
		return "get a new one; with an API key, 'unwire replay --refresh' exchanges it for one"
	case errors.Is(err, credential.ErrCredentials):
		return "the capture holds placeholders: give the secret in the environment or with --credentials"
	case errors.Is(err, replay.ErrTransport):
		return "requests of HTTP can be sent again; 'unwire show' shows what else passed"
	case errors.Is(err, fs.ErrNotExist):
		if pe, ok := errors.AsType[*fs.PathError](err); ok && filepath.Ext(pe.Path) != ".uwc" {
			return "check the name"
		}
		return "check the name; 'unwire capture -o F.uwc' makes a capture"
	case errors.Is(err, fs.ErrPermission):
		return "check the file's permissions"
	}
	return ""
}
