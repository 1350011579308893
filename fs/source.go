package fs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"sessionfs/mountopts"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
)

// Directories returns the directories that a mount of o uses by their paths. They may be links to
// another disk, or missing. A mount point in one of them would show itself; one above them would
// make the mount wait for itself.
func Directories(o mountopts.Options, getenv func(string) string) (places []string) {
	if mountopts.IsDatabase(o.Source) {
		if o.Blobs != "" {
			places = append(places, o.Blobs)
		}
		return places
	}
	for _, a := range o.Agents {
		places = append(places, Directories(o.For(a), getenv)...)
	}
	if len(o.Agents) > 0 {
		return places
	}
	places = append(places, o.Source)
	names := []string{layout.Sessions, blobsName, archiveName, terminalsName}
	agent := agents.Of(o.Source)
	if agent != nil {
		names = append(names, agent.Dirs...)
	}
	for _, name := range names {
		places = append(places, filepath.Join(o.Source, name))
	}
	if o.State != "" {
		places = append(places, filepath.Join(o.State, terminalsName))
	}
	elsewhere := PiSessions(o.Source, o.Source, getenv)
	if elsewhere != "" {
		places = append(places, elsewhere)
	}
	return append(places, clients.LeaseDirs(getenv, o.Source, o.SourceAs)...)
}

// checkLink returns an error if root's daemon would follow a link of SOURCE out of the property of
// its owner, as a link named sessions could otherwise make it write root's files. s is the
// directory of the name in SOURCE; if it is missing, the directory above must be the owner's.
func checkLink(source *dir.Storage, name string, s *dir.Storage) error {
	at := filepath.Join(source.Path(), name)
	if os.Geteuid() != 0 || s.Path() == at {
		return nil
	}
	st, err := source.Stat("")
	if err != nil || st.UID == 0 { // root's own links are obeyed
		return err
	}
	info, err := os.Stat(s.Path())
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(filepath.Dir(s.Path()))
	}
	if err == nil && info.Sys().(*syscall.Stat_t).Uid != st.UID {
		err = errors.New("it is another user's")
	}
	if err != nil {
		const text = "%w: %s leads to %s, which does not belong to user %d, who owns SOURCE (%w): " +
			"mount as that user, or put a directory in place of the link"
		return fmt.Errorf(text, ErrSource, at, s.Path(), st.UID, err)
	}
	return nil
}

// pi can keep its sessions elsewhere (docs/format-pi.md): directly in the directory of
// PI_CODING_AGENT_SESSION_DIR, or else of sessionDir in settings.json.

const (
	piSettings  = "settings.json"
	maxSettings = 1 << 20 // bytes of the settings that are read
)

// piSessionDir returns the directory that pi is set to use for the sessions of an agent directory,
// "" for none. rawPath is the agent directory's path from the user.
func piSessionDir(source *dir.Storage, rawPath string, getenv func(string) string) string {
	if sessioncore.ProgramOfRoot(source, rawPath, source.Path()) != sessioncore.ByPi {
		return ""
	}
	home := getenv("HOME")
	dir := getenv("PI_CODING_AGENT_SESSION_DIR")
	if dir != "" && isPiHere(source.Path(), getenv) {
		return piPath(dir, home)
	}
	var settings struct {
		SessionDir string `json:"sessionDir"`
	}
	obj, err := source.Open(piSettings)
	if err != nil {
		return ""
	}
	defer obj.Close()
	text, err := io.ReadAll(io.NewSectionReader(obj, 0, maxSettings))
	if err != nil || json.Unmarshal(text, &settings) != nil {
		return ""
	}
	owner, isInHome := strings.CutSuffix(source.Path(), sessioncore.PiPath)
	if isInHome {
		home = owner // ~ in the settings of another user is his home
	}
	return piPath(settings.SessionDir, home)
}

// PiSessions is piSessionDir for an agent directory that is not open: agent is its path without
// links, rawPath the path from the user. It is "" if the directory cannot be opened.
func PiSessions(rawPath, agent string, getenv func(string) string) string {
	source, err := dir.Open(agent)
	if err != nil {
		return ""
	}
	return piSessionDir(source, rawPath, getenv)
}

// isPiHere reports whether a pi that is started in this environment uses the agent directory.
func isPiHere(agent string, getenv func(string) string) bool {
	home := getenv("HOME")
	usual := getenv("PI_CODING_AGENT_DIR")
	if usual == "" {
		usual = filepath.Join(home, sessioncore.PiPath)
	}
	own, err := os.Stat(agent)
	if err != nil {
		return false
	}
	ofPi, err := os.Stat(piPath(usual, home))
	return err == nil && os.SameFile(own, ofPi)
}

// IsPi reports whether an agent directory is pi's.
func IsPi(agent string) bool {
	source, err := dir.Open(agent)
	if err != nil {
		return false
	}
	return sessioncore.ProgramOfRoot(source, agent, source.Path()) == sessioncore.ByPi
}

// piPath returns pi's absolute path for a directory name, "" if it depends on pi's own directory.
func piPath(name, home string) string {
	if name == "~" || strings.HasPrefix(name, "~/") {
		name = home + name[1:]
	}
	rest, ok := strings.CutPrefix(name, "file://")
	if ok {
		path, err := url.PathUnescape(rest)
		if err == nil {
			name = path
		}
	}
	if !filepath.IsAbs(name) {
		return ""
	}
	return filepath.Clean(name)
}

// openSessions opens the directory of the sessions: elsewhere, or for "" the directory name in SOURCE. It need not
// exist.
func (p *place) openSessions(name, elsewhere string) (*dir.Storage, error) {
	if elsewhere == "" || elsewhere == "/" { // the root has no directory above it, as sub would need
		return p.sub(name)
	}
	parent, err := p.opened(dir.Open(filepath.Dir(elsewhere)))
	if storage.IsMissing(err) {
		return p.sub(name) // pi makes the directory when it needs it; until then there are no sessions
	}
	if err != nil {
		return nil, err
	}
	s, err := p.opened(parent.Sub(filepath.Base(elsewhere)))
	if err != nil {
		return nil, err
	}
	return s, checkLink(p.source, name, s)
}

// ShownAs returns the path in a mount of o of a file or directory of the machine at realPath, a path
// without links. It need not exist. ok is false if o hides it. The Source of o must be
// absolute.
func ShownAs(o mountopts.Options, realPath string) (shown string, ok bool) {
	if len(o.Agents) > 0 {
		return shownAsOne(o, realPath)
	}
	if mountopts.IsDatabase(o.Source) {
		return "", false
	}
	agent := agents.Of(o.Source)
	if agent != nil {
		for _, dir := range agent.Dirs {
			below, isBelow := belowDir(filepath.Join(o.Source, dir), realPath)
			if isBelow {
				return path.Join(layout.Sessions, agent.NameOf(dir, below)), true
			}
		}
		return "", false
	}
	sessions := filepath.Join(o.Source, layout.Sessions)
	elsewhere := PiSessions(o.Source, o.Source, os.Getenv)
	if elsewhere != "" {
		sessions = elsewhere
	}
	for _, served := range []struct{ dir, shown string }{
		{dir: sessions, shown: layout.Sessions},
		{dir: filepath.Join(o.Source, archiveName), shown: layout.Archive},
		{dir: filepath.Join(o.Source, blobsName), shown: blobsName},
	} {
		below, isBelow := belowDir(served.dir, realPath)
		if isBelow {
			return path.Join(served.shown, below), true
		}
	}
	return "", false
}

// shownAsOne is ShownAs for a mount of several agents: a path is shown as one of the agent that has it.
func shownAsOne(o mountopts.Options, realPath string) (shown string, ok bool) {
	for i, a := range o.Agents {
		shown, ok := ShownAs(o.For(a), realPath)
		below, isSession := strings.CutPrefix(shown+"/", layout.Sessions+"/")
		if isSession {
			return path.Join(layout.Sessions, a.Name, below), true
		}
		if ok && i == 0 { // archive/ and blobs/ belong to the first agent
			return shown, true
		}
	}
	return "", false
}

// Absolute puts the working directory before a relative path. Unlike filepath.Abs it keeps "..",
// which after a symlink does not lead back.
func Absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	wd, err := os.Getwd()
	return wd + "/" + path, err
}

// RealPaths returns the paths of this machine that an argument may stand for, absolute and without
// links: first with the last part as it is, then, if that is a link, with its target. Not all need exist. It returns
// nil if nothing of the path is there.
func RealPaths(arg string) (paths []string) {
	abs, err := Absolute(arg)
	if err != nil {
		return nil // the working directory is gone
	}
	dir, rest := filepath.Split(abs)
	realDir, err := filepath.EvalSymlinks(dir)
	for err != nil { // there is no such directory: look for one above it
		above := filepath.Dir(strings.TrimSuffix(dir, "/"))
		if dir == "/" || above == dir {
			return nil
		}
		dir = above
		rest = strings.TrimPrefix(abs, strings.TrimSuffix(above, "/")+"/")
		realDir, err = filepath.EvalSymlinks(dir)
	}
	unfollowed := filepath.Join(realDir, rest)
	paths = []string{unfollowed}
	followed, err := filepath.EvalSymlinks(abs)
	if err == nil && followed != unfollowed {
		paths = append(paths, followed)
	}
	return paths
}

// IsBelow reports whether a path is dir or below it, by their names.
func IsBelow(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// belowDir returns the path of realPath, which has no links, below a directory, which may be one: "" for the directory
// itself. ok is false if it does not lie there.
func belowDir(dir, realPath string) (below string, ok bool) {
	realDir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", false
	}
	below, ok = strings.CutPrefix(realPath+"/", realDir+"/")
	below = strings.TrimSuffix(filepath.ToSlash(below), "/")
	return below, ok
}

// isWithin reports whether path is dir or below it; both are absolute and resolved. Unlike IsBelow it compares the
// directories, which may have several paths, and is false for a dir that is not there.
func isWithin(path, dir string) bool {
	outer, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for {
		info, err := os.Stat(path)
		if err == nil && os.SameFile(info, outer) {
			return true
		}
		parent := filepath.Dir(path)
		if parent == path {
			return false
		}
		path = parent
	}
}

// userDir returns this program's directory for a kind of the user's files: in the directory of an
// XDG variable, else of usual in the home directory. The error means that there is no home.
func userDir(variable, usual string) (string, error) {
	base := os.Getenv(variable)
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		base = filepath.Join(home, usual)
	}
	return filepath.Join(base, "sessionfs"), nil
}
