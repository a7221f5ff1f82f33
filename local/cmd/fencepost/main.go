// Command fencepost is the whole product in one binary: server and command line.
package main

import (
	"os"

	"github.com/fencepost/fencepost/local/cli"
)

func main() {
	os.Exit(cli.Main())
}
