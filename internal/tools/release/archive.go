package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// writeArchive writes the archive of a platform: the command and what belongs to it. Files have the date of the commit,
// so that the same commit makes the same archive.
func (d *distribution) writeArchive(a *artifact) error {
	binary, err := readTreeFile(a.binary, a.executable())
	if err != nil {
		return err
	}
	files := append([]treeFile{binary}, d.extras...)
	out, err := os.Create(filepath.Join(d.dir, a.file))
	if err != nil {
		return err
	}
	if strings.HasSuffix(a.file, ".zip") {
		err = d.writeZip(out, files)
	} else {
		err = d.writeTar(out, files)
	}
	return errors.Join(err, out.Close())
}

// modeOf returns the mode of a file in an archive: only the command, which comes first, can be executed.
func modeOf(index int) os.FileMode {
	if index == 0 {
		return 0o755
	}
	return 0o644
}

func (d *distribution) writeTar(out io.Writer, files []treeFile) error {
	compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(compressed)
	for i, f := range files {
		header := &tar.Header{
			Name: f.name, Mode: int64(modeOf(i)), Size: int64(len(f.data)), ModTime: d.date, Format: tar.FormatUSTAR,
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), compressed.Close())
}

func (d *distribution) writeZip(out io.Writer, files []treeFile) error {
	w := zip.NewWriter(out)
	for i, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: d.date}
		header.SetMode(modeOf(i))
		entry, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.data); err != nil {
			return err
		}
	}
	return w.Close()
}

// checksumFile lists the SHA-256 of all other files, as sha256sum does.
const checksumFile = "checksums.txt"

func (d *distribution) writeChecksums() error {
	names, err := distFiles(d.dir)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, name := range names {
		sum, err := fileSum(filepath.Join(d.dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, name)
	}
	return os.WriteFile(filepath.Join(d.dir, checksumFile), []byte(lines.String()), 0o666)
}

// distFiles returns the names of the files that have a checksum: all but the list itself and the folder of the image.
func distFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Name() != checksumFile && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func fileSum(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
