package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// This file says what breadcrumb a client writes: its name is the client's terminal id, made of the terminal
// that stdin is, else of what terminal programs put into the environment (docs/format.md, Breadcrumbs).

// terminalVariables are the variables that make a terminal id, and what stands before their value. The client
// takes the first that is set, in an order that depends on its version.
var terminalVariables = []struct{ name, prefix string }{
	{"ZELLIJ_PANE_ID", "zellij-"},
	{"TMUX_PANE", "tmux-"},
	{"CMUX_SURFACE_ID", "cmux-"},
	{"KITTY_WINDOW_ID", "kitty-"},
	{"WEZTERM_PANE", "wezterm-"},
	{"TERM_SESSION_ID", "apple-"},
	{"WT_SESSION", "wt-"},
}

// zellijSession is the variable whose value stands between zellij's prefix and its pane, where it is set.
const zellijSession = "ZELLIJ_SESSION_NAME"

// knownTerminal reports whether a terminal id is one that we can make of a process.
func knownTerminal(id string) bool {
	return strings.HasPrefix(id, "pts-") || strings.HasPrefix(id, "tty") || id == "console" ||
		slices.ContainsFunc(terminalVariables, func(v struct{ name, prefix string }) bool { return strings.HasPrefix(id, v.prefix) })
}

// terminalIDs returns the terminal ids that a process may have; dir is the process's in /proc. known tells that
// there can be no other. The controlling terminal counts too: it is that of stdin nearly always, and can be
// seen where another user's descriptors cannot.
func terminalIDs(dir string) (ids []string, known bool) {
	if id := controllingTerminal(dir); id != "" {
		ids = append(ids, id)
	}
	stdin, err := os.Readlink(filepath.Join(dir, "fd", "0"))
	if err == nil {
		if id := deviceTerminal(stdin); id != "" {
			return append(ids, id), true
		}
	}
	known = err == nil || os.IsNotExist(err)
	text, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return ids, false
	}
	return append(ids, environTerminals(string(text))...), known
}

// deviceTerminal is the id of a terminal's path, "" for the path of anything else: pts-3 for /dev/pts/3.
func deviceTerminal(path string) string {
	name, ok := strings.CutPrefix(path, "/dev/")
	if !ok || !strings.HasPrefix(name, "pts/") && !strings.HasPrefix(name, "tty") && name != "console" {
		return ""
	}
	return strings.ReplaceAll(name, "/", "-")
}

// environTerminals are the ids that an environment, as in /proc, may give.
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

const (
	// ptsMajor is the device number of the first pseudo terminals (Linux, devices.txt), and ptsMajors how
	// many numbers they have.
	ptsMajor, ptsMajors = 136, 8
	// ttyMajor is that of the consoles; from serialMinor on they are serial lines.
	ttyMajor, serialMinor = 4, 64
)

// controllingTerminal is the id of a process's controlling terminal, "" for none or one that we have no
// name for.
func controllingTerminal(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return ""
	}
	// The name, in parentheses, may hold anything: state, parent, group, session and terminal come after it.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 5 {
		return ""
	}
	number, err := strconv.ParseInt(fields[4], 10, 64)
	if err != nil {
		return ""
	}
	major, minor := int(number>>8&0xFFF), int(number&0xFF|number>>12&0xFFF00)
	switch {
	case major >= ptsMajor && major < ptsMajor+ptsMajors:
		return fmt.Sprintf("pts-%d", (major-ptsMajor)<<8+minor)
	case major == ttyMajor && minor < serialMinor:
		return fmt.Sprintf("tty%d", minor)
	case major == ttyMajor:
		return fmt.Sprintf("ttyS%d", minor-serialMinor)
	}
	return ""
}
