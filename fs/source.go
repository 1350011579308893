package fs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"sessionfs/mountopts"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
)

// Directories returns the directories that a mount of o reads or writes by their paths. They may be links to another disk, or not
// be there yet. A mount point in one of them would be shown in itself; one around any would keep the mount waiting for
// itself.
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
	if agent := agents.Of(o.Source); agent != nil {
		names = append(names, agent.Dirs...)
	}
	for _, name := range names {
		places = append(places, filepath.Join(o.Source, name))
	}
	if o.State != "" {
		places = append(places, filepath.Join(o.State, terminalsName))
	}
	if elsewhere := PiSessions(o.Source, o.Source, getenv); elsewhere != "" {
		places = append(places, elsewhere)
	}
	return append(places, clients.LeaseDirs(getenv, o.Source, o.SourceAs)...)
}

// ErrSource means that SOURCE cannot be mounted as it is.
var ErrSource = errors.New("SOURCE cannot be used")

// checkLink returns an error if root's daemon would follow a link of SOURCE to what is not of the owner of SOURCE: by a
// link named sessions he could otherwise have what is root's written to. s is the directory that the name in SOURCE stands
// for. What is not there yet will be made, so there the directory above must be his.
func checkLink(source *dir.Storage, name string, s *dir.Storage) error {
	at := filepath.Join(source.Path(), name)
	if os.Geteuid() != 0 || s.Path() == at {
		return nil
	}
	st, err := source.Stat("")
	if err != nil || st.UID == 0 {
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
		return fmt.Errorf("%w: %s leads to %s, which does not belong to user %d, who owns SOURCE (%w): mount as that user, or put a directory in place of the link",
			ErrSource, at, s.Path(), st.UID, err)
	}
	return nil
}

// pi keeps its sessions elsewhere if it is told to (docs/format.md, pi): directly in the directory that
// PI_CODING_AGENT_SESSION_DIR or else sessionDir in settings.json names.

const (
	piSettings = "settings.json"
	// maxSettings is how much of the settings is read.
	maxSettings = 1 << 20
)

// piSessionDir returns the directory in which pi was told to keep the sessions of an agent directory, "" if it was not.
// given is the agent directory's path as the user gave it.
func piSessionDir(source *dir.Storage, given string, getenv func(string) string) string {
	if program.OfRoot(source, given, source.Path()) != program.Pi {
		return ""
	}
	home := getenv("HOME")
	if told := getenv("PI_CODING_AGENT_SESSION_DIR"); told != "" && isPiHere(source.Path(), getenv) {
		return piPath(told, home)
	}
	var settings struct {
		SessionDir string `json:"sessionDir"`
	}
	text, err := readSettings(source)
	if err != nil || json.Unmarshal(text, &settings) != nil {
		return ""
	}
	if owner, ok := strings.CutSuffix(source.Path(), program.PiPath); ok {
		home = owner // of whomever it is
	}
	return piPath(settings.SessionDir, home)
}

// PiSessions is piSessionDir for an agent directory that is not open: agent is its path without links, given as the user
// gave it.
func PiSessions(given, agent string, getenv func(string) string) string {
	source, err := dir.Open(agent)
	if err != nil {
		return ""
	}
	defer source.Close()
	return piSessionDir(source, given, getenv)
}

// isPiHere reports whether a pi that is started in this environment uses the agent directory.
func isPiHere(agent string, getenv func(string) string) bool {
	usual := getenv("PI_CODING_AGENT_DIR")
	if usual == "" {
		usual = filepath.Join(getenv("HOME"), program.PiPath)
	}
	a, err1 := os.Stat(agent)
	b, err2 := os.Stat(piPath(usual, getenv("HOME")))
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// IsPi reports whether an agent directory is pi's.
func IsPi(agent string) bool {
	source, err := dir.Open(agent)
	if err != nil {
		return false
	}
	defer source.Close()
	return program.OfRoot(source, agent, source.Path()) == program.Pi
}

func readSettings(source *dir.Storage) ([]byte, error) {
	obj, err := source.Open(piSettings)
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	return io.ReadAll(io.NewSectionReader(obj, 0, maxSettings))
}

// piPath returns the absolute path that pi reads a directory's name as, "" if that depends on where pi is started.
func piPath(name, home string) string {
	if name == "~" || strings.HasPrefix(name, "~/") {
		name = home + name[1:]
	}
	if rest, ok := strings.CutPrefix(name, "file://"); ok {
		if path, err := url.PathUnescape(rest); err == nil {
			name = path
		}
	}
	if !filepath.IsAbs(name) {
		return ""
	}
	return filepath.Clean(name)
}

// openSessions opens the directory of the sessions: elsewhere if that is not "", otherwise that in SOURCE.
func (p *place) openSessions(name, elsewhere string) (*dir.Storage, error) {
	if elsewhere == "" || elsewhere == "/" {
		return p.sub(name)
	}
	parent, err := p.opened(dir.Open(filepath.Dir(elsewhere)))
	if storage.IsMissing(err) {
		return p.sub(name) // pi makes it when it needs it; until then there are no sessions
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
