//go:build linux

package main

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeSyslog keeps what it is sent, with the severity in front.
type fakeSyslog struct{ lines []string }

func (f *fakeSyslog) add(severity, s string) error {
	f.lines = append(f.lines, severity+" "+s)
	return nil
}

func (f *fakeSyslog) Debug(s string) error   { return f.add("debug", s) }
func (f *fakeSyslog) Info(s string) error    { return f.add("info", s) }
func (f *fakeSyslog) Warning(s string) error { return f.add("warning", s) }
func (f *fakeSyslog) Err(s string) error     { return f.add("err", s) }

func TestSyslogHandler(t *testing.T) {
	f := &fakeSyslog{}
	log := slog.New(newSyslogHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug}))
	log.Debug("a")
	log.Info("b c", "key", "v w")
	log.With("w", 1).WithGroup("g").Warn("d", "time", "kept", "x", 2)
	log.Error("e", "err", errors.New("line\nbreak"))
	require.Equal(t, []string{
		"debug msg=a",
		`info msg="b c" key="v w"`,
		"warning msg=d w=1 g.time=kept g.x=2",
		`err msg=e err="line\nbreak"`,
	}, f.lines)

	f.lines = nil
	slog.New(newSyslogHandler(f, &slog.HandlerOptions{Level: slog.LevelInfo})).Debug("not shown")
	require.Empty(t, f.lines)

	log.Info(strings.Repeat("x", 2*maxSyslogMessage))
	require.Len(t, f.lines[0], len("info ")+maxSyslogMessage)
}
