package etcd

import (
	"context"
	"log/slog"

	"go.uber.org/zap/zapcore"
)

// errorCore hands the errors that etcd logs to slog, and drops the rest.
type errorCore struct{ log *slog.Logger }

func (errorCore) Enabled(l zapcore.Level) bool { return l >= zapcore.ErrorLevel }

func (c errorCore) With(fs []zapcore.Field) zapcore.Core {
	return errorCore{c.log.With(attrs(fs)...)}
}

func (c errorCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c errorCore) Write(e zapcore.Entry, fs []zapcore.Field) error {
	c.log.Log(context.Background(), slog.LevelError, e.Message, attrs(fs)...)
	return nil
}

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
