package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// starterName is the first argument of a starter: this program, which starts another one and writes
// what that used to a file. Linux counts the memory of a process as that of the program that it
// becomes, and the measuring process has made large stores.
const starterName = "starter"

// usage is the processor time and the memory of one process.
type usage struct {
	Processor float64 // seconds, of all its threads
	Peak      float64 // of its memory, in bytes
}

// usageOf returns the usage of an ended process.
func usageOf(p *os.ProcessState) usage {
	return usage{
		Processor: (p.UserTime() + p.SystemTime()).Round(time.Millisecond).Seconds(),
		Peak:      float64(p.SysUsage().(*syscall.Rusage).Maxrss) * 1024,
	}
}

// startAsked is the starter: its arguments are the file and the command line. It returns the exit code.
func startAsked(args []string) int {
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdin = os.Stdin
	cmd.Stdout = os.Stdout
	cmd.Stderr = os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	text, _ := json.Marshal(usageOf(cmd.ProcessState))
	err = os.WriteFile(args[0], text, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	return cmd.ProcessState.ExitCode()
}

// used runs a program and its arguments, after assignments to the environment, as output does, and
// returns the usage of that program alone.
func (b *bench) used(dir, assignments, program string) (printed string, u usage) {
	self, err := os.Executable()
	b.must(err)
	file := filepath.Join(b.dir, "used.json")
	printed, _ = b.output(dir, fmt.Sprintf("%s '%s' %s '%s' %s", assignments, self, starterName, file, program))
	text, err := os.ReadFile(file)
	b.must(err)
	b.must(json.Unmarshal(text, &u))
	return printed, u
}
