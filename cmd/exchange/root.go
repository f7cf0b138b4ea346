package main

import (
	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/cmd/exchange/operate"
	"exchange/cmd/exchange/serve"
	"exchange/config"
)

const rootHelp = `A trading exchange in one program.

` +
	"`exchange serve`" + ` runs it. The operator's commands use the operator's listener of a running one, and
need its bearer token: run them where the server runs, or with --operator https://... from elsewhere.
` +
	"`exchange restore`" + ` fills its store from a backup, while it does not run.

Exit codes:
   0  done
  64  the command line, the configuration or the request is wrong
  70  an invariant is broken, or stored data is damaged
  75  the store or the server cannot be reached, is locked, or the outcome is unknown: try again
  77  another process has taken over the store: started again, this one is its standby;
      or the node was removed from its cluster: do not start it again`

const clusterHelp = `Several nodes that keep one journal: one leads and serves, the others follow, and
one of them takes over when it dies.

  exchange cluster init FOLDER a=HOST:PORT b=HOST:PORT c=HOST:PORT
                                     makes the certificates and the secret key, once
  exchange cluster certify FOLDER d  makes those of a further node, or new ones
  exchange cluster certify FOLDER o1 --observer
                                     makes that of an observer, which is no node
  exchange cluster authority rotate FOLDER
                                     replaces the authority, if a key was stolen
  exchange cluster status            shows a running node's view of the cluster
  exchange cluster hash              shows a hash of a running node's state
  exchange cluster transfer [NODE]   has the node that leads hand the lead over
  exchange config apply              has all nodes agree on a file's pairs, fees and limits
  exchange cluster add d=HOST:PORT   has a further node join
  exchange cluster replace b d=HOST:PORT
                                     has another node, or the same one with an empty folder, take a
                                     node's place
  exchange cluster remove d          removes a node
  exchange cluster survive --yes     lets this node continue alone: the others' disks are gone

docs/operations/cluster.md describes how to run three nodes.`

// tree returns all commands.
func tree(p *cli.Program) *cobra.Command {
	root := &cobra.Command{Use: "exchange", Short: "A trading exchange in one program",
		Long: rootHelp}
	local, operator := serve.New(p), operate.New(p, root.PersistentFlags())
	root.AddCommand(local.TopLevel()...)
	root.AddCommand(operator.TopLevel()...)
	settings := cli.Group("config", "Print, check, reload or apply a configuration",
		append(local.OfConfig(), operator.OfConfig()...)...)
	settings.Long = "All options of `exchange serve`, by their keys in the " +
		"YAML file.\n\n" + config.Reference()
	cluster := cli.Group("cluster", "Make and run a cluster of nodes",
		append(local.OfCluster(), operator.OfCluster()...)...)
	cluster.Long = clusterHelp
	root.AddCommand(settings, cluster, versionCommand(p))
	return root
}
