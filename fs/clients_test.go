package fs_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The roots of other clients: operator, xcsh, pi (docs/design.md section 9).

// clients are the stores in testdata, and below what their agent directories are called in a home.
var clients = map[string]string{"operator": ".operator/profiles/work", "xcsh": ".xcsh/agent", "pi": ".pi/agent"}

// clientStore copies a client's store to where it would lie.
func clientStore(t testing.TB, client string) string {
	dir := filepath.Join(t.TempDir(), clients[client])
	require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	require.NoError(t, os.CopyFS(dir, os.DirFS("../testdata/"+client)))
	return dir
}

// sessionsOf are the paths of a store's session files, from its root.
func sessionsOf(t testing.TB, dir string) (list []string) {
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, "sessions"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".jsonl") && !d.IsDir() {
			list = append(list, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	require.NotEmpty(t, list)
	return list
}

// likeTheClient is a script: $1 is a session's directory in the mount, and $2 what the real client read of the session's
// file. It prints what differs. Ids that the client makes anew each time are #0, #1, ... there, by position. $3 is a key of
// contexts that is not looked at.
var likeTheClient = program("like_the_client")

// TestClients: each root works as it is, and shows in the mount what its sessions hold, as its client reads them; nothing of it
// changes. Package sessioncore compares the model with what the clients read of every case.
func TestClients(t *testing.T) {
	for client := range clients {
		t.Run(client, func(t *testing.T) {
			dir := clientStore(t, client)
			before := treeSum(t, dir)
			m := mountForTest(t, dir)
			for _, file := range sessionsOf(t, dir) {
				name := strings.TrimSuffix(file, ".jsonl")
				otherwise := ""
				if client == "pi" { // the wants are omp's, whose contexts have no such key
					otherwise = "model"
					require.Equal(t, "true\n", run(t, "jq", `.models.default == "\(.model.provider)/\(.model.modelId)"`, m.path(name, "context.json")))
				}
				require.Empty(t, shell(t, likeTheClient, m.path(name), abs(t, "../testdata/wants/"+filepath.Base(name)+".want.json"), otherwise), name)
				require.Equal(t, run(t, "cat", filepath.Join(dir, file)), run(t, "cat", m.path(file)))
				checkSizes(t, m.path(name))
			}
			run(t, "tar", "-C", m.dir, "-cf", "/dev/null", ".")
			for _, blob := range names(t, m.path("blobs")) {
				require.Equal(t, blob+"  -\n", shell(t, `sha256sum < "$1"`, m.path("blobs", blob)))
			}
			if client == "xcsh" {
				require.Equal(t, []string{"pts-7"}, names(t, m.path("terminal-sessions")))
			}
			m.stop()
			require.Equal(t, before, treeSum(t, dir), "reading changes nothing")
		})
	}
}

// TestXcshAndPiWriting: what omp's sessions can, theirs can.
func TestXcshAndPiWriting(t *testing.T) {
	for client, session := range map[string]string{
		"xcsh": "sessions/--home-dev-kiln--/2026-02-16T10-20-30-000Z_1f9d2a6b9c0d1234",
		"pi":   "sessions/--home-dev-almanac--/2024-12-03T14-00-00-000Z_8c1e7b42-90d3-4f6a-b1c7-3e5a2d9f6b44",
	} {
		t.Run(client, func(t *testing.T) {
			dir := clientStore(t, client)
			m := mountForTest(t, dir)
			at := m.path(session)
			raw := func() string { return run(t, "cat", filepath.Join(dir, session+".jsonl")) }
			before, shown := raw(), shell(t, `cd "$1/entries" && ls -U | xargs cat`, at)
			answer := run(t, "jq", "-r", `select(.message.role == "assistant") | .id`, at+".jsonl")
			first, _, _ := strings.Cut(answer, "\n")

			run(t, "ln", "-sfn", "entries/"+first+".json", at+"/leaf")
			require.Equal(t, "entries/"+first+".json\n", run(t, "readlink", at+"/leaf"))
			after := raw()
			if client == "xcsh" {
				require.True(t, strings.HasPrefix(after, before))
			} else {
				require.True(t, strings.HasPrefix(after, strings.Replace(strings.SplitN(before, `,"id":`, 2)[0], `"version":2`, `"version":3`, 1)),
					"the first write migrates")
				require.Contains(t, after, `"role":"custom","customType":"tides"`)
			}
			require.Equal(t, shown, shell(t, `cd "$1/entries" && ls -U | head -n -1 | xargs cat`, at), "entries stay as they were shown")
			shell(t, `echo "$2" >> "$1/append" && echo "$3 found it" >> "$1/labels" && echo "A new title" > "$1/title"`, at, assistant("Here."), first)
			require.Equal(t, first+"\tfound it\nA new title\nHere.\n",
				shell(t, `cd "$1" && tail -n 1 labels && cat title && jq -r .messages[-1].content[0].text context.json`, at))
			forked := m.path(ask(t, at+"/fork", first))
			require.Equal(t, filepath.Dir(at), filepath.Dir(forked))
			require.Equal(t, filepath.Join(dir, session+".jsonl")+"\n", run(t, "jq", "-r", ".parentSession", forked+"/header.json"))
			cwd := strings.TrimSpace(run(t, "jq", "-r", ".cwd", at+"/header.json"))
			made := ask(t, m.path("new-session"), anywhere(cwd))
			require.Equal(t, filepath.Dir(session), filepath.Dir(made))
			ask(t, m.path(made, "append"), assistant("Hello."))
			require.Equal(t, "session 3\n", shell(t, `head -n 1 "$1" | jq -r '"\(.type) \(.version)"'`, filepath.Join(dir, made+".jsonl")))
			require.Empty(t, run(t, "cat", at+"/problems.jsonl"))
			// pi knows no blobs and would send the reference to one as if it were the picture (package writer, TestImagesOfPi).
			for _, session := range []string{session, made, strings.TrimPrefix(forked, m.dir+"/")} {
				ask(t, m.path(session, "append"), bigImage(60_000))
				raw := run(t, "cat", filepath.Join(dir, session+".jsonl"))
				require.Equal(t, client == "pi", strings.Contains(raw, strings.Repeat("QUJD", 20_000)), session)
				require.Equal(t, client != "pi", strings.Contains(raw, `"data":"blob:sha256:`), session)
			}
			_, err := os.Stat(filepath.Join(dir, "blobs", fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Repeat("ABC", 20_000))))))
			require.Equal(t, client == "pi", os.IsNotExist(err))
		})
	}
}
