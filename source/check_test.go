package source

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
)

// TestPlaceSource: the default of SOURCE and the breadcrumbs are where the client has them.
func TestPlaceSource(t *testing.T) {
	for _, c := range []struct {
		there  string // directories in HOME
		given  string
		source string // wanted
		state  string
	}{
		{"data state", "", ".omp/agent", ""},
		{".pi/agent", "", ".pi/agent", ""},
		{".pi/agent .omp/agent", "", ".omp/agent", ""},
		{".claude/projects/-home-dev", "", ".claude", ""},
		{".codex/sessions/2026", "", ".codex", ""},
		{".codex/sessions/2026 .claude/projects/-home-dev", "", ".claude", ""},
		{".codex/sessions/2026 .pi/agent", "", ".pi/agent", ""},
		{".omp/agent state/omp", "", ".omp/agent", "state/omp"},
		{".omp/agent data/omp", "", "data/omp", ".omp/agent"},
		{".omp/agent data/omp state/omp", "", "data/omp", "state/omp"},
		{".omp/agent data/omp state/omp", "data/omp", "data/omp", "state/omp"},
		{".omp/agent data/omp state/omp other", "other", "other", ""},
	} {
		home := t.TempDir()
		in := func(name string) string {
			if name == "" {
				return ""
			}
			return filepath.Join(home, name)
		}
		for _, dir := range strings.Fields(c.there) {
			require.NoError(t, os.MkdirAll(in(dir), 0o700))
		}
		env := map[string]string{"HOME": home, "XDG_DATA_HOME": in("data"), "XDG_STATE_HOME": in("state")}
		o := mountopts.Options{Source: in(c.given)}
		setUsual(&o, func(name string) string { return env[name] })
		require.Equal(t, mountopts.Options{Source: in(c.source), State: in(c.state)}, o, "%s: %s", c.there, c.given)
		env["PI_CODING_AGENT_DIR"] = in("elsewhere")
		o = mountopts.Options{}
		setUsual(&o, func(name string) string { return env[name] })
		require.Equal(t, mountopts.Options{Source: in("elsewhere")}, o)
	}
}

// TestAgentDirs: --all finds each agent of the user once, where it is told to be or where it is by default.
func TestAgentDirs(t *testing.T) {
	for _, c := range []struct {
		there string            // directories and files in HOME
		env   map[string]string // below HOME
		want  string
	}{
		{"", nil, ""},
		{"projects/x/ .claude/statsig/ .codex/log/", nil, ""},
		{".codex/sessions/2026/ .claude/projects/ .pi/agent/ .omp/agent/", nil, "omp=.omp/agent pi=.pi/agent claude=.claude codex=.codex"},
		{".claude/projects/", nil, "claude=.claude"},
		{"c/projects/-x/ .claude/projects/-x/ x/archived_sessions/", map[string]string{"CLAUDE_CONFIG_DIR": "c", "CODEX_HOME": "x"}, "claude=c codex=x"},
		{"told/agent.db .omp/agent/ .pi/agent/", map[string]string{"PI_CODING_AGENT_DIR": "told"}, "omp=told pi=.pi/agent"},
		{"told/trust.json .omp/agent/ .pi/agent/", map[string]string{"PI_CODING_AGENT_DIR": "told"}, "omp=.omp/agent pi=told"},
		{"data/omp/ .omp/agent/", map[string]string{"XDG_DATA_HOME": "data"}, "omp=data/omp"},
	} {
		home := agentTree(t, strings.Fields(c.there)...)
		getenv := func(name string) string {
			if dir, ok := c.env[name]; ok {
				return filepath.Join(home, dir)
			}
			return map[string]string{"HOME": home}[name]
		}
		var found []string
		for _, a := range AgentDirs(getenv) {
			found = append(found, a.Name+"="+strings.TrimPrefix(a.Source, home+"/"))
		}
		require.Equal(t, c.want, strings.Join(found, " "), "%s %v", c.there, c.env)
	}
}

// agentTree makes files, and where the name ends in a slash directories, below a new directory.
func agentTree(t *testing.T, names ...string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, name := range names {
		path := filepath.Join(root, name)
		if name[len(name)-1] == '/' {
			require.NoError(t, os.MkdirAll(path, 0o700))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	return root
}

// checkTree is checkAgentDir of a directory that can be read.
func checkTree(given, dir string, getenv func(string) string) (warning string, err error) {
	items, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	return checkAgentDir(given, dir, items, getenv)
}

// agentDirCase is a tree of files, and the outcome of a check of a directory in it.
type agentDirCase struct {
	name   string
	tree   []string
	source string
	warn   string // a part of the warning
	refuse string // a part of the refusal
	meant  string // the directory that it names
}

const (
	// usual is the usual agent directory where HOME is home.
	usual = "home/.omp/agent"
	// madeSession is the name of a session file.
	madeSession = "2026-02-16T10-20-30-000Z_1f9d2a6b9c0d1234.jsonl"
)

var agentDirCases = []agentDirCase{
	{name: "sessions", tree: []string{"a/sessions/"}, source: "a"},
	{name: "before the first session", tree: []string{"a/f", "a/agent.db"}, source: "a"},
	{name: "new", tree: []string{"a/"}, source: "a", warn: "has no sessions/"},
	{name: "new, beside the usual one", tree: []string{"a/", usual + "/sessions/"}, source: "a", warn: "has no sessions/", meant: usual},
	{name: "settings alone", tree: []string{"a/f", "a/settings.json"}, source: "a", warn: "has no sessions/"},
	{name: "a stranger", tree: []string{"a/lost+found/"}, source: "a", refuse: "mkdir AGENT; ln -s"},
	{
		name:   "strangers, with a usual one",
		tree:   []string{"a/f", usual + "/agent.db"},
		source: "a",
		refuse: "not an agent directory",
		meant:  usual,
	},
	{name: "sessions is a file", tree: []string{"a/sessions", "a/agent.db"}, source: "a", refuse: "sessions is not a directory"},
	{
		name:   "the directory above",
		tree:   []string{".omp/agent/sessions/", ".omp/natives/"},
		source: ".omp",
		refuse: "not an agent directory",
		meant:  ".omp/agent",
	},
	{
		name:   "above, with settings",
		tree:   []string{".omp/agent/sessions/", ".omp/config.yml"},
		source: ".omp",
		warn:   "has no sessions/",
		meant:  ".omp/agent",
	},
	{name: "home", tree: []string{"me/.bashrc", "me/.omp/agent/agent.db"}, source: "me", refuse: "not an agent", meant: "me/.omp/agent"},
	{name: "operator", tree: []string{"o/profiles/x", "o/profiles/y/sessions/"}, source: "o", refuse: "not an agent", meant: "o/profiles/y"},
	{
		name:   "sessions itself",
		tree:   []string{"a/sessions/--work--/" + madeSession},
		source: "a/sessions",
		refuse: "not an agent",
		meant:  "a",
	},
	{name: "empty sessions", tree: []string{"a/sessions/", "a/agent.db"}, source: "a/sessions", warn: "has no sessions/", meant: "a"},
	{
		name:   "new, below a sessions of something else",
		tree:   []string{"srv/sessions/me/"},
		source: "srv/sessions/me",
		warn:   "has no sessions/",
		meant:  "srv",
	},
	{name: "session files alone", tree: []string{"backup/--work--/" + madeSession}, source: "backup", refuse: "mkdir AGENT; ln -s"},
}

// TestCheckAgentDir: a directory that is no agent directory is refused, one that may become one is warned of, and
// both say which one was probably meant.
func TestCheckAgentDir(t *testing.T) {
	for _, c := range agentDirCases {
		t.Run(c.name, func(t *testing.T) {
			root := agentTree(t, c.tree...)
			getenv := func(name string) string { return map[string]string{"HOME": filepath.Join(root, "home")}[name] }
			source := filepath.Join(root, c.source)
			warning, err := checkTree(source, source, getenv)
			said := warning
			if c.refuse != "" {
				require.Empty(t, warning)
				require.ErrorContains(t, err, c.refuse)
				require.ErrorIs(t, err, fs.ErrSource)
				said = err.Error()
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.warn == "" && c.refuse == "", said == "", said)
			require.Contains(t, said, c.warn)
			if c.meant == "" {
				require.NotContains(t, said, "meant")
				require.NotContains(t, said, "of this user")
				return
			}
			require.Regexp(t, " "+filepath.Join(root, c.meant)+"$", said)
		})
	}
}

// TestCheckAgentDirPi: an agent directory of pi whose sessions are in another directory lacks nothing, if that is there.
func TestCheckAgentDirPi(t *testing.T) {
	root := agentTree(t, ".pi/agent/trust.json", "elsewhere/")
	agent := filepath.Join(root, ".pi/agent")
	for dir, warns := range map[string]bool{"elsewhere": false, "missing": true} {
		settings := fmt.Sprintf(`{"sessionDir":%q}`, filepath.Join(root, dir))
		require.NoError(t, os.WriteFile(filepath.Join(agent, "settings.json"), []byte(settings), 0o600))
		warning, err := checkTree(agent, agent, func(string) string { return "" })
		require.NoError(t, err)
		require.Equal(t, warns, warning != "", warning)
	}
}

// TestCheckAgentDirSpecial: sessions/ may be a symlink to another disk, which may be away, and a FIFO is not waited for.
func TestCheckAgentDirSpecial(t *testing.T) {
	getenv := func(string) string { return "" }
	root := agentTree(t, "agent/config.yml", "disk/--work--/x.jsonl")
	agent := filepath.Join(root, "agent")
	disk := filepath.Join(root, "disk")
	link := filepath.Join(agent, "sessions")

	require.NoError(t, os.Symlink(disk, link))
	warning, err := checkTree(agent, agent, getenv)
	require.NoError(t, err)
	require.Empty(t, warning)
	_, err = checkTree(link, disk, getenv)
	require.ErrorContains(t, err, "Probably meant: "+agent)

	require.NoError(t, os.Rename(disk, filepath.Join(root, "away")))
	warning, err = checkTree(agent, agent, getenv)
	require.NoError(t, err)
	require.Contains(t, warning, "symlink to "+disk)

	odd := agentTree(t, "x")
	require.NoError(t, unix.Mkfifo(filepath.Join(odd, "profiles"), 0o600))
	_, err = checkTree(odd, odd, getenv)
	require.ErrorContains(t, err, "is not an agent directory")
}
