// Package setting is how settings say which of their fields has a value that it
// cannot have. Who knows the fields by another name, as a command does by its
// flags, can say it in those words.
package setting

import (
	"fmt"
	"reflect"
	"strings"
)

// An Error says that a field of a struct of settings has a value that it cannot
// have.
type Error struct {
	Of    string // the struct with its package, such as "kge.Config"
	Field string // the name of its field
	Got   any    // the field's value
	Want  string // what it may be, such as "1 … 100 floats"
}

// Bad returns an *Error.
func Bad(of, field string, got any, want string) error { return &Error{of, field, got, want} }

// Outside returns an *Error of a number that is to be between two others.
func Outside(of, field string, got, lo, hi any) error {
	return &Error{of, field, got, fmt.Sprintf("%v … %v", lo, hi)}
}

func (e *Error) Error() string {
	pkg, typ, _ := strings.Cut(e.Of, ".")
	return fmt.Sprintf("%s: %s.%s is %v, want %s", pkg, typ, e.Field, e.Got, e.Want)
}

// Pointers returns pointers to all fields of settings, a pointer to a struct and
// the structs within, that the error may mean: those of the struct that it names
// first, then those of others that have the field's name.
func (e *Error) Pointers(settings any) []any {
	var exact, others []any
	var visit func(v reflect.Value)
	visit = func(v reflect.Value) {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch {
			case !f.IsExported():
			case f.Name == e.Field && v.Type().String() == e.Of:
				exact = append(exact, v.Field(i).Addr().Interface())
			case f.Name == e.Field:
				others = append(others, v.Field(i).Addr().Interface())
			case f.Type.Kind() == reflect.Struct:
				visit(v.Field(i))
			}
		}
	}
	if v := reflect.ValueOf(settings); v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
		visit(v.Elem())
	}
	return append(exact, others...)
}
