package clients

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sessionfs/sessioncore/internal/procfs"
	"sessionfs/sessioncore/storage"
)

// clientProcess is a process that has a database of the agent directory open for writing.
type clientProcess struct {
	pid       int
	command   string
	terminals []string // the ids that its terminal may have
	known     bool     // it can have no other
}

// findClients looks through /proc for processes that have one of the files open for writing. Those that it
// cannot look into are not among them.
func findClients(proc string, files []storage.Token) []clientProcess {
	names, err := os.ReadDir(proc)
	if err != nil {
		return nil
	}
	self := os.Getpid()
	var found []clientProcess
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err != nil || pid == self {
			continue
		}
		dir := filepath.Join(proc, name.Name())
		if writes, _ := procfs.ProcessHolds(dir, files...); !writes {
			continue
		}
		c := clientProcess{pid: pid, command: CommandOf(proc, pid)}
		c.terminals, c.known = terminalIDs(dir)
		found = append(found, c)
	}
	return found
}

// CommandOf is a process's name, "" where it is gone.
func CommandOf(proc string, pid int) string {
	text, _ := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "comm"))
	return strings.TrimSuffix(string(text), "\n")
}

// isAt reports whether a process may have a terminal id.
func (c *clientProcess) isAt(terminal string) bool { return slices.Contains(c.terminals, terminal) }
