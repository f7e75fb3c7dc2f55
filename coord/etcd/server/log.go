package server

import (
	"context"
	"log/slog"
	"os"

	"go.uber.org/zap/zapcore"
)

// lastAct is what is done when the server ends the process, as it does for want of
// file descriptors and when its disk is full or fails. It has told why.
type lastAct struct {
	log  *slog.Logger
	dir  string // of the data
	temp *temporary
}

func (a lastAct) OnWrite(*zapcore.CheckedEntry, []zapcore.Field) {
	a.log.Error("the embedded etcd cannot go on, for the reason above, and its process ends", "data", a.dir)
	_ = a.temp.remove() // the process ends, with an error already
	os.Exit(1)
}

// errorCore hands the errors that etcd logs to slog, and drops the rest.
type errorCore struct {
	log *slog.Logger
	// life has ended when the server is closed on purpose: it reports its closed
	// listeners as errors.
	life context.Context
}

func (c errorCore) Enabled(l zapcore.Level) bool {
	return l >= zapcore.ErrorLevel && c.life.Err() == nil
}

func (c errorCore) With(fs []zapcore.Field) zapcore.Core {
	return errorCore{c.log.With(attrs(fs)...), c.life}
}

func (c errorCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c errorCore) Write(e zapcore.Entry, fs []zapcore.Field) error {
	if e.Message == startupNoise {
		return nil
	}
	c.log.Log(context.Background(), slog.LevelError, e.Message, attrs(fs)...)
	return nil
}

// startupNoise is what a new server reports as an error when it looks at its
// data before the first commit. It looks again later; the data matters only
// for a downgrade to an older etcd.
const startupNoise = "failed to update storage version"

func (errorCore) Sync() error { return nil }

func attrs(fs []zapcore.Field) []any {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fs {
		f.AddTo(enc)
	}
	as := make([]any, 0, len(enc.Fields))
	for k, v := range enc.Fields {
		as = append(as, slog.Any(k, v))
	}
	return as
}
