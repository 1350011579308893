package layout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestDirectories: what each directory of links lists and finds in one store of sessions.
func TestDirectories(t *testing.T) {
	files := memory.New()
	for i, s := range []struct{ file, id, cwd, title string }{
		{"p/a.jsonl", "aaa1", "/w", "first"},
		{"p/b.jsonl", "aaa2", "/w/sub", "a/b"},
		{"q/c.jsonl", "ccc", "/w", ""},
		{"q/twin.jsonl", "ccc", "", "twin"},
		{"q/.hidden.jsonl", "ddd", "/w", "hidden"},
	} {
		text := fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-02-16T10:20:3%[2]d.000Z","cwd":%[3]q,"title":%[4]q}`+"\n"+
			`{"type":"message","id":"m","message":{"role":"user","content":"hello %[2]d"}}`+"\n", s.id, i, s.cwd, s.title)
		require.NoError(t, files.WriteFile(s.file, []byte(text)))
	}
	crumbs := memory.New()
	for name, file := range map[string]string{
		"tty1": "/agent/sessions/p/a.jsonl", "tty2": "/elsewhere/sessions/p/b.jsonl", "gone": "/agent/sessions/p/gone.jsonl",
		".tty": "/agent/sessions/p/a.jsonl",
	} {
		require.NoError(t, crumbs.WriteFile(name, []byte("/w\n"+file+"\n")))
	}
	store := sessioncore.NewStore(files)
	defer store.Close()
	sessions := listing.New(store, "/agent/sessions")
	all, err := sessions.Sessions(context.Background())
	require.NoError(t, err)
	require.Len(t, all.All(), 4)
	newest := all.All()[0]
	require.Equal(t, "q/twin", newest.DirName())

	began := time.Date(2026, 2, 16, 10, 20, 30, 0, time.UTC).Local().Format("2006-01-02T15-04-")
	cwd := func(dir string) Directory { return Nested{sessions, listing.ByCwd, dir} }
	for name, c := range map[string]struct {
		dir    Directory
		listed []string          // name and place, in order
		found  map[string]string // likewise, not listed
		none   []string
	}{
		"by-id": {
			ByID{Listing: sessions},
			[]string{"aaa1 ../sessions/p/a", "aaa2 ../sessions/p/b", "ccc ../sessions/q/twin"},
			map[string]string{"aaa": "../sessions/p/b", "AAA1": "../sessions/p/a", "twin": "../sessions/q/twin"},
			[]string{"ddd", "x", ".git", "aaa11"},
		},
		"recent": {
			Recent{sessions},
			[]string{"01-twin ../sessions/q/twin", "02-hello 2 ../sessions/q/c", "03-a%2Fb ../sessions/p/b", "04-first ../sessions/p/a"},
			nil,
			[]string{"01-first", "05-hidden", "1-twin", ".git"},
		},
		"continue": {
			Continue{sessions, crumbs},
			[]string{"tty1 ../sessions/p/a", "tty2 ../sessions/p/b"},
			nil,
			[]string{"gone", ".tty", "tty3"},
		},
		"by-cwd": {cwd("/"), []string{"w dir"}, nil, []string{"x", "latest", ".git"}},
		"by-cwd/w": {cwd("/w"), []string{began + "first ../../sessions/p/a", began + "hello 2 ../../sessions/q/c", "latest ../../sessions/q/c",
			"sub dir"}, nil, []string{"a", "aaa1", "first"}},
		"by-cwd/w/sub": {cwd("/w/sub"), []string{began + "a%2Fb ../../../sessions/p/b", "latest ../../../sessions/p/b"}, nil, []string{"b", "sub"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.dir.Stat(context.Background())
			require.NoError(t, err)
			listed, err := c.dir.List(context.Background())
			require.NoError(t, err)
			place := func(link string) string {
				e, err := c.dir.Find(context.Background(), link, false)
				require.NoError(t, err, link)
				if e.Sub != nil {
					return "dir"
				}
				require.NotZero(t, e.Stat.Size, "the stat of a file")
				return RelativeTarget(name, e.Session)
			}
			var got []string
			for _, e := range listed {
				got = append(got, e.Name+" "+place(e.Name))
				require.Equal(t, e.Sub != nil, place(e.Name) == "dir", e.Name)
			}
			require.Equal(t, c.listed, got)
			for link, want := range c.found {
				require.Equal(t, want, place(link), link)
			}
			for _, name := range c.none {
				_, err := c.dir.Find(context.Background(), name, false)
				require.True(t, errors.Is(err, sessioncore.ErrNotFound) || errors.Is(err, fs.ErrNotExist), "%s: %v", name, err)
			}
		})
	}
	_, err = cwd("/none").Stat(context.Background())
	require.ErrorIs(t, err, sessioncore.ErrNotFound)
}

func TestRelativeTarget(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"p/a", "p/b", "../b"}, {"p/a", "q/b", "../../q/b"}, {"a", "b", "../b"}, {"p/a/x", "p/b", "../../b"}, {"p/a", "b", "../../b"},
		{"p/a", "p/a/sub", "sub"},
	} {
		require.Equal(t, c.want, RelativeTarget(c.from, c.to), "%s to %s", c.from, c.to)
		require.Equal(t, c.to, path.Join(c.from, c.want))
	}
}

func TestSourceNames(t *testing.T) {
	for name, hidden := range map[string]bool{
		".s.jsonl.lock": true, ".s.jsonl.0aF9.tmp": true, "s.jsonl.12ab.bak": true,
		"s.jsonl": false, ".lock": false, ".s.lock": false, ".s.jsonl.xyz.tmp": false, ".s.jsonl.tmp": false, "s.jsonl.bak": false,
		"s.jsonl.12ab.tmp": false, "": false,
	} {
		require.Equal(t, hidden, Hidden(name), name)
	}
	for file, want := range map[string]string{"s.jsonl": "s", "a.b.jsonl": "a.b", ".s.jsonl": "", ".jsonl": "", "s.json": "", "": ""} {
		name, ok := SessionName(file)
		require.Equal(t, want != "", ok, file)
		if ok {
			require.Equal(t, want, name)
			require.Equal(t, want, SessionDir(file))
		}
	}
}
