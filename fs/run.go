package fs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// maxOutput bounds the part of a command's output that its error has, in bytes.
const maxOutput = 500

// runsPrograms lets the agents of a place take new sessions by their own commands, which the daemon of a
// mount does not start.
func (p *place) runsPrograms() {
	if p.forks != nil {
		p.forks.Run = p.run
	}
	for _, part := range p.parts {
		part.runsPrograms()
	}
}

// run runs a command of the agent on its directory, in the working directory cwd. The error has the end of its output.
func (p *place) run(ctx context.Context, cwd string, command []string) error {
	program, err := exec.LookPath(command[0])
	if err != nil { // the last word is a temporary file
		withoutFile := strings.Join(command[:len(command)-1], " ")
		return fmt.Errorf("%s is not in PATH, whose command %s takes the new session", command[0], withoutFile)
	}
	info, err := os.Stat(cwd)
	if err != nil || !info.IsDir() {
		return fmt.Errorf("the working directory of the session is not there any more: %s", cwd)
	}
	cmd := exec.CommandContext(ctx, program, command[1:]...)
	cmd.Dir = cwd
	cmd.Env = append(os.Environ(), p.agent.Variable(p.root), "PWD="+cwd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = bytes.TrimSpace(out)
		end := out[max(0, len(out)-maxOutput):]
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, end)
	}
	return nil
}
