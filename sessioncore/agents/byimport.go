package agents

import (
	"io"

	"sessionfs/sessioncore/storage"
)

// ByImport is a Forker for an agent that keeps no file for each session, and takes a new one by a command of its
// own. Fork and Receive write texts as Store.Files has them.
type ByImport interface {
	Forker
	// Export writes the text of a new session as the file that the command takes, and returns the
	// working directory where the command is started.
	Export(text storage.Object, out io.Writer) (cwd string, err error)
	// ImportCommand returns the command. Its last argument is the file.
	ImportCommand() []string
}

// ByCommand reports whether the Format of the agent of a name is ByImport. It is false for an unknown name.
func ByCommand(name string) bool {
	agent := Find(name)
	if agent == nil || agent.Alone == nil {
		return false
	}
	format, err := agent.Alone(nil, nil)
	_, isByImport := format.(ByImport)
	return err == nil && isByImport
}
