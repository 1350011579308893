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

// ShownAs returns the path in a mount of o of a file or directory of the machine, whose path
// without links is realPath. It need not exist. ok is false if o, whose Source is absolute, hides
// it.
func ShownAs(o mountopts.Options, realPath string) (shown string, ok bool) {
	for i, a := range o.Agents {
		shown, ok := ShownAs(o.For(a), realPath)
		if below, isSession := strings.CutPrefix(shown+"/", layout.Sessions+"/"); isSession {
			return path.Join(layout.Sessions, a.Name, below), true
		} else if ok && i == 0 { // archive/ and blobs/ belong to the first agent
			return shown, true
		}
	}
	if len(o.Agents) > 0 || mountopts.IsDatabase(o.Source) {
		return "", false
	}
	if agent := agents.Of(o.Source); agent != nil {
		for _, dir := range agent.Dirs {
			if below, ok := belowDir(filepath.Join(o.Source, dir), realPath); ok {
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
		if below, ok := belowDir(d[0], realPath); ok {
			return path.Join(d[1], below), true
		}
	}
	return "", false
}

// belowDir returns the path of realPath, which has no links, below a directory, which may be one.
func belowDir(dir, realPath string) (below string, ok bool) {
	dir, err := filepath.EvalSymlinks(dir)
	below, ok = strings.CutPrefix(realPath+"/", dir+"/")
	return strings.TrimSuffix(filepath.ToSlash(below), "/"), ok && err == nil
}
