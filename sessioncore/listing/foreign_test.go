package listing

import (
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/claude"
	"sessionfs/sessioncore/agents/codex"
	"sessionfs/sessioncore/agents/copilot"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/gzip"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// foreignList is a list of another agent's sessions.
type foreignList struct {
	*memory.Storage
	mu    sync.Mutex       // guards bytes and lists
	bytes map[string]int64 // read of each file
	lists int              // of directories
	t     *testing.T
	files *agents.Files
	list  *Listing
}

// newForeignList returns an empty list. show returns an agent's sessions in files, and their format.
func newForeignList(t *testing.T, show func(files storage.Files) (storage.Files, agents.Format)) *foreignList {
	l := &foreignList{t: t, Storage: memory.New(), bytes: map[string]int64{}}
	count := func(c storagetest.Call, err error) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch c.Op {
		case "List":
			l.lists++
		case "ReadAt":
			l.bytes[c.Name] += int64(c.Size)
		}
		return err
	}
	raw, agent := show(&storagetest.Hooked{Storage: l.Storage, After: count})
	l.files = agents.NewFiles(agents.Shown{Files: raw, Format: agent}, agent, nil, t.TempDir())
	store := sessioncore.NewStore(l.files)
	t.Cleanup(store.Close)
	l.list = New(store, "")
	return l
}

// newClaudeList returns an empty list of sessions of Claude Code.
func newClaudeList(t *testing.T) *foreignList {
	return newForeignList(t, func(files storage.Files) (storage.Files, agents.Format) {
		p := claude.NewProjects(files)
		return p, claude.Format{Projects: p}
	})
}

// put writes a file and returns its session, by the last digits of its id. A list must read at most so many bytes of the file,
// and none when it is made again.
func (l *foreignList) put(id, name, text string, most int64) *Info {
	require.NoError(l.t, l.WriteFile(name, []byte(text)))
	info := l.sessions()[id]
	require.NotNil(l.t, info, name)
	require.LessOrEqual(l.t, l.bytes[name], most, name)
	require.EqualValues(l.t, len(text), info.Size, name)
	clear(l.bytes)
	l.sessions()
	require.Empty(l.t, l.bytes, "it is read again")
	return info
}

// sessions returns the sessions by the last digits of their ids.
func (l *foreignList) sessions() map[string]*Info {
	found := map[string]*Info{}
	for _, info := range l.list.all(l.t) {
		found[info.ID[max(0, len(info.ID)-4):]] = info
	}
	return found
}

// open converts a session.
func (l *foreignList) open(name string) {
	obj, err := l.files.Open(name)
	require.NoError(l.t, err)
	_, err = obj.Stat()
	require.NoError(l.t, err)
	require.NoError(l.t, obj.Close())
}

// claudeName returns the id of the nth session of Claude Code, and the name of its file.
func claudeName(n int) (id, name string) {
	id = fmt.Sprintf("5e550000-0000-4000-8000-00000000%04d", n)
	return id, path.Join("-home-me-w", id+".jsonl")
}

// claudeFile returns the lines of the nth session of Claude Code, as a version writes them: a prompt, and turns of some 16 KB.
func claudeFile(n int, version string, turns int) string {
	parent := "null"
	var b strings.Builder
	id, _ := claudeName(n)
	record := func(i int, typ, message string) {
		uuid := fmt.Sprintf(`"%04d-%04d"`, n, i)
		fmt.Fprintf(&b, `{"parentUuid":%s,"isSidechain":false,"cwd":"/home/me/w","sessionId":%q,"version":%q,"type":%q,"message":%s,"uuid":%s,`+
			`"timestamp":"2026-03-01T10:%02d:%02d.000Z"}`+"\n", parent, id, version, typ, message, uuid, i/60%60, i%60)
		parent = uuid
	}
	record(0, "user", fmt.Sprintf(`{"role":"user","content":"prompt %d"}`, n))
	for i := range turns {
		record(2*i+1, "assistant", fmt.Sprintf(`{"id":"m%d","role":"assistant","model":"m","content":[{"type":"text","text":%q}],`+
			`"stop_reason":"end_turn"}`, i, strings.Repeat("shingle ", 1000)))
		record(2*i+2, "user", fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat("pebble ", 1000)))
	}
	return b.String()
}

// snapshotLine returns a record of Claude Code without words, of some more than size bytes.
func snapshotLine(size int) string {
	return fmt.Sprintf(`{"type":"file-history-snapshot","messageId":"x","snapshot":{"text":%q}}`+"\n", strings.Repeat("x", size))
}

const most int64 = 64<<10 + 3 // a byte order mark is looked for

// TestForeignRead: a list reads 64 KiB of a session of Claude Code, and more only up to the first prompt. Titles in the middle,
// and of sessions that begin alike the parent, show once a session was opened.
func TestForeignRead(t *testing.T) {
	sessiontest.NotUnderRace(t)
	l := newClaudeList(t)
	titled := func(key, title string) string {
		return fmt.Sprintf(`{"type":"%s-title","%sTitle":%q}`+"\n", key, key, title)
	}
	plain, middle := claudeFile(1, "2.1.200", 60), claudeFile(8, "2.1.200", 60)
	half := strings.LastIndex(middle[:len(middle)/2], "\n") + 1
	local := strings.Replace(claudeFile(10, "2.1.200", 0), "prompt 10", "<command-name>/clear</command-name>", 1)
	for n, c := range []struct {
		file, title, first string
		read               int64
	}{
		0: {plain, "", "prompt 1", most},
		1: {claudeFile(2, "1.0.24", 60), "", "prompt 2", most},
		2: {claudeFile(3, "2.1.200", 60) + titled("ai", "At the end"), "At the end", "prompt 3", most},
		3: {titled("custom", "At the beginning") + claudeFile(4, "2.1.200", 60), "At the beginning", "prompt 4", most},
		4: {snapshotLine(100<<10) + claudeFile(5, "2.1.200", 60), "prompt 5", "", 1 << 20},
		5: {strings.Repeat(snapshotLine(1000), 300) + claudeFile(6, "2.1.200", 60), "prompt 6", "", 1 << 20},
		6: {snapshotLine(6<<20) + claudeFile(7, "2.1.200", 1), "", "", 9 << 20},
		7: {middle[:half] + titled("custom", "In the middle") + middle[half:], "", "prompt 8", most},
		8: {claudeFile(9, "2.1.200", 1), "", "prompt 9", most},
		9: {local + snapshotLine(100<<10) + claudeFile(10, "2.1.200", 60), "prompt 10", "", 1 << 20},
	} {
		_, name := claudeName(n + 1)
		info := l.put(fmt.Sprintf("%04d", n+1), name, c.file, c.read)
		require.Equal(t, c.title, info.Title, name)
		if c.first != "" {
			require.Equal(t, c.first, info.first, name)
		}
		if c.read <= 1<<20 {
			require.Equal(t, "/home/me/w", info.CWD, name)
		}
		require.Contains(t, string(info.appendLine(nil)), fmt.Sprintf(`"size":%d}`, len(c.file)))
	}
	first, _ := claudeName(1)
	for n := 20; n < 24; n++ {
		id, name := claudeName(n)
		more := fmt.Sprintf(`{"parentUuid":null,"sessionId":%q,"type":"user","message":{"role":"user","content":"on"},"uuid":"f%d",`+
			`"timestamp":"2026-03-02T10:00:00.000Z"}`+"\n", id, n)
		l.put(fmt.Sprintf("%04d", n), name, strings.ReplaceAll(plain, first, id)+more, most)
	}
	for n := range 40 { // titles that a conversion found outlive it
		_, name := claudeName(n%8 + 1)
		l.open(name)
	}
	_, fork := claudeName(20)
	l.open(fork)
	opened := l.sessions()
	require.Equal(t, "In the middle", opened["0008"].Title)
	require.Equal(t, "At the end", opened["0003"].Title)
	require.EqualValues(t, len(plain), opened["0001"].Size, "that of the raw file")
	require.Equal(t, first, opened["0020"].Parent)
}

const codexID = "0198a000-0000-7000-8000-00000000%04d"

// codexName returns the name of the file of the nth rollout.
func codexName(n int) string {
	return fmt.Sprintf("sessions/2026/08/%02d/rollout-2026-08-03T09-00-00-"+codexID+".jsonl", n%28+1, n)
}

// codexFile returns the lines of the nth rollout of Codex. more are further members of its first record.
func codexFile(n int, more string, turns int) string {
	var b strings.Builder
	line := func(typ, payload string) {
		fmt.Fprintf(&b, `{"timestamp":"2026-08-03T09:00:02.000Z","type":%q,"payload":{%s}}`+"\n", typ, payload)
	}
	line("session_meta", fmt.Sprintf(`"id":"`+codexID+`","timestamp":"2026-08-03T09:00:00.000Z","cwd":"/w","cli_version":"0.146.0","source":"cli"%s`, n, more))
	for i := range turns {
		line("response_item", fmt.Sprintf(`"type":"message","role":"user","content":[{"type":"input_text","text":"prompt %d of %d\r\nmore"}]`, i, n))
		line("response_item", fmt.Sprintf(`"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]`, strings.Repeat("shelf ", 2000)))
	}
	return b.String()
}

// TestCodexRead: a list reads 64 KiB of a rollout, also where all name parents that are gone; and to open all of them lists the
// days as often as needed for a few.
func TestCodexRead(t *testing.T) {
	l := newForeignList(t, func(files storage.Files) (storage.Files, agents.Format) {
		home := codex.New(gzip.NewZstd(files, nil, ""), "/")
		return home, home
	})
	const forks = 90
	instructions := fmt.Sprintf(`,"base_instructions":{"text":%q}`, strings.Repeat("do ", 7000))
	for n := range forks {
		gone := fmt.Sprintf(codexID, 5000+n)
		more := fmt.Sprintf(`,"forked_from_id":%q`, gone)
		switch n % 3 {
		case 1:
			more = fmt.Sprintf(`,"history_base":{"thread_id":%q,"end_byte_offset":700}`, gone)
		case 2:
			more = fmt.Sprintf(`,"source":{"subagent":{"thread_spawn":{"parent_thread_id":%q}}}`, gone)
		}
		require.NoError(t, l.WriteFile(codexName(n), []byte(codexFile(n, instructions[:min(len(instructions), n%2*len(instructions))]+more, 8))))
	}
	found := l.sessions()
	require.Len(t, found, forks)
	for n := range forks {
		require.LessOrEqual(t, l.bytes[codexName(n)], int64(most))
		require.Equal(t, fmt.Sprintf("prompt 0 of %d", n), found[fmt.Sprintf("%04d", n)].Title)
	}
	require.Less(t, l.lists, forks*32/2, "the days are listed for each") // a scan is shared for a second, on a slow machine by fewer
	listed := l.lists
	for n := range forks {
		l.open(strings.Replace(codexName(n)[len("sessions/"):], "/", "-", 2))
	}
	require.Less(t, l.lists-listed, 50*32, "the days are listed for each")
}

// TestCopilotRead: a list reads 64 KiB of a session of GitHub Copilot CLI and its title from another file, and lists a session
// that gets its first event later.
func TestCopilotRead(t *testing.T) {
	l := newForeignList(t, func(files storage.Files) (storage.Files, agents.Format) {
		home := copilot.New(files)
		return home, home
	})
	event := func(n int, typ, data string) string {
		return fmt.Sprintf(`{"type":%q,"data":%s,"id":"%04d-%s","timestamp":"2026-10-08T09:00:02.000Z","parentId":null}`+"\n", typ, data, n, typ)
	}
	names := map[int]string{}
	write := func(n int, between, title string) {
		names[n] = fmt.Sprintf("session-state/"+codexID, n)
		text := event(n, "session.start", fmt.Sprintf(`{"sessionId":%q,"startTime":"2026-10-08T09:00:01.000Z","context":{"cwd":"/srv/quay"}}`, names[n]))
		text += between + event(n, "user.message", `{"content":"The first prompt\nand more"}`)
		text += strings.Repeat(event(n, "assistant.message", fmt.Sprintf(`{"content":%q}`, strings.Repeat("quay ", 4000))), 20)
		require.NoError(t, l.WriteFile(names[n]+"/events.jsonl", []byte(text)))
		if title != "" {
			require.NoError(t, l.WriteFile(names[n]+"/workspace.yaml", []byte(title+strings.Repeat("#", 100<<10))))
		}
	}
	system := event(0, "system.message", fmt.Sprintf(`{"content":%q}`, strings.Repeat("rule ", 6000)))
	write(1, "", "")
	write(2, system[:len(system)-2]+"}\n", "name: 'Lamps'\n")
	write(3, system, "")
	require.NoError(t, l.WriteFile("session-state/later/workspace.yaml", []byte("name: Later\n")))
	found := l.sessions()
	require.Len(t, found, 3)
	for n, want := range map[int]string{1: "The first prompt", 2: "Lamps", 3: "The first prompt"} {
		info := found[fmt.Sprintf("%04d", n)]
		require.Equal(t, want, info.DisplayName())
		require.Equal(t, "/srv/quay", info.CWD)
		if n < 3 { // its first prompt is at the beginning
			require.LessOrEqual(t, l.bytes[names[n]+"/events.jsonl"]+l.bytes[names[n]+"/workspace.yaml"], int64(most))
		}
	}
	require.NoError(t, l.WriteFile("session-state/later/events.jsonl", []byte(event(4, "session.start", `{"sessionId":"later"}`))))
	require.Equal(t, "Later", l.sessions()["ater"].DisplayName())
}
