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
	terminals []string // ids that its terminal may have
	known     bool     // terminals has all of them
}

// findClients scans /proc for processes that have one of the files open for writing. It skips processes that it may
// not inspect.
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
		c, ok := procfs.Look(func() (c clientProcess) {
			c.terminals, c.known = terminalIDs(dir)
			return c
		})
		if !ok {
			c = clientProcess{} // at an unknown terminal
		}
		c.pid, c.command = pid, CommandOf(proc, pid)
		found = append(found, c)
	}
	return found
}

// CommandOf returns the name of a process from the proc file system at proc, or "" if the process is gone.
func CommandOf(proc string, pid int) string {
	text, _ := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "comm"))
	return strings.TrimSuffix(string(text), "\n")
}

// isAt reports whether the process's terminal may have this id.
func (c *clientProcess) isAt(terminal string) bool { return slices.Contains(c.terminals, terminal) }
