package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What was written is there, wherever it was written.

// TestBlobs: an image goes to the blob store before its line is written.
func TestBlobs(t *testing.T) {
	w := newWriting(t)
	before := w.raw("s")
	script := `head -c 5000 /dev/urandom > "$2/img"; h=$(sha256sum < "$2/img" | cut -d' ' -f1)
printf '{"type":"message","message":{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"%s"}]}}\n' "$(base64 -w0 "$2/img")" > "$1/append"
cmp "$2/img" "$3/blobs/$h" && echo "$h"`
	hash := strings.TrimSpace(shell(t, script, w.in(), t.TempDir(), w.m.path()))
	require.Contains(t, string(w.added(before)[0].Message), `"blob:sha256:`+hash+`"`)
	require.Equal(t, "6668\n", run(t, "jq", ".messages[-1].content[0].data|length", w.in("context.json")))
	require.Equal(t, hash+"\n", run(t, "ls", "-A", filepath.Join(w.dir, "blobs")), "no temporary file is left")
	// A refused line leaves no blob.
	bad := strings.Replace(`{"type":"message","parentId":"nobody","message":{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"X"}]}}`, "X", strings.Repeat("QUJD", 1000), 1)
	require.ErrorIs(t, put(w.in("append"), bad+"\n"), syscall.ENOENT)
	require.Equal(t, hash+"\n", run(t, "ls", "-A", filepath.Join(w.dir, "blobs")))
}

// TestSubagents: the sessions in artifacts/ are written to in the same way, by either of their paths.
func TestSubagents(t *testing.T) {
	w := newWriting(t)
	require.NoError(t, os.MkdirAll(w.path("s/deep"), 0o755))
	for _, name := range []string{"s/Task.jsonl", "s/deep/Task.jsonl"} {
		require.NoError(t, os.WriteFile(w.path(name), []byte(header("t")+strings.Join(writtenEntries, "")), 0o644))
	}
	before := w.raw("s")
	for _, dir := range []string{"Task", "artifacts/Task", "deep/Task", "artifacts/deep/Task"} {
		id := ask(t, w.in(dir, "append"), message(dir))
		require.NoError(t, put(w.in(dir, "title"), dir+"\n"))
		require.NoError(t, put(w.in(dir, "labels"), id+" "+strings.ReplaceAll(dir, "/", " ")+"\n"))
		run(t, "ln", "-sfn", "entries/"+id+".json", w.in(dir, "leaf"))
		require.Equal(t, "entries/"+id+".json\n", run(t, "readlink", w.in(dir, "leaf")))
		require.Equal(t, dir+"\n", run(t, "cat", w.in(dir, "title")))
		fork := ask(t, w.in(dir, "fork"), "e1")
		require.Equal(t, "sessions/p/"+filepath.Dir(strings.TrimPrefix(filepath.Join("s", strings.TrimPrefix(dir, "artifacts/")), "./")), filepath.Dir(fork))
		require.FileExists(t, filepath.Join(w.dir, fork)+".jsonl")
		require.DirExists(t, w.m.path(fork), "the path is one in the mount")
		require.ErrorIs(t, put(w.in(dir, "append"), badLine+"\n"), syscall.EINVAL)
		require.Contains(t, w.read(dir, "last-error"), "message.role")
	}
	require.Empty(t, w.read("last-error"), "of this session alone")
	w.unchanged(before, "writes to subagents")
}
