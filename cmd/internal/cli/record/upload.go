package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"unwire/captures/redact"
	"unwire/captures/series"
	"unwire/captures/store"
	"unwire/captures/upload"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/decode/secret"
)

const (
	// defaultUploadSize is the default of --max-size with --upload: how much stays on disk while the
	// object store cannot be reached.
	defaultUploadSize = "10GB"

	// uploadGrace limits how long a recording waits for uploads at its end.
	uploadGrace = 30 * time.Second
)

// An uploading moves the finished capture files of a recording to an object store. The methods of a nil
// uploading do nothing.
type uploading struct {
	// a is the running program.
	a *app.App

	// uploader uploads files in the background.
	uploader *upload.Uploader

	// series is the series of files that this recording writes; nil before it begins.
	series atomic.Pointer[series.Series]

	// json prints the result of each upload as a JSON event.
	json bool

	// earlier are files of earlier recordings that were not uploaded; they are uploaded too.
	earlier []string
}

// checkUpload returns a usage error for flags that cannot be combined with --upload, or that require it.
func (f *CaptureFlags) checkUpload() error {
	switch {
	case f.objects.Live && f.upload == "" && f.rewrite.rules == "":
		return app.Usagef("--live requires --upload or --rules")
	case f.objects.Live && len(f.objects.Allow) == 0:
		return app.Usagef("--live requires --allow-host HOST, which names an allowed host")
	case f.upload == "":
		return nil
	case f.keepSecrets:
		return app.Fail(app.ExitUsage, errors.New("--upload and --keep-secrets cannot be used together: only redacted captures are uploaded"), "")
	}
	_, _, err := f.objects.Open(f.upload)
	return err
}

// prepareUpload prepares the uploads of --upload: it finds files that earlier recordings did not upload,
// and chooses a new file name for this recording.
func (f *CaptureFlags) prepareUpload(ctx context.Context, a *app.App) error {
	if f.upload == "" {
		return nil
	}
	objects, prefix, err := f.objects.Open(f.upload)
	if err != nil {
		return err
	}

	// Files of earlier recordings that were not uploaded, for example after a crash, are uploaded too.
	left, err := upload.Leftover(f.Out)
	if err != nil {
		return err
	}
	rules, err := a.ExportRules(ctx, nil)
	if err != nil {
		return err
	}

	// Every recording gets new file names. The names of files still to be uploaded must not be written
	// to.
	if f.Out, err = freeName(f.Out); err != nil {
		return err
	}
	if f.maxSize == "" {
		f.maxSize = defaultUploadSize
	}

	// The check runs on each finished file: one with secrets that redaction missed stays on this
	// machine.
	u := &uploading{a: a, json: f.json, earlier: left}
	u.uploader = upload.New(upload.Options{
		Store: objects, Prefix: strings.TrimSuffix(prefix, "/"), Profile: a.Profile(), Version: app.Version(), Report: u.report,
		Check: func(ctx context.Context, s *store.Store) error { return auditSegment(ctx, a, s, rules) },
	})
	f.uploads = u
	return nil
}

// uploadEarlier queues the files of earlier recordings for upload.
func (u *uploading) uploadEarlier() {
	if u == nil || len(u.earlier) == 0 {
		return
	}
	u.a.Say("unwire: uploading %s of an earlier recording", app.Counted(len(u.earlier), "file"))
	for _, file := range u.earlier {
		u.uploader.Add(file)
	}
}

// options makes a recording pass its finished files to the uploader.
func (u *uploading) options(o *series.Options) {
	if u != nil {
		o.Earlier, o.Closed = u.earlier, u.uploader.Add
	}
}

// began sets the series of files that this recording writes.
func (u *uploading) began(s *series.Series) {
	if u != nil {
		u.series.Store(s)
	}
}

// auditSegment returns an error if a finished capture file still contains secrets, or data that cannot be
// searched for them. Such a file is not uploaded.
func auditSegment(ctx context.Context, a *app.App, s *store.Store, rules *secret.Rules) error {
	found, err := secret.Audit(ctx, s, redact.New(redact.Options{Profile: a.Profile()}), rules)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("%w: 'unwire audit %s' reports %s", upload.ErrUnfit, s.Path, app.Counted(len(found), "possible secret"))
	}
	return nil
}

// freeName returns the first unused one of the file names F.uwc, F-2.uwc, F-3.uwc and so on.
func freeName(name string) (string, error) {
	ext := filepath.Ext(name)
	free := name
	for n := 2; ; n++ {
		switch _, err := os.Lstat(free); {
		case errors.Is(err, os.ErrNotExist):
			return free, nil
		case err != nil:
			return "", err
		}
		free = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
	}
}

// report prints the result of one attempt to upload a file.
func (u *uploading) report(r upload.Result) {
	if r.Err == nil {
		if s := u.series.Load(); s != nil {
			s.Forget(r.File)
		}
		u.a.Say("unwire: uploaded %s to %s", r.File, r.URL)
		if u.json {
			// stdout may be gone: the traffic goes on
			_ = u.a.Print(&contract.Uploaded{
				Event: "uploaded", File: r.File, URL: r.URL, SHA256: r.Manifest.SHA256, Size: r.Manifest.Size, Exchanges: r.Manifest.Exchanges,
			})
		}
		return
	}
	next := "; the file stays on this machine"
	if r.Again > 0 {
		next = fmt.Sprintf("; next attempt in %s", r.Again.Round(100*time.Millisecond))
	}
	u.a.Say("unwire: warning: %s was not uploaded: %v%s", r.File, r.Err, next)
	if u.json {
		_ = u.a.Print(&contract.NotUploaded{Event: "not-uploaded", File: r.File, Error: r.Err.Error(), RetrySeconds: r.Again.Seconds()})
	}
}

// finish waits for the uploads, at most for uploadGrace and only briefly after a signal, and prints
// whether files were not uploaded.
func (u *uploading) finish(ctx context.Context) {
	if u == nil {
		return
	}
	wait, cancel := context.WithTimeout(context.Background(), u.a.Signals.Within(uploadGrace, app.InterruptedDrain))
	defer cancel()
	if ctx.Err() == nil {
		// A signal while it waits ends the wait.
		defer context.AfterFunc(ctx, cancel)()
	}
	left := u.uploader.Close(wait)
	if len(left) > 0 {
		which := left[0] + " was not uploaded"
		if len(left) > 1 {
			which = fmt.Sprintf("%d files were not uploaded, for example %s", len(left), left[0])
		}
		u.a.Say("unwire: warning: %s: the next 'unwire capture' with the same -o and --upload tries again", which)
	}
}
