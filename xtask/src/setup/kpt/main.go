// kpt's own fn and pkg commands under one root: its main package needs a nested module that no proxy serves.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/kptdev/kpt/commands/fn"
	"github.com/kptdev/kpt/commands/pkg"
	"github.com/kptdev/kpt/pkg/lib/errors/resolver"
	"github.com/kptdev/kpt/pkg/printer"
	"github.com/spf13/cobra"
)

var version = "unknown"

func main() {
	root := &cobra.Command{Use: "kpt", SilenceUsage: true, SilenceErrors: true, Version: version}
	ctx := printer.WithContext(context.Background(), printer.New(root.OutOrStdout(), root.ErrOrStderr()))
	root.PersistentFlags().BoolVar(&printer.TruncateOutput, "truncate-output", true, "shorten long output")
	root.AddCommand(fn.GetCommand(ctx, "kpt"), pkg.GetCommand(ctx, "kpt"))
	if err := root.Execute(); err != nil {
		if known, ok := resolver.ResolveError(err); ok {
			fmt.Fprintln(os.Stderr, known.Message)
			os.Exit(known.ExitCode)
		}
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
