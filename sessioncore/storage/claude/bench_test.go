package claude

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage/foreign"
)

// newLong returns the projects with a session of 20 MB, and the uuid of its last record. SESSIONFS_CLAUDE_SESSION may name
// another file.
func newLong(b *testing.B) (p *projects, last string) {
	p = newProjects(b)
	if name := os.Getenv("SESSIONFS_CLAUDE_SESSION"); name != "" {
		require.NoError(b, os.Link(name, filepath.Join(p.dir, session)))
		return p, ""
	}
	var file strings.Builder
	words := strings.Repeat(`some "words" of a file\n`, 50)
	for i := 0; file.Len() < 20<<20; i++ {
		add := func(uuid string, f func(uuid, parent string) string) {
			uuid = fmt.Sprintf("%s-%d", uuid, i)
			file.WriteString(f(uuid, last) + "\n")
			last = uuid
		}
		add("u", func(uuid, parent string) string { return user(uuid, parent, words[:200]) })
		id := fmt.Sprint("m", i)
		add("a", func(uuid, parent string) string { return says(uuid, parent, id, textBlock(words[:500]), 1) })
		add("b", func(uuid, parent string) string { return says(uuid, parent, id, callBlock("c"+id), 9) })
		add("r", func(uuid, parent string) string { return result(uuid, parent, "c"+id, strings.Repeat(words, 4)) })
	}
	require.NoError(b, os.WriteFile(filepath.Join(p.dir, session), []byte(file.String()), 0o600))
	return p, last
}

// BenchmarkFirstLook: a session of 20 MB that nobody looked at is converted and indexed.
func BenchmarkFirstLook(b *testing.B) {
	p, _ := newLong(b)
	for b.Loop() {
		b.StopTimer()
		p.Files = foreign.New(p.Files.Files, Agent{}, nil, b.TempDir())
		b.StartTimer()
		snap, err := sessioncore.NewStore(p).Session(session).Acquire(context.Background())
		require.NoError(b, err)
		snap.Release()
	}
}

// BenchmarkFollow: an answer is added to a session of 20 MB that is indexed.
func BenchmarkFollow(b *testing.B) {
	p, last := newLong(b)
	if last == "" {
		b.Skip("it would change the file")
	}
	s := sessioncore.NewStore(p).Session(session)
	f, err := os.OpenFile(filepath.Join(p.dir, session), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(b, err)
	defer f.Close()
	for i := 0; b.Loop(); i++ {
		uuid := fmt.Sprint("new", i)
		_, err := f.WriteString(says(uuid, last, fmt.Sprint("M", i/3), textBlock("more"), 1) + "\n")
		require.NoError(b, err)
		last = uuid
		snap, err := s.Acquire(context.Background())
		require.NoError(b, err)
		snap.Release()
	}
}
