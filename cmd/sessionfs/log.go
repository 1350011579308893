package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"log/syslog"
	"os"
	"sync"

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

// syslogHandler writes records to syslog as text, without time and level, which syslog adds.
type syslogHandler struct {
	text slog.Handler // formats into out.line
	out  *syslogLine
}

// syslogLine is shared by a handler and those that its WithAttrs and WithGroup return.
type syslogLine struct {
	mu   sync.Mutex   // guards line, from formatting to sending
	line bytes.Buffer // one formatted record
	w    syslogWriter
}

func newSyslogHandler(w syslogWriter, options *slog.HandlerOptions) *syslogHandler {
	out := &syslogLine{w: w}
	text := slog.NewTextHandler(&out.line, &slog.HandlerOptions{
		Level: options.Level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
				return slog.Attr{}
			}
			return a
		},
	})
	return &syslogHandler{text: text, out: out}
}

var _ slog.Handler = (*syslogHandler)(nil)

// Enabled implements slog.Handler.
func (h *syslogHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.text.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *syslogHandler) Handle(ctx context.Context, r slog.Record) error {
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	h.out.line.Reset()
	if err := h.text.Handle(ctx, r); err != nil {
		return err
	}
	line := bytes.TrimSuffix(h.out.line.Bytes(), []byte("\n"))
	if len(line) > maxSyslogMessage {
		line = line[:maxSyslogMessage]
	}
	switch w, text := h.out.w, string(line); {
	case r.Level >= slog.LevelError:
		return w.Err(text)
	case r.Level >= slog.LevelWarn:
		return w.Warning(text)
	case r.Level >= slog.LevelInfo:
		return w.Info(text)
	default:
		return w.Debug(text)
	}
}

// WithAttrs implements slog.Handler.
func (h *syslogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &syslogHandler{text: h.text.WithAttrs(attrs), out: h.out}
}

// WithGroup implements slog.Handler.
func (h *syslogHandler) WithGroup(name string) slog.Handler {
	return &syslogHandler{text: h.text.WithGroup(name), out: h.out}
}
