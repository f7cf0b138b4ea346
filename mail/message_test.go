package mail

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestEveryMessageIsRefusedOrArrivesUnchanged(t *testing.T) {
	// Pieces of what breaks headers, encodings and folding, among ordinary ones.
	piece := rapid.SampledFrom([]string{"a", "Zz", " ", "  ", "\n", "\r", "\t", "ü", "你好", "🙂", "=",
		".", ":", ",", "Bcc: x@y", "\x00", "\xff",
		"\u2028", "\u0085", strings.Repeat("w", 80), strings.Repeat("é", 40), "@", "<", ">", "\""})
	text := func(t *rapid.T, name string, most int) string {
		return strings.Join(rapid.SliceOfN(piece, 0, most).Draw(t, name), "")
	}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringMatching(`[a-z0-9.-]{1,90}`).Draw(t, "id")
		if rapid.Bool().Draw(t, "any id") {
			id = text(t, "id", 4)
		}
		m := Message{ID: id, To: "a" + text(t, "to", 4) + "@example.com",
			Subject: text(t, "subject", 12), Text: text(t, "text", 40) + "\n"}
		data, err := m.encode(filesFrom)
		if err != nil {
			return
		}
		for n, line := range strings.Split(string(data), "\r\n") {
			if len(line) > 998 || strings.ContainsAny(line, "\r\n") {
				t.Fatalf("line %d is no line: %q", n, line)
			}
		}
		parse(t, string(data)).is(t, m, `"Demo Exchange" <exchange@localhost>`, "localhost")
	})
}

func TestFilesWritesEachMailOnceForItsOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "mails")
	f := NewFiles(dir)
	again := example
	again.Text = "again\n"
	for _, m := range []Message{example,
		{ID: "7", To: "bob@example.com", Subject: "s", Text: "t\n"}, again} {
		succeeds(t, f.Send(t.Context(), m))
	}
	entries, err := os.ReadDir(dir)
	succeeds(t, err)
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		succeeds(t, err)
		names = append(names, fmt.Sprintf("%s %04o", e.Name(), info.Mode().Perm()))
	}
	if got := strings.Join(names, ", "); got != "42.eml 0600, 7.eml 0600" {
		t.Errorf("files are %s", got)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info.Mode(), err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "42.eml"))
	succeeds(t, err)
	parse(t, string(data)).is(t, again, `"Demo Exchange" <exchange@localhost>`, "localhost")
}

func TestFilesReportsAFailedWriteAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	// A folder at the file's path makes the last step fail.
	succeeds(t, os.MkdirAll(filepath.Join(dir, "42.eml", "x"), 0o700))
	if err := NewFiles(dir).Send(t.Context(), example); err == nil ||
		!strings.HasPrefix(err.Error(), `mail "42" cannot be written: `) {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".mail-*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	file := filepath.Join(dir, "file")
	succeeds(t, os.WriteFile(file, nil, 0o600))
	if err := NewFiles(file).Send(t.Context(), example); err == nil ||
		!strings.HasPrefix(err.Error(), `mail "42" cannot be written: `) {
		t.Error(err)
	}
}

func TestLineIsOneBoundedLineOfPrintableText(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		" a \r\n\tb\x00c\u202ed ": "a b c d",
		"a\xffb\u2028c":           "a b c",
		"12345678901234567890":    "12345678901234567890",
		"123456789012345678901":   "12345678901234567…",
		"1234567890123456 89012":  "1234567890123456…",
		"1234567890123456ü9012":   "1234567890123456…",
		strings.Repeat("你", 7):    "你你你你你…",
	} {
		if got := line(in, 20); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		in, limit := string(rapid.SliceOf(rapid.Byte()).Draw(t, "in")),
			rapid.IntRange(4, 30).Draw(t, "limit")
		got := line(in, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.TrimSpace(got) != got ||
			line(got, limit) != got {
			t.Fatalf("%q at most %d: %q", in, limit, got)
		}
	})
}

func TestFilesReadsItsOwnMails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mails")
	f := NewFiles(dir)
	if list, err := f.Newest(3); err != nil || len(list) > 0 {
		t.Errorf("before the first mail: %+v, %v", list, err)
	}
	var sent []Message
	for i, text := range []string{"one\n", "Grüße: 5 ₿ = viel,\n\n  <b>code</b> 7K2M-9QXD-04TB\n" +
		strings.Repeat("a long line ", 50) + "\n", "", "four\n"} {
		m := Message{ID: fmt.Sprint("withdraw-", i), To: "bob@example.org",
			Subject: fmt.Sprintf("Your withdraw %d: 0.5 BTC – \"code\"", i), Text: text}
		succeeds(t, f.Send(t.Context(), m))
		at := time.Unix(int64(1_700_000_000+i), 0)
		succeeds(t, os.Chtimes(filepath.Join(dir, m.ID+".eml"), at, at))
		sent = append(sent, m)
	}
	succeeds(t, os.WriteFile(filepath.Join(dir, "other.txt"), nil, 0o600))
	list, err := f.Newest(3)
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, m := range list {
		if want := sent[3-i]; m.Message != want || m.Time.Unix() != int64(1_700_000_003-i) {
			t.Errorf("%+v\nwant %+v", m, want)
		}
	}
	succeeds(t, os.WriteFile(filepath.Join(dir, "bad.eml"), []byte("no mail"), 0o600))
	if _, err := f.Newest(3); err == nil || !strings.Contains(err.Error(), `mail "bad"`) {
		t.Errorf("a file that is no mail: %v", err)
	}
}
