package fs

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"sessionfs/mountopts"
	"sessionfs/nodes/layout"
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
	archived := filepath.FromSlash(archiveName)
	dirs := [][2]string{{layout.Sessions, layout.Sessions}, {archived, layout.Archive}, {blobsName, blobsName}}
	agent := AgentOf(o.Source)
	switch agent {
	case Claude:
		dirs = [][2]string{{"projects", layout.Sessions}}
	case Codex:
		dirs = [][2]string{{layout.Sessions, layout.Sessions}, {"archived_sessions", layout.Sessions + "/archived_sessions"}}
	}
	for _, d := range dirs {
		dir := filepath.Join(o.Source, d[0])
		if d[0] == layout.Sessions && agent == "" {
			if elsewhere := PiSessions(o.Source, o.Source, os.Getenv); elsewhere != "" {
				dir = elsewhere
			}
		}
		dir, err := filepath.EvalSymlinks(dir)
		below, inside := strings.CutPrefix(real+"/", dir+"/")
		if err != nil || !inside {
			continue
		}
		below = strings.TrimSuffix(filepath.ToSlash(below), "/")
		if day := strings.SplitN(below, "/", 4); agent == Codex && d[0] == layout.Sessions && len(day) > 2 {
			below = path.Join(append([]string{strings.Join(day[:3], "-")}, day[3:]...)...) // as codex.Days has it
		}
		return path.Join(d[1], below), true
	}
	return "", false
}
