package fs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPiSessionDir: sessions/ is the directory that pi was told to keep its sessions in. They lie there directly, and
// so do new ones.
func TestPiSessionDir(t *testing.T) {
	home, told := scratch(t), filepath.Join(scratch(t), "told")
	agent := filepath.Join(home, ".pi", "agent")
	require.NoError(t, os.MkdirAll(agent, 0o700))
	require.NoError(t, os.Mkdir(told, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(agent, "settings.json"), []byte(`{"theme":"dark","sessionDir":"`+told+`"}`), 0o600))
	const name = "2026-01-05T09-00-00-000Z_job.a"
	require.NoError(t, os.WriteFile(filepath.Join(told, name+".jsonl"), []byte(header("job.a")+entry(0, "", "", "hello")), 0o600))
	m := mountForTest(t, agent)
	require.FileExists(t, m.path("sessions", name, "context.json"))
	link := readLink(t, m.path("by-id", "job.a"))
	require.Equal(t, "../sessions/"+name, link)
	made := ask(t, m.path("new-session"), anywhere("/w"))
	require.Equal(t, "sessions", filepath.Dir(made))
	ask(t, m.path(made, "append"), assistant("I see."))
	require.FileExists(t, filepath.Join(told, filepath.Base(made)+".jsonl"))
	require.NoError(t, os.WriteFile(m.path(made, "title"), []byte("A name\n"), 0o600))
	text := read(t, filepath.Join(told, filepath.Base(made)+".jsonl"))
	require.Contains(t, string(text), `"type":"session_info"`)
	require.NotContains(t, string(text), `"title":`)
	require.NoDirExists(t, filepath.Join(agent, "sessions"))
}
