//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// A child process asks what a mount must answer: a process that waits for a hung file system may be one that cannot be
// killed, and the command must return.

// The environment variables with the mount point that a child process asks.
const (
	lookEnv = "SESSIONFS_LOOK" // whether it answers
	saveEnv = "SESSIONFS_SAVE" // to put new sessions on disk
)

var (
	// errNoAnswer means that the limit has passed.
	errNoAnswer = errors.New("the mount does not answer")
	// errCannotAsk means that there is no child process.
	errCannotAsk = errors.New("the mount cannot be asked")
)

// ask starts a child process with the mount point in an environment variable, waits until it ends, and returns what it
// wrote to stderr. The error says how it ended, if not with status 0.
func ask(e mountEntry, env string, limit time.Duration) (said string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", errCannotAsk
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), env+"="+e.mountpoint)
	if e.uid >= 0 && e.uid != os.Geteuid() { // root too: the kernel lets nobody into another user's mount
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(e.uid), Gid: uint32(e.gid)}}
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if cmd.Start() != nil {
		return "", errCannotAsk
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
		return strings.TrimSpace(stderr.String()), err
	case <-time.After(limit):
		_ = cmd.Process.Kill()
		return "", errNoAnswer
	}
}

// answer is the command if this process is a child of ask.
func answer(stderr io.Writer) (status int, ok bool) {
	for env, do := range map[string]func(mountpoint string, stderr io.Writer) int{lookEnv: look, saveEnv: save} {
		if mountpoint, ok := os.LookupEnv(env); ok {
			os.Unsetenv(env)
			return do(mountpoint, stderr), true
		}
	}
	return 0, false
}
