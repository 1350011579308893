package message

import (
	"path"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/renames"
)

// shells are the tools of agents that run a command in a shell, and whether each call begins in the
// directory of the session where it names none. In others a cd of an earlier call may hold.
var shells = map[string]bool{
	"bash": false, "Bash": false,
	"shell": true, "shell_command": true, "exec_command": true, "local_shell": true, "container.exec": true,
	"run_shell_command": true,
}

// ShellCall is a call of a tool that runs a command in a shell.
type ShellCall struct {
	Command string
	Dir     string // where the shell begins; "" if the call does not tell
	// IsFresh says that a call without Dir begins in the session's directory, whatever calls before it did.
	IsFresh bool
}

// Start returns the directory where the shell begins, or otherwise if the call does not tell.
func (s ShellCall) Start(otherwise renames.WorkingDirectory) renames.WorkingDirectory {
	if s.Dir == "" {
		return otherwise
	}
	return renames.WorkingDirectory{}.In(s.Dir)
}

// maxCommand bounds a command that is read, in bytes.
const maxCommand = 64 << 10

// Shell returns the command of a call of a shell. ok is false for other calls, and if the agent did not wait
// for the end.
func Shell(call *Members) (shell ShellCall, ok bool) {
	tool, _ := call[Name].Text()
	isFresh, isShell := shells[tool]
	if !isShell {
		return ShellCall{}, false
	}
	shell.IsFresh = isFresh
	for m := range call[Arguments].EachMember {
		if len(m.Value) > maxCommand { // in any argument
			return ShellCall{}, false
		}
		switch m.Name() {
		case "command", "cmd":
			shell.Command = commandText(m.Value)
		case "cwd", "workdir", "directory", "dirPath":
			shell.Dir, _ = m.Value.Text()
		case "runInBackground", "isBackground", "background", "async":
			if m.Value.Truthy() {
				return ShellCall{}, false
			}
		case "mode":
			if m.Value.Is("async") {
				return ShellCall{}, false
			}
		}
	}
	return shell, shell.Command != ""
}

// commandText returns a command: a text, the last word of a shell's command line, or words in quotes. It returns "" for
// other values.
func commandText(v rawjson.Value) string {
	if v.IsString() {
		text, _ := v.Text()
		return text
	}
	var words []string
	for element := range v.EachElement {
		word, isWord := element.Text()
		if !isWord {
			return ""
		}
		words = append(words, word)
	}
	if isShellLine(words) {
		return words[2]
	}
	for i, word := range words {
		words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

// isShellLine reports whether words are the command line of a shell with a command, such as bash -lc COMMAND.
func isShellLine(words []string) bool {
	if len(words) != 3 {
		return false
	}
	isShell := strings.HasSuffix(path.Base(words[0]), "sh")
	takesCommand := words[1] == "-c" || words[1] == "-lc"
	return isShell && takesCommand
}
