package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cespare/xxhash/v2"
)

// refusals is how many writes are refused in a run of rowLease.
const refusals = 200

// rowLease: a write that is refused, since a client from 18.5 on holds the lease of the session. A client holds a socket
// with an abstract name for that (docs/format.md, omp after 18.2.3).
func rowLease(ctx context.Context, b *bench) ([]result, error) {
	s, err := b.longSession()
	if err != nil {
		return nil, err
	}
	id, err := headerID(s.file)
	if err != nil {
		return nil, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	res := []result{{what: fmt.Sprintf("a write that a client's lease refuses, mean of %d, session of %d entries", refusals, s.entries), goal: goal{seconds: 0.001}}}
	err = b.repeat(func(int) error {
		return b.withOurs(ctx, s.agent, &res[0].m, func(mt *mount) error {
			if err := warmDaemon(ctx, mt, s); err != nil {
				return err
			}
			end, err := holdLease(filepath.Join(home, ".omp/run/session-owners", id+".lock"))
			if err != nil {
				return err
			}
			defer end()
			took, err := timeRefusals(mt.path(s.dir, "append"))
			res[0].m.addTime(took/refusals, 0)
			return err
		})
	})
	return res, err
}

// headerID returns the id in the first line of a session file.
func headerID(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadBytes('\n')
	if err != nil {
		return "", err
	}
	var header struct{ ID string }
	return header.ID, json.Unmarshal(line, &header)
}

// holdLease holds the lease at a path as clients do, until end is called.
func holdLease(path string) (end func(), err error) {
	name := "@omp-file-lock-"
	for _, seed := range []uint64{0x4f4d502d4c4f434b, 0x50492d46494c454c} {
		d := xxhash.NewWithSeed(seed)
		_, _ = d.WriteString(path)
		name += fmt.Sprintf("%016x", d.Sum64())
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	end = func() { _ = syscall.Close(fd) }
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: name}); err != nil {
		end()
		return nil, fmt.Errorf("the lease at %s: %w", path, err)
	}
	return end, nil
}

// timeRefusals writes lines that are refused.
func timeRefusals(file string) (time.Duration, error) {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	start := time.Now()
	for i := range refusals {
		if _, err := fmt.Fprintf(f, appendedLine, i, "x"); !errors.Is(err, syscall.EBUSY) {
			return 0, fmt.Errorf("a write beside a lease: %w instead of EBUSY", err)
		}
	}
	return time.Since(start), nil
}
