package httptarget

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"

	"github.com/fencepost/fencepost/core"
)

// callError turns the error of a call that brought no response into one for
// the run. It holds neither the URL nor an address that net found for it.
func callError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("call url: %w", context.Cause(ctx))
	}
	if errors.Is(err, errRefused) {
		return core.Permanent(errRefused)
	}
	var redirect redirectError
	if errors.As(err, &redirect) {
		return core.Permanent(redirect)
	}
	return errors.New("call url: " + describe(err))
}

func describe(err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var errno syscall.Errno
	var op *net.OpError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "the host's name is unknown"
	case errors.As(err, &dns):
		return "the host's name could not be looked up"
	case errors.As(err, &certificate):
		return "the certificate was not accepted: " + certificate.Err.Error()
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timed out while connecting or waiting for the response's header"
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error() // op's own text holds both addresses
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection closed before a response came"
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return err.Error()
}
