package names

import (
	"strings"
	"testing"
)

func TestDictionaryHasBothForms(t *testing.T) {
	words := strings.Join(Dictionary(nil), " ")
	if !strings.Contains(words, "page_size") || !strings.Contains(words, "pageSize") {
		t.Error(words)
	}
}
