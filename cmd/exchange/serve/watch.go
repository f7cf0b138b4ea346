package serve

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/gateway/edge"
	"exchange/gateway/operator"
)

// tasksName is the file in the data folder that holds the last backup and the last audit.
const tasksName = "tasks.json"

// tasksIn returns the data folder's record of the last backup and the last audit, and its writer.
// The process holds the folder.
func tasksIn(dir string, log *slog.Logger) operator.TaskStore {
	name := filepath.Join(dir, tasksName)
	text, err := cli.ReadOrdinary(name, operator.TaskStoreBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("the record of the last backup and audit is unreadable",
			"file", name, "error", err)
	}
	return operator.TaskStore{Text: text, Keep: func(text []byte) error {
		return cli.WriteBeside(dir, func(f *os.File) (string, error) {
			_, err := f.Write(text)
			return name, err
		})
	}}
}

// writtenFolders are those whose disks must not be full.
func writtenFolders(cfg *config.Config) []edge.Folder {
	list := []edge.Folder{{Name: "data", Path: cfg.Data}}
	store := cfg.PebbleFolder()
	if store != "" && filepath.Clean(store) != filepath.Clean(cfg.Data) {
		list = append(list, edge.Folder{Name: "store", Path: store})
	}
	if cfg.Archive != "" {
		list = append(list, edge.Folder{Name: "archive", Path: cfg.Archive})
	}
	return list
}
