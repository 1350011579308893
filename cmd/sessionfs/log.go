package main

import (
	"io"
	"log/slog"
	"log/syslog"
	"os"
	"strings"

	"sessionfs/mountopts"
)

// maxSyslogMessage is the longest message, in bytes; the rest is cut. Messages are datagrams, and one that is too long
// (the stack of a panic) would be lost as a whole.
const maxSyslogMessage = 8 << 10

// newLogger returns a logger to out if that is not nil, else to stderr in the foreground, and to syslog, which journald
// reads too, in the background.
func newLogger(o mountopts.Options, background bool, out io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: o.Level()}
	if out == nil && !background {
		out = os.Stderr
	}
	if out != nil {
		return slog.New(slog.NewTextHandler(out, options))
	}
	w, err := syslog.New(syslog.LOG_DAEMON|syslog.LOG_INFO, "sessionfs")
	if err != nil {
		return slog.New(slog.DiscardHandler) // no syslog; the mount works without a log
	}
	return slog.New(newSyslogHandler(w, options))
}

// syslogWriter is the part of syslog.Writer that is used: one method for each severity.
type syslogWriter interface {
	Debug(string) error
	Info(string) error
	Warning(string) error
	Err(string) error
}

// syslogLines sends each line with the severity of its level, which is the first word, and without that.
type syslogLines struct{ w syslogWriter }

// newSyslogHandler returns a handler that writes text without the time, which syslog adds.
func newSyslogHandler(w syslogWriter, options *slog.HandlerOptions) slog.Handler {
	options.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	return slog.NewTextHandler(syslogLines{w}, options)
}

func (s syslogLines) Write(line []byte) (int, error) {
	level, text, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
	text = text[:min(len(text), maxSyslogMessage)]
	send := s.w.Debug
	switch level {
	case "level=ERROR":
		send = s.w.Err
	case "level=WARN":
		send = s.w.Warning
	case "level=INFO":
		send = s.w.Info
	}
	return len(line), send(text)
}
