package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"time"
)

// A file is one in an archive.
type file struct {
	name       string
	content    []byte
	executable bool
}

func (f *file) mode() fs.FileMode {
	if f.executable {
		return 0o755
	}
	return 0o644
}

// tarGzip returns a compressed TAR archive. All files belong to root.
func tarGzip(files []file, modified time.Time) ([]byte, error) {
	var packed bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for i := range files {
		err := archive.WriteHeader(&tar.Header{
			Name: files[i].name, Mode: int64(files[i].mode()), Size: int64(len(files[i].content)), ModTime: modified,
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		})
		if err != nil {
			return nil, err
		}
		if _, err := archive.Write(files[i].content); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// zipped returns a ZIP archive.
func zipped(files []file, modified time.Time) ([]byte, error) {
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	for i := range files {
		header := &zip.FileHeader{Name: files[i].name, Method: zip.Deflate, Modified: modified}
		header.SetMode(files[i].mode())
		writer, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := writer.Write(files[i].content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
