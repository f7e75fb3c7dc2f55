package task

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The first document is held out.
func TestATextOfOneDocumentIsRefusedInWordsThatHelp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte("to be or not to be\n\nthat is the question\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	s := DefaultLDA()
	s.Text.MinCount, s.Text.Skip = 1, 0
	if _, err := s.Load(Setup{Data: path, Seed: 1}); err == nil || !strings.Contains(err.Error(), "held out") || !strings.Contains(err.Error(), "--length") {
		t.Errorf("one document: error %v, want one that says that it is held out, and what to do", err)
	}
	s.Text.Documents = "line"
	if _, err := s.Load(Setup{Data: path, Seed: 1}); err != nil {
		t.Errorf("two documents: %v", err)
	}
}
