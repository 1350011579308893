package nodes

import (
	"context"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
)

// panics is a log that panics, as an error whose text does makes it.
type panics struct {
	slog.Handler
	called chan struct{}
}

func (p panics) Enabled(context.Context, slog.Level) bool { return true }

func (p panics) Handle(context.Context, slog.Record) error {
	close(p.called)
	panic("a bug")
}

// TestPanicBesides: a panic in what is done besides, as the log of a refusal, ends nothing.
func TestPanicBesides(t *testing.T) {
	called := make(chan struct{})
	v := &View{Log: slog.New(panics{slog.DiscardHandler, called})}
	require.Equal(t, syscall.EBUSY, v.refuse("s", "append", "append", sessioncore.ErrBusy))
	<-called
	time.Sleep(20 * time.Millisecond) // for the panic to end this process
}
