package fs

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"sessionfs/mountopts"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/agents"
)

// ShownAs returns the path in a mount of o that shows a file or a directory of the machine, of which real is the path without
// links. It need not exist. ok is false where a mount does not show it. o.Source is absolute.
func ShownAs(o mountopts.Options, real string) (shown string, ok bool) {
	for i, a := range o.Agents {
		shown, ok := ShownAs(o.For(a), real)
		if below, isSession := strings.CutPrefix(shown+"/", layout.Sessions+"/"); isSession {
			return path.Join(layout.Sessions, a.Name, below), true
		} else if ok && i == 0 { // archive/ and blobs/ are those of the first
			return shown, true
		}
	}
	if len(o.Agents) > 0 || mountopts.IsDatabase(o.Source) {
		return "", false
	}
	if agent := agents.Of(o.Source); agent != nil {
		for _, dir := range agent.Dirs {
			if below, ok := belowDir(filepath.Join(o.Source, dir), real); ok {
				return path.Join(layout.Sessions, agent.NameOf(dir, below)), true
			}
		}
		return "", false
	}
	sessions := filepath.Join(o.Source, layout.Sessions)
	if elsewhere := PiSessions(o.Source, o.Source, os.Getenv); elsewhere != "" {
		sessions = elsewhere
	}
	archived, blobs := filepath.Join(o.Source, archiveName), filepath.Join(o.Source, blobsName)
	for _, d := range [][2]string{{sessions, layout.Sessions}, {archived, layout.Archive}, {blobs, blobsName}} {
		if below, ok := belowDir(d[0], real); ok {
			return path.Join(d[1], below), true
		}
	}
	return "", false
}

// belowDir returns the path of what lies in a directory, which may be a link, from there; real has no links.
func belowDir(dir, real string) (below string, ok bool) {
	dir, err := filepath.EvalSymlinks(dir)
	below, ok = strings.CutPrefix(real+"/", dir+"/")
	return strings.TrimSuffix(filepath.ToSlash(below), "/"), ok && err == nil
}
