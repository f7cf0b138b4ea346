package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	writeForOwnerOnly()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// the first signal asks for an orderly end, a second one ends at once
	context.AfterFunc(ctx, stop)
	os.Exit(execute(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
