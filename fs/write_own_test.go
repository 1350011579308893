package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What was written is there, wherever it was written.

// TestOwnWritesAreSeen: what was written is what is read, at once, a few hundred times.
func TestOwnWritesAreSeen(t *testing.T) {
	w := newWriting(t)
	rounds := sized(500, 25)
	out := python(t, `
import json, os, sys
d, rounds = sys.argv[1], int(sys.argv[2])
def p(*n): return os.path.join(d, *n)
def read(n):
    with open(p(n)) as f: text = f.read()
    assert os.stat(p(n)).st_size == len(text.encode()), n
    return text
fd = os.open(p("append"), os.O_RDWR)
count = len(os.listdir(p("entries")))
for i in range(rounds):
    os.write(fd, ('{"type":"message","message":{"role":"user","content":"%d"}}\n' % i).encode())
    id = os.read(fd, 100).decode().strip()
    assert os.readlink(p("leaf")) == "entries/%s.json" % id
    entry = json.loads(read("entries/%s.json" % id))
    assert entry["message"]["content"] == str(i)
    assert json.loads(read("context.json"))["messages"][-1]["content"] == str(i)
    with open(p("labels"), "w") as f: f.write("%s label %d\n" % (id, i))
    assert read("labels").endswith("%s\tlabel %d\n" % (id, i)), read("labels")
    os.symlink("entries/%s.json" % id, p("t")); os.replace(p("t"), p("leaf"))
    assert os.readlink(p("leaf")) == "entries/%s.json" % id
    assert json.loads(read("leaf")) == entry
    if i % 10 == 0:
        with open(p("title"), "w") as f: f.write("title %d\n" % i)
        assert read("title") == "title %d\n" % i
        assert json.loads(read("header.json"))["title"] == "title %d" % i
    count += 3
    assert len(os.listdir(p("entries"))) == count
    assert os.path.isdir(p("tree", id))
print(i + 1)
`, w.in(), fmt.Sprint(rounds))
	require.Equal(t, fmt.Sprintln(rounds), out)
	w.wellRead()
}

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
	require.FileExists(t, filepath.Join(w.dir, "blobs", hash))
	info, err := os.Stat(filepath.Join(w.dir, "blobs"))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), info.ModTime(), time.Hour)
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
