// Package dashboard serves a web page that shows where the parameters of a run are, and why: live, from the folder that
// the nodes write their trace to, or of a run that is over, from the same folder. It knows nothing of the run but what is in its folder,
// and changes nothing.
//
// [Serve] serves a folder until [Server.Close]. Only who has the token of [Server.URL] sees anything; a browser changes
// it for a cookie. A browser that is slow or stuck makes nobody wait.
package dashboard
