// Package api is the HTTP face of Fencepost: it exists so that schedules can be
// managed from any language, with errors that a program can act upon and that
// never repeat what was sent.
//
// Every answer is JSON, every error a problem document (RFC 9457) with a stable
// code. The tenant comes from the API key alone. The handler of New needs an
// http.Server with time limits of its own for reading headers and bodies and for
// writing answers; within them each request has 10 seconds.
package api
