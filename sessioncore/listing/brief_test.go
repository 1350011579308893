package listing

import (
	"fmt"
	"iter"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/claude"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// claudeLine is a record of a conversation of Claude Code.
func claudeLine(n int, cwd, more string) string {
	return fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"type":"user","cwd":%q,"sessionId":"%08d","version":"2.1.1",`+
		`"uuid":"u%d","timestamp":"2026-03-%02dT10:00:00.000Z","message":{"role":"user","content":"prompt %d"}%s}`+"\n",
		cwd, n, n, 1+n%20, n, more)
}

// listTree adds the names in each directory of a tree to into, by the directory's path, with the files of links. list
// returns a new listing each time. Each name is also looked up, every second one first by the last scan alone.
func listTree(t *testing.T, list func() *Listing, v KeyTable, dir string, into map[string][]string) {
	entries, err := list().TreeList(t.Context(), v, dir)
	require.NoError(t, err)
	_, err = list().TreeStat(t.Context(), v, dir)
	require.NoError(t, err)
	into[dir] = []string{}
	again := list()
	for n, e := range entries {
		isKnown := n%2 == 1
		found, err := again.TreeFind(t.Context(), v, dir, e.Name, isKnown)
		if isKnown && err != nil { // the last scan may have found less
			found, err = again.TreeFind(t.Context(), v, dir, e.Name, false)
		}
		require.NoError(t, err, e.Name)
		require.Equal(t, e.Dir, found.Dir)
		isDirectory := e.Dir != ""
		if isDirectory {
			into[dir] = append(into[dir], e.Name)
			listTree(t, list, v, e.Dir, into)
			continue
		}
		link := e.Name + " -> " + found.Session.Name()
		into[dir] = append(into[dir], link)
	}
	for _, name := range []string{"no-such", "2026-03-01T10-00-no-such"} {
		_, err := list().TreeFind(t.Context(), v, dir, name, false)
		require.ErrorIs(t, err, sessioncore.ErrNotFound)
	}
	_, err = list().TreeStat(t.Context(), v, dir+"/no-such")
	require.ErrorIs(t, err, sessioncore.ErrNotFound)
	slices.Sort(into[dir])
}

// briefStore is a store of Claude Code with sessions that moved, have no directory, are no sessions, or have their
// name anywhere that a list looks for it.
func briefStore(t *testing.T) *countingStorage {
	files := &countingStorage{Storage: memory.New()}
	long := strings.Repeat(claudeLine(5, "/w/long", ""), 1000)
	for n := range 50 {
		cwd := fmt.Sprintf("/w/%d", n%4)
		text := claudeLine(n, cwd, "") + claudeLine(n+100, cwd, "")
		switch n {
		case 10:
			text += `{"type":"relocated","sessionId":"x","relocatedCwd":"/moved/a"}` + "\n"
		case 11:
			text = text + long + `{"type":"worktree-state","sessionId":"x","worktreeSession":{"worktreePath":"/moved/b"}}` + "\n"
		case 12:
			text = "no session\n"
		case 13:
			text = ""
		case 14:
			text = strings.ReplaceAll(text, `"cwd":"/w/2",`, "")
		case 15:
			text = `{"type":"summary","summary":"in front","leafUuid":"x"}` + "\n" + claudeLine(n, "/w", "")
		case 16:
			text = strings.ReplaceAll(text, "2026-03", "no-time")
		case 17:
			text = strings.Replace(text, "{", "  {", 1) + long
		case 18:
			text = claudeLine(n, "/w/"+strings.Repeat("x/", 3000), "")
		case 19:
			text = claudeLine(n, "/w", `,"pad":"`+strings.Repeat("x", 70_000)+`"`)
		case 20:
			text = claudeLine(n, "/w/0/prompt 16", "") // as the link of a session without a time
		case 21:
			text += strings.Replace(claudeLine(n+200, cwd, `,"relocatedCwd":"/not/moved"`), `"user"`, `"relocated"`, 1)
		case 30: // its first record moves it
			text = strings.Replace(claudeLine(n, cwd, `,"relocatedCwd":"/moved/first"`), `"user"`, `"relocated"`, 1) + text
		case 22: // the client's title, in a record behind all that is said
			text = text + long + `{"type":"ai-title","sessionId":"x","aiTitle":"Far behind"}` + "\n"
		case 23:
			text = text + `{"type":"custom-title","sessionId":"x","customTitle":"A person's"}` + "\n" + long
		case 24: // what is said first is longer than a list reads
			text = strings.Replace(text, "prompt 24", strings.Repeat("many words ", 1000), 1)
		case 25: // the first words are the client's
			text = strings.Replace(text, "prompt 25", "<command-name>/clear</command-name>", 1)
		case 26:
			text = strings.ReplaceAll(text, `"user"`, `"assistant"`)
		case 27:
			text = strings.Replace(text, `"content":"prompt 27"`, `"content":[{"type":"image"},{"type":"text","text":"\n \u0000"}]`, 1)
		case 28: // a fork that names its session
			text = strings.Replace(text, "{", `{"forkedFrom":{"sessionId":"00000002","messageUuid":"u2"},`, 1)
		case 29: // an exact copy of another session's beginning
			text = claudeLine(33, "/w/1", "") + claudeLine(133, "/w/1", "") + claudeLine(333, "/w/1", "")
		}
		files.put(t, n, fmt.Sprintf("-p%d/%08d.jsonl", n%3, n), text)
	}
	files.put(t, 51, "-p1/agent-a1.jsonl", claudeLine(1, "/side", ""))
	return files
}

// claudeListing returns a new listing of a store of Claude Code.
func claudeListing(t *testing.T, files storage.Files) *Listing {
	p := claude.NewProjects(files)
	format := claude.Format{Projects: p}
	shown := agents.Shown{Files: p, Format: format}
	store := sessioncore.NewStore(agents.NewFiles(shown, format, nil, t.TempDir()))
	t.Cleanup(store.Close)
	return New(store, "")
}

// briefListing is claudeListing for one question.
func briefListing(t *testing.T, files storage.Files) *Listing {
	l := claudeListing(t, files)
	l.SetBrief()
	return l
}

// TestBriefTree: a brief listing shows a tree as any other does, also where sessions moved, have no directory, or are no
// sessions, and reads less of them.
func TestBriefTree(t *testing.T) {
	sessiontest.NotUnderRace(t)
	files := briefStore(t)
	brief := func() *Listing { return briefListing(t, files) }
	full := func() *Listing { return claudeListing(t, files) }
	for _, v := range []KeyTable{ByCwd, ByDate} {
		want := map[string][]string{}
		got := map[string][]string{}
		listTree(t, full, v, "/", want)
		listTree(t, brief, v, "/", got)
		require.Equal(t, want, got)
		require.Greater(t, len(want), 8)
		work := func(l *Listing) int64 {
			return sessiontest.WorkOf(func() {
				_, err := l.TreeList(t.Context(), v, "/")
				require.NoError(t, err)
			}).Scanned
		}
		require.Less(t, work(brief()), work(full())*2/3)
	}
	l := brief()
	_, err := l.TreeList(t.Context(), ByCwd, "/")
	require.NoError(t, err)
	require.Equal(t, namesOf(full().all(t)), namesOf(l.all(t)), "a list after it reads the rest")
}

// placeFacts returns the facts of sessions that Placed knows: without a title, and with a parent only for sessions that
// began when others did.
func placeFacts(infos []*Info) (all []string) {
	begun := map[int64]int{}
	for _, i := range infos {
		begun[i.created]++
	}
	for _, i := range infos {
		parent := ""
		if begun[i.created] > 1 {
			parent = i.Parent
		}
		all = append(all, fmt.Sprint(i.Name(), " ", i.ID, " ", i.CWD, " ", parent, " ", i.created, " ", i.Modified(), i.IsSubagent()))
	}
	return all
}

// TestPlaced: the places of all sessions are as in a list, also where sessions moved, have no directory or are no sessions; forks
// that began when their originals did have parents; and less is read.
func TestPlaced(t *testing.T) {
	sessiontest.NotUnderRace(t)
	files := briefStore(t)
	placed, err := briefListing(t, files).Placed(t.Context())
	require.NoError(t, err)
	want := placeFacts(claudeListing(t, files).all(t))
	require.Equal(t, want, placeFacts(placed))
	forks := 0
	for _, i := range placed {
		if i.Parent != "" {
			forks++
		}
	}
	require.NotZero(t, forks)

	apart := &countingStorage{Storage: memory.New()}
	for n := range 40 {
		text := claudeLine(n, "/w", "")
		unique := strings.ReplaceAll(text, "T10:00:00", fmt.Sprintf("T10:00:%02d", n))
		apart.put(t, n, fmt.Sprintf("-p%d/%08d.jsonl", n%3, n), unique+strings.Repeat(text, 100))
	}
	work := func(list func(l *Listing) error) int64 {
		l := briefListing(t, apart)
		return sessiontest.WorkOf(func() { require.NoError(t, list(l)) }).Scanned
	}
	some := work(func(l *Listing) error {
		_, err := l.Placed(t.Context())
		return err
	})
	whole := work(func(l *Listing) error {
		_, err := l.Sessions(t.Context())
		return err
	})
	require.Less(t, some, whole/2)
}

// TestBriefPath: a path down a tree opens each session once, and those of its last directory once more.
func TestBriefPath(t *testing.T) {
	for _, n := range []int{100, 200} {
		files := &countingStorage{Storage: memory.New()}
		for i := range n {
			files.put(t, i, fmt.Sprintf("-p%d/%s.jsonl", i%10, uuid(i)), claudeLine(i, fmt.Sprintf("/w/a/%d", i%10), ""))
		}
		l := briefListing(t, files)
		files.work()
		for _, step := range []struct{ dir, name string }{{"/", "w"}, {"/w", "a"}, {"/w/a", "7"}} {
			_, err := l.TreeFind(t.Context(), ByCwd, step.dir, step.name, false)
			require.NoError(t, err)
		}
		_, err := l.TreeStat(t.Context(), ByCwd, "/w/a/7")
		require.NoError(t, err)
		require.LessOrEqual(t, files.work().opens, int64(n+2*n/10), "and the first records of that project")
		_, err = l.TreeList(t.Context(), ByCwd, "/w/a/7")
		require.NoError(t, err)
		require.Zero(t, files.work().opens)
		_, err = l.TreeFind(t.Context(), ByCwd, "/w/a/7", "latest", false)
		require.NoError(t, err)
		require.Zero(t, files.work().opens)
		files.put(t, n, "-p3/"+uuid(n)+".jsonl", claudeLine(1, "/w/b", ""))
		found, err := l.TreeFind(t.Context(), ByCwd, "/w", "b", false)
		require.NoError(t, err, "a session that begins meanwhile")
		require.Equal(t, "/w/b", found.Dir)
	}
}

// TestNewestNamed: a list of names has the same sessions with the same names and places as any other, in its order, and
// reads less of them.
func TestNewestNamed(t *testing.T) {
	files := briefStore(t)
	type named struct {
		file, id, cwd, name string
		modified, size      int64
		isSubagent          bool
	}
	collect := func(sessions iter.Seq2[*Info, error]) (all []named) {
		for i, err := range sessions {
			require.NoError(t, err)
			all = append(all, named{
				file:       i.Name(),
				id:         i.ID,
				cwd:        i.CWD,
				name:       i.DisplayName(),
				modified:   i.Modified().UnixNano(),
				size:       i.Size,
				isSubagent: i.IsSubagent(),
			})
		}
		return all
	}
	newestFirst := func(l *Listing) iter.Seq2[*Info, error] { return l.NewestFirst(t.Context()) }
	newestNamed := func(l *Listing) iter.Seq2[*Info, error] { return l.NewestNamed(t.Context()) }
	want := collect(newestFirst(claudeListing(t, files)))
	require.Greater(t, len(want), 40)
	l := claudeListing(t, files)
	require.Equal(t, want, collect(newestNamed(l)))
	require.Equal(t, namesOf(claudeListing(t, files).all(t)), namesOf(l.all(t)), "a list after it reads the rest")
	require.Equal(t, want, collect(newestNamed(l)), "and a list of names after that has all")
	scanned := func(list func(*Listing) iter.Seq2[*Info, error]) int64 {
		l := claudeListing(t, files)
		work := sessiontest.WorkOf(func() { collect(list(l)) })
		return work.Scanned
	}
	require.Less(t, scanned(newestNamed), scanned(newestFirst)*3/4)

	const sessions, dirs = 200, 20
	own := countedStore(t, sessions)
	all := newListing(t, own)
	own.work()
	names := collect(newestNamed(all))
	require.Len(t, names, sessions)
	// Each reader may open one file before a directory is known to have no starts.
	again := dirs * readersPerCPU * runtime.GOMAXPROCS(0)
	require.LessOrEqual(t, own.work().opens, int64(sessions+again), "files of the client are not opened twice")
	require.Equal(t, collect(newestFirst(newListing(t, own))), names)
}

// TestBriefGrowth: among twice as many sessions a list of names, and one of places, reads twice as much.
func TestBriefGrowth(t *testing.T) {
	work := func(n int, list func(l *Listing)) int64 {
		files := &countingStorage{Storage: memory.New()}
		for i := range n {
			cwd := fmt.Sprintf("/w/%d", i/20)
			text := claudeLine(i, cwd, "") + strings.Repeat(claudeLine(i+1000, cwd, ""), 300)
			files.put(t, i, fmt.Sprintf("-p%d/%s.jsonl", i/20, uuid(i)), text)
		}
		l := briefListing(t, files)
		files.work()
		scanned := sessiontest.WorkOf(func() { list(l) }).Scanned
		require.LessOrEqual(t, files.work().opens, int64(n+2*20))
		return scanned
	}
	for what, list := range map[string]func(l *Listing){
		"names":  func(l *Listing) { require.NotEmpty(t, slices.Collect(l.namedIDs(t))) },
		"places": func(l *Listing) { require.NoError(t, l.tryTree(t, "/w")) },
		"a path": func(l *Listing) { require.NoError(t, l.tryTree(t, "/w/1")) },
	} {
		some := work(100, list)
		twice := work(200, list)
		require.LessOrEqual(t, twice, some*22/10, what)
	}
}

// namedIDs returns the ids of NewestNamed.
func (l *Listing) namedIDs(t *testing.T) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i, err := range l.NewestNamed(t.Context()) {
			require.NoError(t, err)
			if !yield(i.ID) {
				return
			}
		}
	}
}

// tryTree looks up and lists a directory of by-cwd/.
func (l *Listing) tryTree(t *testing.T, dir string) error {
	_, err := l.TreeFind(t.Context(), ByCwd, path.Dir(dir), path.Base(dir), false)
	if err == nil {
		_, err = l.TreeList(t.Context(), ByCwd, dir)
	}
	return err
}

// shortStarts has sessions with a start that does not name them.
type shortStarts struct{ *memory.Storage }

// shortStart is an open session of it.
type shortStart struct{ storage.Object }

// Open implements storage.Files.
func (s shortStarts) Open(name string) (storage.Object, error) {
	obj, err := s.Storage.Open(name)
	return shortStart{obj}, err
}

func (shortStart) Start(bool) ([]byte, error) { return []byte(headerLine(uuid(1), "/w/1")), nil }

// TestNewestNamedReadsMore: a session with neither a title nor words in its start is read as for any list.
func TestNewestNamedReadsMore(t *testing.T) {
	files := shortStarts{memory.New()}
	text := headerLine(uuid(1), "/w/1") + `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"count the herons"}}` + "\n"
	require.NoError(t, files.WriteFile("p/"+startOfNames+uuid(1)+".jsonl", []byte(text)))
	for i, err := range newListing(t, files).NewestNamed(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, "count the herons", i.DisplayName())
	}
}
