package fs_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// How lines are cut from what is written to append (docs/design.md section 2).

// openAppend opens append for the system calls themselves.
func (w *writing) openAppend(flags int) int {
	fd, err := unix.Open(w.in("append"), flags|unix.O_CLOEXEC, 0)
	require.NoError(w.t, err)
	return fd
}

// TestLineTooLong: a line over 64 MiB is EFBIG, and so is what comes behind it; the next open file works. Package nodes cuts
// such lines at every place.
func TestLineTooLong(t *testing.T) {
	notUnderRace(t)
	w := newWriting(t)
	before := w.raw("s")
	fd := w.openAppend(unix.O_WRONLY)
	chunk := []byte(strings.Repeat("x", 1<<20))
	for range 64 {
		n, err := unix.Write(fd, chunk)
		require.NoError(t, err)
		require.Equal(t, len(chunk), n)
	}
	for _, more := range []string{string(chunk), string(chunk), "\n" + message("with the end of that line") + "\n",
		message("next") + "\n"} { // a stubborn writer goes on
		_, err := unix.Write(fd, []byte(more))
		require.ErrorIs(t, err, syscall.EFBIG)
		require.Contains(t, w.read("last-error"), "at most 67108864 bytes")
	}
	require.NoError(t, unix.Close(fd))
	_, problems, err := tool(t, "bash", "-c", `head -c 70000000 /dev/zero | tr '\0' x > "$1"`, "bash", w.in("append"))
	require.Error(t, err)
	require.Contains(t, problems, "File too large")
	require.Empty(t, w.added(before))
	require.NoError(t, put(w.in("append"), message("next")+"\n"))
	require.Len(t, w.added(before), 1)
	for _, file := range []string{w.in("append"), w.m.path("new-session")} { // in parts of another size, of a file that answers
		fd, err := unix.Open(file, unix.O_RDWR|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		for err == nil {
			_, err = unix.Write(fd, chunk[:1008<<10])
		}
		require.ErrorIs(t, err, syscall.EFBIG)
		require.NoError(t, unix.Close(fd))
	}
}

// TestAnswers: exec 3<>append, in every shell. Package nodes tests what can be read when.
func TestAnswers(t *testing.T) {
	w := newWriting(t)
	for _, sh := range shells {
		out, problems, err := inShell(t, sh, `exec 3<>"$1" || exit; for n in 1 2 3; do echo "$2" >&3; read -r id <&3; echo "$id"; done; exec 3>&-`,
			w.in("append"), message(sh))
		require.NoError(t, err, problems)
		ids := strings.Fields(out)
		require.Len(t, ids, 3, sh)
		for i, id := range ids {
			require.Equal(t, sh, strings.TrimSpace(run(t, "jq", "-r", ".message.content", w.in("entries", id+".json"))))
			if i > 0 {
				require.Equal(t, ids[i-1]+"\n", run(t, "jq", "-r", ".parentId", w.in("entries", id+".json")))
			}
		}
		require.Equal(t, "entries/"+ids[2]+".json", w.leaf())
		// Written and read back by different programs on one open file; an id that was given comes back.
		out, problems, err = inShell(t, sh, `exec 3<>"$1"; printf '%s\n' "$2" "$3" >&3; head -n 2 <&3; cat <&3`,
			w.in("append"), `{"type":"custom","customType":"x","id":"given `+sh+`"}`, message("b"))
		require.NoError(t, err, problems)
		require.Equal(t, "given "+sh, strings.Split(out, "\n")[0])
		require.Len(t, strings.Split(out, "\n"), 3)
	}
	require.Empty(t, run(t, "cat", w.in("append")), "a fresh open reads nothing")
	for _, mode := range []string{"a+", "r+", "w+"} { // Python seeks between writing and reading
		require.Equal(t, "one\ntwo\nthree\n", python(t, program("answers.py"), w.in("append"), mode))
	}
}

// TestOpenFilesAreApart: lines are joined from writes through one open file, not from those of others;
// several programs that share one join theirs.
func TestOpenFilesAreApart(t *testing.T) {
	w := newWriting(t)
	before := w.raw("s")
	shell(t, `exec 3> "$1" 4>> "$1"; for fd in 3 4; do printf '{"type":"custom","cust' >&$fd; done; for fd in 3 4; do printf 'omType":"x","id":' >&$fd; done
		printf '"of four"}\n' >&4; printf '"of three"}' >&3`, w.in("append"))
	added := w.added(before)
	require.Equal(t, []string{"of four", "of three"}, []string{added[0].ID, added[1].ID})

	line := message("of two programs")
	for name, cut := range map[string]int{"at a line": len(line) + 1, "before the newline": len(line), "in the line": 20} {
		text := line + "\n" + line + "\n"
		before := w.raw("s")
		_, _, _ = tool(t, "bash", "-c", `(cat "$2"; cat "$3") > "$1"`, "bash", w.in("append"), tempFile(t, text[:cut]), tempFile(t, text[cut:]))
		require.Len(t, w.added(before), 2, name)
	}
	shell(t, `(cat "$2"; cat "$2") > "$1"; { echo "$3"; echo "$3"; } >> "$1"`, w.in("append"), tempFile(t, line+"\n"), line)
	w.wellRead()
}
