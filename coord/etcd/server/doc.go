// Package server runs an etcd of one member in this process, for runs that have no
// other to coordinate by. A program that does not import it does not link an etcd
// server: package coord/etcd, the client, is enough for an etcd of others.
//
// Clients reach it by an [etcd.Access] with the server's endpoints and token:
//
//	s, err := server.Start(ctx, server.Config{})
//	…
//	defer s.Close()
//	at := etcd.Access{Endpoints: s.Endpoints(), Token: s.Token()}
//
// It answers only calls that give its token, and listens for nobody but clients.
//
// [etcd.Access]: https://pkg.go.dev/github.com/godwit-ps/godwit/coord/etcd#Access
package server
