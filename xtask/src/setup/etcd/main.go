// Command etcd is the server of go.etcd.io/etcd/server/v3 as its authors start it: the module that holds their own main
// package is not one that a proxy serves by version.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
