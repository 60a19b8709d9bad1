package main

import (
	_ "embed"
	"errors"
	"os"
	"path/filepath"
)

// dockerfile makes an image of the command alone.
//
//go:embed Dockerfile
var dockerfile []byte

// imageDir is the folder with the context of the image.
const imageDir = "image"

// writeImage writes what docker build, or docker buildx for several platforms, makes the image from.
func (w *workspace) writeImage(d *distribution) error {
	context := filepath.Join(d.dir, imageDir)
	license, err := os.ReadFile(filepath.Join(w.root, "LICENSE"))
	if err != nil {
		return err
	}
	if err := errors.Join(
		os.MkdirAll(filepath.Join(context, "data"), 0o777),
		os.WriteFile(filepath.Join(context, "Dockerfile"), dockerfile, 0o666),
		os.WriteFile(filepath.Join(context, "LICENSE"), license, 0o666),
	); err != nil {
		return err
	}
	for _, a := range d.artifacts {
		if a.os != "linux" {
			continue
		}
		data, err := os.ReadFile(a.binary)
		if err != nil {
			return err
		}
		folder := filepath.Join(context, a.os, a.arch)
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, a.executable()), data, 0o755); err != nil {
			return err
		}
	}
	return nil
}
