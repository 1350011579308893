//go:build linux

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWriteWithoutMount(t *testing.T) {
	s := commandStore(t)
	const session = "by-id/019d3d9"
	message := `{"type":"message","message":{"role":"user","content":"And in Lisbon?"}}` + "\n"
	r := s.fed(message+message, "write", session+"/append")
	require.Zero(t, r.code, r)
	ids := strings.Fields(r.stdout)
	require.Len(t, ids, 2)
	require.Contains(t, s.here("cat", session+"/leaf").stdout, `"id":"`+ids[1]+`","parentId":"`+ids[0]+`"`)

	require.Equal(t, result{}, s.fed("A better title", "write", session+"/title"))
	require.Equal(t, "A better title\n", s.here("cat", session+"/title").stdout)
	require.Equal(t, result{}, s.fed("ba100fbb here\n", "write", "by-id/019d3d9*/labels"))
	require.Contains(t, s.here("cat", session+"/labels").stdout, "ba100fbb\there\n")
	require.Equal(t, result{}, s.fed("by-label/here\n", "write", session+"/leaf"))
	require.Contains(t, s.here("ls", "-l", session+"/").stdout, "leaf -> entries/ba100fbb.json\n")

	r = s.fed("ba100fbb\n", "write", session+"/fork")
	require.Zero(t, r.code, r)
	require.FileExists(t, filepath.Join(s.source, strings.TrimSpace(r.stdout)+".jsonl"))
	require.Contains(t, s.here("ls", "-l", strings.TrimSpace(r.stdout)).stdout, "parent -> ")

	r = s.fed("/some/where\n", "write", "new-session")
	require.Zero(t, r.code, r)
	made := strings.TrimSpace(r.stdout)
	require.FileExists(t, filepath.Join(s.source, made+".jsonl"))
	require.Zero(t, s.fed(message, "write", made+"/append").code)
	require.Contains(t, s.here("cat", made+".jsonl").stdout, "And in Lisbon?")
}

// A refusal says why, what was before it has taken effect, and nothing behind it has.
func TestWriteRefused(t *testing.T) {
	s := commandStore(t)
	const session = "by-id/019d3d9"
	note := `{"type":"custom","customType":"note","data":1}` + "\n"
	for _, c := range []struct{ path, input, reason string }{
		{"append", note + `{"type":"massage"}` + "\n" + note, `type: expected one that can be appended, found "massage"`},
		{"append", `{"type":`, "is not a whole JSON object"},
		{"labels", "nothing x\n", "nothing"},
		{"title", "a\nb\n", "one line"},
		{"fork", "nothing\n", "nothing"},
		{"leaf", "nothing\n", "leaf: "},
		{"leaf", "", "one line is expected"},
		{"transcript.md", "x\n", "write to append, labels, title or fork"},
		{"entries", "x\n", "entries: is a directory"},
		{"none", "x\n", "none: no such file"},
	} {
		before := s.here("cat", session+"/branches/.by-id/3a17833e/entries.jsonl", "sessions/*/*_019d3d9*.jsonl").stdout
		r := s.fed(c.input, "write", session+"/"+c.path)
		requireStatus(t, exitFailure, r, c.reason)
		require.Equal(t, 1, strings.Count(r.stderr, c.path+": "), r.stderr)
		after := s.here("cat", session+"/branches/.by-id/3a17833e/entries.jsonl", "sessions/*/*_019d3d9*.jsonl").stdout
		if strings.HasPrefix(c.input, note) {
			require.Len(t, strings.Fields(r.stdout), 1)
			require.Greater(t, len(after), len(before))
		} else {
			require.Empty(t, r.stdout)
			require.Equal(t, before, after, c)
		}
	}
	requireStatus(t, exitFailure, s.fed("relative\n", "write", "new-session"), "new-session: line 1")
	requireStatus(t, exitFailure, s.fed(note, "write", "-o", "ro", session+"/append"), "read-only")
	requireStatus(t, exitUsage, s.fed(note, "write", "by-id/*/title"), "5 paths")
}

// Lines take effect as they come; an interrupt leaves what has taken effect, and nothing of the line that is being typed.
func TestWriteInterrupted(t *testing.T) {
	s := commandStore(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd := s.command(program, "write", "-s", s.source, "by-id/019d3d9/append")
	cmd.Stdin = r
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	r.Close()
	defer w.Close()
	_, err = w.WriteString(`{"type":"custom","customType":"first","data":1}` + "\n" + `{"type":"custom","customType":"second","data":1}`)
	require.NoError(t, err)
	id := make([]byte, 8)
	_, err = io.ReadFull(out, id) // the first line has taken effect
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.EqualError(t, cmd.Wait(), "signal: interrupt")
	text := s.here("cat", "sessions/*/*_019d3d9*.jsonl").stdout
	require.Contains(t, text, `"customType":"first"`)
	require.NotContains(t, text, `"customType":"second"`)
}

// TestWriteInputPanics: what reads the input may panic without an end of the process.
func TestWriteInputPanics(t *testing.T) {
	require.ErrorContains(t, (&lineWriter{}).feed(t.Context(), nil, nil), "a bug")
}
