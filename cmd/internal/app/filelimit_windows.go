package app

// SurviveFileLimit does nothing, because Windows has no file size limit for a process.
func SurviveFileLimit() (restore func()) { return func() {} }
