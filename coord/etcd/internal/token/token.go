// Package token is what client and server of an etcd with a token have in common.
package token

import "fmt"

// Key is the name of the token in the metadata of every call. It is not one that
// etcd itself reads, so an etcd of others takes no notice of it.
const Key = "godwit-token"

// Max is the longest token, in bytes.
const Max = 256

// Check says what is wrong with the length or a character of a token; an empty one
// is valid.
func Check(token string) error {
	if len(token) > Max {
		return fmt.Errorf("a token of %d bytes, want at most %d", len(token), Max)
	}
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return fmt.Errorf("%q is in the token, want printable characters of ASCII without blanks", r)
		}
	}
	return nil
}
