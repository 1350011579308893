package clients

import (
	"os"
	"path/filepath"
	"strings"
)

// A breadcrumb's file name is the client's terminal id. It comes from the terminal at stdin, else
// from variables that terminal programs set (docs/format.md, Breadcrumbs).

// terminalVariables are the variables of terminal ids, each with the prefix of its ids. The client
// uses the first one that is set, in an order that depends on its version.
var terminalVariables = []struct{ name, prefix string }{
	{"ZELLIJ_PANE_ID", "zellij-"},
	{"TMUX_PANE", "tmux-"},
	{"CMUX_SURFACE_ID", "cmux-"},
	{"KITTY_WINDOW_ID", "kitty-"},
	{"WEZTERM_PANE", "wezterm-"},
	{"TERM_SESSION_ID", "apple-"},
	{"WT_SESSION", "wt-"},
}

// zellijSession is a variable; if it is set, its value goes between zellij's prefix and the pane.
const zellijSession = "ZELLIJ_SESSION_NAME"

// knownTerminal reports whether id is of a kind that terminalIDs can return.
func knownTerminal(id string) bool {
	isDevice := strings.HasPrefix(id, "pts-") || strings.HasPrefix(id, "tty") || id == "console"
	if isDevice {
		return true
	}
	for _, v := range terminalVariables {
		if strings.HasPrefix(id, v.prefix) {
			return true
		}
	}
	return false
}

// terminalIDs returns the possible terminal ids of the process with directory dir in /proc, none if it may not
// be inspected; known reports that it can have no other.
func terminalIDs(dir string) (ids []string, known bool) {
	stdin, err := os.Readlink(filepath.Join(dir, "fd", "0"))
	id := deviceTerminal(stdin)
	if id != "" {
		return []string{id}, true
	}
	known = err == nil || os.IsNotExist(err)
	text, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return nil, false
	}
	return environTerminals(string(text)), known
}

// deviceTerminal returns the id of a terminal device, such as pts-3 for /dev/pts/3, or "" for
// another path.
func deviceTerminal(path string) string {
	name, isDevice := strings.CutPrefix(path, "/dev/")
	isTerminal := strings.HasPrefix(name, "pts/") || strings.HasPrefix(name, "tty") || name == "console"
	if !isDevice || !isTerminal {
		return ""
	}
	return strings.ReplaceAll(name, "/", "-")
}

// environTerminals returns the possible ids for an environment in the format of /proc/PID/environ.
func environTerminals(environ string) (ids []string) {
	set := map[string]string{}
	for line := range strings.SplitSeq(environ, "\x00") {
		name, value, ok := strings.Cut(line, "=")
		if ok && value != "" {
			set[name] = value
		}
	}
	for _, v := range terminalVariables {
		value, isSet := set[v.name]
		if !isSet {
			continue
		}
		session := set[zellijSession]
		if session != "" && v.prefix == "zellij-" {
			value = strings.NewReplacer("/", "-", `\`, "-").Replace(session) + "-" + value
		}
		ids = append(ids, v.prefix+value)
	}
	return ids
}
