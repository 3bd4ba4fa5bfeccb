package names

import (
	"strings"
	"testing"
)

func TestCandidatesHaveBothForms(t *testing.T) {
	fields, _, _ := Candidates(nil)
	words := strings.Join(fields, " ")
	if !strings.Contains(words, "page_size") || !strings.Contains(words, "pageSize") {
		t.Error(words)
	}
}
