package fs_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
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
	{`printf 'no newline' >> "$1"`, "no newline\n"},
	{`printf '  blanks \t and\001control\033[0m \n' > "$1"`, "blanks and control [0m\n"},
	{`printf 'carriage return\r\n' > "$1"`, "carriage return\n"},
	{`printf '\303\274 "quoted" \\ <\342\200\250>\n' > "$1"`, "ü \"quoted\" \\ <\u2028>\n"},
	{`printf 'C:\\new\n' > "$1"`, "C:\\new\n"},
	{`: > "$1"; touch "$1"; truncate -s 0 "$1"`, "C:\\new\n"},
	{`echo > "$1"`, ""},
	{`echo again | tee -a "$1" > /dev/null`, "again\n"},
	{`printf '\n' | tee "$1" > /dev/null`, ""},
	{`head -c 4096 /dev/zero | tr '\0' x > "$1"; echo last > "$1"`, "last\n"},
}

// TestTitle: what is written to title is what it is then, in each kind of file. Package writer has what that does to the file.
func TestTitle(t *testing.T) {
	for kind, first := range map[string]string{"header": header("s"), "slot": slot("") + header("s")} {
		w := newWriting(t)
		w.write("s", first, strings.Join(writtenEntries, ""))
		require.Empty(t, w.read("title"))
		for _, c := range titles {
			shell(t, c.script, w.in("title"))
			require.Equal(t, c.want, w.read("title"), c.script)
			require.Equal(t, fmt.Sprintln(len(c.want)), run(t, "stat", "-c", "%s", w.in("title")), c.script)
			list := records(t, w.raw("s"))
			require.Equal(t, strings.TrimSuffix(c.want, "\n"), list[0].Title, c.script)
			require.Equal(t, kind == "slot", list[len(list)-1].Type == "title_change")
		}
		w.refusesTitles()
		require.Equal(t, "s.jsonl\n", run(t, "ls", "-A", w.path("")), "no temporary file is left")
		require.Empty(t, w.read("problems.jsonl"))
	}
}

// refusesTitles: a title is one line of at most 4 KiB. Of two lines in one write none takes effect; where they come in two,
// the second is refused. The scripts hand both lines on at once; bash's own printf writes each by itself.
func (w *writing) refusesTitles() {
	w.t.Helper()
	before, title := w.raw("s"), w.read("title")
	require.ErrorIs(w.t, put(w.in("title"), strings.Repeat("x", 4097)+"\n"), syscall.EINVAL)
	require.Regexp(w.t, `title: .*at most 4096 bytes`, w.read("last-error"))
	for _, script := range []string{
		`env printf 'one\ntwo\n' | cat > "$1"`, `env printf 'one\ntwo' | cat >> "$1"`, `env printf 'one\n\n' | tee -a "$1" > /dev/null`,
		`env printf '\n\n' | dd of="$1" status=none`,
		`python3 -c 'import sys; f = open(sys.argv[1], "r+"); f.write("one\ntwo\n"); f.close()' "$1"`,
	} {
		_, problems, err := tool(w.t, "bash", "-c", script, "bash", w.in("title"))
		require.Error(w.t, err, script)
		require.Contains(w.t, problems, "Invalid argument", script)
		require.Regexp(w.t, `Z title: line 2: not a valid entry: expected one line, found more than one \(0 applied\) \(invalid argument\)\n$`,
			w.read("last-error"), script)
	}
	w.unchanged(before, "refused titles")
	require.Equal(w.t, title, w.read("title"))
	for _, sh := range shells {
		_, problems, err := inShell(w.t, sh, `exec 3> "$1"; echo first >&3 && echo second >&3`, w.in("title"))
		require.Error(w.t, err, sh)
		require.True(w.t, containsAny(problems, saysInvalid(sh, "echo")...), "%s: %s", sh, problems)
		require.Equal(w.t, "first\n", w.read("title"))
		require.Contains(w.t, w.read("last-error"), "title: line 2: not a valid entry: expected one line, found more than one (1 applied) ")
		require.NoError(w.t, put(w.in("title"), "x\n"))
		require.Empty(w.t, w.read("last-error"), "gone with the next success")
	}
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
		shell(t, `cat "$1" > "$2"; cat "$2" > "$1"; cp "$2" "$1"; dd if="$2" of="$1" bs=5 status=none; printf %s "$(cat "$2")" > "$1"`,
			w.in("title"), tempFile(t, ""))
		w.unchanged(before, title)
	}
}
