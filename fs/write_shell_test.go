package fs_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Appending as a user of shells and scripts does.

var shells = []string{"bash", "dash", "zsh", "busybox sh"}

// inShell runs a script with arguments in one of the shells.
func inShell(t testing.TB, sh, script string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	f := strings.Fields(sh)
	return tool(t, f[0], append(append(f[1:], "-c", script, "sh"), args...)...)
}

// An appender writes one line: $1 is append, $2 the line, $3 a file that holds it with a newline.
type appender struct {
	script string
	// deaf writers are not told of a bad line: it takes effect at close(2), whose error nobody looks at;
	// or the program ends well in spite of an error. last-error has it.
	deaf bool
}

// shellAppenders are a shell's own ways; echo is for every shell.
var shellAppenders = map[string]appender{
	"echo >":             {script: `echo "$2" > "$1"`},
	"echo >>":            {script: `echo "$2" >> "$1"`},
	"printf":             {script: `printf '%s\n' "$2" > "$1"`},
	"printf, no newline": {script: `printf %s "$2" >> "$1"`, deaf: true},
	"cat >":              {script: `cat "$3" > "$1"`},
	"cat >>":             {script: `cat < "$3" >> "$1"`},
	"tee":                {script: `echo "$2" | tee "$1" > /dev/null`},
	"tee -a":             {script: `tee -a "$1" < "$3" > /dev/null`},
	"a loop":             {script: `while read -r line; do echo "$line" || exit; done < "$3" > "$1"`},
}

// toolAppenders are for one shell.
var toolAppenders = map[string]appender{
	"jq":            {script: `jq -c . "$3" > "$1"`},
	"jq >>":         {script: `jq -c . "$3" >> "$1"`},
	"jq --unbuffer": {script: `jq --unbuffered -c . "$3" > "$1"`},
	"cp":            {script: `cp "$3" "$1"`},
	"busybox cp":    {script: `busybox cp "$3" "$1"`},
	"busybox tee":   {script: `busybox tee -a "$1" < "$3" > /dev/null`},
	"dd":            {script: `dd if="$3" of="$1" status=none`},
	"dd, 7 bytes":   {script: `dd if="$3" of="$1" bs=7 status=none`},
	"dd append":     {script: `dd if="$3" of="$1" oflag=append conv=notrunc,fsync status=none`},
	"awk":           {script: `awk '{print; if (close("/dev/stdout")) exit 1}' "$3" > "$1"`, deaf: true},
	"sed":           {script: `sed -n p "$3" > "$1"`},
	"open a":        {script: `python3 -c 'import sys; f = open(sys.argv[1], "a"); f.write(sys.argv[2] + "\n"); f.close()' "$1" "$2"`},
	"open w":        {script: `python3 -c 'import sys; f = open(sys.argv[1], "w"); f.write(sys.argv[2] + "\n"); f.close()' "$1" "$2"`},
	"with open":     {script: "python3 -c 'import sys\nwith open(sys.argv[1], \"a\") as f: f.write(sys.argv[2])' \"$1\" \"$2\""},
	"open ab":       {script: `python3 -c 'import sys; f = open(sys.argv[1], "ab", buffering=0); f.write(sys.argv[2].encode() + b"\n")' "$1" "$2"`},
	"print, flush":  {script: `python3 -c 'import sys; f = open(sys.argv[1], "w"); print(sys.argv[2], file=f, flush=True)' "$1" "$2"`},
	"no close":      {script: `python3 -c 'import sys; f = open(sys.argv[1], "a"); f.write(sys.argv[2] + "\n")' "$1" "$2"`, deaf: true},
	"os.open":       {script: `python3 -c 'import os, sys; fd = os.open(sys.argv[1], os.O_WRONLY); os.write(fd, sys.argv[2].encode() + b"\n")' "$1" "$2"`},
	"os.close tells": {script: `python3 -c 'import os, sys; fd = os.open(sys.argv[1], os.O_RDWR|os.O_TRUNC)
os.write(fd, sys.argv[2].encode()); os.close(fd)' "$1" "$2"`},
	"pathlib": {script: `python3 -c 'import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[2])' "$1" "$2"`},
}

const badLine = `{"type":"message","message":{"role":7}}`

// saysInvalid is what is said of EINVAL: some have words of their own.
func saysInvalid(sh, name string) []string {
	said := []string{"Invalid argument", "invalid argument"}
	if sh == "dash" || name == "busybox tee" {
		said = append(said, "I/O error")
	}
	return said
}

// TestAppendFromShells: a line is appended by whatever a user of a shell writes with, and a bad one fails
// the writer, with the reason in last-error.
func TestAppendFromShells(t *testing.T) {
	w := newWriting(t)
	check := func(t *testing.T, sh, name string, a appender) {
		before, leaf := w.raw("s"), strings.TrimSuffix(strings.TrimPrefix(w.leaf(), "entries/"), ".json")
		text := sh + " " + name
		_, problems, err := inShell(t, sh, a.script, w.in("append"), message(text), tempFile(t, message(text)+"\n"))
		require.NoError(t, err, "%s: %s", text, problems)
		require.Empty(t, problems, text)
		added := w.added(before)
		require.Len(t, added, 1, text)
		require.Equal(t, leaf, added[0].parent(), text)
		require.Equal(t, "entries/"+added[0].ID+".json", w.leaf(), text)
		require.JSONEq(t, `{"role":"user","content":"`+text+`"}`, string(added[0].Message))

		before = w.raw("s")
		require.ErrorIs(t, put(w.in("append"), "[]\n"), syscall.EINVAL) // another reason in last-error
		_, problems, err = inShell(t, sh, a.script, w.in("append"), badLine, tempFile(t, badLine+"\n"))
		if !a.deaf {
			require.Error(t, err, text)
			require.True(t, containsAny(problems, saysInvalid(sh, name)...), "%s: %s", text, problems)
		}
		require.Contains(t, w.read("last-error"), "append: ", text)
		require.Contains(t, w.read("last-error"), "message.role: expected a string, found a number", text)
		w.unchanged(before, text)
	}
	for _, sh := range shells {
		t.Run(sh, func(t *testing.T) { check(t, sh, "echo >", shellAppenders["echo >"]) })
	}
	for _, appenders := range []map[string]appender{shellAppenders, toolAppenders} {
		for name, a := range appenders {
			t.Run(name, func(t *testing.T) { check(t, "bash", name, a) })
		}
	}
	require.Contains(t, w.m.logged(), "message.role: expected a string, found a number")
	w.wellRead()
}

// wellRead: the whole file reads without problems, also for a daemon that sees it for the first time.
func (w *writing) wellRead() {
	w.t.Helper()
	list := records(w.t, w.raw("s"))
	require.Empty(w.t, w.read("problems.jsonl"))
	require.Len(w.t, names(w.t, w.in("entries")), len(list)-1)
	want := w.read("context.json")
	w.remount()
	require.Equal(w.t, want, w.read("context.json"))
}
