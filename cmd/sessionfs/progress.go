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

// withProgress runs work, which calls storage.Progress, and returns its error. After a second a line on the terminal
// of the standard error shows the progress, until work ends.
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
		showLatest(out, &latest, stop)
	})()
	err := work(ctx)
	close(stop)
	<-stopped // before the caller prints
	return err
}

// showLatest shows the latest text of a progress, anew every progressEach, until stop is closed, and then takes it
// away. It shows nothing before progressAfter.
func showLatest(out io.Writer, latest *atomic.Pointer[string], stop <-chan struct{}) {
	isShown := false
	wait := progressAfter
	for {
		select {
		case <-stop:
			if isShown {
				showProgress(out, "")
			}
			return
		case <-time.After(wait):
			text := "reading ..." // until the first report
			reported := latest.Load()
			if reported != nil {
				text = *reported
			}
			showProgress(out, text)
			isShown = true
			wait = progressEach
		}
	}
}

// showProgress shows a text on a terminal in place of the last one; "" only takes that away. It prints nothing to
// other files.
func showProgress(out io.Writer, text string) {
	if isTerminal(out) {
		fmt.Fprint(out, "\r\x1b[K"+text)
	}
}

// progressText tells how many parts of all are done. Nobody knows how many there are if of is 0.
func progressText(done, of int) string {
	if of <= 0 {
		return fmt.Sprintf("%d done", done)
	}
	return fmt.Sprintf("[%-*s] %d of %d", barWidth, strings.Repeat("#", barWidth*done/of), done, of)
}
