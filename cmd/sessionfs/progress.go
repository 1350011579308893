package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"sessionfs/sessioncore/storage"
)

const (
	// progressAfter is how long a command takes before its progress is shown, and progressEach how
	// long until it is shown anew.
	progressAfter = time.Second
	progressEach  = 100 * time.Millisecond
	// barWidth is how many columns the bar of a progress has.
	barWidth = 40
)

// withProgress runs work, which calls storage.Progress. After a second a line on the terminal of the
// standard error shows the progress, until work ends.
func (c *console) withProgress(ctx context.Context, work func(ctx context.Context) error) error {
	out := c.err
	if !isTerminal(out) {
		return work(ctx)
	}
	var latest atomic.Pointer[string]
	ctx = storage.WithProgress(ctx, func(done, of int) {
		text := progressText(done, of)
		latest.Store(&text)
	})
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go storage.Guarded(func() {
		defer close(stopped)
		wait := progressAfter
		for {
			select {
			case <-stop:
				if wait == progressEach {
					showProgress(out, "")
				}
				return
			case <-time.After(wait):
				text := "reading ..."
				t := latest.Load()
				if t != nil {
					text = *t
				}
				showProgress(out, text)
			}
			wait = progressEach
		}
	})()
	err := work(ctx)
	close(stop)
	<-stopped
	return err
}

// showProgress shows a text in place of the last one on a terminal, and takes that away if it is
// "".
func showProgress(out io.Writer, text string) {
	if isTerminal(out) {
		fmt.Fprint(out, "\r\x1b[K"+text)
	}
}

// progressText tells that so many parts of all are done.
func progressText(done, of int) string {
	if of <= 0 {
		return fmt.Sprintf("%d done", done)
	}
	return fmt.Sprintf("[%-*s] %d of %d", barWidth, strings.Repeat("#", barWidth*done/of), done, of)
}
