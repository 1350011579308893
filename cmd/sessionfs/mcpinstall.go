package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"sessionfs/mountopts"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/transfer"
	"sessionfs/source"
)

// clientLimit is how long an agent's command may take that changes its list of servers.
const clientLimit = time.Minute

// serverWords returns the options of the server as words.
func (o mcpOptions) serverWords() (words []string) {
	if o.everywhere {
		words = append(words, "--everywhere")
	}
	if o.unmasked {
		words = append(words, "--no-redact")
	}
	return words
}

// installServer adds this program with the options of o to each agent that is there, by the agent's own command.
// For an agent without such a command it prints advice.
func installServer(ctx context.Context, o mcpOptions, c *console) error {
	self, err := lastingSelf("mcp")
	if err != nil {
		return err
	}
	words := append([]string{self, "mcp"}, o.serverWords()...)
	return eachClient(ctx, c, func(name string, agent *agents.Agent) error {
		if agent == nil || agent.AddServer == nil {
			_, err := fmt.Fprintf(c.out, "%s: no command of it is known that adds a server. If it has servers of tools, "+
				"add one named sessionfs with the command: %s\n", name, quotedWords(words))
			return err
		}
		line := slices.Clone(agent.AddServer)
		line[slices.Index(line, agents.Program)] = self // each such line has the word once
		return runClient(ctx, c, name, append(line, words[1:]...))
	})
}

// uninstallServer removes this program from each agent that is there, or prints advice as installServer does.
func uninstallServer(ctx context.Context, c *console) error {
	return eachClient(ctx, c, func(name string, agent *agents.Agent) error {
		if agent == nil || agent.RemoveServer == nil {
			_, err := fmt.Fprintf(c.out, "%s: if you have added the server sessionfs to it, remove that there\n", name)
			return err
		}
		return runClient(ctx, c, name, agent.RemoveServer)
	})
}

// eachClient calls do for each agent that is there, as each does. agent is nil for one that writes the form of
// omp, which has no row of its own.
func eachClient(ctx context.Context, c *console, do func(name string, agent *agents.Agent) error) error {
	isGone := func(dir mountopts.AgentDir) bool {
		return transfer.HasKept(dir.Source)
	}
	dirs := slices.DeleteFunc(source.AgentDirs(os.Getenv), isGone)
	if len(dirs) == 0 {
		return refuse(exitFailure, "mcp: there is no agent")
	}
	return each(ctx, c, dirs, func(dir mountopts.AgentDir) error {
		return do(dir.Name, agents.Find(dir.Name))
	})
}

// runClient runs an agent's command and prints its output. Without the command it prints the line to type.
func runClient(ctx context.Context, c *console, name string, line []string) error {
	_, err := exec.LookPath(line[0])
	if err != nil {
		_, err := fmt.Fprintf(c.out, "%s: its command is not found; type where it is: %s\n", name, quotedWords(line))
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, clientLimit)
	defer cancel()
	client := exec.CommandContext(ctx, line[0], line[1:]...)
	client.WaitDelay = time.Second // a child of it may keep our pipe open
	said, err := client.CombinedOutput()
	text := names.VisibleExcept(strings.TrimSpace(string(said)), "\n")
	if err != nil {
		return fmt.Errorf("%s: %s: %w: %s", name, quotedWords(line), err, text)
	}
	_, err = fmt.Fprintf(c.out, "%s: %s\n", name, text)
	return err
}

// quotedWords returns a command line for a shell.
func quotedWords(words []string) string {
	quotes := make([]string, len(words))
	for i, word := range words {
		quotes[i] = quoteWord(word)
	}
	return strings.Join(quotes, " ")
}
