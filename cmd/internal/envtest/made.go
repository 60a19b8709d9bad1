package envtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// recordName is the file in which MakeFolder records the files that it made in a folder, with a line for each version
// of a file:
//
//	"etcd" "/usr/bin/tenure"                     a link
//	"ownership-policy.yaml" "181 1767323045000"  a file, with its size and time
//	"ownership.txt" ""                           the report, to which kube-apiserver adds lines
const recordName = ".tenure-envtest"

// checkMade returns an error if a folder contains one of the named files, but not as MakeFolder made it.
func checkMade(folder string, names []string) error {
	slices.Sort(names)
	for _, name := range names {
		path := filepath.Join(folder, name)
		line, err := recordLine(name, path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		// Read the record only now, after the file: another process records a file before it makes the file.
		if !isRecorded(folder, line) {
			return fmt.Errorf("%s exists, and tenure envtest did not make it: "+
				"remove it, or use another folder with --dir", path)
		}
	}
	return nil
}

// recordLine returns the line of the record for a file with the given name and the content of the file at path.
func recordLine(name, path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	var content string
	switch {
	case name == reportName:
	case info.Mode().Type() == fs.ModeSymlink:
		if content, err = os.Readlink(path); err != nil {
			return "", err
		}
	default:
		content = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	}
	return fmt.Sprintf("%q %q\n", name, content), nil
}

func isRecorded(folder, line string) bool {
	record, err := os.ReadFile(filepath.Join(folder, recordName))
	return err == nil && slices.Contains(strings.SplitAfter(string(record), "\n"), line)
}

// install records a temporary file or link under the given name, and then renames it to this name.
func install(temporary, name string) error {
	if err := record(name, temporary); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}

// record adds a line to the record, for a file with the given name and the content of the file at path.
func record(name, path string) error {
	folder := filepath.Dir(name)
	line, err := recordLine(filepath.Base(name), path)
	if err != nil || isRecorded(folder, line) {
		return err
	}
	out, err := os.OpenFile(filepath.Join(folder, recordName), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = out.WriteString(line)
	return errors.Join(err, out.Close())
}
