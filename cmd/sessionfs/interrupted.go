package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endingSignals are the signals that end a command.
var endingSignals = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP}

// exitSignal and the number of a signal make the status of what a signal ended, as a shell has it.
const exitSignal = 128

// untilSignal returns a context that ends with the first signal that is to end a command; interrupted is then its number,
// before that 0. The next signal kills the process.
func untilSignal(parent context.Context) (ctx context.Context, interrupted func() int, release func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 1)
	var number atomic.Int32
	for _, s := range endingSignals {
		if !signal.Ignored(s) { // as under nohup
			signal.Notify(signals, s)
		}
	}
	go func() {
		select {
		case s := <-signals:
			if n, ok := s.(syscall.Signal); ok {
				number.Store(int32(n))
			}
			signal.Stop(signals)
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() int { return int(number.Load()) }, func() {
		signal.Stop(signals)
		cancel()
	}
}

// exit ends the process with a status. If that is one of a signal, it ends by the signal: a shell then ends the loop that
// somebody interrupted, and a service manager takes it for the end that it asked for. Both show the same status.
func exit(status int) {
	if s := syscall.Signal(status - exitSignal); slices.Contains(endingSignals, os.Signal(s)) {
		signal.Reset(s)
		_ = unix.Kill(unix.Getpid(), s)
		time.Sleep(time.Second) // it comes at once, unless somebody else's handler is in the way
	}
	os.Exit(status)
}
