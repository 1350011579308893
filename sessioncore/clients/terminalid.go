package clients

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A breadcrumb's file name is the client's terminal id. It is made from the terminal that stdin is, otherwise from
// variables that terminal programs set (docs/format.md, Breadcrumbs).

// terminalVariables are the variables that a terminal id is made from, each with the prefix of its ids. The client
// takes the first one that is set, in an order that depends on its version.
var terminalVariables = []struct{ name, prefix string }{
	{"ZELLIJ_PANE_ID", "zellij-"},
	{"TMUX_PANE", "tmux-"},
	{"CMUX_SURFACE_ID", "cmux-"},
	{"KITTY_WINDOW_ID", "kitty-"},
	{"WEZTERM_PANE", "wezterm-"},
	{"TERM_SESSION_ID", "apple-"},
	{"WT_SESSION", "wt-"},
}

// zellijSession is the variable whose value, if set, goes between zellij's prefix and the pane.
const zellijSession = "ZELLIJ_SESSION_NAME"

// knownTerminal reports whether id is of a kind that terminalIDs can return.
func knownTerminal(id string) bool {
	return strings.HasPrefix(id, "pts-") || strings.HasPrefix(id, "tty") || id == "console" ||
		slices.ContainsFunc(terminalVariables, func(v struct{ name, prefix string }) bool { return strings.HasPrefix(id, v.prefix) })
}

// terminalIDs returns the terminal ids that the process with directory dir in /proc may have; known reports that it
// can have no other.
func terminalIDs(dir string) (ids []string, known bool) {
	stdin, err := os.Readlink(filepath.Join(dir, "fd", "0"))
	if id := deviceTerminal(stdin); id != "" {
		return []string{id}, true
	}
	known = err == nil || os.IsNotExist(err)
	text, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return nil, false
	}
	return environTerminals(string(text)), known
}

// deviceTerminal returns the id of the terminal device at path, such as pts-3 for /dev/pts/3, or "" if path is not a
// terminal.
func deviceTerminal(path string) string {
	name, ok := strings.CutPrefix(path, "/dev/")
	if !ok || !strings.HasPrefix(name, "pts/") && !strings.HasPrefix(name, "tty") && name != "console" {
		return ""
	}
	return strings.ReplaceAll(name, "/", "-")
}

// environTerminals returns the ids that may result from an environment in the format of /proc/PID/environ.
func environTerminals(environ string) (ids []string) {
	set := map[string]string{}
	for line := range strings.SplitSeq(environ, "\x00") {
		if name, value, ok := strings.Cut(line, "="); ok && value != "" {
			set[name] = value
		}
	}
	for _, v := range terminalVariables {
		value, ok := set[v.name]
		if !ok {
			continue
		}
		if session := set[zellijSession]; session != "" && v.prefix == "zellij-" {
			value = strings.NewReplacer("/", "-", `\`, "-").Replace(session) + "-" + value
		}
		ids = append(ids, v.prefix+value)
	}
	return ids
}
