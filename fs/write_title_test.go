package fs_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Writing to title (docs/design.md section 2).

// slot is a title slot's line, 256 bytes.
func slot(title string) string {
	text := `{"type":"title","v":1,"title":"` + title + `","source":"auto","updatedAt":"2026-02-16T11:00:00.000Z","pad":"`
	return text + strings.Repeat(" ", 256-len(text)-3) + "\"}\n"
}

// titles are the lines that are written to title and what it then is.
var titles = []struct{ script, want string }{
	{`echo "My title" > "$1"`, "My title\n"},
	{`echo "My title" > "$1"`, "My title\n"},
	{`printf 'no newline' >> "$1"`, "no newline\n"},
	{`printf '  blanks \t and\001control\033[0m \n' > "$1"`, "blanks and control [0m\n"},
	{`printf 'carriage return\r\n' > "$1"`, "carriage return\n"},
	{`printf '\303\274 "quoted" \\ <\342\200\250>\n' > "$1"`, "ü \"quoted\" \\ <\u2028>\n"},
	{`printf 'C:\\new\n' > "$1"`, "C:\\new\n"},
	{`: > "$1"; touch "$1"; truncate -s 0 "$1"`, "C:\\new\n"},
	{`echo > "$1"`, ""},
	{`echo > "$1"`, ""},
	{`echo again | tee -a "$1" > /dev/null`, "again\n"},
	{`printf '\n' | tee "$1" > /dev/null`, ""},
	{`head -c 4096 /dev/zero | tr '\0' x > "$1"; echo last > "$1"`, "last\n"},
}

// TestTitle: in a file without a slot the title is in the header, which is rewritten atomically.
func TestTitle(t *testing.T) {
	w := newWriting(t)
	require.NoError(t, os.Chmod(w.path("s.jsonl"), 0o640))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(w.path("s.jsonl"), 4321, 1234))
	}
	var was, is unix.Stat_t
	entries := strings.Join(writtenEntries, "")
	require.Empty(t, w.read("title"))
	last := ""
	for _, c := range titles {
		before := w.raw("s")
		require.NoError(t, unix.Stat(w.path("s.jsonl"), &was))
		shell(t, c.script, w.in("title"))
		require.Equal(t, c.want, w.read("title"), c.script)
		require.NoError(t, unix.Stat(w.path("s.jsonl"), &is))
		info, err := os.Stat(w.in("title"))
		require.NoError(t, err)
		require.EqualValues(t, len(c.want), info.Size(), c.script)
		head, rest, _ := strings.Cut(w.raw("s"), "\n")
		require.Equal(t, entries, rest, "nothing but the header changes")
		h := records(t, head+"\n")[0]
		require.Equal(t, strings.TrimSuffix(c.want, "\n"), h.Title, c.script)
		require.Equal(t, c.want == "", !strings.Contains(head, "title"), head)
		require.Equal(t, []uint32{was.Mode, was.Uid, was.Gid}, []uint32{is.Mode, is.Uid, is.Gid}, "mode and owner are kept")
		if c.want == last {
			w.unchanged(before, c.script)
			require.Equal(t, was.Ino, is.Ino, "nothing is written for the same title")
		} else {
			require.NotEqual(t, before, w.raw("s"))
		}
		last = c.want
		require.Equal(t, "entries/e3.json", w.leaf())
	}
	w.refusesLongTitle()
	w.refusesTwoLines()
	require.Equal(t, "s.jsonl\n", run(t, "ls", "-A", w.path("")), "no temporary file is left")
	w.wellRead()
}

func (w *writing) refusesLongTitle() {
	w.t.Helper()
	before := w.raw("s")
	require.ErrorIs(w.t, put(w.in("title"), strings.Repeat("x", 4097)+"\n"), syscall.EINVAL)
	require.Contains(w.t, w.read("last-error"), "title: ")
	require.Contains(w.t, w.read("last-error"), "at most 4096 bytes")
	w.unchanged(before, "a long title")
}

// refusesTwoLines: a title is one line. Of two in one write none takes effect; where they come in two, the second is
// refused. The scripts hand both lines on at once; bash's own printf writes each by itself.
func (w *writing) refusesTwoLines() {
	w.t.Helper()
	before, title := w.raw("s"), w.read("title")
	for _, script := range []string{
		`env printf 'one\ntwo\n' | cat > "$1"`, `env printf 'one\ntwo' | cat >> "$1"`, `env printf 'one\n\n' | tee -a "$1" > /dev/null`, `env printf '\n\n' | dd of="$1" status=none`,
		`python3 -c 'import sys; f = open(sys.argv[1], "r+"); f.write("one\ntwo\n"); f.close()' "$1"`,
	} {
		_, problems, err := tool(w.t, "bash", "-c", script, "bash", w.in("title"))
		require.Error(w.t, err, script)
		require.Contains(w.t, problems, "Invalid argument", script)
		require.Regexp(w.t, `Z title: line 2: not a valid entry: expected one line, found more than one \(0 applied\) \(invalid argument\)\n$`, w.read("last-error"), script)
		w.unchanged(before, script)
		require.Equal(w.t, title, w.read("title"))
	}
	for _, sh := range shells {
		require.NoError(w.t, put(w.in("title"), "x\n"))
		require.Empty(w.t, w.read("last-error"), "gone with the next success")
		_, problems, err := inShell(w.t, sh, `exec 3> "$1"; echo first >&3 && echo second >&3`, w.in("title"))
		require.Error(w.t, err, sh)
		require.True(w.t, containsAny(problems, saysInvalid(sh, "echo")...), "%s: %s", sh, problems)
		require.Equal(w.t, "first\n", w.read("title"))
		require.Contains(w.t, w.read("last-error"), "title: line 2: not a valid entry: expected one line, found more than one (1 applied) ")
	}
	require.NoError(w.t, put(w.in("title"), title))
}

// TestTitleCanBeWrittenBack: what reading title gives is one line of text, and written back it changes nothing.
func TestTitleCanBeWrittenBack(t *testing.T) {
	for title, shown := range map[string]string{
		`two\nlines\tand \u001b[2J`: `two\nlines\tand \u001b[2J`,
		`\u0000\r\u007f\u009b1m`:    `\u0000\r\u007f\u009b1m`,
		`a lone \ud83d one`:         `a lone \ud83d one`,
		`C:\\new \\ \\\\`:           `C:\new \ \\`,
		`  blanks  `:                `  blanks  `,
	} {
		w := newWriting(t)
		w.write("s", strings.Replace(header("s"), `"cwd"`, `"title":"`+title+`","titleSource":"user","cwd"`, 1), strings.Join(writtenEntries, ""))
		require.Equal(t, shown+"\n", w.read("title"))
		require.Equal(t, fmt.Sprintln(len(shown)+1), run(t, "stat", "-c", "%s", w.in("title")))
		before := w.raw("s")
		shell(t, `cat "$1" > "$2"; cat "$2" > "$1"; cp "$2" "$1"; dd if="$2" of="$1" bs=5 status=none; printf %s "$(cat "$2")" > "$1"`, w.in("title"), tempFile(t, ""))
		w.unchanged(before, title)
	}
}

// TestTitleSlot: a slot is overwritten in place, and a title_change entry appended.
func TestTitleSlot(t *testing.T) {
	w := newWriting(t)
	w.write("s", slot("old"), header("s"), strings.Join(writtenEntries, ""))
	require.Equal(t, "old\n", w.read("title"))
	var was, is unix.Stat_t
	require.NoError(t, unix.Stat(w.path("s.jsonl"), &was))
	for _, title := range []string{"My title", "My title", "", strings.Repeat("ü", 299) + "x"} {
		before, same := w.raw("s"), w.read("title") == title+"\n"
		require.NoError(t, put(w.in("title"), title+"\n"))
		now := w.raw("s")
		require.NoError(t, unix.Stat(w.path("s.jsonl"), &is))
		require.Equal(t, was.Ino, is.Ino, "in place")
		require.Equal(t, before[256:], now[256:len(before)], "nothing but the slot changes")
		if same {
			require.Equal(t, before, now)
			continue
		}
		added := records(t, now[len(before):])
		change := added[len(added)-1]
		require.Equal(t, []string{"title_change", title, "user"}, []string{change.Type, change.Title, change.Source})
		require.Equal(t, "entries/"+change.ID+".json", w.leaf())
		require.Equal(t, strings.TrimSuffix(w.read("title"), "\n"), records(t, now[:256])[0].Title)
	}
	require.Regexp(t, `^ü+\n$`, w.read("title"), "cut at a code point")
	require.Empty(t, w.read("problems.jsonl"))
	require.Len(t, names(t, w.in("entries")), len(records(t, w.raw("s")))-2)
}
