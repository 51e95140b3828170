// Command coredns is CoreDNS with the plugins that the local node's Corefile uses.
//
// The stock binary carries cloud clients for a dozen plugins that the node never loads;
// leaving them out saves more than a minute of compilation.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func init() {
	dnsserver.Directives = []string{"bind", "errors", "kubernetes"}
}

func main() { coremain.Run() }
