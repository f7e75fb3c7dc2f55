//go:build !amd64 || purego

package vec

// levels is the only one of this build.
func levels() map[string]func() { return map[string]func(){"the only": func() {}} }

func restore() func() { return func() {} }
