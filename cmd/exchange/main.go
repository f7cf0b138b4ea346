package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"exchange/cmd/exchange/cli"
)

func main() {
	writeForOwnerOnly()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// the first signal asks for an orderly end, a second one ends at once
	context.AfterFunc(ctx, stop)
	p := &cli.Program{Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr}
	os.Exit(p.Execute(ctx, tree, os.Args[1:]))
}
