package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endingSignals are the signals that end a command.
var endingSignals = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP}

// exitSignal and the number of a signal make the status of what a signal ended, as a shell has it.
const exitSignal = 128

// untilSignal returns a context that ends with the first signal that is to end a command; its cause then has the status.
// The next signal kills the process.
func untilSignal(parent context.Context) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	for _, s := range endingSignals {
		if !signal.Ignored(s) { // as under nohup
			signal.Notify(signals, s)
		}
	}
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(ended(exitSignal + int(s.(syscall.Signal))))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
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
